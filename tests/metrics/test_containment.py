import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber.metrics.containment import containment_positives, exact_matches, proper_subsets, proper_supersets

RELATIONS = {
    containment_positives: lambda query, item: query <= item,
    exact_matches: lambda query, item: query == item,
    proper_supersets: lambda query, item: query < item,
    proper_subsets: lambda query, item: bool(item) and item < query,
}
binding_sets = st.frozensets(st.tuples(st.sampled_from("rgb"), st.sampled_from(["cube", "kite"])), max_size=4)


def as_lists(rows):
    return [own.tolist() for own in rows]


def test_hand_computed():
    red_cube, blue_kite, old_hat = ("red", "cube"), ("blue", "kite"), ("old", "hat")
    queries = [(red_cube, blue_kite), (old_hat,)]
    gallery = [
        (blue_kite, red_cube),  # the same scene in another order
        (("blue", "cube"), ("red", "kite")),  # the swap
        (red_cube, old_hat, blue_kite),
        (blue_kite,),
        (),
        (old_hat, ("red", "cube"), ("green", "cube")),
    ]
    assert as_lists(containment_positives(queries, gallery)) == [[0, 2], [2, 5]]
    assert as_lists(exact_matches(queries, gallery)) == [[0], []]
    assert as_lists(proper_supersets(queries, gallery)) == [[2], [2, 5]]
    assert as_lists(proper_subsets(queries, gallery)) == [[3], []]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    queries=st.lists(binding_sets.filter(bool), min_size=1, max_size=6),
    gallery=st.lists(binding_sets, min_size=1, max_size=12),
)
def test_equals_the_slow_version(queries, gallery):
    for relation, holds in RELATIONS.items():
        expected = [[j for j, item in enumerate(gallery) if holds(query, item)] for query in queries]
        rows = relation(queries, gallery)
        assert as_lists(rows) == expected
        assert all(own.dtype == np.int64 for own in rows)
        assert as_lists(relation([tuple(q) * 2 for q in queries], gallery)) == expected  # repeats count once


def test_at_the_size_of_saber_also_across_questions():
    rng = np.random.default_rng(0)
    draw = [
        [tuple(pair) for pair in rng.integers(0, [24, 64], size=(2 + i % 9, 2)).tolist()] for i in range(7200)
    ]
    queries = draw[::4]
    rows = containment_positives(queries, draw)
    assert len(rows) == 1800 and all(4 * i in own for i, own in enumerate(rows))
    for i in rng.choice(1800, 20, replace=False):
        assert rows[i].tolist() == [j for j, item in enumerate(draw) if set(queries[i]) <= set(item)]
    assert max(len(own) for own in rows) > 1  # chance alone makes a second positive here


def test_unusable_arguments():
    for relation in RELATIONS:
        with pytest.raises(ValueError, match="query 1 has no binding"):
            relation([{1}, set()], [{1}])
        with pytest.raises(ValueError, match="0 queries, 1 gallery items"):
            relation([], [{1}])
        with pytest.raises(ValueError, match="1 queries, 0 gallery items"):
            relation([{1}], [])
