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

from harness.arms import is_control
from harness.files import write_bytes
from harness.report.draw import Bar, bars_of
from harness.report.numbers import Bin, Curve, Flips, Grid, calibration, curves, flips, grids
from harness.report.read import RunFiles

WIDTH_INCHES = 3.35
"""One column of a paper."""
DPI = 300
STYLE = Path(__file__).parent / "templates" / "print.mplstyle"
_COLOURS = ("#6b6860", "#b3471b", "#1f5a8c", "#2c7a4b", "#7a3d8f", "#94700a", "#0f7b83", "#a02c55")
_DASHES = ("-", "-", "--", ":", "-.", (0, (8, 3)), (0, (3, 1.5)), (0, (1, 3)))
_AGAIN = (0, (1, 1.5, 5, 1.5))
"""The dash of curves past the eighth, whose colours come again."""
PANELS = 3
"""Small plots side by side."""
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
            drawn["roc"] = _figure(WIDTH_INCHES + 0.2 * -(-len(found) // 2), lambda axes: _roc(axes, found, run))
            drawn["calibration"] = _calibration(run)
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
        cycle, number = divmod(order.index(curve.series), len(_COLOURS))
        value = aurocs[curve.series]
        label = names[curve.series] + ("" if value is None else f" ({value:.3f})")
        shown = label if curve.epoch == 0 else "_again"
        x, y = zip(*curve.points, strict=True)
        axes.plot(x, y, color=_COLOURS[number], linestyle=_AGAIN if cycle else _DASHES[number], label=shown)
    axes.set(xlabel="share of false claims called true", ylabel="share of true claims called true", aspect="equal")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, title="AUROC")


def _calibration(run: RunFiles) -> Figure:
    """A small plot for every arm: arms over one another hide their intervals."""
    binned = {one: calibration(answer for answer in run.answers if answer.series == one) for one in run.series}
    shown = {one: bins for one, bins in binned.items() if bins}
    n_rows = -(-len(shown) // PANELS)
    figure = Figure(figsize=(WIDTH_INCHES, 0.4 + 1.15 * n_rows), layout="constrained")
    panels = list(figure.subplots(n_rows, PANELS, sharex=True, sharey=True, squeeze=False).flat)
    for axes, (series, bins) in zip(panels, shown.items(), strict=False):
        _dots(axes, bins, run.labels[series], TOOL if series.calls and not is_control(series.arm) else CONTROL)
    for axes in panels[len(shown) :]:
        axes.axis("off")
    figure.supxlabel("mean answer", fontsize="medium")
    figure.supylabel("share of true claims", fontsize="medium")
    return figure


def _dots(axes: Axes, bins: Sequence[Bin], name: str, colour: str) -> None:
    axes.plot([0, 1], [0, 1], color="#8a8578", linewidth=0.6, linestyle=(0, (2, 3)))
    largest = max(one.n for one in bins)
    for one in bins:
        axes.plot([one.mean_p] * 2, [one.low, one.high], color=colour, linewidth=0.6)
        size = 1.5 + 4 * (one.n / largest) ** 0.5
        axes.plot([one.mean_p], [one.share_true], marker="o", markersize=size, color=colour, clip_on=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axes.set_title(name, fontsize="small")


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
