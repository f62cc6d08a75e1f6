"""Simulated predictors whose AUROC, uplift, correlation, clustering and ties are known, to calibrate the instrument.

Scores are normal: a true claim lies `distance` higher; claims of a cluster share part of their deviation, and two arms
share part of theirs. Answers are the scores on the scale of probabilities, rounded to a grid where ties are wanted.

Invariant: `truth` is computed from the design, never from draws.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from harness.stats import Flags, Floats, Indices

_NODES = 60


@dataclass(frozen=True)
class Design:
    """What is simulated."""

    n_clusters: int = 100
    """Clusters; half of them true where a cluster's claims share their label."""
    size: int = 4
    """Claims a cluster."""
    auroc: float = 0.7
    """Of the baseline, between claims of different clusters and before rounding."""
    uplift: float = 0.0
    """Of the arm over the baseline, likewise."""
    between_arms: float = 0.7
    """Correlation of the two arms' deviations."""
    within_clusters: float = 0.5
    """Correlation of the deviations of claims of one cluster."""
    one_label: bool = True
    """Whether the claims of a cluster share their label; else every other claim is true."""
    step: float = 0.0
    """Grid that answers are rounded to; 0 for none."""

    @cached_property
    def labels(self) -> Flags:
        """Shape (n_claims,)."""
        if self.one_label:
            return np.asarray(np.repeat(np.arange(self.n_clusters) % 2 == 0, self.size))
        return np.asarray(np.arange(self.n_clusters * self.size) % 2 == 0)

    @cached_property
    def clusters(self) -> Indices:
        """Shape (n_claims,)."""
        return np.repeat(np.arange(self.n_clusters), self.size)

    @property
    def distances(self) -> tuple[float, float]:
        """How much higher true claims lie, for the arm and for the baseline."""
        arm, base = (math.sqrt(2) * float(ndtri(auroc)) for auroc in (self.auroc + self.uplift, self.auroc))
        return arm, base

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Answers of the arm and of the baseline, each of shape (n_claims,)."""
        shared = np.repeat(self._pair(rng, self.n_clusters), self.size, axis=1)
        own = self._pair(rng, len(self.labels))
        noise = math.sqrt(self.within_clusters) * shared + math.sqrt(1 - self.within_clusters) * own
        arm, base = (
            self._rounded(ndtr(self.labels * distance + row - distance / 2))
            for distance, row in zip(self.distances, noise, strict=True)
        )
        return arm, base

    def _pair(self, rng: np.random.Generator, n: int) -> Floats:
        """Two rows of standard normal numbers with the arms' correlation."""
        first, second = rng.normal(size=(2, n))
        rest = math.sqrt(1 - self.between_arms**2)
        return np.stack([first, self.between_arms * first + rest * second])

    def _rounded(self, p_true: Floats) -> Floats:
        return np.round(p_true / self.step) * self.step if self.step else p_true

    @cached_property
    def truth(self) -> tuple[float, float]:
        """Expected AUROC of the arm and of the baseline, over the pairs that the design has, ties counting half."""
        n_true, n_false = int(self.labels.sum()), int((~self.labels).sum())
        inside = 0 if self.one_label else self.n_clusters * (self.size // 2) * (self.size - self.size // 2)
        share = inside / (n_true * n_false)
        arm, base = (
            (1 - share) * self._pair_auroc(distance, 0.0) + share * self._pair_auroc(distance, self.within_clusters)
            for distance in self.distances
        )
        return arm, base

    @property
    def true_uplift(self) -> float:
        """Expected difference of the two AUROCs."""
        return self.truth[0] - self.truth[1]

    def _pair_auroc(self, distance: float, correlation: float) -> float:
        """Chance that a true claim outranks a false one whose deviations have this correlation."""
        if not self.step:
            return float(ndtr(distance / math.sqrt(2 * (1 - correlation))))
        edges = ndtri(np.clip((np.arange(0, round(1 / self.step)) + 0.5) * self.step, 0, 1))
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        total = 0.0
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            common, spread = math.sqrt(correlation) * node, math.sqrt(1 - correlation)
            true, false = (
                np.diff(ndtr((edges - mean - common) / spread), prepend=0.0, append=1.0)
                for mean in (distance / 2, -distance / 2)
            )
            below = np.cumsum(false) - false
            total += float(weight) * float(true @ (below + false / 2))
        return total
