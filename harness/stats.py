"""The statistics: AUROC with mid-ranks, accuracy, Brier score, and the paired bootstrap over clusters.

Resampling clusters with multiplicities w turns the AUROC's numerator into the quadratic form w'Kw, where K[c, d]
is the credit of all pairs of a true claim in cluster c and a false claim in cluster d. One matrix product then
serves thousands of resamples. Credits are multiples of one half, so every sum is exact in floating point.

Invariants: a claim without an answer (nan) is never ranked, each pair it is part of earns half; both arms of a
comparison see the same resamples; a number that is not defined is nan.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

N_RESAMPLES = 10_000
"""Resamples behind every interval."""
LEVEL = 0.95
"""Coverage that an interval aims for."""
MAX_ONE_CLASS_SHARE = 0.05
"""With more resamples than this holding one class only, an interval is called not estimable."""

_CHUNK_BYTES = 4 * 2**20
_EXACT_FLOAT32 = 2**23


def auroc(p_true: Floats, labels: Flags) -> float:
    """Probability that a true claim outranks a false one, ties counting half; nan when one class is absent.

    Args:
        p_true: Shape (n_claims,), in [0, 1]; nan for no answer, which earns half in each of its pairs.
        labels: Shape (n_claims,).
    """
    clusters = np.zeros(len(labels), dtype=np.int64)
    n_pairs = int(labels.sum()) * int((~labels).sum())
    return float(pair_credit(p_true, labels, clusters)[0, 0] / n_pairs) if n_pairs else float("nan")


def accuracy(p_true: Floats, labels: Flags) -> float:
    """Share of answered claims on the right side of 0.5; exactly 0.5 counts half; nan without an answer."""
    answered = ~np.isnan(p_true)
    return float(np.mean(right_side(p_true[answered], labels[answered]))) if answered.any() else float("nan")


def right_side(p_true: Floats, labels: Flags) -> Floats:
    """1 where an answer is on the right side of 0.5, 0 where it is not, half for exactly 0.5: shape (n_claims,)."""
    return np.asarray(np.where(p_true == 0.5, 0.5, (p_true > 0.5) == labels), dtype=np.float64)


def brier(p_true: Floats, labels: Flags) -> float:
    """Mean squared distance from probability to label over answered claims; nan without an answer."""
    answered = ~np.isnan(p_true)
    if not answered.any():
        return float("nan")
    return float(np.mean((p_true[answered] - labels[answered]) ** 2))


def pair_credit(p_true: Floats, labels: Flags, clusters: Indices, *, unanswered: float = 0.5) -> Floats:
    """Credit of all (true, false) pairs, by the clusters of the two: shape (n_clusters, n_clusters).

    Args:
        p_true: Shape (n_claims,); nan for no answer.
        labels: Shape (n_claims,).
        clusters: Shape (n_claims,), cluster numbers from 0.
        unanswered: Credit of a pair that an unanswered claim is part of.
    """
    _check_shapes(p_true, labels, clusters)
    n_clusters = int(clusters.max(initial=-1)) + 1
    answered = ~np.isnan(p_true)
    above = labels & answered
    below = ~labels & answered
    p_above, cluster_above = p_true[above], clusters[above]
    credit = np.zeros((n_clusters, n_clusters))
    for cluster in np.unique(clusters[below]):
        ranked = np.sort(p_true[below & (clusters == cluster)])
        won = np.searchsorted(ranked, p_above, "left") + np.searchsorted(ranked, p_above, "right")
        credit[:, cluster] = np.bincount(cluster_above, weights=won / 2, minlength=n_clusters)
    every = np.outer(_count(labels, clusters, n_clusters), _count(~labels, clusters, n_clusters))
    ranked_pairs = np.outer(_count(above, clusters, n_clusters), _count(below, clusters, n_clusters))
    return np.asarray(credit + (every - ranked_pairs) * unanswered)


def _check_shapes(p_true: Floats, labels: Flags, clusters: Indices) -> None:
    if not p_true.shape == labels.shape == clusters.shape or p_true.ndim != 1:
        raise ValueError(
            f"p_true {p_true.shape}, labels {labels.shape} and clusters {clusters.shape} "
            "must have one shape (n_claims,)"
        )
    answered = p_true[~np.isnan(p_true)]
    if ((answered < 0) | (answered > 1)).any():
        raise ValueError("probabilities must lie in [0, 1]; write nan, not a sentinel, where there is no answer")


def _count(members: Flags, clusters: Indices, n_clusters: int) -> Floats:
    return np.bincount(clusters[members], minlength=n_clusters).astype(np.float64)


@dataclass(frozen=True)
class Resamples:
    """What a bootstrap over clusters gave."""

    aurocs: Floats
    """Shape (n_arms, n_resamples), each column one resample seen by every arm; nan when not estimable."""
    one_class_share: float
    """Share of first draws that held one class only and were drawn again."""
    estimable: bool
    """False with fewer than two clusters, one class, or too many one-class draws."""


class Resampler:
    """Resamples of whole clusters, drawn once and seen by everything that is scored on the same claims.

    A resample with one class only is drawn again; their share is kept, and above `MAX_ONE_CLASS_SHARE` nothing is
    estimable.
    """

    def __init__(
        self, labels: Flags, clusters: Indices, *, rng: np.random.Generator, n_resamples: int = N_RESAMPLES
    ) -> None:
        """Draw.

        Args:
            labels: Shape (n_claims,).
            clusters: Shape (n_claims,), cluster numbers from 0.
            rng: Source of the draws.
            n_resamples: Number of resamples, at least 1.
        """
        n_clusters = int(clusters.max(initial=-1)) + 1
        self.classes = np.stack([_count(labels, clusters, n_clusters), _count(~labels, clusters, n_clusters)], axis=1)
        self.n_resamples = n_resamples
        self.one_class_share = float("nan")
        self.drawn = n_clusters >= 2 and bool(self.classes.sum(axis=0).min() > 0)
        self._weights: list[Singles] = []
        if self.drawn:
            self._draw(n_clusters, rng)

    def _draw(self, n_clusters: int, rng: np.random.Generator) -> None:
        n_one_class = 0
        step = max(1, _CHUNK_BYTES // (8 * n_clusters))
        for start in range(0, self.n_resamples, step):
            n_rows = min(step, self.n_resamples - start)
            weights, redrawn = two_class_weights(self.classes, n_rows, rng=rng)
            n_one_class += redrawn
            self._weights.append(weights)
        self.one_class_share = n_one_class / self.n_resamples

    @property
    def estimable(self) -> bool:
        """Whether intervals over these resamples mean anything."""
        return self.drawn and self.one_class_share <= MAX_ONE_CLASS_SHARE

    def aurocs(self, credit: Floats) -> Floats:
        """AUROC on every resample: shape (n_resamples,); nan when there is none.

        Args:
            credit: From `pair_credit`, over the same claims.
        """
        return np.asarray(self.aurocs_of([credit])[0])

    def aurocs_of(self, arms: Sequence[Floats]) -> Floats:
        """AUROCs of several arms on every resample, at once: shape (n_arms, n_resamples)."""
        if not self.drawn:
            return np.full((len(arms), self.n_resamples), np.nan)
        stacked = np.concatenate(arms, axis=1)
        single = _single(stacked)
        return np.concatenate([_weighted(rows, stacked, single, self.classes) for rows in self._weights], axis=1)

    def means(self, sums: Floats, counts: Floats) -> Floats:
        """A mean on every resample: shape (n_resamples,).

        Args:
            sums: Sum of what is averaged, by cluster.
            counts: How many there are, by cluster.
        """
        if not self.drawn:
            return np.full(self.n_resamples, np.nan)
        return np.concatenate([weights @ sums / (weights @ counts) for weights in self._weights])


def bootstrap(
    arms: Sequence[Floats],
    labels: Flags,
    clusters: Indices,
    *,
    rng: np.random.Generator,
    n_resamples: int = N_RESAMPLES,
) -> Resamples:
    """Resample whole clusters with replacement and score every arm on each resample.

    Args:
        arms: One array of probabilities an arm, each of shape (n_claims,); nan for no answer.
        labels: Shape (n_claims,).
        clusters: Shape (n_claims,), cluster numbers from 0.
        rng: Source of the draws.
        n_resamples: Number of resamples, at least 1.
    """
    credit = [pair_credit(p_true, labels, clusters) for p_true in arms]
    resampler = Resampler(labels, clusters, rng=rng, n_resamples=n_resamples)
    return Resamples(resampler.aurocs_of(credit), resampler.one_class_share, resampler.estimable)


def two_class_weights(classes: Floats, n_rows: int, *, rng: np.random.Generator) -> tuple[Singles, int]:
    """Cluster multiplicities, shape (n_rows, n_clusters), and how many first draws held one class only.

    Args:
        classes: Shape (n_clusters, 2), true and false claims of each cluster; both classes must occur.
        n_rows: Number of resamples.
        rng: Source of the draws.
    """
    weights = _draw(len(classes), n_rows, rng)
    present = (classes > 0).astype(np.float32)
    one_class = np.flatnonzero((weights @ present).min(axis=1) == 0)
    n_one_class = len(one_class)
    while len(one_class):
        weights[one_class] = _draw(len(classes), len(one_class), rng)
        one_class = one_class[(weights[one_class] @ present).min(axis=1) == 0]
    return weights, n_one_class


def _draw(n_clusters: int, n_rows: int, rng: np.random.Generator) -> Singles:
    # 32-bit draws take a quarter of the time of 64-bit ones, and this is where a bootstrap spends most of it.
    places = rng.integers(n_clusters, size=(n_rows, n_clusters), dtype=np.uint32).astype(np.int64)
    places += np.arange(n_rows)[:, None] * n_clusters
    counts = np.bincount(places.ravel(), minlength=n_rows * n_clusters)
    return counts.reshape(n_rows, n_clusters).astype(np.float32)


def weighted_aurocs(weights: NDArray[np.floating], stacked: Floats, classes: Floats) -> Floats:
    """AUROC of every arm under every row of cluster weights: shape (n_arms, n_rows).

    Args:
        weights: Shape (n_rows, n_clusters); whole numbers.
        stacked: The arms' `pair_credit` side by side, shape (n_clusters, n_arms * n_clusters).
        classes: Shape (n_clusters, 2), true and false claims of each cluster.
    """
    return _weighted(weights, stacked, _single(stacked), classes)


def _single(stacked: Floats) -> Singles | None:
    """Credits in float32, twice as fast, where their sums can be exact in it: none but halves, none below zero."""
    halves = not (2 * stacked % 1).any() and bool((stacked >= 0).all())
    return stacked.astype(np.float32) if halves else None


def _weighted(weights: NDArray[np.floating], stacked: Floats, single: Singles | None, classes: Floats) -> Floats:
    n_rows, n_clusters = weights.shape
    sizes = weights.astype(np.float64) @ classes
    n_pairs = sizes[:, 0] * sizes[:, 1]
    # No partial sum exceeds the number of pairs, so below this bound every one is exact.
    exact = single is not None and n_pairs.max(initial=0) < _EXACT_FLOAT32
    chosen: NDArray[np.floating] = single if exact and single is not None else stacked
    rows = weights.astype(chosen.dtype)
    half = (rows @ chosen).reshape(n_rows, -1, n_clusters)
    numerators = np.stack([np.einsum("rc,rc->r", half[:, arm], rows) for arm in range(half.shape[1])])
    return np.asarray(numerators.astype(np.float64) / n_pairs)


def percentile_interval(values: Floats, *, level: float = LEVEL) -> tuple[float, float]:
    """The central `level` of the resampled values, as (low, high).

    Args:
        values: Shape (n_resamples,).
        level: In (0, 1).
    """
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
