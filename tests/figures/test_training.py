import matplotlib
import numpy as np
import pandas as pd

from saber.figures.training import SMOOTHING, training_figure


def test_both_panels_show_the_steps_and_their_running_mean():
    matplotlib.use("agg")
    n = 30
    rng = np.random.default_rng(0)
    log = pd.DataFrame(
        {
            "examples": 16 * np.arange(1, n + 1),
            "loss": rng.random(n),
            "triplet_accuracy": rng.random(n),
        }
    )
    figure = training_figure(log)
    loss, accuracy = figure.axes
    assert [ax.get_xlabel() for ax in figure.axes] == ["examples", "examples"]
    assert loss.get_ylabel() == "hinge loss" and accuracy.get_ylabel() == "triplets right (%)"
    raw, smooth = (line.get_ydata() for line in accuracy.lines)
    assert np.allclose(raw, 100 * log["triplet_accuracy"])
    assert np.isclose(smooth[-1], 100 * log["triplet_accuracy"][-SMOOTHING:].mean())
    assert np.isclose(smooth[0], raw[0])
    assert np.allclose(loss.lines[0].get_ydata(), log["loss"])
