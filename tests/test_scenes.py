"""saber.scenes: queries, candidates and chain steps against the rules of A.2 and A.5, and by enumeration."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from saber.scenes import CANDIDATE_ROLES, bindings, grow_query, make_candidates, sample_query

ATTRIBUTES = [f"attribute{i}" for i in range(12)]
OBJECTS = [f"object{i}" for i in range(14)]
SIZES = st.integers(2, 10)
SEEDS = st.integers(0, 2**32)


def _question(n, seed):
    rng = np.random.default_rng([7, n, seed])
    query = sample_query(n, ATTRIBUTES, OBJECTS, rng)
    return query, make_candidates(query, ATTRIBUTES, OBJECTS, rng)


def _attributes(pairs):
    return [a for a, _ in pairs]


def _objects(pairs):
    return [o for _, o in pairs]


@given(SIZES, SEEDS)
def test_scenes_have_distinct_objects_and_attributes(n, seed):
    query, candidates = _question(n, seed)
    for pairs in (query, *candidates.values()):
        assert len(set(_attributes(pairs))) == len(set(_objects(pairs))) == len(pairs) == n
        assert set(_attributes(pairs)) <= set(ATTRIBUTES) and set(_objects(pairs)) <= set(OBJECTS)


@given(SIZES, SEEDS)
def test_candidates_follow_the_rules_of_a2(n, seed):
    query, candidates = _question(n, seed)
    assert tuple(candidates) == CANDIDATE_ROLES
    first, second, third, fourth = candidates.values()
    assert bindings(first) == bindings(query) and first != query
    assert _objects(second) == _objects(first)
    assert _attributes(second) != _attributes(first)
    assert sorted(_attributes(second)) == sorted(_attributes(first))
    assert _attributes(third) == _attributes(first)
    assert _objects(third) != _objects(first)
    assert sorted(_objects(third)) == sorted(_objects(first))
    if n == 2:
        assert bindings(second) == bindings(third)
        kept = bindings(fourth) & bindings(query)
        assert len(kept) == 1
        ((attribute, name),) = bindings(fourth) - kept
        ((old_attribute, old_name),) = bindings(query) - kept
        if attribute == old_attribute:
            assert name not in _objects(query)
        else:
            assert name == old_name and attribute not in _attributes(query)
    else:
        assert _attributes(fourth) != _attributes(first) and _objects(fourth) != _objects(first)
        assert sorted(_attributes(fourth)) == sorted(_attributes(first))
        assert sorted(_objects(fourth)) == sorted(_objects(first))
        assert len({bindings(c) for c in candidates.values()}) == 4
    assert not any(bindings(c) >= bindings(query) for c in (second, third, fourth))


def _all_questions_of_three(query):
    """Every legal candidate quadruple for three pairs, by brute force over permutations."""
    orders = [p for p in permutations(range(3)) if p != (0, 1, 2)]
    for order in orders:
        first = tuple(query[i] for i in order)
        a, o = _attributes(first), _objects(first)
        for p2, p3, p4a, p4o in product(orders, repeat=4):
            second = tuple(zip([a[i] for i in p2], o, strict=True))
            third = tuple(zip(a, [o[i] for i in p3], strict=True))
            fourth = tuple(zip([a[i] for i in p4a], [o[i] for i in p4o], strict=True))
            if len({bindings(s) for s in (first, second, third, fourth)}) == 4:
                yield first, second, third, fourth


def test_three_pairs_reach_all_legal_questions_and_no_other():
    query = tuple(zip("abc", "xyz", strict=True))
    legal = set(_all_questions_of_three(query))
    names = [list("abcd"), list("wxyz")]
    rng = np.random.default_rng(0)
    seen = {tuple(make_candidates(query, *names, rng).values()) for _ in range(4000)}
    assert len(legal) == 5 * 20 * 12  # orders of 1; assignments of 2 and 3; 3 assignments x 4 orders for 4
    assert seen <= legal
    assert len(seen) > 0.9 * len(legal)  # 4,000 even draws miss 43 of 1,200


def test_reordering_is_uniform_over_non_identities():
    query = tuple(zip("abc", "xyz", strict=True))
    names = [list("abcd"), list("wxyz")]
    rng = np.random.default_rng(1)
    scenes = [make_candidates(query, *names, rng) for _ in range(3000)]
    for role in ("preserved", "attribute_swap"):
        orders = Counter(tuple(s[role]) if role == "preserved" else _change(s) for s in scenes)
        assert len(orders) == 5
        assert chisquare(list(orders.values())).pvalue > 0.001


def _change(scene):
    """Positions in candidate 1 of the attributes of candidate 2."""
    return tuple(_attributes(scene["preserved"]).index(a) for a in _attributes(scene["attribute_swap"]))


def test_two_pairs_replace_object_or_attribute_equally_often():
    query = (("a", "x"), ("b", "y"))
    rng = np.random.default_rng(2)
    seen = Counter(
        make_candidates(query, ["a", "b", "c"], ["x", "y", "z"], rng)["joint_swap"] for _ in range(4000)
    )
    # which binding is kept, object or attribute, which order: eight scenes, all as likely
    assert len(seen) == 8
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_queries_are_uniform_over_attributes_and_objects():
    rng = np.random.default_rng(3)
    queries = [sample_query(3, ATTRIBUTES, OBJECTS, rng) for _ in range(4000)]
    for position, names in ((0, ATTRIBUTES), (1, OBJECTS)):
        counts = Counter(pair[position] for query in queries for pair in query)
        assert set(counts) == set(names)
        assert chisquare(list(counts.values())).pvalue > 0.001


@given(SEEDS)
def test_chains_add_one_binding_and_change_the_order(seed):
    rng = np.random.default_rng(seed)
    query = sample_query(2, ATTRIBUTES, OBJECTS, rng)
    for n in range(3, 11):
        grown = grow_query(query, ATTRIBUTES, OBJECTS, rng)
        ((attribute, name),) = bindings(grown) - bindings(query)
        assert bindings(query) < bindings(grown) and len(grown) == n
        assert attribute not in _attributes(query) and name not in _objects(query)
        assert grown[: n - 1] != query  # not just appended
        query = grown


def test_same_generator_state_gives_the_same_question():
    assert _question(5, 11) == _question(5, 11) != _question(5, 12)


@pytest.mark.parametrize(
    ("n", "attributes", "objects", "message"),
    [
        (1, ATTRIBUTES, OBJECTS, "at least 2 objects, not 1"),
        (13, ATTRIBUTES, OBJECTS, "need 13 distinct attributes, but the vocabulary has 12"),
        (4, ATTRIBUTES, ["x", "y", "z"], "need 4 distinct objects, but the vocabulary has 3"),
        (3, ["a", "a", "b"], OBJECTS, "need 3 distinct attributes, but the vocabulary has 2"),
        (2, ["a", "b"], OBJECTS, "need 3 distinct attributes"),
    ],
)
def test_too_small_a_vocabulary_is_named(n, attributes, objects, message):
    with pytest.raises(ValueError, match=message):
        sample_query(n, attributes, objects, np.random.default_rng(0))


def test_a_chain_cannot_outgrow_the_vocabulary():
    rng = np.random.default_rng(0)
    query = sample_query(3, list("abc"), OBJECTS, rng)
    with pytest.raises(ValueError, match="need 4 distinct attributes"):
        grow_query(query, list("abc"), OBJECTS, rng)
