"""`uplift claims discover`: investigations found by program."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.exits import told


def discover(
    target: Annotated[str, typer.Argument(help="Full name of the target.")],
    files: Annotated[list[Path], typer.Argument(help="Files of prompts in any public layout.")],
    out: Annotated[Path | None, typer.Option(help="The file to write. Default: where claims build reads it.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bank that will be built.")] = 0,
    first: Annotated[int | None, typer.Option(help="Take this many prompts at most.")] = None,
) -> None:
    """Find habits of a target's responses and edits that may move them; commit the file, then build."""
    with told(Path("results")):
        from claims.build.discover.launch import run

        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
        path, found = run(target, files, out=out, seed=seed, first=first)
        n_prompts = len({one.prompt_id for one in found})
        typer.echo(f"{len(found)} investigations of {n_prompts} prompts in {path}")
        typer.echo(f"Commit the file before you sample its edits: uplift claims build {target} --only 'auto-*'")
