"""The commands that make, take in and check claims.

Invariant: nothing here measures a predictor; it hands over to `claims`.
"""

import dataclasses
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from claims.schema import Message
from harness.cli_discover import discover
from harness.cli_wild import wild
from harness.exits import told

claims_app = typer.Typer(no_args_is_help=True, help="Build, import, check claims; collect prompts for them.")
claims_app.command()(wild)
claims_app.command()(discover)
FAULTS = Path("results")


@claims_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def build(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="Full name of the target.")],
) -> None:
    """Measure a target's claims by sampling it; resumes. Options: --out --only --seed --screen-only --report."""
    with told(FAULTS):
        from claims.build.__main__ import parse
        from claims.build.pipeline import build as build_bank

        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
        build_bank(parse([target, *context.args]))


@claims_app.command(name="import")
def import_command(
    file: Annotated[Path, typer.Argument(help="CSV, JSON, JSON Lines or Parquet; a row is a claim.")],
    map_toml: Annotated[Path, typer.Option("--map", help="TOML file that says which column is what.")],
    out: Annotated[Path, typer.Option(help="The claims folder to make.")],
) -> None:
    """Take in claims that others published."""
    with told(FAULTS):
        from claims.build.importing import import_claims

        typer.echo(import_claims(file, map_toml, out).text(), nl=False)


@claims_app.command()
def check(folder: Annotated[Path, typer.Argument(help="A claims folder.")]) -> None:
    """Show the card of a claims folder and what is wrong with it; status 1 when something is."""
    with told(FAULTS):
        from claims.build.check import check_claims

        found = check_claims(folder)
        typer.echo(found.text(), nl=False)
        if found.problems:
            raise typer.Exit(1)


@claims_app.command()
def gallery(
    folder: Annotated[Path, typer.Argument(help="A claims folder.")],
    n_random: Annotated[
        int | None, typer.Option("--random", help="Draw this many investigations. Default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
    unverified: Annotated[bool, typer.Option(help="Also those that the judges did not accept.")] = False,
    out: Annotated[Path | None, typer.Option(help="The page. Default: gallery-<folder>.html here.")] = None,
) -> None:
    """Make one page of investigations to look at: prompt, edit, rates, explanation, every response."""
    with told(FAULTS):
        from claims.build.gallery import make_gallery
        from harness.files import write_text

        made = make_gallery(folder, n_random=n_random, seed=seed, unverified=unverified)
        page = out or Path(f"gallery-{folder.resolve().name}.html")
        write_text(page, made.html)
        size = page.stat().st_size / 1e6
        left_out = f", {made.n_unverified} not accepted by the judges left out" if made.n_unverified else ""
        typer.echo(f"{made.n_shown} of {made.n_all} investigations{left_out} in {page} ({size:.1f} MB)")


@claims_app.command()
def prompts(
    files: Annotated[list[Path], typer.Argument(help="Files of conversations, or logs of inspect-petri; not both.")],
    layout: Annotated[str | None, typer.Option("--format", help="Layout of the files. Default: detected.")] = None,
    out: Annotated[Path, typer.Option(help="Where the prompts go.")] = Path("prompts.jsonl"),
    first: Annotated[int | None, typer.Option(help="Take this many at most.")] = None,
    exclude: Annotated[Path | None, typer.Option(help="File of prompt ids to leave out.")] = None,
    target: Annotated[str | None, typer.Option(help="Target whose tokens count, for limits in tokens.")] = None,
) -> None:
    """Collect prompts from public layouts, with a count for every drop."""
    with told(FAULTS):
        from claims.prompts import collect_prompts, default_limits, read_excluded, save_prompts

        limits = default_limits(files, layout)
        collected = collect_prompts(
            files,
            format_name=layout,
            limits=limits if first is None else dataclasses.replace(limits, first=first),
            count_tokens=_token_counter(target) if target else None,
            excluded=read_excluded(exclude) if exclude else (),
        )
        save_prompts(collected, out)
        _show_funnel(collected.funnel.rows())
        roles = ", ".join(f"{count} {role}" for role, count in collected.roles.items())
        typer.echo(f"{len(collected.prompts)} prompts ({collected.n_cut} cut; messages: {roles}) in {out}")


def _show_funnel(rows: list[dict[str, object]]) -> None:
    table = Table("reason", "dropped", "left")
    for row in rows:
        table.add_row(*(str(row[name]) for name in ("reason", "dropped", "left")))
    Console().print(table)


def _token_counter(name: str) -> Callable[[tuple[Message, ...]], int]:
    """Count the tokens of a prompt as a target sees it."""
    from claims.build.importing.tokens import make_encode
    from tools.targets import get_target

    encode = make_encode(get_target(name))
    return lambda messages: len(encode(messages, ""))
