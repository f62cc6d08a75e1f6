"""Every run of a results folder in one table: AUROC and accuracy by target, predictor and arm.

Invariant: it is put together from the tables of the runs, and holds no number of its own.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from harness.arms import arm_label
from harness.results import TABLES
from harness.tabular import Cell, Column, Table, count, interval, words, write_tables

FOLDER = "overview"


def write_overview(runs: Sequence[Path], root: Path) -> Table:
    """Put the `targets` tables of runs below each other, as `overview/targets.*`.

    Args:
        runs: Folders whose tables were made.
        root: The results folder.
    """
    rows = [
        (words(run.name), *_cells(row))
        for run in runs
        for row in json.loads((run / TABLES / "targets.json").read_text(encoding="utf-8"))["rows"]
    ]
    columns = (
        Column("run", ("run",)),
        Column("target", ("target",)),
        Column("predictor", ("predictor",)),
        Column("arm", ("arm", "calls", "positions")),
        Column("AUROC", ("auroc", "auroc_low", "auroc_high")),
        Column("accuracy", ("accuracy", "accuracy_low", "accuracy_high")),
        Column("claims", ("n_claims",)),
        Column("clusters", ("n_clusters",)),
    )
    notes = ("in brackets: 95 % intervals over clusters", "each run scores its own claims")
    table = Table("targets", "AUROC and accuracy, all runs", columns, tuple(rows), notes)
    write_tables([table], root / FOLDER)
    return table


def _cells(row: dict[str, str | int | float | None]) -> tuple[Cell, ...]:
    arm, calls, positions = str(row["arm"]), int(row["calls"] or 0), int(row["positions"] or 0)
    return (
        words(str(row["target"])),
        words(str(row["predictor"])),
        Cell(arm_label(arm, calls, positions), (arm, calls, positions)),
        _interval(row, "auroc"),
        _interval(row, "accuracy"),
        count(int(row["n_claims"] or 0)),
        count(int(row["n_clusters"] or 0)),
    )


def _interval(row: dict[str, str | int | float | None], name: str) -> Cell:
    value, low, high = (
        float("nan") if row[key] is None else float(str(row[key])) for key in (name, f"{name}_low", f"{name}_high")
    )
    return interval(value, low, high, signed=False)
