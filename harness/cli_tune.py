"""The command that tries prompts and budgets out on clusters that no evaluation uses."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli_measure import names_in, numbers_in
from harness.exits import told

RESULTS = Path("results")


def tune_command(
    variants: Annotated[list[Path] | None, typer.Argument(help="Folders of prompts, beside those that ship.")] = None,
    tool: Annotated[str, typer.Option(help="Tool, or several with commas between.")] = "sae",
    target: Annotated[str, typer.Option(help="A target, or a family.")] = "gemma",
    predictor: Annotated[str, typer.Option(help="`local`, or an Inspect model.")] = "local",
    calls: Annotated[str, typer.Option(help="Numbers of tool calls to try, such as 1,5.")] = "",
    positions: Annotated[str, typer.Option(help="Numbers of positions to try, such as 8,32.")] = "",
    limit: Annotated[int | None, typer.Option(help="Most claims, of the split.")] = None,
    claims: Annotated[Path | None, typer.Option(help="Claims folder. Default: the target's own bank.")] = None,
    seed: Annotated[int, typer.Option(help="Of every draw but the split's.")] = 0,
    split_seed: Annotated[int, typer.Option(help="Moves clusters between the halves.")] = 0,
    arms: Annotated[str | None, typer.Option(help="Default: transcript,<tool>,ceiling.")] = None,
    server: Annotated[str | None, typer.Option(help="URL of a tool server that runs already.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars for all variants: stops before, resumes.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to what it costs, whatever that is.")] = False,
    prices: Annotated[Path | None, typer.Option(help="Price list. Default: the shipped one.")] = None,
    results: Annotated[Path, typer.Option(help="Folder that holds the runs.")] = RESULTS,
) -> None:
    """Try prompts and budgets on the split `tune`; `uplift eval --split eval` then uses the clusters it never saw."""
    with told(results):
        from harness.money.session import Money
        from harness.plan import Request
        from harness.settings import Grid
        from harness.tune import tune

        listed = tuple(names_in(arms)) if arms else None
        grid = Grid(numbers_in(calls, "--calls"), numbers_in(positions, "--positions"))
        request = Request(
            tool, target, predictor, None, None, limit, claims, seed, listed, None, grid=grid, split_seed=split_seed
        )
        money = Money(max_cost, prices, yes=yes, confirm=typer.confirm if sys.stdin.isatty() else None)
        finished = tune(request, variants or [], results.resolve(), url=server, say=_say, money=money)
        typer.echo(finished.report, nl=False)
        _say(f"The report is in {finished.folder}")


def _say(line: str) -> None:
    typer.echo(line, err=True)
