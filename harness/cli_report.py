"""The command that makes the page of a run.

Invariant: it reads a run's files and calls no model.
"""

from pathlib import Path
from typing import Annotated

import typer

from harness.exits import told


def report_command(
    runs: Annotated[list[Path] | None, typer.Argument(help="Folders of runs. Default: every run.")] = None,
    results: Annotated[Path, typer.Option(help="Folder that holds the runs.")] = Path("results"),
) -> None:
    """Make the page of a run (report.html) and its figures for print, from its own files."""
    with told(results):
        from claims.schema import UserError
        from harness.report import write_report
        from harness.results import run_folders

        folders = runs or list(run_folders(results))
        if not folders:
            raise UserError(f"{results} holds no run. Run `uplift eval` first, or give --results another folder.")
        for folder in folders:
            typer.echo(write_report(folder if folder.exists() else results / folder))
