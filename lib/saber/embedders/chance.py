"""The chance row: what a ranking that knows nothing earns, as formulas.

No vectors are drawn: the expectations are exact, so the row needs no seed and has no sampling error.
"""

import numpy as np

NAME = "Chance"


def expected_mcq_credit(n_candidates: int = 4) -> float:
    """Expected accuracy of a random choice, 1/4 for the four candidates of a SABER question."""
    if n_candidates < 1:
        raise ValueError(f"a question needs at least one candidate, not {n_candidates}")
    return 1.0 / n_candidates


def expected_ap(n_gallery: int, n_positives) -> np.ndarray:
    """Expected average precision of a uniformly random ranking of the whole gallery.

    n_gallery: N, number of ranked items. n_positives: R, integer or array of them, 1 <= R <= N.
    Returns float64 of the shape of ``n_positives``, values in (0, 1]; their mean is the expected mAP.

    With R positives among N items, the item at rank k is a positive with probability R/N, and each of the
    k-1 before it is one then with probability (R-1)/(N-1). Summed over the ranks, divided by R,

        E[AP] = 1/N * (H_N + (R-1)/(N-1) * (N - H_N)),    H_N = 1 + 1/2 + ... + 1/N.
    """
    positives = np.asarray(n_positives)
    if positives.dtype.kind not in "iu":
        raise ValueError(f"n_positives must be whole numbers, not {positives.dtype}")
    if n_gallery < 1 or positives.size == 0 or positives.min() < 1 or positives.max() > n_gallery:
        raise ValueError(f"need 1 <= n_positives <= n_gallery, got {n_positives} of {n_gallery}")
    if n_gallery == 1:
        return np.ones(positives.shape)
    harmonic = float(np.sum(1.0 / np.arange(1, n_gallery + 1)))
    return (harmonic + (positives - 1) / (n_gallery - 1) * (n_gallery - harmonic)) / n_gallery
