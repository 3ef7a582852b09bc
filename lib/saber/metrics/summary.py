"""From results per question to the rows of Tables 2, 17, 18 and 19: one per object count, and their mean."""

import numpy as np
import pandas as pd

from saber.metrics.intervals import bootstrap_mean_interval, clustered_wilson_interval

MEAN = "Mean"
COLUMNS = ["n_objects", "value", "n", "low", "high"]


def accuracy_by_count(credit, n_objects, clusters=None, level: float = 0.95) -> pd.DataFrame:
    """Accuracy in percent for each number of objects, and the mean over these numbers (Table 17, Table 2).

    ``credit`` is (q,) in [0, 1] from :func:`saber.metrics.mcq.mcq_credit`, or (q, m) for m pairings, which
    are averaged question by question (the tables' last column). ``n_objects`` (q,) are whole numbers;
    ``clusters`` (q,) the chain of each question, None for an independent one.

    Returns columns n_objects ("2", ..., "10", "Mean"), value, n (questions), low, high. The mean weighs each
    count alike, as in the paper. Intervals are Wilson's; where questions depend on each other (the chains, in
    the mean) or credits are averaged over pairings, with the effective sample size of
    :func:`saber.metrics.intervals.clustered_wilson_interval`.
    """
    values, decisions = _per_question(credit, n_objects, "credit")

    def interval(chosen, clusters, strata):
        return clustered_wilson_interval(values[chosen], clusters, strata, decisions, level)

    return _by_count(values, n_objects, clusters, interval)


def map_by_count(
    ap, n_objects, clusters=None, n_resamples: int = 10_000, seed: int = 0, level: float = 0.95
) -> pd.DataFrame:
    """Mean average precision in percent for each number of objects, and the mean over these (Tables 18, 19).

    ``ap`` is (q,) in [0, 1] from :func:`saber.metrics.retrieval.gallery_average_precision`, or (q, m) for m
    pairings. Other arguments and the result as in :func:`accuracy_by_count`. Intervals are percentile
    bootstraps over queries; in the mean over counts whole chains are drawn, and independent queries within
    their count. They are NaN where there is a single query or chain to draw.
    """
    values, _ = _per_question(ap, n_objects, "ap")

    def interval(chosen, clusters, strata):
        return bootstrap_mean_interval(values[chosen], clusters, strata, n_resamples, seed, level)

    return _by_count(values, n_objects, clusters, interval)


def _per_question(values, n_objects, name: str) -> tuple[np.ndarray, int]:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(f"{name}: expected a non-empty array (questions,) or (questions, pairings)")
    if len(values) != len(n_objects):
        raise ValueError(f"{name}: {len(values)} questions, but n_objects for {len(n_objects)}")
    bad = ~((values >= 0) & (values <= 1)).reshape(len(values), -1).all(axis=1)
    if bad.any():
        raise ValueError(f"{name}: question {int(np.argmax(bad))} is not between 0 and 1")
    return (values, 1) if values.ndim == 1 else (values.mean(axis=1), values.shape[1])


def _by_count(values: np.ndarray, n_objects, clusters, interval) -> pd.DataFrame:
    counts = np.asarray(n_objects)
    if counts.dtype.kind not in "iu":
        raise ValueError(f"n_objects must be whole numbers, not {counts.dtype}")
    labels = np.array([None] * len(values) if clusters is None else list(clusters), dtype=object)
    if len(labels) != len(values):
        raise ValueError(f"clusters: {len(labels)} labels for {len(values)} questions")
    rows, means = [], []
    for count in np.unique(counts):
        chosen = counts == count
        means.append(values[chosen].mean())
        rows.append((str(count), means[-1], int(chosen.sum()), *interval(chosen, labels[chosen], None)))
    everything = np.ones(len(values), dtype=bool)
    rows.append((MEAN, float(np.mean(means)), len(values), *interval(everything, labels, counts)))
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.assign(**{name: 100 * table[name] for name in ("value", "low", "high")})
