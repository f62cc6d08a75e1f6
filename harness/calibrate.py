"""Calibration of the instrument itself: do its intervals cover, does it cry wolf, does it find what is there?

Predictors with known uplift are simulated many times, and every interval is judged against the truth of its design.
Invariant: the numbers depend on the designs, the number of replications and nothing else.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.intervals import bca_interval, clustered_delong, left_out
from harness.power import credit_of, power_at, simulated_error
from harness.seeding import keyed_rng
from harness.simulate import Design
from harness.stats import LEVEL, Floats, Indices, Resampler, pair_credit, percentile_interval

REPLICATIONS = 2_000
RESAMPLES = 1_000
METHODS = ("percentile, clusters", "BCa, clusters", "DeLong, clusters", "percentile, rows", "DeLong, rows")
UPLIFTS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)
"""Points of the power curve."""

SCENARIOS: dict[str, Design] = {
    "one label a cluster": Design(uplift=0.05),
    "mixed labels": Design(uplift=0.05, one_label=False),
    "ties": Design(uplift=0.05, step=0.1),
    "strong clustering": Design(uplift=0.05, within_clusters=0.8),
    "no uplift": Design(uplift=0.0),
    "no uplift, mixed, ties": Design(uplift=0.0, one_label=False, step=0.1),
}


@dataclass(frozen=True)
class Judged:
    """One method under one design."""

    scenario: str
    """Name of the design."""
    method: str
    """How the interval was made."""
    covered: int
    """Replications whose interval held the truth."""
    rejected: int
    """Replications whose interval left out zero."""
    replications: int
    """How many there were."""

    @property
    def coverage(self) -> float:
        """Share of intervals that held the truth."""
        return self.covered / self.replications

    @property
    def rejection(self) -> float:
        """Share of intervals that left out zero."""
        return self.rejected / self.replications

    @property
    def as_aimed(self) -> bool:
        """Whether coverage is within three Monte-Carlo standard errors of the level."""
        return abs(self.coverage - LEVEL) <= 3 * monte_carlo_error(LEVEL, self.replications)


def monte_carlo_error(share: float, replications: int) -> float:
    """Standard error of a share that was simulated."""
    return math.sqrt(share * (1 - share) / replications)


def judge(
    name: str,
    design: Design,
    *,
    replications: int = REPLICATIONS,
    resamples: int = RESAMPLES,
    tick: Callable[[], object] = lambda: None,
) -> list[Judged]:
    """Judge every method under one design.

    Args:
        name: Of the design; keys its draws.
        design: What is simulated.
        replications: Data sets.
        resamples: Of each bootstrap.
        tick: Called after every data set.
    """
    rng = keyed_rng("calibrate", name)
    truth = design.true_uplift
    covered, rejected = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0)
    for _ in range(replications):
        arm, base = design.draw(rng)
        for method, (low, high) in _intervals(design, arm, base, rng, resamples).items():
            covered[method] += low <= truth <= high
            rejected[method] += not low <= 0 <= high
        tick()
    return [Judged(name, method, covered[method], rejected[method], replications) for method in METHODS]


def _intervals(
    design: Design, arm: Floats, base: Floats, rng: np.random.Generator, resamples: int
) -> dict[str, tuple[float, float]]:
    value, draws, credit, classes = _resampled(design, design.clusters, arm, base, rng, resamples)
    bca = bca_interval(value, draws, left_out(credit, classes))
    clustered = clustered_delong(credit, classes)
    # Rows are many and their intervals far off: half of the resamples are enough to see it.
    rows_apart = np.arange(len(arm))
    _, row_draws, row_credit, row_classes = _resampled(design, rows_apart, arm, base, rng, resamples // 2)
    rows = clustered_delong(row_credit, row_classes)
    bounds = (
        percentile_interval(draws),
        (bca.low, bca.high),
        (clustered.low, clustered.high),
        percentile_interval(row_draws),
        (rows.low, rows.high),
    )
    return dict(zip(METHODS, bounds, strict=True))


def _resampled(
    design: Design, units: Indices, arm: Floats, base: Floats, rng: np.random.Generator, resamples: int
) -> tuple[float, Floats, Floats, Floats]:
    """Value, resampled values, credit and class sizes of the difference, by the units that are resampled."""
    resampler = Resampler(design.labels, units, rng=rng, n_resamples=resamples)
    here, there = (pair_credit(p, design.labels, units) for p in (arm, base))
    draws = resampler.aurocs_of([here, there])
    n_pairs = float(np.prod(resampler.classes.sum(axis=0)))
    return float((here - there).sum() / n_pairs), draws[0] - draws[1], here - there, resampler.classes


@dataclass(frozen=True)
class PowerPoint:
    """One point of the power curve."""

    uplift: float
    """The true one."""
    found: float
    """Share of replications with a p-value below 0.05."""
    predicted: float
    """By `uplift power`."""


def power_curve(
    design: Design,
    *,
    replications: int = REPLICATIONS,
    tick: Callable[[], object] = lambda: None,
) -> list[PowerPoint]:
    """How often uplifts of several sizes are found, beside what planning predicts."""
    points = []
    for uplift in UPLIFTS:
        there = replace(design, uplift=uplift)
        rng = keyed_rng("power curve", repr(there))
        found = 0
        for _ in range(replications):
            found += clustered_delong(*credit_of(there, rng)).p_value < 1 - LEVEL
            tick()
        points.append(PowerPoint(uplift, found / replications, power_at(uplift, simulated_error(there))))
    return points


def summary(judged: Sequence[Judged], points: Sequence[PowerPoint]) -> str:
    """The numbers, as Markdown."""
    scenarios = list(dict.fromkeys(one.scenario for one in judged))
    rate = {(one.scenario, one.method): one for one in judged}
    error = monte_carlo_error(LEVEL, judged[0].replications)
    lines = [
        f"Coverage of {LEVEL:.0%} intervals of uplift over {judged[0].replications:,} simulated data sets "
        f"(aim {LEVEL - 3 * error:.3f} to {LEVEL + 3 * error:.3f}, three Monte-Carlo standard errors):",
        "",
        f"| design | {' | '.join(METHODS)} |",
        f"|---|{'---|' * len(METHODS)}",
    ]
    lines += [
        f"| {name} | {' | '.join(f'{rate[name, method].coverage:.3f}' for method in METHODS)} |" for name in scenarios
    ]
    lines += ["", "Share of intervals that leave out zero where there is no uplift (aim 0.05):", ""]
    lines += [f"| design | {' | '.join(METHODS)} |", f"|---|{'---|' * len(METHODS)}"]
    lines += [
        f"| {name} | {' | '.join(f'{rate[name, method].rejection:.3f}' for method in METHODS)} |"
        for name in scenarios
        if name.startswith("no uplift")
    ]
    lines += [
        "",
        "Power, found and predicted by `uplift power`:",
        "",
        "| uplift | found | predicted |",
        "|---|---|---|",
    ]
    lines += [f"| {point.uplift:+.2f} | {point.found:.3f} | {point.predicted:.3f} |" for point in points]
    null = [point.found for point in points if point.uplift == 0]
    if null:
        lines += [
            "",
            f"Of data sets without uplift, {null[0]:.1%} have a p-value below 0.05 "
            f"(aim {0.05 - 3 * error:.1%} to {0.05 + 3 * error:.1%}). Percentile intervals are a little narrow where "
            "clusters are few, so p-values, and Holm's correction of them, are DeLong's for clustered data.",
        ]
    return "\n".join(lines) + "\n"
