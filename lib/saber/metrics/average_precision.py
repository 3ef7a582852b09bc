"""Average precision of one ranking, with ties that do not depend on the order of the rows."""

import numpy as np


def average_precision(scores, relevant) -> float:
    """Average precision of a full ranking, in (0, 1].

    ``scores`` is (g,), higher is ranked first; ``relevant`` is bool (g,) with at least one True.

    .. math:: AP = \\frac{1}{R} \\sum_{i : \\mathrm{relevant}}
              \\frac{\\#\\{j\\ \\mathrm{relevant} : s_j \\ge s_i\\}}{\\#\\{j : s_j \\ge s_i\\}}

    with R the number of *all* relevant items: nothing is cut off at a rank. Items with equal scores enter at
    the same threshold, so their order is irrelevant and constant scores give the prevalence R / g. This is
    the definition of ``sklearn.metrics.average_precision_score``. (Other denominators in use: the hits in the
    top k, or min(k, R).) It is SABER-Retrieval's measure per query (paper section 3), its mean over queries
    the mAP.

    Raises ``ValueError`` for NaN or Inf, for an empty ranking, for shapes that differ, and for no relevant
    item.
    """
    scores = np.asarray(scores, dtype=np.float64)
    relevant = np.asarray(relevant)
    if scores.ndim != 1 or scores.shape != relevant.shape:
        raise ValueError(f"scores {scores.shape} and relevant {relevant.shape} must be of one shape (items,)")
    if scores.size == 0:
        raise ValueError("scores: empty; there is nothing to rank")
    if relevant.dtype != bool:
        raise ValueError(f"relevant must be boolean, one flag per item, not {relevant.dtype}")
    if not np.isfinite(scores).all():
        raise ValueError(f"scores: item {int(np.argmin(np.isfinite(scores)))} is NaN or Inf")
    if not relevant.any():
        raise ValueError("no relevant item: average precision is undefined")
    thresholds = np.sort(scores[relevant])
    return float(
        np.mean(precision_at(thresholds, scores.size - np.searchsorted(np.sort(scores), thresholds)))
    )


def precision_at(thresholds: np.ndarray, retrieved: np.ndarray) -> np.ndarray:
    """Precision at each relevant item's score, (R,): relevant items at or above it / all items there.

    ``thresholds`` are the scores of the relevant items in ascending order, ``retrieved`` the number of items
    of the whole ranking with at least that score, both (R,).
    """
    relevant_at = thresholds.size - np.searchsorted(thresholds, thresholds, side="left")
    return relevant_at / retrieved
