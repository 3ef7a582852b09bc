"""Binding margin by layer, a line a model: Figure 4 for one set of texts."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from saber.figures.style import REFERENCE, figure_size, line_styles
from saber.metrics.intervals import bootstrap_mean_interval

RESAMPLES = 2_000


def margin_figure(margins: Mapping[str, np.ndarray]) -> Figure:
    """Mean binding margin of each model by layer, with the 95 % bootstrap band over texts.

    margins: model name -> ``(n_texts, n_layers)`` as of :func:`saber.binding_margin.binding_margins`, in the
    order of the legend; models may differ in their numbers of layers. One text has no band.
    Raises ValueError for no models and for arrays that are not of this shape, are empty or hold NaN.
    """
    if not margins:
        raise ValueError("there are no margins to draw; give an array (n_texts, n_layers) for each model")
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in margins.items()}
    for name, values in arrays.items():
        if values.ndim != 2 or not values.size or not np.isfinite(values).all():
            raise ValueError(
                f"margins of {name!r}: finite values (n_texts, n_layers) are needed, not shape {values.shape}"
                + (" with NaN or Inf" if values.size and not np.isfinite(values).all() else "")
            )
    styles = line_styles(list(arrays))
    figure, ax = plt.subplots(figsize=figure_size("single"))
    ax.axhline(0, marker="", **REFERENCE)
    for name, values in arrays.items():
        layers = np.arange(1, values.shape[1] + 1)
        bounds = [bootstrap_mean_interval(layer, n_resamples=RESAMPLES) for layer in values.T]
        low, high = np.transpose(bounds)
        every = -(-layers.size // 12)  # a marker on each of 36 layers would hide the line
        ax.plot(layers, values.mean(axis=0), label=name, markevery=every, **styles[name])
        ax.fill_between(layers, low, high, color=styles[name]["color"], alpha=0.15, lw=0)
    longest = max(values.shape[1] for values in arrays.values())
    ax.set(xlabel="layer", ylabel="mean binding margin", xlim=(0.5, longest + 0.5))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    figure.legend(loc="outside lower center", ncols=min(len(arrays), 2))
    return figure
