"""The picture of Table 17 shows the cells of the table."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from saber.figures.accuracy import CHANCE, accuracy_figure
from saber.scoring import PAIRINGS


@pytest.fixture
def table_17():
    cells = [
        (name, f"{pairing} {n}", value + n, 10, value, value + 20)
        for name, value, pairings in (("a", 50, PAIRINGS), ("b", 30, ["T->T"]))
        for pairing in pairings
        for n in (2, 3)
    ]
    frame = pd.DataFrame(cells, columns=["row", "column", "value", "n", "low", "high"])
    mean = pd.DataFrame({"row": ["a"], "column": ["T->T Mean"], "value": [99.0]})
    return pd.concat([frame, mean], ignore_index=True)


def test_every_model_is_drawn_where_it_has_values(table_17):
    figure = accuracy_figure(table_17, ["a", "b"])
    for pairing, ax in zip(PAIRINGS, figure.axes, strict=True):
        drawn = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
        assert set(drawn) == ({"a", "b"} if pairing == "T->T" else {"a"})
        assert list(drawn["a"].get_xdata()) == [2, 3] and list(drawn["a"].get_ydata()) == [52, 53]
        assert any(np.allclose(line.get_ydata(), CHANCE) for line in ax.lines)
        assert ax.get_title() == pairing.replace("->", "→")
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["a", "b"]
    plt.close(figure)


def test_the_papers_ten_models_stand_behind(table_17):
    figure = accuracy_figure(table_17, ["a"])
    assert sum(line.get_color() == "0.85" for line in figure.axes[0].lines) == 10
    plt.close(figure)
