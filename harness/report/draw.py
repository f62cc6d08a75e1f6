"""Where everything in the page's figures stands: numbers to coordinates, no markup.

Invariant: a figure is at most `WIDTH` units wide, which a phone shows one to one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.arms import BASELINE, is_control, sham_of
from harness.report.numbers import Bin, Curve
from harness.report.read import Estimated, Interval, Series

WIDTH = 400
"""Units across."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
MAX_TICKS = 7


@dataclass(frozen=True)
class Axis:
    """A horizontal axis."""

    low: float
    """Value at the left end."""
    high: float
    """Value at the right end."""
    ticks: tuple[float, ...]
    """Values that are named."""
    left: float
    """Coordinate of the left end."""
    right: float
    """Coordinate of the right end."""

    def at(self, value: float) -> float:
        """Coordinate of a value, inside the axis."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.left + share * (self.right - self.left), 2)


@dataclass(frozen=True)
class Bar:
    """One interval of a forest plot."""

    name: str
    """What it is of."""
    value: float
    """Point estimate."""
    low: float
    """Lower bound; nan when not estimable."""
    high: float
    """Upper bound; nan when not estimable."""
    is_control: bool
    """Whether it says something of the instrument and not of a tool."""
    y: float = 0.0
    """Where it stands."""

    @property
    def text(self) -> str:
        """The number as tables print it."""
        bounds = "interval not estimable" if math.isnan(self.low) else f"{self.low:+.3f} to {self.high:+.3f}"
        return f"{self.value:+.3f} ({bounds})".replace("-", "−")


@dataclass(frozen=True)
class Forest:
    """The uplifts of a run."""

    bars: tuple[Bar, ...]
    """From top to bottom."""
    axis: Axis
    """Of uplift."""
    height: float
    """Of the whole figure."""
    margin: float | None
    """Half width of the band that the run declared as too small to matter."""


def axis_over(values: Sequence[float], left: float, right: float) -> Axis:
    """An axis that holds all values and 0, with round ends."""
    low, high = min([0.0, *values]), max([0.0, *values])
    spread = max(high - low, 0.02)
    step = next((step for step in _STEPS if spread / step <= MAX_TICKS - 2), _STEPS[-1])
    first, last = math.floor(low / step - 0.15), math.ceil(high / step + 0.15)
    ticks = tuple(round(number * step, 10) for number in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, left, right)


def bars_of(estimates: Sequence[Estimated], names: dict[Series, str]) -> tuple[Bar, ...]:
    """What a forest plot shows: every uplift, and every tool against its sham."""
    bars = []
    for one in estimates:
        if one.series.arm == BASELINE:
            continue
        name = names[one.series]
        if one.uplift[0] is not None:
            bars.append(Bar(name, *_known(one.uplift), is_control(one.series.arm)))
        if one.over_sham[0] is not None:
            bars.append(Bar(f"{name} minus {sham_of(one.series.arm)}", *_known(one.over_sham), is_control=False))
    return tuple(bars)


def _known(interval: Interval) -> tuple[float, float, float]:
    value, low, high = (math.nan if bound is None else bound for bound in interval)
    return value, low, high


def forest(bars: Sequence[Bar], margin: float | None) -> Forest:
    """The forest plot of some bars: a line of text over each interval."""
    bounds = [bound for bar in bars for bound in (bar.value, bar.low, bar.high) if not math.isnan(bound)]
    axis = axis_over([*bounds, *([] if margin is None else [-margin, margin])], 24, WIDTH - 24)
    row = 40.0
    placed = tuple(
        Bar(bar.name, bar.value, bar.low, bar.high, bar.is_control, row * (i + 0.7)) for i, bar in enumerate(bars)
    )
    return Forest(placed, axis, row * len(bars) + 34, margin)


@dataclass(frozen=True)
class Line:
    """One curve of a ROC plot."""

    name: str
    """What it is of."""
    style: str
    """Class of its colour and dash; past the eighth curve colours come again with another dash."""
    points: str
    """For a polyline."""
    n: int
    """Answers behind it."""
    auroc: float | None
    """Area under it, as the table has it."""


N_STYLES = 8
"""Colours of curves."""
SIDE = 338.0
"""Of a square plot."""
LEFT, TOP = 52.0, 10.0


def square(x: float, y: float, side: float = SIDE) -> tuple[float, float]:
    """Coordinates of a point of the unit square."""
    return round(LEFT + x * side, 1), round(TOP + (1 - y) * side, 1)


def roc_lines(found: Sequence[Curve], estimates: Sequence[Estimated], names: dict[Series, str]) -> tuple[Line, ...]:
    """The curves of a ROC plot; those without both classes are left out."""
    aurocs = {one.series: one.auroc[0] for one in estimates}
    order = list(names)
    lines = []
    for curve in found:
        if curve.points:
            points = " ".join(f"{x:g},{y:g}" for x, y in (square(*point) for point in thinned(curve.points)))
            cycle, number = divmod(order.index(curve.series), N_STYLES)
            style = f"series-{number}" + (" again" if cycle else "")
            lines.append(Line(names[curve.series], style, points, curve.n, aurocs.get(curve.series)))
    return tuple(lines)


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of a curve: points on a straight line between their neighbours are left out."""
    kept = [points[0]]
    for here, after in pairwise(points[1:]):
        (ax, ay), (bx, by), (cx, cy) = kept[-1], here, after
        if abs((bx - ax) * (cy - ay) - (by - ay) * (cx - ax)) > 1e-9:
            kept.append(here)
    return [*kept, points[-1]]


@dataclass(frozen=True)
class Dot:
    """One bin of a calibration plot."""

    x: float
    """Mean probability."""
    y: float
    """Share of true claims."""
    y_low: float
    """Upper end of the interval on the page, which is its lower coordinate."""
    y_high: float
    """Its other end."""
    radius: float
    """Grows with the number of answers."""
    of: Bin
    """The numbers."""


CALIBRATION_SIDE = 150.0


def dots(bins: Sequence[Bin]) -> tuple[Dot, ...]:
    """A calibration plot's dots."""
    most = max((one.n for one in bins), default=1)
    placed = []
    for one in bins:
        x, y = square(one.mean_p, one.share_true, CALIBRATION_SIDE)
        _, y_low = square(0, one.high, CALIBRATION_SIDE)
        _, y_high = square(0, one.low, CALIBRATION_SIDE)
        placed.append(Dot(x, y, y_low, y_high, round(2 + 4 * math.sqrt(one.n / most), 1), one))
    return tuple(placed)


def heat(value: float | None, largest: float) -> str:
    """Name of the shade of an uplift: `heat-n4` to `heat-p4`, `heat-0` around nothing, `heat-none` without a value."""
    if value is None or largest <= 0:
        return "heat-none" if value is None else "heat-0"
    level = min(4, round(4 * abs(value) / largest))
    return f"heat-{'p' if value > 0 else 'n'}{level}" if level else "heat-0"
