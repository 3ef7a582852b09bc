"""The two analyses of section 5.1: do hard negatives decide retrieval, and is containment understood?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TopFourShare:
    """Queries whose own candidates take the top positions; bool arrays (q,).

    ``filled``: each own candidate scores strictly above every other gallery item. ``tied``: the lowest own
    candidate ties with the best other item, so only some orders of the tied items would fill the top; such a
    query is not counted as filled.
    """

    filled: np.ndarray
    tied: np.ndarray

    @property
    def n(self) -> int:
        """Number of queries."""
        return self.filled.size

    @property
    def share(self) -> float:
        """Share of filled queries, in [0, 1]."""
        return float(self.filled.mean())

    @property
    def ties(self) -> int:
        """Number of tied queries."""
        return int(self.tied.sum())


def top_four_share(own, own_scores, top_rows, top_scores) -> TopFourShare:
    """Share of queries whose own four candidates fill the top four of the whole gallery (paper section 5.1).

    ``own`` (q, 4) are the gallery rows of each query's candidates and ``own_scores`` (q, 4) their cosines,
    from :func:`saber.metrics.retrieval.pair_scores`; ``top_rows`` and ``top_scores`` (q, k) with k >= 5 come
    from :func:`saber.metrics.retrieval.top_k`. One position more than the four is enough: it holds the best
    item that is not the query's own, or that item stands even higher.

    Raises ``ValueError`` for shapes that do not fit, k too small, NaN or Inf, or an own row named twice.
    """
    own, top_rows = np.asarray(own), np.asarray(top_rows)
    own_scores, top_scores = _finite(own_scores, "own_scores"), _finite(top_scores, "top_scores")
    if own.ndim != 2 or own.size == 0 or own.shape != own_scores.shape:
        raise ValueError(
            f"own {own.shape} and own_scores {own_scores.shape} must be of one shape (queries, 4)"
        )
    if top_rows.shape != top_scores.shape or top_rows.ndim != 2 or len(top_rows) != len(own):
        raise ValueError(
            f"top_rows {top_rows.shape}, top_scores {top_scores.shape}: expected ({len(own)}, k)"
        )
    if top_rows.shape[1] <= own.shape[1]:
        raise ValueError(f"top {top_rows.shape[1]} given; the top {own.shape[1] + 1} or more is needed")
    twice = (np.diff(np.sort(own, axis=1), axis=1) == 0).any(axis=1)
    if twice.any():
        raise ValueError(f"own: query {int(np.argmax(twice))} names a gallery row twice")
    foreign = ~(top_rows[:, :, None] == own[:, None, :]).any(axis=2)
    best_other = np.take_along_axis(top_scores, np.argmax(foreign, axis=1)[:, None], axis=1)[:, 0]
    lowest_own = own_scores.min(axis=1)
    return TopFourShare(filled=lowest_own > best_other, tied=lowest_own == best_other)


@dataclass(frozen=True)
class Comparisons:
    """Pairwise comparisons, counted per query: how often a challenger outranks a defender.

    ``wins`` float (q,): comparisons won, a tie counting 1/2; ``counts`` int (q,): comparisons made; ``ties``:
    number of tied ones over all queries. Kept per query so that intervals can resample queries or chains.
    """

    wins: np.ndarray
    counts: np.ndarray
    ties: int

    @property
    def n(self) -> int:
        """Number of comparisons."""
        return int(self.counts.sum())

    @property
    def share(self) -> float:
        """Share of all comparisons that the challenger wins, in [0, 1]; NaN when there is none."""
        return float(self.wins.sum() / self.n) if self.n else float("nan")


def outranking(challengers: Sequence[np.ndarray], defenders: Sequence[np.ndarray]) -> Comparisons:
    """Compare every challenger with every defender of the same query.

    Both hold one array of scores per query (any length, 0 included). A challenger with a higher score wins,
    with an equal score it wins one half. Raises ``ValueError`` for NaN or Inf and for lists of different
    length.
    """
    if len(challengers) != len(defenders):
        raise ValueError(f"challengers of {len(challengers)} queries, defenders of {len(defenders)}")
    if len(challengers) == 0:
        raise ValueError("no query to compare")
    wins, counts, ties = np.zeros(len(challengers)), np.zeros(len(challengers), dtype=np.int64), 0
    for i, pair in enumerate(zip(challengers, defenders, strict=True)):
        upper, lower = (_finite(scores, f"scores of query {i}") for scores in pair)
        equal = np.count_nonzero(upper[:, None] == lower[None, :])
        wins[i] = np.count_nonzero(upper[:, None] > lower[None, :]) + equal / 2
        counts[i] = upper.size * lower.size
        ties += equal
    return Comparisons(wins, counts, int(ties))


def containment_comparisons(
    exact: Sequence[np.ndarray], subsets: Sequence[np.ndarray], supersets: Sequence[np.ndarray]
) -> dict[str, Comparisons]:
    """Does a scene that holds too little, or more than asked, outrank what it should not? (paper section 5.1)

    Each argument holds one array of scores per (nested) query: of the gallery items whose binding set equals
    the query's, is a non-empty strict subset of it, or a strict superset; see
    :mod:`saber.metrics.containment` and :func:`saber.metrics.retrieval.pair_scores`. Every query needs an
    exact match; the other two may be empty.

    Returns, with ties counting 1/2:

    - ``"subset over exact"``: (subset, exact match) pairs in which the subset ranks above. The paper reports
      3.3-17.1 % on average across modalities.
    - ``"subset over superset"``: (subset, superset) pairs of one query in which the subset ranks above; our
      reading of the second share that the paper reports there, 33-39 %.
    - ``"superset over exact"``: (superset, exact match) pairs in which the superset ranks above. Both are
      positives, so this is no error; it says how much the additional bindings cost.
    """
    missing = [i for i, scores in enumerate(exact) if np.size(scores) == 0]
    if missing:
        raise ValueError(
            f"query {missing[0]} has no exact match in the gallery ({len(missing)} such queries)"
        )
    return {
        "subset over exact": outranking(subsets, exact),
        "subset over superset": outranking(subsets, supersets),
        "superset over exact": outranking(supersets, exact),
    }


def _finite(scores, name: str) -> np.ndarray:
    scores = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError(f"{name}: NaN or Inf among the scores")
    return scores
