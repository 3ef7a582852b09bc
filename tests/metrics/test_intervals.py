import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap

from saber.metrics.intervals import (
    bootstrap_mean_interval,
    bootstrap_ratio_interval,
    clustered_wilson_interval,
    wilson_interval,
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(n=st.integers(1, 5000), share=st.floats(0, 1), level=st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_equals_scipy(n, share, level):
    k = round(share * n)
    expected = binomtest(k, n).proportion_ci(confidence_level=level, method="wilson")
    low, high = wilson_interval(k, n, level)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= low <= k / n <= high <= 1
    mirrored = wilson_interval(n - k, n, level)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_wilson_by_hand():
    # 50 of 100: 1/2 -+ z / (2 sqrt(n + z^2))
    half = 1.959963984540054 / 2 / np.sqrt(100 + 1.959963984540054**2)
    assert wilson_interval(50, 100) == pytest.approx((0.5 - half, 0.5 + half))
    assert wilson_interval(0, 200)[0] == 0 and wilson_interval(200, 200)[1] == 1
    low, high = wilson_interval(1, 1)
    assert 0 < low < 0.25 and high == 1


def test_wilson_of_shared_credit_and_of_arrays():
    low, high = wilson_interval(np.array([10, 10.25, 10.5]), 20)
    assert (np.diff(low) > 0).all() and (np.diff(high) > 0).all()
    assert wilson_interval(10.25, 20) == (low[1], high[1])
    assert wilson_interval(sum([0.1] * 10), 1)[1] == 1  # a sum that rounds to a hair above n


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (0, 0), (np.nan, 5), (1, np.nan)])
def test_wilson_rejects_impossible_counts(k, n):
    with pytest.raises(ValueError, match="0 <= successes <= n"):
        wilson_interval(k, n)


def test_levels_outside_0_to_1_raise():
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match="level must lie between 0 and 1"):
            wilson_interval(1, 2, level)
        with pytest.raises(ValueError, match="level must lie between 0 and 1"):
            bootstrap_mean_interval([0.1, 0.2], level=level)


def test_clustered_wilson_of_independent_whole_credits_is_wilson():
    credit = np.repeat([1.0, 0.0], [130, 70])
    low, high = clustered_wilson_interval(credit)
    assert (low, high) == pytest.approx(wilson_interval(130, 200), abs=1e-12)
    assert clustered_wilson_interval(credit, strata=np.tile([2, 3], 100)) == pytest.approx(
        (low, high), abs=1e-12
    )
    # independent pairs: the variance estimate divides by n - 1, so the effective size is n - 1
    paired = clustered_wilson_interval(credit, decisions=2)
    assert paired == pytest.approx(wilson_interval(130 / 200 * 199, 199), abs=1e-12)


def test_clustered_wilson_of_identical_answers_within_chains_counts_chains():
    rng = np.random.default_rng(0)
    per_chain = (rng.random(100) < 0.6).astype(float)
    credit, chains = np.tile(per_chain, 9), np.tile(np.arange(100), 9)
    low, high = clustered_wilson_interval(credit, chains, strata=np.repeat(np.arange(2, 11), 100))
    assert (low, high) == pytest.approx(wilson_interval(per_chain.mean() * 99, 99), abs=1e-9)
    alone = clustered_wilson_interval(credit)
    assert high - low > 2.5 * (alone[1] - alone[0])


def test_clustered_wilson_where_the_variance_says_nothing():
    chains = np.repeat(np.arange(50), 4)
    assert clustered_wilson_interval(np.ones(200), chains) == wilson_interval(50, 50)
    assert clustered_wilson_interval(np.zeros(200), chains) == wilson_interval(0, 50)
    assert clustered_wilson_interval([1.0]) == wilson_interval(1, 1)
    assert clustered_wilson_interval([1.0, 0.0], ["a", "a"]) == wilson_interval(0.5, 1)
    # a model without preference: no spread at all, and never taken for more than n questions
    assert clustered_wilson_interval(np.full(200, 0.25)) == pytest.approx(wilson_interval(50, 200))
    assert clustered_wilson_interval(np.full(200, 0.25), decisions=4) == pytest.approx(
        wilson_interval(200, 800)
    )
    with pytest.raises(ValueError, match="between 0 and 1"):
        clustered_wilson_interval([0.5, 1.5])
    with pytest.raises(ValueError, match="row 0 is NaN"):
        clustered_wilson_interval([np.nan, 1.0])


def test_clustered_wilson_of_a_mean_over_pairings_matches_its_spread():
    rng = np.random.default_rng(1)
    credit = (rng.random((400, 4)) < 0.5).mean(axis=1)
    low, high = clustered_wilson_interval(credit, decisions=4)
    expected = bootstrap_mean_interval(credit, n_resamples=4000)
    assert (low, high) == pytest.approx(expected, abs=0.003)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bootstrap_agrees_with_scipy(level):
    values = np.random.default_rng(2).beta(0.5, 0.3, size=60)
    oracle = bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", confidence_level=level, rng=1
    )
    expected = (oracle.confidence_interval.low, oracle.confidence_interval.high)
    interval = bootstrap_mean_interval(values, n_resamples=20_000, seed=0, level=level)
    assert interval == pytest.approx(expected, abs=0.005)  # widths are about 0.12 and 0.18


def test_bootstrap_equals_the_slow_version_draw_by_draw():
    rng = np.random.default_rng(3)
    values, chains, counts = rng.random(30), np.array(list("abcdefghij") * 3), np.repeat([2, 3, 4], 10)
    names = sorted(set(chains))
    drawn = np.random.default_rng(7).integers(0, 10, size=(500, 10))
    means = []
    for row in drawn:
        sample = np.concatenate([np.flatnonzero(chains == names[i]) for i in row])
        means.append(np.mean([values[sample[counts[sample] == c]].mean() for c in (2, 3, 4)]))
    expected = np.quantile(means, [0.025, 0.975])
    interval = bootstrap_mean_interval(values, chains, counts, n_resamples=500, seed=7)
    assert interval == pytest.approx(tuple(expected), abs=1e-12)


def test_chains_widen_and_strata_narrow_the_interval():
    rng = np.random.default_rng(4)
    level = np.repeat([0.2, 0.5, 0.8], 40)
    chain = np.tile(np.arange(40), 3)
    values = level + np.tile(rng.normal(0, 0.1, 40), 3) + rng.normal(0, 0.01, 120)

    def width(*groups):
        low, high = bootstrap_mean_interval(values, *groups, n_resamples=2000)
        return high - low

    assert width(None, level) < 0.6 * width(None, None)
    assert width(chain, level) > 1.4 * width(None, level)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), shift=st.floats(-5, 5), scale=st.floats(0.1, 10))
def test_bootstrap_moves_with_the_values_and_not_with_their_order_of_labels(seed, shift, scale):
    values = np.random.default_rng(seed).random(12)
    low, high = bootstrap_mean_interval(values, n_resamples=200, seed=seed)
    assert values.min() <= low <= values.mean() <= high <= values.max()
    moved = bootstrap_mean_interval(shift + scale * values, n_resamples=200, seed=seed)
    assert moved == pytest.approx((shift + scale * low, shift + scale * high), abs=1e-9)
    named = bootstrap_mean_interval(
        values, clusters=[f"chain {i}" for i in range(12)], n_resamples=200, seed=seed
    )
    assert named == (low, high)


def test_bootstrap_of_little_or_equal_data():
    assert np.isnan(bootstrap_mean_interval([0.3])).all()
    assert np.isnan(bootstrap_mean_interval([0.3, 0.4], clusters=["a", "a"])).all()
    assert np.isnan(bootstrap_mean_interval([0.3, 0.4, 0.5], strata=[2, 3, 3])).all()
    assert bootstrap_mean_interval([0.1] * 7) == (0.1, 0.1)
    assert bootstrap_mean_interval([0.1] * 6, strata=[2, 2, 3, 3, 4, 4]) == (0.1, 0.1)
    first = bootstrap_mean_interval([0.1, 0.5, 0.9], seed=[3, 1], n_resamples=100)
    assert first == bootstrap_mean_interval([0.1, 0.5, 0.9], seed=[3, 1], n_resamples=100)
    with pytest.raises(ValueError, match="row 1 is NaN or Inf"):
        bootstrap_mean_interval([0.1, np.nan])
    with pytest.raises(ValueError, match="non-empty"):
        bootstrap_mean_interval([])
    with pytest.raises(ValueError, match="n_resamples must be at least 1"):
        bootstrap_mean_interval([0.1, 0.2], n_resamples=0)


def test_result_does_not_depend_on_the_batches(monkeypatch):
    values = np.random.default_rng(5).random(11)
    whole = bootstrap_mean_interval(values, n_resamples=300, seed=1)
    monkeypatch.setattr("saber.metrics.intervals.BATCH", 11)
    assert bootstrap_mean_interval(values, n_resamples=300, seed=1) == whole


def test_ratio_with_equal_denominators_is_the_mean():
    values = np.random.default_rng(6).random(40)
    ratio = bootstrap_ratio_interval(3 * values, np.full(40, 3), n_resamples=500, seed=2)
    assert ratio == pytest.approx(bootstrap_mean_interval(values, n_resamples=500, seed=2), abs=1e-12)


def test_ratio_resamples_queries_and_not_comparisons():
    wins, counts = np.array([0.0, 50, 0, 50]), np.array([50, 50, 50, 50])
    low, high = bootstrap_ratio_interval(wins, counts, n_resamples=2000)
    assert (
        low == 0 and high == 1
    )  # four queries that contradict each other, however many comparisons they hold
    assert np.isnan(bootstrap_ratio_interval(wins, np.zeros(4))).all()
    # resamples without any comparison are left out
    assert bootstrap_ratio_interval([1.0, 0.0], [2, 0], n_resamples=50) == (0.5, 0.5)
    assert np.isnan(bootstrap_ratio_interval([1.0, 0.0], [2, 2], clusters=[1, 1])).all()
    with pytest.raises(ValueError, match="none of them negative"):
        bootstrap_ratio_interval([1.0, 2.0], [1, -1])
    with pytest.raises(ValueError, match="one per numerator"):
        bootstrap_ratio_interval([1.0, 2.0], [1])


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(8)
    chains, counts = np.tile(np.arange(30), 4), np.repeat([2, 3, 4, 5], 30)
    hits = np.zeros(2)
    for trial in range(200):
        ease = np.tile(rng.beta(2, 2, 30), 4)  # chains differ, their mean is 1/2
        credit = (rng.random(120) < ease).astype(float)
        for i, interval in enumerate(
            (
                clustered_wilson_interval(credit, chains, counts),
                bootstrap_mean_interval(credit, chains, counts, n_resamples=300, seed=trial),
            )
        ):
            hits[i] += interval[0] <= 0.5 <= interval[1]
    assert (hits / 200 > 0.9).all() and (hits / 200 < 0.99).all()
