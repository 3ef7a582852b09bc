import numpy as np
import pytest

from saber.metrics.intervals import bootstrap_mean_interval, clustered_wilson_interval, wilson_interval
from saber.metrics.summary import accuracy_by_count, map_by_count


def saber_like(rng, per_count=20):
    """Object counts 2-10; in each count half of the questions belong to chains."""
    counts = np.repeat(np.arange(2, 11), per_count)
    chains = ([f"chain {i}" for i in range(per_count // 2)] + [None] * (per_count // 2)) * 9
    order = rng.permutation(counts.size)
    return counts[order], [chains[i] for i in order]


def test_accuracy_by_hand():
    table = accuracy_by_count([1, 0, 1, 1, 0.5, 0], [2, 2, 10, 10, 10, 10])
    assert table.columns.tolist() == ["n_objects", "value", "n", "low", "high"]
    assert table["n_objects"].tolist() == ["2", "10", "Mean"]
    assert table["value"].tolist() == pytest.approx([50, 62.5, 56.25])
    assert table["n"].tolist() == [2, 4, 6]
    assert (table["low"] < table["value"]).all() and (table["value"] < table["high"]).all()


def test_accuracy_of_each_count_has_wilsons_interval():
    rng = np.random.default_rng(0)
    counts, chains = saber_like(rng, 200)
    credit = (rng.random(counts.size) < 0.7).astype(float)
    table = accuracy_by_count(credit, counts, chains).set_index("n_objects")
    for count in range(2, 11):
        own = credit[counts == count]
        row = table.loc[str(count)]
        assert (row["value"], row["n"]) == (pytest.approx(100 * own.mean()), 200)
        low, high = wilson_interval(own.sum(), 200)
        assert (row["low"], row["high"]) == pytest.approx((100 * low, 100 * high))
    assert table.loc["Mean", "value"] == pytest.approx(table["value"].iloc[:9].mean())
    low, high = clustered_wilson_interval(credit, chains, counts)
    assert table.loc["Mean", ["low", "high"]].tolist() == [100 * low, 100 * high]
    assert table.loc["Mean", "high"] - table.loc["Mean", "low"] < 6  # 1,800 questions, not 200


def test_map_weighs_counts_alike_and_draws_chains():
    rng = np.random.default_rng(1)
    counts, chains = saber_like(rng)
    ap = np.clip(rng.normal(0.5, 0.1, counts.size) + counts / 50, 0, 1)
    table = map_by_count(ap, counts, chains, n_resamples=500, seed=3).set_index("n_objects")
    for count in (2, 10):
        own = ap[counts == count]
        low, high = bootstrap_mean_interval(own, n_resamples=500, seed=3)
        expected = [100 * own.mean(), 20, 100 * low, 100 * high]
        assert table.loc[str(count)].tolist() == pytest.approx(expected, abs=1e-9)
    low, high = bootstrap_mean_interval(ap, chains, counts, n_resamples=500, seed=3)
    mean = np.mean([ap[counts == count].mean() for count in range(2, 11)])
    assert table.loc["Mean"].tolist() == pytest.approx([100 * mean, 180, 100 * low, 100 * high])


def test_unequal_counts_still_weigh_alike():
    table = map_by_count([0.0, 0.1, 0.0, 0.1, 1.0, 0.9], [2, 2, 2, 2, 3, 3], n_resamples=100)
    assert table["value"].tolist() == pytest.approx([5, 95, 50])
    assert table["low"].iloc[2] <= 50 <= table["high"].iloc[2]


def test_several_pairings_are_averaged_question_by_question():
    rng = np.random.default_rng(2)
    counts, chains = saber_like(rng)
    credit = (rng.random((counts.size, 4)) < [0.9, 0.3, 0.3, 0.7]).astype(float)
    table = accuracy_by_count(credit, counts, chains)
    single = [accuracy_by_count(credit[:, i], counts, chains)["value"] for i in range(4)]
    np.testing.assert_allclose(table["value"], np.mean(single, axis=0))
    width = table["high"] - table["low"]
    assert (width < accuracy_by_count(credit[:, 1], counts, chains).eval("high - low")).all()
    ap = map_by_count(credit, counts, chains, n_resamples=200)
    np.testing.assert_allclose(ap["value"], table["value"])


def test_order_of_questions_changes_no_value():
    rng = np.random.default_rng(3)
    counts, chains = saber_like(rng)
    credit = rng.integers(0, 2, counts.size).astype(float)
    order = rng.permutation(counts.size)
    first = accuracy_by_count(credit, counts, chains)
    second = accuracy_by_count(credit[order], counts[order], [chains[i] for i in order])
    np.testing.assert_allclose(first.drop(columns="n_objects"), second.drop(columns="n_objects"), rtol=1e-12)


def test_perfect_and_single():
    table = accuracy_by_count(np.ones(20), np.repeat([2, 3], 10))
    assert table["value"].tolist() == table["high"].tolist() == [100, 100, 100]
    assert table["low"].iloc[2] > table["low"].iloc[0] > 60
    assert map_by_count(np.ones(20), np.repeat([2, 3], 10))["low"].tolist() == [100, 100, 100]
    alone = map_by_count([0.5], [2])
    assert alone["value"].tolist() == [50, 50] and alone[["low", "high"]].isna().all(axis=None)


def test_unusable_arguments():
    for summarise in (accuracy_by_count, map_by_count):
        with pytest.raises(ValueError, match="non-empty array"):
            summarise([], [])
        with pytest.raises(ValueError, match="2 questions, but n_objects for 3"):
            summarise([0.1, 0.2], [2, 2, 3])
        with pytest.raises(ValueError, match="question 1 is not between 0 and 1"):
            summarise([0.1, np.nan], [2, 2])
        with pytest.raises(ValueError, match="question 0 is not between 0 and 1"):
            summarise([[0.5, 55.0], [0.1, 0.1]], [2, 2])
        with pytest.raises(ValueError, match="whole numbers"):
            summarise([0.1, 0.2], [2.0, 3.0])
        with pytest.raises(ValueError, match="clusters: 1 labels for 2 questions"):
            summarise([0.1, 0.2], [2, 2], ["a"])
