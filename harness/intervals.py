"""Second opinions on an AUROC or a difference of two: BCa, DeLong for clustered data, p-values, Holm, equivalence.

Everything starts from a matrix of pair credit by cluster (`harness.stats.pair_credit`); a difference of two AUROCs on
the same claims is the difference of their matrices, so one formula serves both.

Invariant: what is not defined is nan, and says why.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from harness.stats import LEVEL, Floats, percentile_interval


@dataclass(frozen=True)
class BCa:
    """A bias-corrected and accelerated interval, or the percentile interval under its own name."""

    low: float
    """Lower bound."""
    high: float
    """Upper bound."""
    fallback: str
    """Why the percentile interval stands here; empty where BCa is defined."""


@dataclass(frozen=True)
class DeLong:
    """A normal interval from the variance of clustered data (Obuchowski 1997)."""

    standard_error: float
    """Of the AUROC or the difference; nan when not estimable."""
    low: float
    """Lower bound."""
    high: float
    """Upper bound."""
    p_value: float
    """Two-sided, of the value being `null`; 1 where nothing differs from it in any cluster, nan when not estimable."""


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests: is the difference smaller than a margin, in both directions?"""

    margin: float
    """What was declared too small to matter."""
    low: float
    """Lower bound of the interval with twice the tail, 90 % for 5 % tests."""
    high: float
    """Its upper bound."""
    shown: bool
    """Whether that interval lies within the margin on both sides."""


def left_out(credit: Floats, classes: Floats) -> Floats:
    """The value without each cluster in turn: shape (n_clusters,); nan where one class is left.

    Args:
        credit: Shape (n_clusters, n_clusters).
        classes: Shape (n_clusters, 2), true and false claims of each cluster.
    """
    sums = credit.sum() - credit.sum(axis=0) - credit.sum(axis=1) + credit.diagonal()
    n_true, n_false = (classes.sum(axis=0) - classes).T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(n_true * n_false > 0, sums / (n_true * n_false), np.nan))


def bca_interval(value: float, draws: Floats, leave_one_out: Floats, *, level: float = LEVEL) -> BCa:
    """The BCa interval of a value, where it is defined.

    Args:
        value: On all claims.
        draws: Resampled values, shape (n_resamples,).
        leave_one_out: Values without each cluster in turn.
        level: In (0, 1).
    """
    low, high = percentile_interval(draws, level=level)
    below = float(np.mean(draws < value) + np.mean(draws == value) / 2)
    if not 0 < below < 1:
        return BCa(low, high, "every resample lies on one side of the estimate")
    if np.isnan(leave_one_out).any():
        return BCa(low, high, "without one of the clusters only one class is left")
    spread = leave_one_out.mean() - leave_one_out
    scale = float((spread**2).sum()) ** 1.5
    if scale < 1e-30:
        return BCa(low, high, "no cluster moves the estimate when it is left out")
    bias, acceleration = float(ndtri(below)), float((spread**3).sum()) / (6 * scale)
    tails = []
    for z in (float(ndtri((1 - level) / 2)), float(ndtri((1 + level) / 2))):
        shrink = 1 - acceleration * (bias + z)
        if shrink <= 0:
            return BCa(low, high, "the acceleration is too large")
        tails.append(float(ndtr(bias + (bias + z) / shrink)))
    bounds = np.quantile(draws, tails)
    return BCa(float(bounds[0]), float(bounds[1]), "")


def clustered_delong(credit: Floats, classes: Floats, *, null: float = 0.0, level: float = LEVEL) -> DeLong:
    """The interval from Obuchowski's variance of an AUROC, or of a difference, over clusters.

    Each cluster's sum of its true claims' winning shares, and of its false claims', is a sample of its own; the two are
    correlated through the clusters that hold both.

    Args:
        credit: Of one arm, or of one arm minus another's; shape (n_clusters, n_clusters).
        classes: Shape (n_clusters, 2), true and false claims of each cluster.
        null: What the p-value tests against.
        level: In (0, 1).
    """
    n_true, n_false = classes.sum(axis=0)
    with_true, with_false, n_clusters = (classes[:, 0] > 0).sum(), (classes[:, 1] > 0).sum(), len(classes)
    if min(with_true, with_false) < 2:
        return DeLong(math.nan, math.nan, math.nan, math.nan)
    value = credit.sum() / (n_true * n_false)
    by_true = credit.sum(axis=1) / n_false - classes[:, 0] * value
    by_false = credit.sum(axis=0) / n_true - classes[:, 1] * value
    variance = (
        with_true / (with_true - 1) * (by_true @ by_true) / n_true**2
        + with_false / (with_false - 1) * (by_false @ by_false) / n_false**2
        + 2 * n_clusters / (n_clusters - 1) * (by_true @ by_false) / (n_true * n_false)
    )
    error = math.sqrt(max(float(variance), 0.0))
    reach = float(ndtri((1 + level) / 2)) * error
    distance = abs(float(value) - null)
    p_value = 2 * float(ndtr(-distance / error)) if error > 0 else 1.0 if distance == 0 else math.nan
    return DeLong(error, float(value - reach), float(value + reach), p_value)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values of a family of hypotheses, by Holm's step-down; nan stays out of the count.

    Args:
        p_values: By hypothesis.
    """
    adjusted = dict.fromkeys(p_values, math.nan)
    tested = sorted((p, name) for name, p in p_values.items() if not math.isnan(p))
    so_far = 0.0
    for rank, (p, name) in enumerate(tested):
        so_far = max(so_far, min(1.0, (len(tested) - rank) * p))
        adjusted[name] = so_far
    return adjusted


def equivalence(draws: Floats, margin: float, *, level: float = LEVEL) -> Equivalence:
    """Whether a difference is shown to be smaller than `margin`, by two one-sided tests.

    Args:
        draws: Resampled differences, shape (n_resamples,).
        margin: Above 0, declared before the run.
        level: One minus the size of each test.
    """
    low, high = percentile_interval(draws, level=2 * level - 1)
    return Equivalence(margin, low, high, -margin < low and high < margin)


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact p-value of a fair coin, from how often each side came up (McNemar's exact test)."""
    n = better + worse
    tail = sum(math.comb(n, k) for k in range(min(better, worse) + 1)) / 2**n if n else 1.0
    return min(1.0, 2 * tail)


def mean_credit(each: Sequence[Floats]) -> Floats:
    """The credit of the mean of several AUROCs over the same claims."""
    total = np.sum(each, axis=0)
    return np.asarray(total / len(each)) if len(each) > 1 else np.asarray(total)
