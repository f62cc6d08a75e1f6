"""What a report is made of, read from the files of one run.

Invariant: `manifest.json`, `outcomes.jsonl`, `uplift.json` and `table.md` are the only sources of a number; nothing is
measured again here.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from claims.schema import Row, UserError, read_rows
from harness.arms import BASELINE, arm_label, arm_place
from harness.manifest import Manifest, load_manifest

Interval = tuple[float | None, float | None, float | None]
"""Value, lower and upper bound; None where not defined."""


@dataclass(frozen=True)
class Series:
    """What is drawn in one colour: a setting without its repetition."""

    predictor: str
    """Name of the predictor."""
    arm: str
    """Name of the arm."""
    calls: int
    """Budget of tool calls; 0 without a tool."""
    positions: int
    """Most positions in one call; 0 where there is no such cap."""

    @property
    def place(self) -> tuple[object, ...]:
        """Order on the page."""
        return (self.predictor, arm_place(self.arm), self.calls, self.positions)

    @property
    def is_baseline(self) -> bool:
        """Whether the others are compared with it."""
        return self.arm == BASELINE


@dataclass(frozen=True)
class Answer:
    """One row of `outcomes.jsonl`."""

    series: Series
    """The setting."""
    epoch: int
    """Which repetition."""
    claim_id: str
    """The claim."""
    cluster_id: str
    """What is resampled."""
    investigation_id: str
    """The claim's investigation."""
    label: bool
    """The measured truth."""
    outcome: str
    """One of `agents.outcome.OUTCOMES`."""
    p_true: float | None
    """In [0, 1]; None unless answered."""
    calls_used: int
    """Tool calls that were charged."""
    input_tokens: int
    """Read by the predictor."""
    output_tokens: int
    """Written by it."""
    dollars: float | None
    """What it cost; None where no price is known or nothing was recorded."""

    @property
    def right(self) -> bool | None:
        """Whether the answer lies on the right side of 0.5; None without one, and at 0.5 exactly."""
        return None if self.p_true is None or self.p_true == 0.5 else (self.p_true > 0.5) == self.label


@dataclass(frozen=True)
class Estimated:
    """One object of `uplift.json`."""

    series: Series
    """The setting."""
    fidelity: str | None
    """`demo`, `released` or `foreign`; None without a tool."""
    auroc: Interval
    """Value, lower and upper bound."""
    uplift: Interval
    """Likewise, against the baseline; None for the baseline itself."""
    over_sham: Interval
    """Likewise, against the tool's sham; None where there is none."""
    n_claims: int
    """Claims of the headline."""
    n_true: int
    """How many are true."""
    n_clusters: int
    """Clusters."""
    n_excluded: int
    """Claims that could not be used."""
    accuracy: float | None
    """Share on the right side of 0.5."""
    brier: float | None
    """Mean squared error."""
    notes: tuple[str, ...]
    """What a reader must know."""


@dataclass(frozen=True)
class RunFiles:
    """A run, as its files tell it."""

    folder: Path
    """The run's folder."""
    manifest: Manifest
    """How it was made."""
    answers: tuple[Answer, ...]
    """All rows."""
    estimates: tuple[Estimated, ...]
    """One a setting, in the order of the page."""
    headline: str
    """First line of the table."""
    about: str
    """What the table says of the run."""
    verdicts: tuple[str, ...]
    """What the table says in sentences."""

    @property
    def series(self) -> tuple[Series, ...]:
        """Settings in the order of the page."""
        return tuple(estimate.series for estimate in self.estimates)

    @property
    def margin(self) -> float | None:
        """The uplift that the run declared too small to matter; None where it declared none."""
        return _number(self.manifest.analysis, "margin")

    @property
    def labels(self) -> dict[Series, str]:
        """How each is called: by what tells it from the others."""
        return series_labels(self.series)


def series_labels(series: Iterable[Series]) -> dict[Series, str]:
    """Names of settings: the arm, its budget where it has one, the predictor where there are several."""
    listed = tuple(series)
    several = len({one.predictor for one in listed}) > 1
    return {
        one: arm_label(one.arm, one.calls, one.positions) + (f", {one.predictor}" if several else "") for one in listed
    }


def read_run(folder: Path) -> RunFiles:
    """The files of a run.

    Raises:
        UserError: It is no run, or its tables were not made yet.
    """
    manifest = load_manifest(folder)
    table = folder / "table.md"
    if not table.is_file():
        raise UserError(f"{folder} has no table yet. Make it with `uplift tables {folder}`.")
    lines = table.read_text(encoding="utf-8").split("\n")
    answers = tuple(_answer(row) for row in read_rows(folder / "outcomes.jsonl"))
    estimates = sorted(map(_estimated, _objects(folder / "uplift.json")), key=lambda one: one.series.place)
    return RunFiles(
        folder=folder,
        manifest=manifest,
        answers=answers,
        estimates=tuple(estimates),
        headline=lines[0],
        about=next((line for line in lines[1:] if line.startswith("Run ")), ""),
        verdicts=tuple(line.removeprefix("- ") for line in lines if line.startswith("- ")),
    )


def _objects(path: Path) -> list[Row]:
    values = json.loads(path.read_text(encoding="utf-8"))
    return [Row(value, f"{path.name}[{number}]") for number, value in enumerate(values)]


def _series(row: Row) -> Series:
    return Series(row.text("predictor"), row.text("arm"), row.count("calls"), row.count("positions"))


def _answer(row: Row) -> Answer:
    return Answer(
        series=_series(row),
        epoch=_count(row, "epoch"),
        claim_id=row.text("claim_id"),
        cluster_id=row.text("cluster_id"),
        investigation_id=row.text("investigation_id"),
        label=row.flag("label"),
        outcome=row.text("outcome"),
        p_true=_number(row.values, "p_true"),
        calls_used=row.count("calls_used"),
        input_tokens=row.count("input_tokens"),
        output_tokens=row.count("output_tokens"),
        dollars=_number(row.values, "dollars"),
    )


def _estimated(row: Row) -> Estimated:
    sham = row.values.get("tool_minus_sham")
    over = sham if isinstance(sham, dict) else {}
    return Estimated(
        series=_series(row),
        fidelity=row.optional_text("fidelity"),
        auroc=_interval(row.values, "auroc", "auroc_low", "auroc_high"),
        uplift=_interval(row.values, "uplift", "low", "high"),
        over_sham=_interval(over, "value", "low", "high"),
        n_claims=row.count("n_claims"),
        n_true=row.count("n_true"),
        n_clusters=row.count("n_clusters"),
        n_excluded=row.count("n_excluded"),
        accuracy=_number(row.values, "accuracy"),
        brier=_number(row.values, "brier"),
        notes=row.texts("notes"),
    )


def _interval(values: Mapping[str, object], *names: str) -> Interval:
    value, low, high = (_number(values, name) for name in names)
    return value, low, high


def _number(values: Mapping[str, object], name: str) -> float | None:
    value = values.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(row: Row, name: str) -> int:
    return row.count(name) if name in row.values else 0
