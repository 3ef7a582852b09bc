"""Cosine similarity whose value does not depend on how the computation was cut into blocks.

A matrix product in floating point rounds in an order that changes with the shape of the block, so two gallery
items with the *same* vector could score differently in the last bit, and a tie would become an arbitrary win.
Here every unit vector is first rounded to a fixed grid, multiples of ``2**-26``. Products of two such numbers
are multiples of ``2**-52`` and, by Cauchy-Schwarz, no partial sum of a dot product exceeds 1 (a little more
after rounding), so every intermediate value is an integer below ``2**53`` in units of ``2**-52``: float64
holds it exactly, in any order of summation, with any chunk size, BLAS or number of threads. Equal vectors tie
exactly.

The price is an error of about 1e-8 in the cosine, no more than that of a float32 vector itself.
"""

import mmap
from collections.abc import Iterable, Iterator

import numpy as np

GRID = 2.0**26
UNIT_TOLERANCE = 1e-3
PIECE = 2**17  # numbers rounded at a time, few enough to stay in the cache


def to_grid(vectors, name: str = "vectors", rows=None) -> np.ndarray:
    """Unit vectors (n, d) as whole numbers in units of ``1 / GRID``, float64 (n, d).

    Each row is divided by its norm before it is rounded, so that the dot product is the cosine also where the
    input is of unit length only within the tolerance. ``name`` and ``rows``, the numbers of the rows within
    the whole (n,), serve the error message.

    Raises ``ValueError`` naming the row for NaN, Inf, a zero vector, or a norm further than 1e-3 from 1, and
    for an array that is empty or not two-dimensional.
    """
    vectors = np.asarray(vectors)
    if vectors.ndim != 2:
        raise ValueError(f"{name}: expected an array of shape (n, dim), got {vectors.shape}")
    if vectors.size == 0:
        raise ValueError(f"{name}: empty, shape {vectors.shape}; there is nothing to score")
    grid = np.empty(vectors.shape)
    step = max(1, PIECE // vectors.shape[1])
    for first in range(0, len(vectors), step):
        piece = np.array(vectors[first : first + step], dtype=np.float64, order="C")
        norms = np.sqrt(np.sum(piece * piece, axis=1))
        bad = ~(np.abs(norms - 1) <= UNIT_TOLERANCE)  # written so that a NaN norm counts as bad
        if bad.any():
            own = int(np.argmax(bad))
            row = first + own if rows is None else rows[first + own]
            raise ValueError(f"{name}: row {row} {_complaint(piece[own], norms[own])}")
        piece *= GRID / norms[:, None]
        np.rint(piece, out=grid[first : first + step])
    return grid


def _complaint(vector: np.ndarray, norm: float) -> str:
    if not np.isfinite(vector).all():
        return "contains NaN or Inf"
    if norm == 0:
        return "is the zero vector"
    return f"has norm {norm:.6g}, not 1 (tolerance {UNIT_TOLERANCE:g}); normalise the embeddings"


def grid_product(queries: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """Cosines (q, g) of vectors that are on the grid: (q, d) and (g, d). Exact."""
    return (queries @ gallery.T) * GRID**-2


def cosine_scores(queries, gallery) -> np.ndarray:
    """Cosine of each query (q, d) with each gallery item (g, d), float64 (q, g), within about 1e-8.

    For galleries that fit in memory as a whole; :mod:`saber.metrics.retrieval` streams the others. Entry
    ``[i, j]`` depends on the two vectors alone. Raises as :func:`to_grid`, and when the dimensions differ.
    """
    left, right = to_grid(queries, "queries"), to_grid(gallery, "gallery")
    same_dimension(left, right, "queries", "gallery")
    return grid_product(left, right)


def same_dimension(left: np.ndarray, right: np.ndarray, left_name: str, right_name: str) -> None:
    """Raise ``ValueError`` when the last axes differ, as they do for embeddings of two different models."""
    if left.shape[-1] != right.shape[-1]:
        raise ValueError(
            f"{left_name} have dimension {left.shape[-1]}, {right_name} {right.shape[-1]}: "
            "both must come from the same model"
        )


def grid_chunks(gallery, chunk_size: int, wanted=None) -> Iterator[tuple[range | np.ndarray, np.ndarray]]:
    """Yield ``(row numbers (c,), chunk (c, d) on the grid)`` with ``c <= chunk_size``, checking each row.

    ``gallery`` is an array (g, d), which may be a memory map larger than memory, or a re-iterable of arrays
    (c, d) such as a list or an object whose ``__iter__`` reads a file anew. The pages of a memory map are
    handed back to the system after each chunk, so the resident size stays that of one chunk. With ``wanted``,
    ascending row numbers, only these rows are read; those beyond the gallery are passed over in silence.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    start = 0
    for block in _blocks(gallery):
        block = block if isinstance(block, np.ndarray) else np.asarray(block)
        if block.ndim != 2:
            raise ValueError(f"gallery: expected arrays of shape (n, dim), got {block.shape}")
        for first in range(0, len(block), chunk_size):
            rows = range(start + first, start + min(first + chunk_size, len(block)))
            part = block[first : first + chunk_size]
            if wanted is not None:
                rows = wanted[slice(*np.searchsorted(wanted, [rows.start, rows.stop]))]
                part = block[rows - start]
            if len(rows):
                chunk = to_grid(part, "gallery", rows)
                _release_pages(block)
                yield rows, chunk
        start += len(block)
    if start == 0:
        raise ValueError("gallery: empty; there is nothing to rank")


def _blocks(gallery) -> Iterable:
    if isinstance(gallery, np.ndarray):
        return (gallery,)
    if iter(gallery) is gallery:
        raise TypeError(
            "gallery is a one-shot iterator, but it is read more than once: pass an array, a list of arrays, "
            "or an object whose __iter__ starts anew"
        )
    return gallery


def _release_pages(array: np.ndarray) -> None:
    """Drop the resident pages of a shared memory map; the file keeps them and they are read again."""
    if getattr(array, "mode", None) not in ("r", "r+") or not hasattr(mmap, "MADV_DONTNEED"):
        return  # mode "c" keeps unsaved changes in its pages
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)
