"""The figures of a report for print: SVG and PNG of a column's width.

Invariant: the same run gives the same bytes: no date, no random identifiers, fonts that ship with matplotlib.
"""

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from math import isnan
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.files import write_bytes
from harness.report.draw import Bar, bars_of
from harness.report.numbers import Curve, Flips, Grid, calibration, curves, flips, grids
from harness.report.read import RunFiles

WIDTH_INCHES = 3.35
"""One column of a paper."""
DPI = 300
STYLE = Path(__file__).parent / "templates" / "print.mplstyle"
_COLOURS = ("#6b6860", "#b3471b", "#1f5a8c", "#2c7a4b", "#7a3d8f", "#94700a", "#0f7b83", "#a02c55")
_DASHES = ("-", "-", "--", ":", "-.", (0, (8, 3)), (0, (3, 1.5)), (0, (1, 3)))
TOOL, CONTROL = _COLOURS[1], _COLOURS[2]
_FLIPS = (("fixed", "#2c7a4b"), ("broken", "#b3471b"), ("right in both", "#d9d4c8"), ("wrong in both", "#8a8578"))


def write_figures(run: RunFiles, folder: Path) -> list[Path]:
    """Write every figure that the run has material for, as SVG and PNG; return the files."""
    names = run.labels
    bars = bars_of(run.estimates, names)
    found = [one for one in curves(run.answers, run.series) if one.points]
    changed = flips(run.answers, run.series)
    with style.context(["default", STYLE]):
        drawn: dict[str, Figure] = {}
        if bars:
            drawn["uplift"] = _figure(0.5 + 0.32 * len(bars), lambda axes: _forest(axes, bars, run))
        if found:
            drawn["roc"] = _figure(WIDTH_INCHES, lambda axes: _roc(axes, found, run))
            drawn["calibration"] = _figure(WIDTH_INCHES, lambda axes: _calibration(axes, run))
        if changed:
            drawn["flips"] = _figure(0.7 + 0.3 * len(changed), lambda axes: _flips(axes, changed, run))
        for grid in grids(run.estimates):
            name = "sweep-" + "".join(char if char.isalnum() or char == "-" else "-" for char in grid.name)
            drawn[name] = _figure(0.8 + 0.42 * len(grid.calls), partial(_heat, grid=grid))
        return [path for name, figure in drawn.items() for path in _save(figure, folder / name)]


def _figure(height: float, draw: Callable[[Axes], None]) -> Figure:
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    draw(figure.add_subplot())
    return figure


def _save(figure: Figure, stem: Path) -> list[Path]:
    written = []
    for suffix, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
        held = BytesIO()
        figure.savefig(held, format=suffix, dpi=DPI, metadata=metadata)
        path = stem.with_suffix(f".{suffix}")
        write_bytes(path, held.getvalue())
        written.append(path)
    return written


def _forest(axes: Axes, bars: Sequence[Bar], run: RunFiles) -> None:
    if run.margin is not None:
        axes.axvspan(-run.margin, run.margin, color="#efece5", linewidth=0)
    axes.axvline(0, color="black", linewidth=0.7)
    for row, bar in enumerate(bars):
        colour, marker = (CONTROL, "o") if bar.is_control else (TOOL, "s")
        if not isnan(bar.low):
            axes.plot([bar.low, bar.high], [row, row], color=colour)
        axes.plot([bar.value], [row], marker=marker, markersize=4, color=colour)
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars])
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlabel("uplift in AUROC, 95 % interval")


def _roc(axes: Axes, found: Sequence[Curve], run: RunFiles) -> None:
    order, names = list(run.series), run.labels
    aurocs = {one.series: one.auroc[0] for one in run.estimates}
    axes.plot([0, 1], [0, 1], color="#8a8578", linewidth=0.6, linestyle=(0, (2, 3)))
    for curve in found:
        number = order.index(curve.series) % len(_COLOURS)
        value = aurocs[curve.series]
        label = names[curve.series] + ("" if value is None else f" ({value:.3f})")
        shown = label if curve.epoch == 0 else "_again"
        x, y = zip(*curve.points, strict=True)
        axes.plot(x, y, color=_COLOURS[number], linestyle=_DASHES[number], label=shown)
    axes.set(xlabel="share of false claims called true", ylabel="share of true claims called true", aspect="equal")
    axes.legend(loc="lower right", title="AUROC")


def _calibration(axes: Axes, run: RunFiles) -> None:
    names = run.labels
    axes.plot([0, 1], [0, 1], color="#8a8578", linewidth=0.6, linestyle=(0, (2, 3)))
    for number, series in enumerate(run.series):
        bins = calibration(one for one in run.answers if one.series == series)
        if bins:
            shares = [one.share_true for one in bins]
            errors = [[one.share_true - one.low for one in bins], [one.high - one.share_true for one in bins]]
            axes.errorbar(
                [one.mean_p for one in bins],
                shares,
                yerr=errors,
                marker="o",
                markersize=3,
                elinewidth=0.6,
                color=_COLOURS[number % 8],
                linestyle=_DASHES[number % 8],
                label=names[series],
            )
    axes.set(xlabel="mean answer", ylabel="share of true claims", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(loc="upper left")


def _flips(axes: Axes, found: Sequence[Flips], run: RunFiles) -> None:
    for row, one in enumerate(found):
        counts = (one.fixed, one.broken, one.both_right, one.both_wrong)
        total, left = max(1, sum(counts)), 0.0
        for (name, colour), n in zip(_FLIPS, counts, strict=True):
            axes.barh(row, n / total, left=left, color=colour, height=0.6, label=name if row == 0 else "_again")
            if n / total > 0.06:
                dark = "white" if name in ("fixed", "broken") else "black"
                axes.text(left + n / total / 2, row, str(n), ha="center", va="center", color=dark)
            left += n / total
    axes.set_yticks(range(len(found)), [run.labels[one.series] for one in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlabel("share of claims, against the transcript arm")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, handlelength=1, columnspacing=1)


def _heat(axes: Axes, grid: Grid) -> None:
    cells = {key: one.uplift[0] for key, one in grid.cells.items() if one.uplift[0] is not None}
    largest = max([abs(value) for value in cells.values()] + [1e-9])
    rows = [[cells.get((calls, positions), float("nan")) for positions in grid.positions] for calls in grid.calls]
    axes.imshow(rows, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
    for row, values in enumerate(rows):
        for column, value in enumerate(values):
            text = "not run" if isnan(value) else f"{value:+.3f}"
            axes.text(
                column, row, text, ha="center", va="center", color="white" if abs(value) > 0.7 * largest else "black"
            )
    axes.set_xticks(range(len(grid.positions)), [str(one) if one else "none" for one in grid.positions])
    axes.set_yticks(range(len(grid.calls)), [str(one) for one in grid.calls])
    axes.set(xlabel="positions a call", ylabel="calls", title=f"uplift of {grid.name}")
