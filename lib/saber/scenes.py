"""Multiple-choice questions on names alone: the queries and candidates of sections A.2 and A.5.

A scene is a tuple of (attribute, object) pairs in caption order. Its *assignment* is the same as a set: what
is bound to what, without order. All functions are pure; randomness comes from the given numpy Generator.
"""

from collections.abc import Sequence

import numpy as np

Pairs = tuple[tuple[str, str], ...]
CANDIDATE_ROLES = ("preserved", "attribute_swap", "object_swap", "joint_swap")


def bindings(pairs: Pairs) -> frozenset[tuple[str, str]]:
    """The assignment of a scene: its pairs as a set."""
    return frozenset(pairs)


def sample_query(
    n: int, attributes: Sequence[str], objects: Sequence[str], rng: np.random.Generator
) -> Pairs:
    """N distinct attributes bound to N distinct objects, uniform over all such scenes."""
    check_size(n, attributes, objects)
    chosen = [
        [names[i] for i in rng.choice(len(names), size=n, replace=False)] for names in (attributes, objects)
    ]
    return tuple(zip(*chosen, strict=True))


def grow_query(
    pairs: Pairs, attributes: Sequence[str], objects: Sequence[str], rng: np.random.Generator
) -> Pairs:
    """Next step of a nested chain (A.5): all earlier pairs and a new one, in a new order.

    The new attribute and object are not yet in the chain. The order is a uniform non-identity permutation of
    (earlier pairs in their order, new pair).
    """
    check_size(len(pairs) + 1, attributes, objects)
    new = (
        _draw_absent(attributes, {a for a, _ in pairs}, rng),
        _draw_absent(objects, {o for _, o in pairs}, rng),
    )
    return _reorder((*pairs, new), rng)


def make_candidates(
    query: Pairs, attributes: Sequence[str], objects: Sequence[str], rng: np.random.Generator
) -> dict[str, Pairs]:
    """The four candidates of a query by role, in the order of ``CANDIDATE_ROLES`` (A.2).

    preserved: the query's pairs in another order. attribute_swap: the objects in the order of preserved, its
    attributes permuted. object_swap: the attributes in the order of preserved, its objects permuted.
    joint_swap: both permuted. Every permutation is uniform among those that change the order.

    N >= 3: the four assignments are pairwise distinct; a permutation that repeats one is drawn again.
    N = 2: only two assignments exist, so attribute_swap and object_swap share the wrong one, and joint_swap
    keeps one binding of the query and replaces object or attribute (probability 1/2 each) of the other by one
    absent from the query, in either order.
    """
    n = len(query)
    check_size(n, attributes, objects)
    preserved = _reorder(query, rng)
    attrs, objs = zip(*preserved, strict=True)
    found = {"preserved": preserved}
    found["attribute_swap"] = _pair(_reorder(attrs, rng), objs)
    if n == 2:
        found["object_swap"] = _pair(attrs, _reorder(objs, rng))
        found["joint_swap"] = _replace_one(query, attributes, objects, rng)
        return found
    draws = {
        "object_swap": lambda: _pair(attrs, _reorder(objs, rng)),
        "joint_swap": lambda: _pair(_reorder(attrs, rng), _reorder(objs, rng)),
    }
    for role, draw in draws.items():
        taken = {bindings(p) for p in found.values()}
        scene = draw()
        while bindings(scene) in taken:  # ends: N >= 3 has at least six assignments
            scene = draw()
        found[role] = scene
    return found


def check_size(n: int, attributes: Sequence[str], objects: Sequence[str]) -> None:
    """Raise ValueError when no question of N objects can be made from these names."""
    if n < 2:
        raise ValueError(f"a question needs at least 2 objects, not {n}; the paper uses 2 to 10")
    need = max(n, 3)  # with two objects, candidate 4 brings in a third name
    for what, names in (("attributes", attributes), ("objects", objects)):
        if len(set(names)) < need:
            raise ValueError(
                f"questions of {n} objects need {need} distinct {what}, but the vocabulary has "
                f"{len(set(names))}; ask for fewer objects per scene or take a larger vocabulary"
            )


def _pair(attributes: Sequence[str], objects: Sequence[str]) -> Pairs:
    return tuple(zip(attributes, objects, strict=True))


def _reorder(items: Sequence, rng: np.random.Generator) -> tuple:
    """The items in the order of a uniform non-identity permutation."""
    identity = np.arange(len(items))
    order = rng.permutation(len(items))
    while np.array_equal(order, identity):
        order = rng.permutation(len(items))
    return tuple(items[i] for i in order)


def _replace_one(query: Pairs, attributes, objects, rng: np.random.Generator) -> Pairs:
    """Candidate 4 of a two-object question."""
    kept = int(rng.integers(2))
    attribute, name = query[1 - kept]
    if rng.random() < 0.5:
        name = _draw_absent(objects, {o for _, o in query}, rng)
    else:
        attribute = _draw_absent(attributes, {a for a, _ in query}, rng)
    scene = (query[kept], (attribute, name))
    return scene if rng.random() < 0.5 else scene[::-1]


def _draw_absent(names: Sequence[str], present: set[str], rng: np.random.Generator) -> str:
    rest = [x for x in names if x not in present]
    return rest[int(rng.integers(len(rest)))]
