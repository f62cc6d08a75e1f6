"""What a clue predicts, alone and beside the baseline.

Alone: its AUROC. Beside: two logistic regressions on the same claims, one on the logit of the baseline's probability,
one on that and the clue, both predicting clusters that they were not fitted on.

Invariants: every number of one clue rests on the same claims, those that have the clue and a baseline; log-loss and
AUROC of the two regressions are compared paired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import logit
from scipy.stats import rankdata

from harness.estimates import Answers, Estimate, Frame, Side, auroc_estimate, difference
from harness.outcomes import Outcome
from harness.stats import Flags, Floats, percentile_interval
from harness.uplift import MARGIN
from harness.why.clues import ClaimClues
from harness.why.logistic import cross_validated
from harness.why.rates import nulled

LEAST_P = 0.01
"""Probabilities nearer to 0 or 1 than this are taken for it before their logit."""
_NAN = float("nan")


@dataclass(frozen=True)
class LossGain:
    """Mean log-loss without the clue minus with it: above 0 where the clue helps."""

    value: float
    """In nats a claim; nan where it could not be cross-validated."""
    low: float
    """Lower bound over clusters."""
    high: float
    """Upper bound."""
    without: float
    """Mean log-loss of the regression on the baseline alone."""
    with_clue: float
    """Mean log-loss with the clue."""


@dataclass(frozen=True)
class Predicts:
    """What one clue predicts."""

    clue: str
    """Its name."""
    alone: Estimate
    """AUROC of the clue."""
    baseline: Estimate
    """AUROC of the baseline on the same claims."""
    added_auroc: Estimate | None
    """Regression with the clue minus the one without; None where nothing could be cross-validated."""
    added_loss: LossGain
    """Likewise in log-loss."""

    def as_row(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "clue": self.clue,
            "alone": estimate_row(self.alone),
            "baseline": estimate_row(self.baseline),
            "added_auroc": estimate_row(self.added_auroc) if self.added_auroc else None,
            "added_log_loss": nulled(asdict(self.added_loss)),
        }


def estimate_row(estimate: Estimate) -> dict[str, object]:
    """An estimate as JSON, null for nan."""
    kept = ("value", "low", "high", "n_claims", "n_true", "n_clusters", "n_excluded", "notes")
    values = {name: getattr(estimate, name) for name in kept}
    p_value = estimate.tests.p_value if estimate.tests else None
    return nulled({**values, "p_value": p_value})


def predicts(
    name: str,
    clues: Mapping[str, ClaimClues],
    baseline: Mapping[str, Sequence[Outcome]],
    *,
    n_asked: int,
    seed: str,
) -> Predicts:
    """What the clue `name` of one arm predicts.

    Args:
        name: One of `harness.why.clues.CLUES`.
        clues: By claim.
        baseline: Outcomes of the baseline by claim, one a repetition.
        n_asked: Claims that the arm was asked about.
        seed: What the draws are keyed by.
    """
    answers = Answers(row for rows in baseline.values() for row in rows)
    values = {claim_id: found.clue(name) for claim_id, found in clues.items()}
    used = [claim_id for claim_id, value in values.items() if value is not None and answers.answered(claim_id)]
    frame = Frame.of([baseline[claim_id][0] for claim_id in used], seed=seed)
    clue = np.array([values[claim_id] for claim_id in frame.claim_ids], dtype=np.float64)
    p_true = answers.p_true(frame.claim_ids)
    n_left = n_asked - len(used)
    added, loss = _added(frame, clue, _mean_logit(p_true, len(used)), n_left, seed)
    return Predicts(
        clue=name,
        alone=auroc_estimate(frame, Side((clue,), "this clue"), n_excluded=n_left),
        baseline=auroc_estimate(frame, Side(p_true, "the baseline"), n_excluded=n_left),
        added_auroc=added,
        added_loss=loss,
    )


def _mean_logit(p_true: Sequence[Floats], n_claims: int) -> Floats:
    """The baseline on the scale of a regression, its repetitions averaged there."""
    if not p_true:
        return np.zeros(n_claims)
    return np.asarray(np.mean([logit(np.clip(p, LEAST_P, 1 - LEAST_P)) for p in p_true], axis=0))


def _added(frame: Frame, clue: Floats, scores: Floats, n_excluded: int, seed: str) -> tuple[Estimate | None, LossGain]:
    if frame.n_clusters < 2 or frame.labels.all() or not frame.labels.any():
        return None, LossGain(_NAN, _NAN, _NAN, _NAN, _NAN)
    key = ("why", seed)
    plain = cross_validated(scores[:, None], frame.labels, frame.clusters, key=key)
    fuller = cross_validated(np.column_stack([scores, clue]), frame.labels, frame.clusters, key=key)
    sides = (
        Side((_placed(fuller.ranking),), "the regression with the clue"),
        Side((_placed(plain.ranking),), "the one without"),
    )
    added = difference(frame, *sides, n_excluded=n_excluded, margin=MARGIN)
    return added, _loss_gain(frame, plain.p_true, fuller.p_true)


def _placed(ranking: Floats) -> Floats:
    """The same order with numbers from 0 to 1."""
    return np.asarray(rankdata(ranking) / (len(ranking) + 1))


def log_losses(p_true: Floats, labels: Flags) -> Floats:
    """Minus the log of the probability that was given to what is true, one a claim."""
    return np.asarray(-np.log(np.where(labels, p_true, 1 - p_true)), dtype=np.float64)


def _loss_gain(frame: Frame, plain: Floats, fuller: Floats) -> LossGain:
    without, with_clue = (log_losses(p, frame.labels) for p in (plain, fuller))
    gains = without - with_clue
    low = high = _NAN
    if frame.resampler.estimable:
        sums = np.asarray(np.bincount(frame.clusters, weights=gains), dtype=np.float64)
        low, high = percentile_interval(frame.resampler.means(sums, frame.resampler.classes.sum(axis=1)))
    return LossGain(float(gains.mean()), low, high, float(without.mean()), float(with_clue.mean()))
