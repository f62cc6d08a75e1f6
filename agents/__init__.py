"""Who predicts: prompts, the predictor loop, the models behind it, and the client of the tool servers."""
