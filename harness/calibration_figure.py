"""The figure of the calibration: coverage by method and design, and the power curve; as SVG and PNG.

Invariant: the same numbers give the same SVG, byte for byte.
"""

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.calibrate import METHODS, Judged, PowerPoint, monte_carlo_error
from harness.files import write_text
from harness.stats import LEVEL

_COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00")
_MARKERS = ("o", "s", "D", "X", "P")


def draw_calibration(judged: Sequence[Judged], points: Sequence[PowerPoint], folder: Path) -> None:
    """Write `calibration.svg` and `calibration.png`."""
    with mpl.rc_context({"svg.hashsalt": "calibration", "font.size": 8, "svg.fonttype": "none"}):
        figure = Figure(figsize=(9.5, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _coverage(left, judged)
        _power(right, points, judged[0].replications)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        write_text(folder / "calibration.svg", svg.getvalue())
        figure.savefig(folder / "calibration.png", dpi=160, metadata={"Software": None})


def _coverage(axes: Axes, judged: Sequence[Judged]) -> None:
    scenarios = list(dict.fromkeys(one.scenario for one in judged))
    error = 3 * monte_carlo_error(LEVEL, judged[0].replications)
    axes.axvspan(LEVEL - error, LEVEL + error, color="0.88")
    axes.axvline(LEVEL, color="0.4", linewidth=0.8)
    for number, method in enumerate(METHODS):
        mine = [one for one in judged if one.method == method]
        heights = [len(scenarios) - scenarios.index(one.scenario) + 0.26 - 0.13 * number for one in mine]
        axes.plot(
            [one.coverage for one in mine],
            heights,
            _MARKERS[number],
            color=_COLOURS[number],
            markersize=5,
            label=method,
        )
    axes.set_yticks([len(scenarios) - place for place in range(len(scenarios))], scenarios)
    axes.set_xlabel(f"coverage of {LEVEL:.0%} intervals of uplift")
    axes.set_title(
        f"{judged[0].replications:,} data sets a design; grey: {LEVEL:.0%} within three Monte-Carlo errors", fontsize=8
    )
    axes.legend(loc="center", bbox_to_anchor=(0.55, 0.45), fontsize=7, frameon=False)


def _power(axes: Axes, points: Sequence[PowerPoint], replications: int) -> None:
    uplifts = [point.uplift for point in points]
    errors = [2 * monte_carlo_error(point.found, replications) for point in points]
    axes.plot(uplifts, [point.predicted for point in points], color="0.5", label="predicted by `uplift power`")
    axes.errorbar(uplifts, [point.found for point in points], errors, fmt="o", color=_COLOURS[0], label="found")
    axes.axhline(1 - LEVEL, color="0.7", linewidth=0.8, linestyle=":")
    axes.set_xlabel("true uplift")
    axes.set_ylabel("share of data sets with p < 0.05")
    axes.set_ylim(0, 1)
    axes.set_title("power, 100 clusters of 4 claims; at 0: false positives", fontsize=8)
    axes.legend(loc="upper left", fontsize=7, frameon=False)
