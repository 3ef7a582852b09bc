"""Paired comparison of models: every difference is taken on the same questions.

Two models that answer the same questions are correlated, so their separate intervals say little about their
difference. Here the difference per question is the observation, and chains are kept whole.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import binomtest, permutation_test

from saber.metrics.groups import check_values, make_design
from saber.metrics.intervals import bootstrap_mean_interval


@dataclass(frozen=True)
class Paired:
    """Model a compared with model b on n questions.

    ``difference`` = mean of a - mean of b, ``low`` and ``high`` its interval, in the unit of the values;
    ``p_value`` two-sided, by the test that ``test`` names; ``wins``, ``losses``, ``ties``: number of
    questions on which a is above, below or equal to b.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    wins: int
    losses: int
    ties: int
    test: str


def paired_accuracy(
    credit_a, credit_b, clusters=None, strata=None, n_resamples: int = 9_999, seed=0, level: float = 0.95
) -> Paired:
    """Compare two accuracies from the credits (n,) in [0, 1] that two models earn on the same questions.

    Without clusters and with whole credits the test is the exact McNemar test: given the questions on which
    exactly one model is right, is it as often the one as the other? Otherwise (chains, or shared credit from
    ties) it is the sign-flip test of :func:`paired_mean`. The interval is the paired bootstrap. ``clusters``
    and ``strata`` as in :func:`saber.metrics.groups.make_design`. Raises ``ValueError`` for NaN, lengths that
    differ, and no questions.
    """
    a, b = _pair(credit_a, credit_b)
    if min(a.min(), b.min()) < 0 or max(a.max(), b.max()) > 1:
        raise ValueError("credits must lie between 0 and 1")
    result = paired_mean(a, b, clusters, strata, n_resamples, seed, level)
    design = make_design(a.size, clusters, strata)
    independent = design.independent() and np.ptp(design.weights) < 1e-12
    if not (independent and np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all()):
        return result
    discordant = result.wins + result.losses
    p_value = binomtest(result.wins, discordant).pvalue if discordant else 1.0
    return Paired(**{**asdict(result), "p_value": float(p_value), "test": "exact McNemar"})


def paired_mean(
    values_a, values_b, clusters=None, strata=None, n_resamples: int = 9_999, seed=0, level: float = 0.95
) -> Paired:
    """Compare two means, such as mAP, from the values (n,) of two models on the same queries.

    The p-value is that of the sign-flip permutation test: if the models were exchangeable, the sign of each
    cluster's difference would be arbitrary. All sign patterns are enumerated when there are at most
    ``n_resamples``, else that many are drawn, and the p-value is never below 1 / (n_resamples + 1).
    """
    a, b = _pair(values_a, values_b)
    differences = a - b
    design = make_design(a.size, clusters, strata)
    low, high = bootstrap_mean_interval(differences, clusters, strata, n_resamples, seed, level)
    return Paired(
        difference=design.mean(differences),
        low=low,
        high=high,
        p_value=_sign_flip(design.totals(differences), n_resamples, seed),
        n=a.size,
        wins=int(np.sum(differences > 0)),
        losses=int(np.sum(differences < 0)),
        ties=int(np.sum(differences == 0)),
        test="sign flip",
    )


def compare_all(
    values: Mapping[str, np.ndarray],
    kind: str = "mean",
    clusters=None,
    strata=None,
    n_resamples: int = 9_999,
    seed=0,
    level: float = 0.95,
) -> pd.DataFrame:
    """All pairs of models, one row each, with p-values corrected for their number.

    ``values`` maps the name of each model to its values (n,) on the same questions in the same order;
    ``kind`` is "accuracy" (:func:`paired_accuracy`) or "mean" (:func:`paired_mean`). Columns: a, b, the
    fields of :class:`Paired`, and ``p_holm``, the p-value after Holm's correction over all rows. Rows keep
    the order of the names given.
    """
    compare = {"accuracy": paired_accuracy, "mean": paired_mean}.get(kind)
    if compare is None:
        raise ValueError(f"kind must be 'accuracy' or 'mean', not {kind!r}")
    if len(values) < 2:
        raise ValueError(f"two models or more are needed for a comparison, got {sorted(values)}")
    rows = [
        {"a": a, "b": b, **asdict(compare(values[a], values[b], clusters, strata, n_resamples, seed, level))}
        for a, b in combinations(values, 2)
    ]
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p_value"].to_numpy()))


def holm(p_values) -> np.ndarray:
    """Holm's correction of p-values (m,): the i-th smallest times m - i + 1, made monotone, at most 1."""
    p_values = check_values(p_values, "p_values")
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(p_values.size, 0, -1))
    corrected = np.empty(p_values.size)
    corrected[order] = np.minimum(stepped, 1)
    return corrected


def _pair(values_a, values_b) -> tuple[np.ndarray, np.ndarray]:
    a, b = check_values(values_a, "first model"), check_values(values_b, "second model")
    if a.shape != b.shape:
        raise ValueError(
            f"{a.size} values of the first model, {b.size} of the second: not the same questions"
        )
    return a, b


def _sign_flip(totals: np.ndarray, n_resamples: int, seed) -> float:
    totals = totals[totals != 0]  # flipping a zero changes nothing
    if totals.size < 2:
        return 1.0
    result = permutation_test(
        (totals,),
        lambda sample, axis: np.sum(sample, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=n_resamples,
        batch=max(1, 2_000_000 // totals.size),
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)
