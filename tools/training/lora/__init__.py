"""Training of the activation oracle and of the natural-language autoencoder of a local target: LoRA on the target.

Invariant: what is asked about a text is known from how the text was made, or stands in it; no model judges.
"""
