"""Who contains whom: relations between sets of bindings, computed over a whole gallery.

A scene is the set of its attribute-object bindings. In SABER-Retrieval a candidate is a positive when its set
contains all bindings of the query (paper section 3). That is decided here for every candidate of the gallery,
not assumed from how the questions were built: two questions may share a scene by chance.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from scipy import sparse

BindingSet = Iterable[Hashable]  # a frozenset, or the tuple of (attribute, object) pairs of an item


def containment_positives(
    query_sets: Sequence[BindingSet], gallery_sets: Sequence[BindingSet]
) -> list[np.ndarray]:
    """For each query the gallery rows whose set contains the query's, the equal ones included.

    Returns one ascending int64 array per query. Raises ``ValueError`` for an empty list and for a query
    without bindings (every scene would contain it).
    """
    return _related(query_sets, gallery_sets, lambda common, query, item: common == query)


def exact_matches(query_sets: Sequence[BindingSet], gallery_sets: Sequence[BindingSet]) -> list[np.ndarray]:
    """For each query the gallery rows with exactly its bindings. Returns and raises as above."""
    return _related(query_sets, gallery_sets, lambda common, query, item: (common == query) & (query == item))


def proper_supersets(
    query_sets: Sequence[BindingSet], gallery_sets: Sequence[BindingSet]
) -> list[np.ndarray]:
    """For each query the gallery rows with all its bindings and more. Returns and raises as above."""
    return _related(query_sets, gallery_sets, lambda common, query, item: (common == query) & (item > query))


def proper_subsets(query_sets: Sequence[BindingSet], gallery_sets: Sequence[BindingSet]) -> list[np.ndarray]:
    """For each query the gallery rows with some, but not all of its bindings, and nothing else.

    A gallery item without any binding is no subset. Returns and raises as above.
    """
    return _related(query_sets, gallery_sets, lambda common, query, item: (common == item) & (item < query))


def _related(query_sets, gallery_sets, holds) -> list[np.ndarray]:
    """Rows where ``holds(bindings in common, bindings of the query, bindings of the item)``, all > 0."""
    queries = [frozenset(bindings) for bindings in query_sets]
    items = [frozenset(bindings) for bindings in gallery_sets]
    if not queries or not items:
        raise ValueError(f"nothing to compare: {len(queries)} queries, {len(items)} gallery items")
    if frozenset() in queries:
        raise ValueError(f"query {queries.index(frozenset())} has no binding: every scene would contain it")
    columns: dict[Hashable, int] = {}
    for bindings in queries:
        for binding in bindings:
            columns.setdefault(binding, len(columns))
    common = (_incidence(queries, columns) @ _incidence(items, columns).T).tocsr()
    common.sort_indices()
    query_sizes = np.array([len(bindings) for bindings in queries])
    item_sizes = np.array([len(bindings) for bindings in items])
    row = np.repeat(np.arange(len(queries)), np.diff(common.indptr))
    keep = holds(common.data, query_sizes[row], item_sizes[common.indices])
    ends = np.cumsum(np.bincount(row[keep], minlength=len(queries)))[:-1]
    return np.split(common.indices[keep].astype(np.int64), ends)


def _incidence(sets: list[frozenset], columns: dict[Hashable, int]) -> sparse.csr_array:
    """Matrix (sets, bindings) of ones; bindings that no query has cannot be in common and are left out."""
    inside = [[columns[binding] for binding in bindings if binding in columns] for bindings in sets]
    indptr = np.concatenate([[0], np.cumsum([len(own) for own in inside])])
    indices = np.array([column for own in inside for column in own], dtype=np.int64)
    return sparse.csr_array(
        (np.ones(indices.size, dtype=np.int32), indices, indptr), shape=(len(sets), len(columns))
    )
