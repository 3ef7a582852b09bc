"""Four-way multiple choice: is the candidate that preserves the bindings ranked first?

SABER's first protocol (paper section 3): candidates are ranked by cosine similarity to the query. A tie for
the top shares the credit, so that a model that cannot tell the candidates apart scores chance and never 0 or
100 %.
"""

import numpy as np

from saber.metrics.cosine import grid_product, same_dimension, to_grid


def question_scores(queries, candidates) -> np.ndarray:
    """Cosine of each query with each of its own candidates, float64 (n, k) in [-1, 1].

    ``queries`` is (n, d) and ``candidates`` (n, k, d), usually k = 4; unit-norm vectors of any float type.
    Candidates with the same vector get exactly the same score (see :mod:`saber.metrics.cosine`).

    Raises ``ValueError`` naming the row for NaN, Inf, zero or unnormalised vectors, and for shapes that do
    not fit.
    """
    candidates = np.asarray(candidates)
    if candidates.ndim != 3:
        raise ValueError(f"candidates: expected shape (questions, candidates, dim), got {candidates.shape}")
    grid_queries = to_grid(queries, "queries")
    n, k = candidates.shape[:2]
    if len(grid_queries) != n:
        raise ValueError(f"{len(grid_queries)} queries but candidates for {n} questions")
    same_dimension(grid_queries, candidates, "queries", "candidates")
    if k == 0:
        raise ValueError("candidates: no candidate per question; there is nothing to score")
    scores = np.empty((n, k))
    for i in range(n):  # one question at a time: the float64 copy stays small for any dimension
        own = to_grid(candidates[i], f"candidates of question {i}")
        scores[i] = grid_product(grid_queries[i : i + 1], own)[0]
    return scores


def mcq_credit(scores, correct=0) -> np.ndarray:
    """Credit of each question, float64 (n,) in [0, 1]; its mean is the accuracy.

    ``scores`` is (n, k), higher is better; ``correct`` the column of the right candidate, one for all or
    (n,).

    ``credit = 1 / #{j : s_j = s_correct}`` when no candidate scores above the right one, else 0. So the right
    candidate alone at the top earns 1, tied with m others ``1 / (m + 1)``, and constant scores earn ``1 /
    k``.

    Raises ``ValueError`` naming the question for NaN or Inf, and for an empty array or a column out of range.
    """
    scores, own = _scores_and_own(scores, correct)
    top = own[:, 0] == scores.max(axis=1)
    return top / np.sum(scores == own, axis=1)


def tied_questions(scores, correct=0) -> np.ndarray:
    """Which questions are decided by a tie: the right candidate shares the top with another one. Bool (n,).

    Arguments and errors as in :func:`mcq_credit`. A tie among wrong candidates, or below the top, decides
    nothing.
    """
    scores, own = _scores_and_own(scores, correct)
    return (own[:, 0] == scores.max(axis=1)) & (np.sum(scores == own, axis=1) > 1)


def mcq_ties(scores, correct=0) -> int:
    """Number of tied decisions, to be reported beside the accuracy (see :func:`tied_questions`)."""
    return int(tied_questions(scores, correct).sum())


def _scores_and_own(scores, correct) -> tuple[np.ndarray, np.ndarray]:
    """Checked scores (n, k) and the score of each question's right candidate (n, 1)."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or scores.size == 0:
        raise ValueError(
            f"scores: expected a non-empty array (questions, candidates), got shape {scores.shape}"
        )
    finite = np.isfinite(scores).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"scores: question {int(np.argmin(finite))} has NaN or Inf ({int((~finite).sum())} in all)"
        )
    n, k = scores.shape
    columns = np.asarray(correct)
    if columns.dtype.kind not in "iu" or columns.shape not in ((), (n,)):
        raise ValueError(f"correct: expected one column number or an integer array of shape ({n},)")
    columns = np.broadcast_to(columns, (n,))
    outside = (columns < 0) | (columns >= k)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"correct: question {row} names column {columns[row]}, valid are 0 to {k - 1}")
    return scores, np.take_along_axis(scores, columns[:, None], axis=1)
