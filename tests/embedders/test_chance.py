from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from saber.embedders.chance import expected_ap, expected_mcq_credit


def brute_force(n_gallery, n_positives):
    """Mean AP over all placements of the positives in the ranking."""
    values = []
    for ranks in combinations(range(1, n_gallery + 1), n_positives):
        values.append(np.mean([(i + 1) / rank for i, rank in enumerate(ranks)]))
    return np.mean(values)


@pytest.mark.parametrize("n_gallery", range(1, 9))
def test_equals_the_mean_over_all_rankings(n_gallery):
    for n_positives in range(1, n_gallery + 1):
        expected = brute_force(n_gallery, n_positives)
        assert expected_ap(n_gallery, n_positives) == pytest.approx(expected, abs=1e-12)


def test_agrees_with_simulated_rankings_of_another_library():
    rng = np.random.default_rng(0)
    labels = np.arange(60) < 7
    simulated = [average_precision_score(labels, rng.permutation(60)) for _ in range(300)]
    error = np.std(simulated) / np.sqrt(len(simulated))
    assert abs(np.mean(simulated) - expected_ap(60, 7)) < 4 * error


def test_arrays_and_bounds():
    values = expected_ap(7200, np.arange(1, 40))
    assert values.shape == (39,)
    assert (np.diff(values) > 0).all() and values[0] > 1 / 7200 and values[-1] < 0.01
    assert expected_ap(5, 5) == pytest.approx(1)


@pytest.mark.parametrize("n_gallery, n_positives", [(0, 1), (5, 0), (5, 6), (5, []), (5, [1, 0])])
def test_impossible_numbers(n_gallery, n_positives):
    with pytest.raises(ValueError):
        expected_ap(n_gallery, np.array(n_positives, dtype=int))
    with pytest.raises(ValueError, match="whole numbers"):
        expected_ap(5, 1.5)


def test_mcq_credit():
    assert expected_mcq_credit() == 0.25
    assert expected_mcq_credit(5) == 0.2
    with pytest.raises(ValueError):
        expected_mcq_credit(0)
