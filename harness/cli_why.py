"""The command that says why a tool helped or not, from what it said in a run."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli_measure import names_in
from harness.exits import told


def why_command(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or its name under --results.")],
    judge: Annotated[str, typer.Option(help="An Inspect model; none: compare words only, offline.")] = "none",
    every_position: Annotated[
        bool, typer.Option("--every-position", help="Look at arms that were shown every position, too.")
    ] = False,
    arms: Annotated[str, typer.Option(help="Arms to look at. Default: all that read a tool.")] = "",
    claims: Annotated[Path | None, typer.Option(help="Claims folder. Default: the run's.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Most claims, the first by id.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars in all: the judge stops before, and resumes.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to what it costs, whatever that is.")] = False,
    prices: Annotated[Path | None, typer.Option(help="Price list. Default: the shipped one.")] = None,
    results: Annotated[Path, typer.Option(help="Folder that holds the runs.")] = Path("results"),
) -> None:
    """Say what a run's tool outputs state and hint, what that predicts, and which claims they moved."""
    with told(results):
        from claims.build.wild.money import PRICES
        from harness.why import Allowance, Wanted, explain

        folder = run if run.exists() else results / run
        wanted = Wanted(
            judge, claims, tuple(names_in(arms)), every_position, limit, Allowance(max_cost, yes, prices or PRICES)
        )
        typer.echo(explain(folder, wanted, say=_say), nl=False)
        _say(f"Everything is in {folder / 'why'}")


def _say(line: str) -> None:
    typer.echo(line, err=True)
