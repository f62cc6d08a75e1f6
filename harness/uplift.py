"""Outcomes to uplift: arms are paired by claim with the `transcript` arm of the same target and predictor.

Invariants: the headline uses the claims that both arms answered; a claim without an answer is never given a
probability; every estimate travels with its numbers of claims, investigations, clusters and exclusions; and the same
outcomes in another order give the same bytes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agents.outcome import OUTCOMES
from claims.schema import UserError
from harness.arms import BASELINE as BASELINE
from harness.arms import CEILING as CEILING
from harness.logs import Setting
from harness.outcomes import Outcome
from harness.seeding import keyed_rng
from harness.stats import MAX_ONE_CLASS_SHARE, Floats, Indices, accuracy, auroc, bootstrap, brier, percentile_interval

FEW_CLUSTERS = 20
"""Below this a percentile interval over clusters is known to be too narrow, and a note says so."""


@dataclass(frozen=True)
class Estimate:
    """One number with its interval and everything it rests on."""

    value: float
    """The point estimate; nan when it is not defined."""
    low: float
    """Lower bound; nan when not estimable."""
    high: float
    """Upper bound; nan when not estimable."""
    n_claims: int
    """Claims it was computed from."""
    n_true: int
    """How many of them are true."""
    n_investigations: int
    """Their investigations."""
    n_clusters: int
    """Their clusters, the units that were resampled."""
    n_excluded: int
    """Claims of the arms that could not be used."""
    one_class_share: float
    """Share of resamples that held one class only and were drawn again; nan when nothing was resampled."""
    notes: tuple[str, ...]
    """What a reader must know before using the number."""


@dataclass(frozen=True)
class ArmResult:
    """Everything that is reported of one setting."""

    setting: Setting
    """Target, predictor, arm, budget."""
    auroc: Estimate
    """On the claims of the headline."""
    baseline_auroc: float
    """The `transcript` arm's AUROC on the same claims; nan for that arm itself."""
    uplift: Estimate | None
    """AUROC minus the baseline's, paired; None for the baseline itself."""
    half_credit: Estimate | None
    """The same over all claims, every pair with an unanswered claim earning half; None for the baseline."""
    accuracy: float
    """Share on the right side of 0.5, on the claims of the headline."""
    brier: float
    """Mean squared error of the probabilities, on the claims of the headline."""
    outcome_counts: tuple[tuple[str, int], ...]
    """How many claims ended in which way, in the order of `OUTCOMES`, over all claims of the arm."""
    mean_calls_used: float
    """Tool calls charged per claim."""


@dataclass(frozen=True)
class _Frame:
    """Claims in the order of their ids, as arrays."""

    claim_ids: tuple[str, ...]
    labels: np.ndarray[tuple[int], np.dtype[np.bool_]]
    clusters: Indices
    n_investigations: int

    @classmethod
    def of(cls, rows: Iterable[Outcome]) -> "_Frame":
        ordered = sorted(rows, key=lambda row: row.claim_id)
        names = sorted({row.cluster_id for row in ordered})
        number = {name: index for index, name in enumerate(names)}
        return cls(
            claim_ids=tuple(row.claim_id for row in ordered),
            labels=np.array([row.label for row in ordered], dtype=np.bool_),
            clusters=np.array([number[row.cluster_id] for row in ordered], dtype=np.int64),
            n_investigations=len({row.investigation_id for row in ordered}),
        )

    @property
    def n_clusters(self) -> int:
        return int(self.clusters.max(initial=-1)) + 1

    def p_true(self, rows: dict[str, Outcome]) -> Floats:
        values = [rows[claim_id].p_true for claim_id in self.claim_ids]
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def compare(outcomes: Sequence[Outcome], *, seed: str) -> tuple[ArmResult, ...]:
    """Score every setting and compare it with the baseline of its target and predictor.

    All comparisons of one claim set share their resamples, as far as their clusters are the same.

    Args:
        outcomes: Rows of any number of settings, in any order.
        seed: What the draws are keyed by, such as the claim set's hash and the run's seed.

    Raises:
        UserError: A row comes twice, or arms disagree about what a claim is.
    """
    by_setting = _by_setting(outcomes)
    _check_one_claim_set(outcomes)
    baselines = {(s.target, s.predictor): rows for s, rows in by_setting.items() if s.arm == BASELINE}
    return tuple(
        _baseline_result(setting, rows, seed)
        if setting.arm == BASELINE
        else _arm_result(setting, rows, baselines.get((setting.target, setting.predictor), {}), seed)
        for setting, rows in by_setting.items()
    )


def _by_setting(outcomes: Sequence[Outcome]) -> dict[Setting, dict[str, Outcome]]:
    by_setting: dict[Setting, dict[str, Outcome]] = {}
    for row in sorted(outcomes, key=lambda row: (_place(row.setting), row.claim_id)):
        rows = by_setting.setdefault(row.setting, {})
        if row.claim_id in rows:
            raise UserError(f"Claim {row.claim_id!r} comes twice in the arm {row.setting.arm!r}. Keep one row a claim.")
        rows[row.claim_id] = row
    return by_setting


def _place(setting: Setting) -> tuple[str, str, int, Setting]:
    """Order of the tables: by predictor the baseline, the tools, the ceiling."""
    return setting.target, setting.predictor, {BASELINE: 0, CEILING: 2}.get(setting.arm, 1), setting


def _check_one_claim_set(outcomes: Sequence[Outcome]) -> None:
    known: dict[tuple[str, str], tuple[bool, str, str]] = {}
    for row in outcomes:
        facts = (row.label, row.cluster_id, row.investigation_id)
        if known.setdefault((row.setting.target, row.claim_id), facts) != facts:
            raise UserError(
                f"Claim {row.claim_id!r} has two labels, clusters or investigations in these outcomes: they come from "
                "different claim sets. Compare arms of one claim set only."
            )


def _baseline_result(setting: Setting, rows: dict[str, Outcome], seed: str) -> ArmResult:
    answered = [row for row in rows.values() if row.p_true is not None]
    frame = _Frame.of(answered)
    (estimate,) = _estimates(frame, [frame.p_true(rows)], None, len(rows) - len(answered), seed)
    return _result(setting, rows, frame, estimate)


def _arm_result(setting: Setting, rows: dict[str, Outcome], base: dict[str, Outcome], seed: str) -> ArmResult:
    shared = [row for claim_id, row in rows.items() if claim_id in base]
    answered = [row for row in shared if row.p_true is not None and base[row.claim_id].p_true is not None]
    n_all = len(rows.keys() | base.keys())
    frame, whole = _Frame.of(answered), _Frame.of(shared)
    arm, difference = _estimates(frame, [frame.p_true(rows)], frame.p_true(base), n_all - len(answered), seed)
    half = difference
    if len(answered) < len(shared):
        _, half = _estimates(whole, [whole.p_true(rows)], whole.p_true(base), n_all - len(shared), seed)
    return _result(setting, rows, frame, arm, auroc(frame.p_true(base), frame.labels), difference, half)


def _result(
    setting: Setting,
    rows: dict[str, Outcome],
    frame: _Frame,
    estimate: Estimate,
    baseline_auroc: float = float("nan"),
    uplift: Estimate | None = None,
    half_credit: Estimate | None = None,
) -> ArmResult:
    counts = Counter(row.outcome for row in rows.values())
    p_true = frame.p_true(rows)
    return ArmResult(
        setting=setting,
        auroc=estimate,
        baseline_auroc=baseline_auroc,
        uplift=uplift,
        half_credit=half_credit,
        accuracy=accuracy(p_true, frame.labels),
        brier=brier(p_true, frame.labels),
        outcome_counts=tuple((name, counts[name]) for name in OUTCOMES if counts[name]),
        mean_calls_used=sum(row.calls_used for row in rows.values()) / len(rows),
    )


def _estimates(
    frame: _Frame, arms: list[Floats], base: Floats | None, n_excluded: int, seed: str
) -> tuple[Estimate, ...]:
    """The AUROC of the one arm and, given a baseline, the paired difference."""
    scored = arms if base is None else [*arms, base]
    points = [auroc(p_true, frame.labels) for p_true in scored]
    resamples = bootstrap(scored, frame.labels, frame.clusters, rng=keyed_rng("bootstrap", seed))
    notes = _notes(frame, scored, resamples.one_class_share, estimable=resamples.estimable)
    pairs = [(points[0], resamples.aurocs[0])]
    if base is not None:
        pairs.append((points[0] - points[1], resamples.aurocs[0] - resamples.aurocs[1]))
    return tuple(
        Estimate(
            value,
            *(percentile_interval(draws) if resamples.estimable else (float("nan"), float("nan"))),
            n_claims=len(frame.claim_ids),
            n_true=int(frame.labels.sum()),
            n_investigations=frame.n_investigations,
            n_clusters=frame.n_clusters,
            n_excluded=n_excluded,
            one_class_share=resamples.one_class_share,
            notes=notes,
        )
        for value, draws in pairs
    )


def _notes(frame: _Frame, scored: list[Floats], one_class_share: float, *, estimable: bool) -> tuple[str, ...]:
    if not len(frame.labels):
        return ("no claim was answered in both arms, so nothing can be compared",)
    if frame.labels.all() or not frame.labels.any():
        kind = "true" if frame.labels.all() else "false"
        return (f"all {len(frame.labels)} claims are {kind}: AUROC is not defined with one class only",)
    notes = []
    if frame.n_clusters < 2:
        notes.append("one cluster only: the interval is not estimable")
    elif not estimable:
        notes.append(
            f"{one_class_share:.0%} of the resamples held one class only (over {MAX_ONE_CLASS_SHARE:.0%}): "
            "the interval is not estimable"
        )
    elif frame.n_clusters < FEW_CLUSTERS:
        notes.append(f"{frame.n_clusters} clusters: intervals from fewer than {FEW_CLUSTERS} tend to be too narrow")
    for whose, p_true in zip(("this", f"the {BASELINE}"), scored, strict=False):
        if np.ptp(p_true) == 0:
            constant = f"every answer of {whose} arm is {p_true[0]:g}"
            notes.append(f"{constant}, so its AUROC is 0.5 by definition and holds no information")
    return tuple(notes)
