"""The curve of a finetuning run: loss and triplet accuracy by step."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from saber.figures.style import PALETTE, figure_size

SMOOTHING = 10  # steps of the running mean that is drawn over the single steps


def training_figure(log: pd.DataFrame) -> Figure:
    """``log``: one row a step with columns examples, loss and triplet_accuracy (0 to 1)."""
    figure, axes = plt.subplots(1, 2, figsize=figure_size("double", 0.3), sharex=True)
    panels = (("loss", "hinge loss", 1), ("triplet_accuracy", "triplets right (%)", 100))
    for ax, color, (column, label, factor) in zip(axes, PALETTE, panels, strict=False):
        values = factor * log[column]
        ax.plot(log["examples"], values, color=color, marker="", alpha=0.3, lw=0.7)
        smooth = values.rolling(SMOOTHING, min_periods=1).mean()
        ax.plot(log["examples"], smooth, color=color, marker="")
        ax.set(xlabel="examples", ylabel=label)
    axes[0].set_ylim(bottom=0)
    axes[1].set_ylim(top=101)
    return figure
