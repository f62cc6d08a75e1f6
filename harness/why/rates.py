"""Shares with intervals over clusters.

Invariant: a share is of things, its interval of clusters; where every cluster agrees the bootstrap knows nothing and
the exact interval of as many coin tosses as there are clusters stands in.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.seeding import keyed_rng
from harness.stats import LEVEL, N_RESAMPLES, Floats, Indices, percentile_interval

_NAN = float("nan")
_CHUNK = 1000


@dataclass(frozen=True)
class Rate:
    """A share of something."""

    value: float
    """In [0, 1]; nan of nothing."""
    low: float
    """Lower bound; nan with fewer than two clusters."""
    high: float
    """Upper bound; likewise."""
    part: float
    """How many."""
    whole: int
    """Of how many."""
    n_clusters: int
    """Clusters that hold any."""

    def as_row(self) -> dict[str, object]:
        """JSON-ready, null for nan."""
        return nulled(vars(self))


def nulled(values: Mapping[str, object]) -> dict[str, object]:
    """The same with null for nan, as JSON has it."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}


def rate(parts: Sequence[float], clusters: Sequence[str], *, key: tuple[str | int, ...]) -> Rate:
    """The mean of `parts`, each in [0, 1], with its interval from resampled clusters.

    Args:
        parts: One a thing.
        clusters: The cluster of each.
        key: What the draws are keyed by.
    """
    values = np.array(parts, dtype=np.float64)
    names, numbers = np.unique(np.array(clusters, dtype=np.str_), return_inverse=True)
    if not len(values):
        return Rate(_NAN, _NAN, _NAN, 0.0, 0, 0)
    value, part = float(values.mean()), float(values.sum())
    low, high = _interval(values, np.asarray(numbers, dtype=np.int64), len(names), key)
    return Rate(value, low, high, part, len(values), len(names))


def _interval(values: Floats, numbers: Indices, n_clusters: int, key: tuple[str | int, ...]) -> tuple[float, float]:
    if n_clusters < 2:
        return _NAN, _NAN
    reach = ((1 - LEVEL) / 2) ** (1 / n_clusters)
    if not values.any():
        return 0.0, 1 - reach
    if (values == 1).all():
        return reach, 1.0
    sums = np.bincount(numbers, weights=values, minlength=n_clusters).astype(np.float64)
    counts = np.bincount(numbers, minlength=n_clusters)
    rng = keyed_rng("rate", *key)
    draws = [_resampled(sums, counts, rng) for _ in range(N_RESAMPLES // _CHUNK)]
    return percentile_interval(np.concatenate(draws))


def _resampled(sums: Floats, counts: Indices, rng: np.random.Generator) -> Floats:
    drawn = rng.integers(len(sums), size=(_CHUNK, len(sums)))
    return np.asarray(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
