"""Large-gallery retrieval: average precision, top k and single scores, streamed over the gallery.

SABER's second protocol (paper section 3) ranks each query against all 7,200 candidates. The gallery is read
in chunks of ``chunk_size`` rows and the queries in chunks of ``query_chunk``, so memory is bounded by one
block whatever the size of the gallery. The result does not depend on either (see
:mod:`saber.metrics.cosine`).

``gallery`` is everywhere an array (g, d), a memory map included, or a re-iterable of arrays (c, d).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from saber.metrics.average_precision import precision_at
from saber.metrics.cosine import GRID, grid_chunks, grid_product, same_dimension, to_grid

CHUNK = 8192
QUERY_CHUNK = 512
FEW = 16  # thresholds up to which comparing beats searching


def gallery_average_precision(
    queries,
    gallery,
    positives: Sequence[np.ndarray],
    chunk_size: int = CHUNK,
    query_chunk: int = QUERY_CHUNK,
    return_ties: bool = False,
):
    """Average precision of each query over the whole gallery, float64 (q,) in (0, 1].

    ``queries`` is (q, d); ``positives`` holds for each query the gallery rows that are right, as whole
    numbers. The formula, the denominator (all positives) and the ties are those of
    :func:`saber.metrics.average_precision.average_precision`. With ``return_ties`` also int (q,): the number
    of non-positives that tie with a positive.

    The positives are scored first, then each chunk of the gallery only adds to the counts of items at or
    above each positive: no ranking is stored and the gallery is read twice.

    Raises ``ValueError`` naming the row for bad vectors (NaN, Inf, zero, not of unit norm), and naming the
    query for positives that are missing, repeated or outside the gallery.
    """
    grid = to_grid(queries, "queries")
    rows = _checked_items(positives, len(grid), "positives")
    for i, items in enumerate(rows):
        if items.size == 0:
            raise ValueError(f"positives: query {i} has none, its average precision is undefined")
        if items.size > 1 and not np.diff(np.sort(items)).all():
            raise ValueError(f"positives: query {i} names a gallery row twice")
    thresholds = [np.sort(scores) for scores in _pair_scores(grid, gallery, rows, chunk_size)]
    retrieved = [np.zeros(t.size, dtype=np.int64) for t in thresholds]
    above = [np.zeros(t.size, dtype=np.int64) for t in thresholds]
    for _, chunk in _chunks(grid, gallery, chunk_size):
        for part in _parts(len(grid), query_chunk):
            for i, scores in enumerate(grid_product(grid[part], chunk), start=part.start):
                retrieved[i] += _count_from(scores, thresholds[i], "right")
                if return_ties:
                    above[i] += _count_from(scores, thresholds[i], "left")
    pairs = zip(thresholds, retrieved, strict=True)
    ap = np.array([precision_at(t, items).sum() / t.size for t, items in pairs])
    if not return_ties:
        return ap
    ties = np.zeros(len(grid), dtype=np.int64)
    for i, t in enumerate(thresholds):
        _, where, count = np.unique(t, return_index=True, return_counts=True)
        ties[i] = np.sum(retrieved[i][where] - above[i][where] - count)
    return ap, ties


def top_k(
    queries, gallery, k: int, chunk_size: int = CHUNK, query_chunk: int = QUERY_CHUNK
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` best gallery rows of each query, best first: rows int64 (q, k) and cosines float64 (q, k).

    Equal scores are ordered by row number, so the result is the same for any chunk size.

    Raises ``ValueError`` for bad vectors as :func:`gallery_average_precision`, and when the gallery has fewer
    than ``k`` items.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    grid = to_grid(queries, "queries")
    rows = np.zeros((len(grid), 0), dtype=np.int64)
    best = np.zeros((len(grid), 0))
    for numbers, chunk in _chunks(grid, gallery, chunk_size):
        width = min(k, best.shape[1] + len(chunk))
        new_rows, new_best = np.empty((len(grid), width), dtype=np.int64), np.empty((len(grid), width))
        for part in _parts(len(grid), query_chunk):
            scores = np.hstack([best[part], grid_product(grid[part], chunk)])
            chosen = _first_k(scores, width)
            new_best[part] = np.take_along_axis(scores, chosen, axis=1)
            known = best.shape[1]
            old = np.take_along_axis(rows[part], np.minimum(chosen, known - 1), axis=1) if known else chosen
            new_rows[part] = np.where(chosen < known, old, chosen - known + numbers[0])
        rows, best = new_rows, new_best
    if rows.shape[1] < k:
        raise ValueError(f"top {k} asked of a gallery of {rows.shape[1]} items")
    return rows, best


def pair_scores(queries, gallery, items: Sequence[np.ndarray], chunk_size: int = CHUNK) -> list[np.ndarray]:
    """Cosines of each query with the gallery rows listed for it, in their order: one float64 array per query.

    ``items`` holds for each of the (q, d) queries an array of gallery rows, which may be empty. The values
    equal those that :func:`top_k` reports for the same pairs, bit for bit. Only the rows listed are read and
    checked.
    """
    grid = to_grid(queries, "queries")
    return _pair_scores(grid, gallery, _checked_items(items, len(grid), "items"), chunk_size)


def _pair_scores(grid: np.ndarray, gallery, items: list[np.ndarray], chunk_size: int) -> list[np.ndarray]:
    query = np.repeat(np.arange(len(items)), [rows.size for rows in items])
    row = np.concatenate(items)
    order = np.argsort(row, kind="stable")
    scores = np.empty(row.size)
    done = 0
    for rows, chunk in _chunks(grid, gallery, chunk_size, wanted=np.unique(row)):
        end = np.searchsorted(row, rows[-1], side="right", sorter=order)
        for first in range(done, end, chunk_size):
            pairs = order[first : min(first + chunk_size, end)]
            own = chunk[np.searchsorted(rows, row[pairs])]
            scores[pairs] = np.einsum("id,id->i", grid[query[pairs]], own) * GRID**-2
        done = end
    if done < row.size:
        beyond = order[done]
        raise ValueError(
            f"query {query[beyond]} names gallery row {row[beyond]}, which the gallery does not have"
        )
    return np.split(scores, np.cumsum([rows.size for rows in items])[:-1])


def _checked_items(items, n_queries: int, name: str) -> list[np.ndarray]:
    if len(items) != n_queries:
        raise ValueError(f"{name}: lists for {len(items)} queries, but there are {n_queries} queries")
    rows = [np.asarray(own) for own in items]
    for i, own in enumerate(rows):
        if own.ndim != 1 or (own.size and own.dtype.kind not in "iu"):
            raise ValueError(
                f"{name}: query {i} needs a list of gallery row numbers, got {own.dtype} {own.shape}"
            )
        if own.size and own.min() < 0:
            raise ValueError(f"{name}: query {i} names gallery row {own.min()}")
    return [own.astype(np.int64) for own in rows]


def _chunks(grid: np.ndarray, gallery, chunk_size: int, wanted=None) -> Iterator:
    """The gallery's chunks, once their dimension is known to be that of the queries."""
    for rows, chunk in grid_chunks(gallery, chunk_size, wanted):
        same_dimension(grid, chunk, "queries", "gallery items")
        yield rows, chunk


def _parts(n_queries: int, query_chunk: int) -> list[slice]:
    if query_chunk < 1:
        raise ValueError(f"query_chunk must be at least 1, not {query_chunk}")
    return [slice(first, first + query_chunk) for first in range(0, n_queries, query_chunk)]


def _count_from(scores: np.ndarray, thresholds: np.ndarray, side: str) -> np.ndarray:
    """How many scores (c,) are >= (side "right") or > ("left") each of the ascending thresholds (R,)."""
    if thresholds.size <= FEW:
        compare = np.greater_equal if side == "right" else np.greater
        return np.array([np.count_nonzero(compare(scores, threshold)) for threshold in thresholds])
    reached = np.bincount(np.searchsorted(thresholds, scores, side=side), minlength=thresholds.size + 1)
    return np.cumsum(reached[::-1])[::-1][1:]


def _first_k(scores: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k highest scores of each row (q, c), descending; equal ones in the order of columns."""
    bound = np.partition(scores, -k, axis=1)[:, -k, None]
    equal = scores == bound
    above = scores > bound
    room = k - np.count_nonzero(above, axis=1)[:, None]
    chosen = np.nonzero(above | (equal & (np.cumsum(equal, axis=1) <= room)))[1].reshape(len(scores), k)
    order = np.argsort(-np.take_along_axis(scores, chosen, axis=1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, axis=1)
