"""Clusters and strata: which observations belong together when uncertainty is estimated.

The nine questions of a nested chain share their bindings, so they are no independent observations: a chain is
a *cluster*. Means over object counts weigh each count alike: a count is a *stratum*. Resampling draws
clusters among those that cover the same strata (a chain among chains, an independent question among those of
its count), so every resample has the same number of questions at each count as the benchmark.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Design:
    """How the n observations enter a mean and an interval.

    ``weights`` float (n,), sum 1; ``cluster`` int (n,), numbered 0 to ``n_clusters - 1``; ``group`` int
    (n_clusters,): clusters with the same group number are exchangeable.
    """

    weights: np.ndarray
    cluster: np.ndarray
    group: np.ndarray

    def mean(self, values: np.ndarray) -> float:
        """The weighted mean of values (n,)."""
        return float(self.totals(values).sum())

    def totals(self, values: np.ndarray) -> np.ndarray:
        """Weighted total of each cluster, (n_clusters,); they add up to the mean."""
        return np.bincount(self.cluster, weights=self.weights * values, minlength=self.group.size)

    def effective_size(self) -> float:
        """Number of observations of equal weight with the same sum of squares; n where weights are equal."""
        return float(1 / np.sum(self.weights**2))

    def independent(self) -> bool:
        """Whether each observation is a cluster of its own."""
        return self.group.size == self.cluster.size

    def resamplable(self) -> bool:
        """Whether each group has two clusters or more, without which its spread is unknown."""
        return bool(np.bincount(self.group).min() > 1)


def make_design(n: int, clusters=None, strata=None) -> Design:
    """The design of n observations.

    ``clusters`` (n,): labels; None or NaN stands for an observation of its own (an independent question).
    ``strata`` (n,): labels; each stratum gets the same weight, so the mean is the mean of the strata's means.
    Without strata each observation has the weight 1 / n.

    Raises ``ValueError`` when n is 0 or a length differs, or a stratum label is missing.
    """
    if n == 0:
        raise ValueError("no values: there is nothing to average")
    cluster = np.arange(n) if clusters is None else _codes(clusters, n, "clusters")
    alone = cluster < 0
    cluster = np.where(alone, n + np.arange(n), cluster)
    cluster = pd.factorize(cluster)[0]
    if strata is None:
        return Design(np.full(n, 1 / n), cluster, np.zeros(cluster.max() + 1, dtype=np.int64))
    stratum = _codes(strata, n, "strata")
    if (stratum < 0).any():
        raise ValueError(f"strata: no label for value {int(np.argmax(stratum < 0))}")
    size = np.bincount(stratum)
    weights = 1 / (size.size * size[stratum])
    order = np.lexsort([stratum, cluster])
    parts = np.split(stratum[order], np.flatnonzero(np.diff(cluster[order])) + 1)
    return Design(
        weights, cluster, pd.factorize(np.array([part.tobytes() for part in parts], dtype=object))[0]
    )


def check_values(values, name: str = "values") -> np.ndarray:
    """Values as float64 (n,), finite and at least one; else ``ValueError`` naming the row."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name}: expected a non-empty array (n,), got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name}: row {int(np.argmin(np.isfinite(values)))} is NaN or Inf")
    return values


def _codes(labels, n: int, name: str) -> np.ndarray:
    codes = pd.factorize(pd.Series(list(labels), dtype=object))[0]
    if codes.size != n:
        raise ValueError(f"{name}: {codes.size} labels for {n} values")
    return codes
