"""The command that finds claims in real prompts with language models.

Invariant: the estimate is shown before anything is paid, and progress goes to standard error only.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from claims.schema import UserError
from harness.exits import told

if TYPE_CHECKING:
    from claims.build.wild.launch import WildOptions
    from claims.build.wild.pipeline import Progress as Told
    from claims.build.wild.server_engine import Server

FAULTS = Path("results")


def wild(
    files: Annotated[list[str], typer.Option("--prompts", help="File of prompts; repeat. Profile paper: format=FILE.")],
    target: Annotated[str, typer.Option(help="Target or family whose behaviour is investigated.")],
    out: Annotated[Path, typer.Option(help="The claims folder to make.")],
    profile: Annotated[str | None, typer.Option(envvar="PROFILE", help="paper: the paper's run.")] = None,
    regime: Annotated[str, typer.Option(help="evaluation (n 30, 5 judges) or training (10, 1).")] = "evaluation",
    n: Annotated[int | None, typer.Option("-n", help="Responses of every prompt. Default: the regime's.")] = None,
    first: Annotated[int | None, typer.Option(help="Take this many prompts at most.")] = None,
    exclude: Annotated[Path | None, typer.Option(help="File of prompt ids to leave out.")] = None,
    seed: Annotated[int, typer.Option(help="Of responses and of every choice by chance.")] = 0,
    model: Annotated[str | None, typer.Option(help="One model for every role. Default: the paper's models.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="ROLE=MODEL; repeat.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars in all; the run stops before and resumes.")] = None,
    prices: Annotated[Path | None, typer.Option(help="Price list. Default: the shipped one.")] = None,
    work: Annotated[Path | None, typer.Option(help="Where replies and responses are kept between runs.")] = None,
    server: Annotated[str | None, typer.Option(help="URL (with /v1) of a server that runs the target.")] = None,
    served_model: Annotated[str | None, typer.Option(help="Its name there. Default: the checkpoint's.")] = None,
    dialect: Annotated[str, typer.Option(help="vllm, or openai for what has the public protocol only.")] = "vllm",
    in_flight: Annotated[int, typer.Option(help="Requests to the target's server at a time.")] = 64,
    thinking: Annotated[bool, typer.Option(help="The target thinks before it answers.")] = False,
    reproduce_all: Annotated[bool, typer.Option(help="Reproduce the edits outside the balanced set too.")] = False,
    estimate_only: Annotated[bool, typer.Option(help="Show what it would cost and stop.")] = False,
) -> None:
    """Turn real prompts into labelled claims with models that investigate; stops and resumes at any point."""
    with told(FAULTS):
        from claims.build.wild.launch import Models, WildOptions
        from claims.build.wild.money import PRICES

        models = Models(model, _roles(role or []), max_cost, prices or PRICES, work)
        options = WildOptions(
            target,
            tuple(files),
            out,
            profile,
            regime,
            n,
            first,
            exclude,
            seed,
            thinking,
            reproduce_all,
            models,
            _server(server, served_model or target, dialect, in_flight),
        )
        _run(options, estimate_only=estimate_only)


def _roles(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"--role {pair!r}: expected ROLE=MODEL, such as judge=anthropic/claude-opus-4-6.")
    return dict(pair.split("=", 1) for pair in pairs)


def _server(url: str | None, model: str, dialect: str, in_flight: int) -> "Server | None":
    from claims.build.wild.server_engine import Server
    from tools.targets import TARGETS

    if url is None:
        return None
    if dialect not in ("vllm", "openai"):
        raise UserError(f"Unknown dialect {dialect!r}. Expected vllm or openai.")
    kind: Literal["vllm", "openai"] = "vllm" if dialect == "vllm" else "openai"
    name = TARGETS[model].checkpoint if model in TARGETS else model
    return Server(url, name, kind, in_flight=in_flight)


def _run(options: "WildOptions", *, estimate_only: bool) -> None:
    from claims.build.wild.launch import prepare_run
    from claims.build.wild.pipeline import run_wild

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    ready = prepare_run(options)
    typer.echo(f"Estimate for {len(ready.plan.prompts):,} prompts:\n\n{ready.estimate}", err=not estimate_only)
    if estimate_only:
        return
    ready.lab.clerk.check_models()
    with _bars() as progress:
        result = run_wild(ready.plan, ready.lab, progress=progress)
    typer.echo(result.text)
    typer.echo(f"claims in {result.out}" if result.out else f"no claim came out; the record is in {ready.plan.work}")


@contextmanager
def _bars() -> "Iterator[Told]":
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done)

        yield advance
