"""Answers that another run of the same results folder paid for: taken over, never asked again.

Invariant: a log is taken only when it is complete and every axis of its setting is the same.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from inspect_ai.log import EvalLog

from harness.logs import Setting, answered, read_headers, setting_of
from harness.results import LOGS
from harness.task import Axes


def reuse_logs(axes: Mapping[Setting, Axes], folder: Path, root: Path) -> Iterator[str]:
    """Copy into a run what sibling runs hold of its settings; yields what to tell the user.

    Args:
        axes: The identity of every setting of the run.
        folder: Of the run.
        root: The results folder.
    """
    wanted = {setting: axis for setting, axis in axes.items() if setting not in _held(folder)}
    siblings = sorted(path.parent for path in root.glob("*/manifest.json") if path.parent != folder)
    for sibling in siblings:
        if not wanted:
            return
        for header in _complete(sibling, wanted):
            setting = setting_of(header)
            if wanted.pop(setting, None) is None:
                continue
            _copy(Path(header.location.removeprefix("file://")), folder / LOGS)
            yield f"The answers of {setting.label} are those of {sibling.name}, which asked exactly the same."


def _held(folder: Path) -> set[Setting]:
    return {setting_of(header) for header in read_headers(folder / LOGS)}


def _complete(sibling: Path, wanted: Mapping[Setting, Axes]) -> Iterator[EvalLog]:
    targets = {setting.target for setting in wanted}
    if not any(sibling.name.startswith(f"{target}-") for target in targets):
        return
    axes = [asdict(axis) for axis in wanted.values()]
    for header in read_headers(sibling / LOGS):
        if header.status != "success" or header.eval.task_args not in axes:
            continue
        if sum(1 for _ in answered(header)) == header.eval.task_args["n_claims"]:
            yield header


def _copy(log: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{log.name}.partial"
    shutil.copyfile(log, partial)
    partial.replace(folder / log.name)
