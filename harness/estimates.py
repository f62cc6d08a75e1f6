"""Estimates on one set of claims: AUROCs, differences, accuracy, each with its interval and all it rests on.

Everything that is scored on the same claims shares its resamples. Repetitions of an arm enter by the mean of their
AUROCs, which is the AUROC of their mean pair credit, and never by the mean of their probabilities.

Invariants: every estimate travels with its numbers of claims, investigations, clusters and exclusions; the same
outcomes in another order give the same bytes.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.intervals import (
    BCa,
    DeLong,
    Equivalence,
    bca_interval,
    clustered_delong,
    equivalence,
    left_out,
    mean_credit,
)
from harness.outcomes import Outcome
from harness.seeding import keyed_rng
from harness.stats import (
    MAX_ONE_CLASS_SHARE,
    Flags,
    Floats,
    Indices,
    Resampler,
    auroc,
    pair_credit,
    percentile_interval,
    right_side,
)

FEW_CLUSTERS = 20
"""Below this a percentile interval over clusters is known to be too narrow, and a note says so."""
_NAN = float("nan")


@dataclass(frozen=True)
class Tests:
    """What a difference of two AUROCs is tested by, beside its percentile interval."""

    bca: BCa
    """The BCa interval, or the percentile one and why."""
    delong: DeLong
    """DeLong for clustered data, as a cross-check."""
    equivalence: Equivalence
    """Whether it is shown to be smaller than the declared margin."""

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference; nan when not estimable.

        It is DeLong's: without uplift, 5 % of these lie below 0.05, where 6 to 7 % of percentile intervals over a
        hundred clusters leave out zero (docs/calibration.md).
        """
        return self.delong.p_value


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
    tests: Tests | None = None
    """Of a difference; None for a single arm, or when not estimable."""


class Answers:
    """What one arm answered: by claim, its outcomes in the order of their repetitions."""

    def __init__(self, rows: Iterable[Outcome]) -> None:
        """Hold the outcomes of one arm, in order of claims and repetitions."""
        self.by_claim: dict[str, list[Outcome]] = {}
        for row in rows:
            self.by_claim.setdefault(row.claim_id, []).append(row)
        self.epochs = max((len(rows) for rows in self.by_claim.values()), default=0)

    def answered(self, claim_id: str) -> bool:
        """Whether the claim was answered in every repetition."""
        rows = self.by_claim.get(claim_id, ())
        return len(rows) == self.epochs and all(row.p_true is not None for row in rows)

    def p_true(self, claim_ids: Sequence[str]) -> tuple[Floats, ...]:
        """One array a repetition, in the order of `claim_ids`; nan where there is no answer."""
        rows = [self.by_claim.get(claim_id, []) for claim_id in claim_ids]
        return tuple(np.array([_p_true(row, epoch) for row in rows], dtype=np.float64) for epoch in range(self.epochs))


def _p_true(rows: Sequence[Outcome], epoch: int) -> float:
    value = rows[epoch].p_true if epoch < len(rows) else None
    return _NAN if value is None else value


@dataclass(frozen=True)
class Frame:
    """Claims in the order of their ids, as arrays, with their resamples."""

    claim_ids: tuple[str, ...]
    """In order."""
    labels: Flags
    """Shape (n_claims,)."""
    clusters: Indices
    """Shape (n_claims,), numbers from 0."""
    n_investigations: int
    """Different ones."""
    resampler: Resampler
    """Resamples of the clusters."""
    kept: dict[tuple[bytes, float], Floats] = field(default_factory=dict)
    """Resampled AUROCs that were computed already, by probabilities and rule for missing answers."""

    @classmethod
    def of(cls, rows: Iterable[Outcome], *, seed: str) -> "Frame":
        """The frame of some claims, one outcome each.

        Args:
            rows: In any order.
            seed: What the draws are keyed by; frames with the same clusters draw the same.
        """
        ordered = sorted(rows, key=lambda row: row.claim_id)
        number = {name: index for index, name in enumerate(sorted({row.cluster_id for row in ordered}))}
        labels = np.array([row.label for row in ordered], dtype=np.bool_)
        clusters = np.array([number[row.cluster_id] for row in ordered], dtype=np.int64)
        return cls(
            claim_ids=tuple(row.claim_id for row in ordered),
            labels=labels,
            clusters=clusters,
            n_investigations=len({row.investigation_id for row in ordered}),
            resampler=Resampler(labels, clusters, rng=keyed_rng("bootstrap", seed)),
        )

    @property
    def n_clusters(self) -> int:
        """Different clusters."""
        return len(self.resampler.classes) if len(self.labels) else 0

    def credit(self, p_true: Sequence[Floats], *, unanswered: float = 0.5) -> Floats:
        """Mean pair credit of an arm's repetitions."""
        return mean_credit([pair_credit(p, self.labels, self.clusters, unanswered=unanswered) for p in p_true])

    def draws(self, p_true: Sequence[Floats], *, unanswered: float = 0.5) -> Floats:
        """Resampled AUROCs of an arm, computed once."""
        key = (b"".join(p.tobytes() for p in p_true), unanswered)
        if key not in self.kept:
            self.kept[key] = self.resampler.aurocs(self.credit(p_true, unanswered=unanswered))
        return self.kept[key]

    def value(self, p_true: Sequence[Floats], *, unanswered: float = 0.5) -> float:
        """AUROC of an arm."""
        if unanswered == 0.5:
            return float(np.mean([auroc(p, self.labels) for p in p_true])) if p_true else _NAN
        n_pairs = float(np.prod(self.resampler.classes.sum(axis=0)))
        return float(self.credit(p_true, unanswered=unanswered).sum()) / n_pairs if n_pairs else _NAN


@dataclass(frozen=True)
class Side:
    """One arm of a comparison, on a frame."""

    p_true: tuple[Floats, ...]
    """One array a repetition."""
    name: str
    """How notes call it: `this arm`, `the transcript arm`."""
    unanswered: float = 0.5
    """Credit of a pair that an unanswered claim is part of."""


def auroc_estimate(frame: Frame, arm: Side, *, n_excluded: int, beside: Sequence[Side] = ()) -> Estimate:
    """The AUROC of one arm.

    Args:
        frame: The claims.
        arm: What is scored.
        n_excluded: Claims that could not be used.
        beside: Other arms that notes are about, too.
    """
    value, draws = frame.value(arm.p_true), frame.draws(arm.p_true)
    return _estimate(frame, value, draws, n_excluded, (arm, *beside))


def difference(frame: Frame, arm: Side, base: Side, *, n_excluded: int, margin: float) -> Estimate:
    """AUROC of one arm minus another's, paired.

    Args:
        frame: The claims.
        arm: What is scored.
        base: What it is compared with.
        n_excluded: Claims that could not be used.
        margin: What counts as too small to matter.
    """
    value = frame.value(arm.p_true, unanswered=arm.unanswered) - frame.value(base.p_true, unanswered=base.unanswered)
    draws = frame.draws(arm.p_true, unanswered=arm.unanswered) - frame.draws(base.p_true, unanswered=base.unanswered)
    tests = _tests(frame, arm, base, value, draws, margin) if frame.resampler.estimable else None
    return _estimate(frame, value, draws, n_excluded, (arm, base), tests)


def _tests(frame: Frame, arm: Side, base: Side, value: float, draws: Floats, margin: float) -> Tests:
    credit = frame.credit(arm.p_true, unanswered=arm.unanswered)
    credit = credit - frame.credit(base.p_true, unanswered=base.unanswered)
    classes = frame.resampler.classes
    return Tests(
        bca=bca_interval(value, draws, left_out(credit, classes)),
        delong=clustered_delong(credit, classes),
        equivalence=equivalence(draws, margin),
    )


def accuracy_estimate(frame: Frame, arm: Side) -> tuple[float, float, float]:
    """Share of claims on the right side of 0.5, averaged over repetitions, with its interval over clusters."""
    right = np.mean([right_side(p, frame.labels) for p in arm.p_true], axis=0) if arm.p_true else np.array([])
    if not len(right):
        return _NAN, _NAN, _NAN
    sums = np.asarray(np.bincount(frame.clusters, weights=right), dtype=np.float64)
    value = float(right.mean())
    if frame.n_clusters < 2 or not frame.resampler.drawn:
        return value, _NAN, _NAN
    low, high = percentile_interval(frame.resampler.means(sums, frame.resampler.classes.sum(axis=1)))
    return value, low, high


def _estimate(
    frame: Frame, value: float, draws: Floats, n_excluded: int, sides: Sequence[Side], tests: Tests | None = None
) -> Estimate:
    resampler = frame.resampler
    low, high = percentile_interval(draws) if resampler.estimable else (_NAN, _NAN)
    return Estimate(
        value,
        low,
        high,
        n_claims=len(frame.claim_ids),
        n_true=int(frame.labels.sum()),
        n_investigations=frame.n_investigations,
        n_clusters=frame.n_clusters,
        n_excluded=n_excluded,
        one_class_share=resampler.one_class_share,
        notes=_notes(frame, sides),
        tests=tests,
    )


def _notes(frame: Frame, sides: Sequence[Side]) -> tuple[str, ...]:
    if not len(frame.labels):
        return ("no claim was answered in both arms, so nothing can be compared",)
    if frame.labels.all() or not frame.labels.any():
        kind = "true" if frame.labels.all() else "false"
        return (f"all {len(frame.labels)} claims are {kind}: AUROC is not defined with one class only",)
    notes = []
    share = frame.resampler.one_class_share
    if frame.n_clusters < 2:
        notes.append("one cluster only: the interval is not estimable")
    elif not frame.resampler.estimable:
        notes.append(
            f"{share:.0%} of the resamples held one class only (over {MAX_ONE_CLASS_SHARE:.0%}): "
            "the interval is not estimable"
        )
    elif frame.n_clusters < FEW_CLUSTERS:
        notes.append(f"{frame.n_clusters} clusters: intervals from fewer than {FEW_CLUSTERS} tend to be too narrow")
    return (*notes, *filter(None, map(_constant, sides)))


def _constant(side: Side) -> str:
    """What to say of an arm whose answers are all the same; empty where they are not."""
    answers = np.concatenate(side.p_true) if side.p_true else np.array([])
    answers = answers[~np.isnan(answers)]
    if not len(answers) or math.isnan(answers[0]) or np.ptp(answers) > 0:
        return ""
    return f"every answer of {side.name} is {answers[0]:g}, so its AUROC is 0.5 by definition and holds no information"
