"""The numbers behind the figures: curves, calibration, flips, grids, costs.

Invariant: every point travels with how many answers are behind it; an unanswered claim is in no curve and is counted.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.arms import is_control
from harness.report.read import Answer, Estimated, Series

N_BINS = 10
"""Bins of equal width in which answers are compared with what was true."""
_Z = 1.959963984540054
"""Of a 95 % interval."""


@dataclass(frozen=True)
class Curve:
    """One ROC curve."""

    series: Series
    """The setting."""
    epoch: int
    """Which repetition."""
    points: tuple[tuple[float, float], ...]
    """(false positive rate, true positive rate), from (0, 0) to (1, 1)."""
    n: int
    """Answers behind it."""


@dataclass(frozen=True)
class Bin:
    """Answers of about the same probability."""

    mean_p: float
    """Their mean."""
    share_true: float
    """Share of true claims among them."""
    low: float
    """Lower bound of that share (Wilson, 95 %)."""
    high: float
    """Upper bound."""
    n: int
    """How many they are."""


@dataclass(frozen=True)
class Flips:
    """What an arm changed against the baseline, claim by claim."""

    series: Series
    """The arm's setting."""
    fixed: int
    """Wrong in the baseline, right here."""
    broken: int
    """Right in the baseline, wrong here."""
    both_right: int
    """Right in both."""
    both_wrong: int
    """Wrong in both."""
    to_true: int
    """Of the flips, those towards true."""
    undecided: int
    """Not answered in one of them, or exactly 0.5."""

    @property
    def n_flips(self) -> int:
        """Answers on another side of 0.5 than the baseline's."""
        return self.fixed + self.broken


@dataclass(frozen=True)
class Grid:
    """The uplift of one arm over its budgets."""

    name: str
    """The arm, and the predictor where there are several."""
    calls: tuple[int, ...]
    """Rows."""
    positions: tuple[int, ...]
    """Columns; a single 0 for a tool that takes no positions."""
    cells: dict[tuple[int, int], Estimated]
    """By calls and positions; a setting that was not run is absent."""


@dataclass(frozen=True)
class Spent:
    """What one setting used."""

    series: Series
    """The setting."""
    outcomes: tuple[tuple[str, int], ...]
    """How many claims ended in which way, most frequent first."""
    n: int
    """Claims asked."""
    mean_calls: float
    """Tool calls charged per claim."""
    input_tokens: int
    """Read by the predictor."""
    output_tokens: int
    """Written by it."""
    dollars: float | None
    """What it cost; None where a price is missing."""


def roc(answers: Iterable[Answer]) -> tuple[tuple[float, float], ...]:
    """The ROC curve of answered claims; empty without both classes. Equal probabilities are one step."""
    pairs = [(one.p_true, one.label) for one in answers if one.p_true is not None]
    n_true = sum(label for _, label in pairs)
    if not 0 < n_true < len(pairs):
        return ()
    ordered = np.array(sorted(pairs, reverse=True), dtype=np.float64)
    last = np.append(np.nonzero(np.diff(ordered[:, 0]))[0], len(pairs) - 1)
    tp = np.cumsum(ordered[:, 1])[last]
    fp = last + 1 - tp
    steps = zip(fp / (len(pairs) - n_true), tp / n_true, strict=True)
    return ((0.0, 0.0), *((float(x), float(y)) for x, y in steps))


def curves(answers: Sequence[Answer], order: Sequence[Series]) -> tuple[Curve, ...]:
    """One curve a setting and repetition, in the order given."""
    groups: dict[tuple[Series, int], list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.series, answer.epoch].append(answer)
    found = []
    for series in order:
        for epoch in sorted(epoch for one, epoch in groups if one == series):
            group = groups[series, epoch]
            n = sum(one.p_true is not None for one in group)
            found.append(Curve(series, epoch, roc(group), n))
    return tuple(found)


def calibration(answers: Iterable[Answer]) -> tuple[Bin, ...]:
    """Answers in bins of their probability; empty bins are left out."""
    bins: dict[int, list[Answer]] = defaultdict(list)
    for one in answers:
        if one.p_true is not None:
            bins[min(int(one.p_true * N_BINS), N_BINS - 1)].append(one)
    return tuple(_bin(bins[number]) for number in sorted(bins))


def _bin(answers: Sequence[Answer]) -> Bin:
    n = len(answers)
    share = sum(one.label for one in answers) / n
    low, high = wilson(share, n)
    return Bin(math.fsum(one.p_true or 0.0 for one in answers) / n, share, low, high, n)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `n` independent draws; the share itself lies in it."""
    spread = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    centre, scale = share + _Z**2 / (2 * n), 1 + _Z**2 / n
    # At a share of 0 or 1 the bound is the share, but for the last digit, and a figure refuses a negative length.
    return min(share, max(0.0, (centre - spread) / scale)), max(share, min(1.0, (centre + spread) / scale))


def flips(answers: Sequence[Answer], order: Sequence[Series]) -> tuple[Flips, ...]:
    """Every setting against the baseline of its predictor, repetition by repetition."""
    baseline = {(one.series.predictor, one.claim_id, one.epoch): one for one in answers if one.series.is_baseline}
    found: dict[Series, Counter[str]] = {series: Counter() for series in order if not series.is_baseline}
    for one in answers:
        before = baseline.get((one.series.predictor, one.claim_id, one.epoch))
        if before is None or one.series not in found:
            continue
        kind = flip_kind(before, one)
        found[one.series][kind] += 1
        if kind in ("fixed", "broken") and (one.p_true or 0.0) > 0.5:
            found[one.series]["to_true"] += 1
    names = ("fixed", "broken", "both_right", "both_wrong", "to_true", "undecided")
    return tuple(Flips(series, *(counts[name] for name in names)) for series, counts in found.items())


def flip_kind(before: Answer, after: Answer) -> str:
    """What became of the baseline's answer: `fixed`, `broken`, `both_right`, `both_wrong` or `undecided`."""
    if before.right is None or after.right is None:
        return "undecided"
    if before.right == after.right:
        return "both_right" if after.right else "both_wrong"
    return "fixed" if after.right else "broken"


def grids(estimates: Sequence[Estimated]) -> tuple[Grid, ...]:
    """A grid for every arm that was run with several budgets."""
    groups: dict[tuple[str, str], list[Estimated]] = defaultdict(list)
    for one in estimates:
        if one.series.calls and not is_control(one.series.arm):
            groups[one.series.predictor, one.series.arm].append(one)
    several = len({predictor for predictor, _ in groups}) > 1
    return tuple(
        Grid(
            name=f"{arm}, {predictor}" if several else arm,
            calls=tuple(sorted({one.series.calls for one in group})),
            positions=tuple(sorted({one.series.positions for one in group})),
            cells={(one.series.calls, one.series.positions): one for one in group},
        )
        for (predictor, arm), group in groups.items()
        if len(group) > 1
    )


def spending(answers: Sequence[Answer], order: Sequence[Series]) -> tuple[Spent, ...]:
    """What every setting used, over all its repetitions."""
    groups: dict[Series, list[Answer]] = {series: [] for series in order}
    for one in answers:
        groups.setdefault(one.series, []).append(one)
    return tuple(_spent(series, group) for series, group in groups.items() if group)


def _spent(series: Series, group: Sequence[Answer]) -> Spent:
    prices = [one.dollars for one in group]
    known = [price for price in prices if price is not None]
    return Spent(
        series=series,
        outcomes=tuple(Counter(one.outcome for one in group).most_common()),
        n=len(group),
        mean_calls=sum(one.calls_used for one in group) / len(group),
        input_tokens=sum(one.input_tokens for one in group),
        output_tokens=sum(one.output_tokens for one in group),
        dollars=math.fsum(known) if len(known) == len(prices) else None,
    )
