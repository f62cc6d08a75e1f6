"""The loss curve as a picture.

Invariant: drawn without a display; the same losses give the same picture.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def draw_losses(losses: Sequence[float], path: Path, *, title: str, levels: dict[str, float]) -> None:
    """Draw the training loss, smoothed, and held-out levels as lines.

    Args:
        losses: Of every step.
        path: A PNG.
        title: What was trained.
        levels: Held-out losses by name.
    """
    figure = Figure(figsize=(6.4, 4.0), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    window = max(1, min(25, len(losses) // 4))
    smooth = np.convolve(np.asarray(losses, dtype=float), np.ones(window) / window, mode="valid")
    axes.plot(np.arange(1, len(losses) + 1), losses, color="0.8", linewidth=0.7, label="training, each step")
    axes.plot(np.arange(len(smooth)) + window, smooth, color="C0", label=f"training, mean of {window}")
    for index, (name, level) in enumerate(levels.items()):
        axes.axhline(
            level, color=f"C{index + 1}", linestyle="--", linewidth=1.2, label=f"held out, {name}: {level:.2f}"
        )
    axes.set(title=title, xlabel="step", ylabel="loss (nats a token)")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Software": None})
