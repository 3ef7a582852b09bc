"""Intervals: Wilson for accuracies, the percentile bootstrap over queries or chains for everything else."""

import numpy as np
from scipy.stats import norm

from saber.metrics.groups import Design, check_values, make_design

BATCH = 2_000_000  # random draws held at once


def wilson_interval(successes, n, level: float = 0.95):
    """Wilson score interval of a proportion: ``(low, high)`` in [0, 1].

    ``successes`` may be fractional (tied questions earn partial credit) and, as ``n``, a number or an array;
    then the bounds are arrays. With p = successes / n and z the normal quantile,

    .. math:: \\frac{p + z^2 / 2n \\pm z \\sqrt{p (1 - p) / n + z^2 / 4 n^2}}{1 + z^2 / n}

    the interval of ``scipy.stats.binomtest(k, n).proportion_ci(method="wilson")`` where k is whole. It stays
    informative at 0 and at 1. Raises ``ValueError`` unless 0 <= successes <= n, n > 0 and 0 < level < 1.
    """
    successes, n = np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    valid = (n > 0) & (successes >= 0) & (successes <= n * (1 + 1e-12))
    if not np.all(valid):
        raise ValueError(f"successes {successes} of n {n}: needed are 0 <= successes <= n and n > 0")
    z = norm.ppf(0.5 + _checked_level(level) / 2)
    p = np.minimum(successes / n, 1)
    centre = p + z**2 / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    low = np.where(p == 0, 0.0, np.maximum((centre - half) / (1 + z**2 / n), 0))
    high = np.where(p == 1, 1.0, np.minimum((centre + half) / (1 + z**2 / n), 1))
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def clustered_wilson_interval(
    credit, clusters=None, strata=None, decisions: int = 1, level: float = 0.95
) -> tuple[float, float]:
    """Wilson interval of a mean credit (n,) in [0, 1] whose observations are not all independent.

    The effective sample size ``p (1 - p) / Var(p)`` takes the place of n, with the variance estimated between
    clusters within groups (see :mod:`saber.metrics.groups`; method: Dean and Pagano, Journal of Survey
    Statistics and Methodology 3(4), 2015). It is never more than ``decisions * n``, where ``decisions`` is
    the number of yes-no decisions averaged into each credit (4 for the mean over the four pairings). Where
    the variance says nothing (p is 0 or 1, or a group has a single cluster) the number of clusters is taken,
    the cautious choice. Independent single decisions have the plain Wilson interval.
    """
    credit = check_values(credit, "credit")
    if credit.min() < 0 or credit.max() > 1:
        raise ValueError("credit: values must lie between 0 and 1")
    design = make_design(credit.size, clusters, strata)
    p = min(max(design.mean(credit), 0.0), 1.0)
    most = decisions * design.effective_size()
    if design.independent() and decisions == 1:
        size = most
    elif credit.max() == 0 or credit.min() == 1 or not design.resamplable():
        size = min(most, design.group.size)
    else:
        variance = _variance(design.totals(credit - p), design.group)
        size = most if variance * most <= p * (1 - p) else max(p * (1 - p) / variance, 1.0)
    return wilson_interval(p * size, size, level)


def bootstrap_mean_interval(
    values, clusters=None, strata=None, n_resamples: int = 10_000, seed=0, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of values (n,): ``(low, high)`` in the unit of the values.

    ``clusters`` (n,) are drawn whole, for example chains; ``strata`` (n,), for example object counts, weigh
    alike and keep their sizes (both as in :func:`saber.metrics.groups.make_design`). The same ``seed`` (int
    or sequence of int) gives the same interval.

    Equal values give an interval of width 0, for the sample shows no spread. Where a group has a single
    cluster the spread is unknown and both bounds are NaN. Raises ``ValueError`` for NaN or Inf and for no
    values.
    """
    values = check_values(values)
    design = make_design(values.size, clusters, strata)
    totals = np.column_stack([design.totals(values), design.totals(np.ones(values.size))])
    if values.min() == values.max() and design.resamplable():
        return float(values[0]), float(values[0])  # exactly, not within the rounding of sums
    return _percentile(totals, design, n_resamples, seed, level)


def bootstrap_ratio_interval(
    numerators, denominators, clusters=None, n_resamples: int = 10_000, seed=0, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval of ``sum(numerators) / sum(denominators)``, both (n,), denominators >= 0.

    For shares of comparisons, of which each query contributes its own number (possibly none): the interval
    resamples queries, or chains, and not comparisons. NaN when the share is undefined or there is one
    cluster.
    """
    numerators, denominators = (
        check_values(numerators, "numerators"),
        check_values(denominators, "denominators"),
    )
    if numerators.shape != denominators.shape or denominators.min() < 0:
        raise ValueError("denominators: one per numerator is needed, none of them negative")
    if denominators.sum() == 0:
        return float("nan"), float("nan")
    design = make_design(numerators.size, clusters)
    totals = np.column_stack([design.totals(numerators), design.totals(denominators)])
    return _percentile(totals, design, n_resamples, seed, level)


def _percentile(
    totals: np.ndarray, design: Design, n_resamples: int, seed, level: float
) -> tuple[float, float]:
    """Interval of total 0 / total 1 over resampled clusters; totals are (clusters, 2)."""
    tail = (1 - _checked_level(level)) / 2
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, not {n_resamples}")
    if not design.resamplable():
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    sums = np.zeros((n_resamples, 2))
    for group in range(design.group.max() + 1):
        members = totals[design.group == group]
        step = max(1, BATCH // len(members))
        for first in range(0, n_resamples, step):
            rows = min(step, n_resamples - first)
            drawn = rng.integers(0, len(members), size=(rows, len(members)))
            sums[first : first + rows] += members[drawn].sum(axis=1)
    defined = sums[:, 1] > 0  # a resample may hold no comparison at all
    low, high = np.quantile(sums[defined, 0] / sums[defined, 1], [tail, 1 - tail])
    return float(low), float(high)


def _variance(totals: np.ndarray, group: np.ndarray) -> float:
    """Variance of the sum of cluster totals, clusters being drawn within their group."""
    size = np.bincount(group)
    mean = np.bincount(group, weights=totals) / size
    squares = np.bincount(group, weights=(totals - mean[group]) ** 2)
    return float(np.sum(size / (size - 1) * squares))


def _checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, not {level}")
    return level
