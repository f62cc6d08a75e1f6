"""Planning: the smallest uplift that a study would detect, and what it would cost.

The standard error of an uplift comes from the clustered DeLong variance, of a pilot run or of data simulated under
stated assumptions; it shrinks with the square root of the number of clusters. Invariant: every number is printed with
the assumptions behind it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from harness.intervals import clustered_delong
from harness.seeding import keyed_rng
from harness.simulate import Design
from harness.stats import LEVEL, Floats, pair_credit

POWER = 0.8
"""Chance of detecting the uplift that is called detectable."""
DATASETS = 100
"""Simulated data sets behind a standard error."""
SIMULATED_CLUSTERS = 120
"""Most clusters that are simulated; more of them are scaled from these."""


@dataclass(frozen=True)
class Planned:
    """What one size of study can do."""

    n_claims: int
    """Claims."""
    n_clusters: int
    """Clusters."""
    standard_error: float
    """Of the uplift."""
    detectable: float
    """The smallest uplift that is detected with `POWER`; nan when none below a perfect arm is."""
    dollars: float
    """Cost of the arms; nan when the price is unknown."""


def credit_of(design: Design, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Pair credit of the arm minus the baseline's on simulated answers, and true and false claims by cluster."""
    arm, base = design.draw(rng)
    labels, clusters = design.labels, design.clusters
    credit = pair_credit(arm, labels, clusters) - pair_credit(base, labels, clusters)
    sides = [np.bincount(clusters[side], minlength=design.n_clusters) for side in (labels, ~labels)]
    return credit, np.stack(sides, axis=1).astype(np.float64)


def simulated_error(design: Design, *, n_datasets: int = DATASETS) -> float:
    """Standard error of the uplift under a design: root of the mean clustered DeLong variance.

    A large design is simulated with fewer clusters and scaled, see `scaled`.
    """
    small = replace(design, n_clusters=min(design.n_clusters, SIMULATED_CLUSTERS))
    rng = keyed_rng("power", repr(small))
    errors = [clustered_delong(*credit_of(small, rng)).standard_error for _ in range(n_datasets)]
    return scaled(float(np.sqrt(np.mean(np.square(errors)))), small.n_clusters, design.n_clusters)


def power_at(uplift: float, standard_error: float, *, level: float = LEVEL) -> float:
    """Chance that the interval of an uplift leaves out zero."""
    reach = float(ndtri((1 + level) / 2))
    ratio = uplift / standard_error
    return float(ndtr(ratio - reach) + ndtr(-ratio - reach))


def detectable(design: Design, *, power: float = POWER, n_datasets: int = DATASETS) -> float:
    """The smallest uplift that a design detects with `power`; nan when even a perfect arm falls short.

    The error depends a little on the uplift itself, so it is looked up again where the last guess fell.
    """
    factor = float(ndtri((1 + LEVEL) / 2) + ndtri(power))
    guess = 0.0
    for _ in range(3):
        if design.auroc + guess >= 0.999:
            return math.nan
        guess = factor * simulated_error(replace(design, uplift=guess), n_datasets=n_datasets)
    return guess if design.auroc + guess < 1 else math.nan


def scaled(standard_error: float, n_clusters: int, planned_clusters: int) -> float:
    """A pilot's standard error at another number of clusters."""
    return standard_error * math.sqrt(n_clusters / planned_clusters)


def detectable_at(standard_error: float, *, power: float = POWER) -> float:
    """The smallest uplift that is detected with `power` at a standard error."""
    return standard_error * float(ndtri((1 + LEVEL) / 2) + ndtri(power))
