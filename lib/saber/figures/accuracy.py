"""Accuracy by number of objects, one panel a pairing: Table 17 as a picture."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from saber.figures.style import REFERENCE, figure_size, line_styles
from saber.items import PAIRINGS
from saber.metrics.summary import MEAN
from saber.published import published

CHANCE = 25.0


def accuracy_figure(table_17: pd.DataFrame, models: Sequence[str]) -> Figure:
    """Measured accuracies with their 95 % bands, before the ten models of the paper's Table 17 in grey.

    table_17: columns row, column ("T->I 7"), value, low, high in percent, as
    :func:`saber.evaluation.saber_tables` returns it. models: which rows, in the order of the legend.
    """
    measured = _by_count(table_17[table_17["value"].notna() & table_17["row"].isin(models)])
    paper = _by_count(published(17).astype({"value": float}))
    paper = paper[paper["n_objects"].isin(measured["n_objects"])]
    styles = line_styles(models)
    figure, axes = plt.subplots(
        1, len(PAIRINGS), figsize=figure_size("double", 0.36), sharex=True, sharey=True
    )
    for pairing, ax in zip(PAIRINGS, axes, strict=True):
        behind = paper[paper["pairing"] == pairing]
        sns.lineplot(
            behind,
            x="n_objects",
            y="value",
            units="row",
            estimator=None,
            color="0.85",
            lw=0.7,
            marker="",
            ax=ax,
        )
        ax.axhline(CHANCE, marker="", **REFERENCE)
        for name, rows in measured[measured["pairing"] == pairing].groupby("row", sort=False):
            ax.plot(rows["n_objects"], rows["value"], label=name, **styles[name])
            ax.fill_between(
                rows["n_objects"], rows["low"], rows["high"], color=styles[name]["color"], alpha=0.15, lw=0
            )
        ax.set(title=pairing.replace("->", "→"), xlabel="objects", ylabel="accuracy (%)", ylim=(0, 103))
        ax.set_xticks(sorted(measured["n_objects"].unique()))
    handles = {h.get_label(): h for ax in axes for h in ax.get_legend_handles_labels()[0]}
    figure.legend(
        handles=list(handles.values()), loc="outside lower center", ncols=min(max(len(handles), 1), 4)
    )
    return figure


def _by_count(cells: pd.DataFrame) -> pd.DataFrame:
    parts = cells["column"].str.split(" ", expand=True)
    cells = cells.assign(pairing=parts[0], n_objects=parts[1])
    return cells[cells["n_objects"] != MEAN].astype({"n_objects": int})
