from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_rel

from saber.metrics.compare import compare_all, holm, paired_accuracy, paired_mean


def slow_sign_flip(differences):
    observed = abs(sum(differences))
    flips = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product([1, -1], repeat=len(differences))
    ]
    return np.mean([flip >= observed - 1e-12 for flip in flips])


def test_mcnemar_by_hand():
    # a alone right 8 times, b alone twice, both 5 times: two-sided binomial test of 8 of 10
    a = [1] * 8 + [0] * 2 + [1] * 5
    b = [0] * 8 + [1] * 2 + [1] * 5
    result = paired_accuracy(a, b)
    assert result.test == "exact McNemar"
    assert result.p_value == pytest.approx(112 / 1024) == pytest.approx(binomtest(8, 10).pvalue)
    assert (result.wins, result.losses, result.ties, result.n) == (8, 2, 5, 15)
    assert result.difference == pytest.approx(6 / 15)
    assert result.low < result.difference < result.high


def test_mcnemar_is_the_sign_flip_test_of_whole_credits():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 14)).astype(float)
    assert paired_accuracy(a, b).p_value == pytest.approx(slow_sign_flip(a - b))
    assert paired_mean(a, b, n_resamples=20_000).p_value == pytest.approx(slow_sign_flip(a - b))


def test_sign_flip_equals_the_slow_version_exactly_when_all_signs_fit():
    rng = np.random.default_rng(1)
    a, b = rng.random(9), rng.random(9)
    result = paired_mean(a, b)
    assert result.test == "sign flip"
    assert result.p_value == pytest.approx(slow_sign_flip(a - b))
    assert result.difference == pytest.approx(np.mean(a) - np.mean(b))
    chains = [0, 0, 0, 1, 1, 2, 2, 2, 3]
    per_chain = [np.sum((a - b)[np.array(chains) == c]) for c in range(4)]
    assert paired_mean(a, b, clusters=chains).p_value == pytest.approx(slow_sign_flip(per_chain))


def test_sampled_sign_flips_agree_with_a_test_of_the_library():
    rng = np.random.default_rng(2)
    a = rng.random(80)
    b = a - rng.normal(0.03, 0.12, 80)
    assert paired_mean(a, b).p_value == pytest.approx(ttest_rel(a, b).pvalue, abs=0.006)  # normal differences
    assert paired_mean(a, a - 0.5 - 0.1 * a).p_value == pytest.approx(2 / 10_000)  # 1 of 10,000 on each side


def test_shared_credit_and_chains_leave_mcnemar():
    assert paired_accuracy([1, 0.5, 0], [0, 0, 0]).test == "sign flip"
    assert paired_accuracy([1, 1, 0, 0], [0, 0, 0, 1], clusters=list("aabb")).test == "sign flip"
    assert paired_accuracy([1, 1, 0, 0], [0, 0, 0, 1], clusters=list("abcd")).test == "exact McNemar"
    assert paired_accuracy([1, 1, 0], [0, 0, 0], strata=[2, 2, 3]).test == "sign flip"  # unequal weights


def test_swapping_the_models_mirrors_the_result():
    rng = np.random.default_rng(3)
    a, b, chains = rng.random(40), rng.random(40), np.repeat(np.arange(20), 2)
    forth, back = paired_mean(a, b, chains), paired_mean(b, a, chains)
    assert forth.difference == pytest.approx(-back.difference)
    assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low))
    assert forth.p_value == pytest.approx(back.p_value)
    assert (forth.wins, forth.losses) == (back.losses, back.wins)
    order = rng.permutation(40)
    moved = paired_mean(a[order], b[order], chains[order])
    assert moved.difference == pytest.approx(forth.difference)


def test_pairing_is_what_counts():
    rng = np.random.default_rng(4)
    difficulty = rng.random(100)
    a, b = difficulty, difficulty - 0.01 + rng.normal(0, 0.002, 100)  # tiny but steady
    result = paired_mean(a, b)
    assert result.p_value < 0.001 and result.low > 0 and result.high < 0.02


def test_chains_are_kept_whole():
    rng = np.random.default_rng(8)
    a = np.tile(rng.integers(0, 2, 30), 9).astype(float)  # a chain is right or wrong at all nine counts
    b = np.full(270, 0.5)
    alone, chained = paired_mean(a, b), paired_mean(a, b, clusters=np.tile(np.arange(30), 9))
    assert chained.difference == pytest.approx(alone.difference)
    assert chained.high - chained.low > 2 * (alone.high - alone.low)
    assert chained.p_value > alone.p_value


def test_equal_models():
    a = np.array([1.0, 0, 1, 1])
    for compare in (paired_accuracy, paired_mean):
        result = compare(a, a)
        assert (result.difference, result.low, result.high, result.p_value, result.ties) == (0, 0, 0, 1, 4)
    assert paired_mean([0.4], [0.1]).p_value == 1
    assert np.isnan(paired_mean([0.4], [0.1]).low)


def test_strata_weigh_alike():
    a, b = np.array([1.0, 1, 1, 1, 0, 0]), np.zeros(6)
    assert paired_mean(a, b).difference == pytest.approx(4 / 6)
    assert paired_mean(a, b, strata=[2, 2, 2, 2, 3, 3]).difference == pytest.approx(1 / 2)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]).tolist() == [1, 1]
    assert holm([0.2]).tolist() == [0.2]
    p = np.random.default_rng(5).random(7)
    order = np.random.default_rng(6).permutation(7)
    assert holm(p[order]).tolist() == holm(p)[order].tolist()


def test_compare_all_has_a_row_per_pair():
    rng = np.random.default_rng(7)
    credit = {name: (rng.random(60) < p).astype(float) for name, p in [("z", 0.9), ("a", 0.5), ("m", 0.5)]}
    table = compare_all(credit, kind="accuracy", n_resamples=999)
    assert table[["a", "b"]].values.tolist() == [["z", "a"], ["z", "m"], ["a", "m"]]
    assert table["p_holm"].tolist() == holm(table["p_value"]).tolist()
    row = table.iloc[0]
    single = paired_accuracy(credit["z"], credit["a"], n_resamples=999)
    assert (row["difference"], row["low"], row["p_value"]) == (single.difference, single.low, single.p_value)
    assert set(compare_all(credit, n_resamples=99)["test"]) == {"sign flip"}


def test_unusable_arguments():
    with pytest.raises(ValueError, match="first model: row 1 is NaN"):
        paired_mean([0.1, np.nan], [0.1, 0.2])
    with pytest.raises(ValueError, match="2 values of the first model, 1 of the second"):
        paired_mean([0.1, 0.2], [0.1])
    with pytest.raises(ValueError, match="second model: expected a non-empty"):
        paired_mean([0.1], [])
    with pytest.raises(ValueError, match="between 0 and 1"):
        paired_accuracy([2.0], [1.0])
    with pytest.raises(ValueError, match="kind must be 'accuracy' or 'mean', not 'map'"):
        compare_all({"a": [1.0], "b": [0.0]}, kind="map")
    with pytest.raises(ValueError, match="two models or more"):
        compare_all({"a": [1.0]})
