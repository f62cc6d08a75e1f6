"""The paper's Table 5: several predictors on the same claims, AUROC and uplift side by side.

A set of runs is a folder of its own beside them: it names the runs, and its table is made from their logs. Invariant:
runs are put side by side only when they asked about the very same claims.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from claims.schema import UserError
from harness.arm_result import ArmResult
from harness.arms import BASELINE, arm_label, arm_place
from harness.declared import Declared
from harness.files import write_text
from harness.manifest import Manifest, load_manifest
from harness.outcomes import read_outcomes
from harness.results import LOGS, TABLES, run_results
from harness.tabular import Cell, Column, Table, interval, nothing, write_tables

NAME = "families.json"


def save_families(runs: Sequence[Path], root: Path) -> Path:
    """Write down which runs belong together; the same runs are the same folder.

    Args:
        runs: Folders of runs, one a predictor.
        root: The results folder.
    """
    names = [run.name for run in runs]
    digest = hashlib.sha256("\x00".join(names).encode("utf-8")).hexdigest()[:8]
    folder = root / f"families-{load_manifest(runs[0]).settings['target']}-{digest}"
    write_text(folder / NAME, json.dumps({"runs": names}, indent=1) + "\n")
    return folder


def write_families(folder: Path) -> Table:
    """Make the table of a set of runs from their logs.

    Raises:
        UserError: A run is gone, or the runs asked about different claims.
    """
    runs = [folder.parent / name for name in json.loads((folder / NAME).read_text(encoding="utf-8"))["runs"]]
    manifests = [load_manifest(run) for run in runs]
    _check_same_claims(manifests)
    results = [
        result
        for run, manifest in zip(runs, manifests, strict=True)
        for result in run_results(manifest, Declared.of(manifest), read_outcomes(run / LOGS))
    ]
    table = families_table(results)
    write_tables([table], folder / TABLES)
    return table


def _check_same_claims(manifests: Sequence[Manifest]) -> None:
    asked = {(m.hashes["claim_set"], m.claims["n_used"], m.settings["limit"], m.settings["seed"]) for m in manifests}
    if len(asked) > 1:
        raise UserError(
            f"The runs {', '.join(m.run for m in manifests)} asked about different claims, so their numbers cannot "
            "stand in one table. Run all predictors with the same --claims, --limit, --seed and --filters."
        )


def families_table(results: Sequence[ArmResult]) -> Table:
    """AUROC of every predictor under every arm in its main setting, with its uplift over its own baseline."""
    predictors = list(dict.fromkeys(result.setting.predictor for result in results))
    keys = sorted({result.key for result in results}, key=lambda key: (arm_place(key[0]), key[1:]))
    at = {(result.setting.predictor, result.key): result for result in results}
    columns = [Column("arm", ("arm", "calls", "positions"))]
    for predictor in predictors:
        columns.append(Column(f"{predictor}: AUROC", _keys(predictor, "auroc")))
        columns.append(Column(f"{predictor}: uplift", _keys(predictor, "uplift")))
    rows = []
    for arm, calls, positions in keys:
        cells: list[Cell] = [Cell(arm_label(arm, calls, positions), (arm, calls, positions))]
        for predictor in predictors:
            cells += _pair(at.get((predictor, (arm, calls, positions))))
        rows.append(tuple(cells))
    notes = (
        f"uplift: over the same predictor's {BASELINE} arm, on the claims that both arms answered",
        "in brackets: 95 % intervals over clusters",
    )
    return Table("families", "AUROC by predictor and arm", tuple(columns), tuple(rows), notes)


def _keys(predictor: str, name: str) -> tuple[str, str, str]:
    return f"{predictor} {name}", f"{predictor} {name}_low", f"{predictor} {name}_high"


def _pair(result: ArmResult | None) -> list[Cell]:
    if result is None:
        return [nothing(3), nothing(3)]
    auroc, uplift = result.auroc, result.uplift
    shown = interval(auroc.value, auroc.low, auroc.high, signed=False)
    return [shown, nothing(3) if uplift is None else interval(uplift.value, uplift.low, uplift.high, signed=True)]


def family_folders(root: Path) -> list[Path]:
    """The sets of runs under a results folder, by name."""
    return sorted(path.parent for path in root.glob(f"*/{NAME}"))
