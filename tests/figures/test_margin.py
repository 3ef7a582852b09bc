"""The picture of binding margins shows the means of the arrays, with bands that hold them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from saber.figures.margin import margin_figure


@pytest.fixture
def margins():
    rng = np.random.default_rng(0)
    return {"base": rng.normal(0.1, 0.05, (40, 36)), "finetuned": rng.normal(0.2, 0.05, (40, 6))}


def test_each_model_is_a_line_of_means_over_its_layers(margins):
    figure = margin_figure(margins)
    (ax,) = figure.axes
    drawn = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert list(drawn) == ["base", "finetuned"]
    for name, line in drawn.items():
        assert line.get_xdata().tolist() == list(range(1, margins[name].shape[1] + 1))
        np.testing.assert_allclose(line.get_ydata(), margins[name].mean(axis=0))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("layer", "mean binding margin")
    assert any(list(line.get_ydata()) == [0, 0] for line in ax.lines)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["base", "finetuned"]
    plt.close(figure)


def test_the_bands_are_95_percent_intervals_of_the_mean(margins):
    figure = margin_figure(margins)
    for band, values in zip(figure.axes[0].collections, margins.values(), strict=True):
        corners = band.get_paths()[0].vertices
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
        for layer in range(values.shape[1]):
            ys = corners[corners[:, 0] == layer + 1, 1]
            assert ys.min() < mean[layer] < ys.max()
            assert (ys.max() - ys.min()) / 2 == pytest.approx(1.96 * error[layer], rel=0.12)
    plt.close(figure)


def test_one_text_and_one_layer_can_be_drawn():
    figure = margin_figure({"a": np.array([[0.5]])})
    assert figure.axes[0].lines[1].get_ydata().tolist() == [0.5]
    figure.canvas.draw()
    plt.close(figure)


def test_the_same_margins_give_the_same_picture(margins):
    pictures = []
    for _ in range(2):
        figure = margin_figure(margins)
        figure.canvas.draw()
        pictures.append(np.asarray(figure.canvas.buffer_rgba()).copy())
        plt.close(figure)
    assert np.array_equal(*pictures)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(3), r"'a': .*not shape \(3,\)$"),
        (np.zeros((0, 3)), r"'a': .*not shape \(0, 3\)$"),
        (np.array([[np.nan]]), r"'a': .*not shape \(1, 1\) with NaN or Inf"),
    ],
)
def test_wrong_arrays_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        margin_figure({"a": values})


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="no margins to draw"):
        margin_figure({})
