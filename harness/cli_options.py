"""The options of `uplift eval`, as people read them."""

from pathlib import Path
from typing import Annotated

import typer

Predictor = Annotated[
    str, typer.Option(help="`local`, or an Inspect model (anthropic/..., openai/..., google/..., vllm/...).")
]
Effort = Annotated[str, typer.Option(help="How hard the predictor thinks, where it can: low, medium, high.")]
Calls = Annotated[int | None, typer.Option(help="Tool calls per claim. Default: 5; local predictor: 1.")]
Positions = Annotated[int | None, typer.Option(help="Positions per call. Default: 32; local predictor: 8.")]
Limit = Annotated[int | None, typer.Option(help="Most claims: whole clusters drawn by seed, classes even.")]
Seed = Annotated[int, typer.Option(help="Of every draw: the limit's, the ceiling's, the sham's, bootstrap.")]
Arms = Annotated[
    str | None,
    typer.Option(help="Of transcript, transcript-2, <tool>, sham-<tool>, ceiling. Default: the 1st, 3rd and last."),
]
Profile = Annotated[str | None, typer.Option(help="`paper`: a family means the paper's target.")]
Filters = Annotated[
    str, typer.Option(help="none, paper, or some of concrete,balanced,reproduced,single-factor (wild claims).")
]
Epochs = Annotated[int, typer.Option(help="Repetitions of every arm; their AUROCs are averaged.")]
Margin = Annotated[
    float | None, typer.Option(help="Smallest uplift that would matter, declared with the run. Default: 0.05.")
]
AllPositions = Annotated[
    bool, typer.Option("--all-positions", help="Show the tool at every position at once (short transcripts).")
]
Split = Annotated[str, typer.Option(help="tune or eval: some of the clusters, the rest for the other.")]
SplitSeed = Annotated[int, typer.Option(help="Moves clusters between the two.")]
Prompts = Annotated[Path | None, typer.Option(help="Folder of prompts in place of the house's.")]
Server = Annotated[str | None, typer.Option(help="URL of a tool server that runs already.")]
MaxCost = Annotated[float | None, typer.Option(help="Dollars in all: the run stops before, and resumes.")]
Yes = Annotated[bool, typer.Option("--yes", help="Agree to what it costs, whatever that is.")]
BatchBaseline = Annotated[
    bool, typer.Option("--batch-baseline", help="The transcript arm through the batch API: half price, slow.")
]
Prices = Annotated[Path | None, typer.Option(help="Price list. Default: the shipped one.")]
EstimateOnly = Annotated[bool, typer.Option("--estimate-only", help="Show what it would cost and stop.")]
Hidden = Annotated[str | None, typer.Option(hidden=True)]
