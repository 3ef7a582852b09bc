"""The structural rules of SABER (sections A.1 to A.5) by name, and those that concern a single question.

What a broken part drags along is not reported a second time: candidates 2 to 4 are compared with candidate 1
only if that one is right, and a scene that repeats an object is left out of further comparisons.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from saber.captions import article, split_caption
from saber.items import ROLES, Item, Question
from saber.scenes import CANDIDATE_ROLES, bindings

RULES = {
    "file-format": "both files exist and every line has the fields it needs",
    "item-missing": "the query and the four candidates of a question are items",
    "item-place": "an item says the question and role in which it is used",
    "item-unused": "every item is part of a question",
    "object-count": "all items of a question have n_objects pairs, at least two",
    "distinct-objects": "no object twice in a scene (A.2)",
    "distinct-attributes": "no attribute twice in a scene (A.2)",
    "candidate-1-preserves": "candidate 1 has the query's bindings (A.2)",
    "candidate-1-reorders": "candidate 1 has them in another order (A.2)",
    "attribute-swap-keeps-object-order": "candidate 2 has the objects in the order of candidate 1 (A.2)",
    "attribute-swap-permutes": "candidate 2 has the attributes of candidate 1 in another order (A.2)",
    "object-swap-keeps-attribute-order": "candidate 3 has the attributes in the order of candidate 1 (A.2)",
    "object-swap-permutes": "candidate 3 has the objects of candidate 1 in another order (A.2)",
    "joint-swap-permutes-both": "candidate 4 has both of candidate 1 in other orders (N >= 3, A.2)",
    "two-object-exception": "candidate 4 keeps a binding, replaces half of the other (N = 2, A.2)",
    "assignments-distinct": "the assignments of candidates 2 to 4 differ from each other (N >= 3, A.2)",
    "unique-answer": "no other candidate contains the query's bindings",
    "text-matches-pairs": "the caption lists the pairs in their order (A.3)",
    "generation-text-matches-pairs": "the generation form lists appearances and objects in order (A.3)",
    "article": "a or an by pronunciation (A.3)",
    "attribute-instantiated-once": "an attribute has one appearance in all items of a question (A.3)",
    "image-missing": "every item's image file exists and is not empty (text-only benchmarks name none)",
    "image-shared": "no two items share an image file",
    "chain-named": "nested questions name their chain, independent ones none (A.5)",
    "chain-contiguous": "a chain has one step at every object count of the nested subset (A.5)",
    "chain-adds-one-binding": "a step keeps all bindings of the one before, and adds one per object (A.5)",
    "counts": "independent and nested questions are equally many at every object count (A.5)",
    "unknown-object": "objects are in the vocabulary, when one is given",
    "unknown-attribute": "attributes are in the vocabulary, when one is given",
    "unknown-appearance": "appearances are forms of their attribute, when a vocabulary is given (A.1)",
}


def check_question(question: Question, items: dict[str, Item]) -> Iterator[tuple[str, str]]:
    """(rule, message) for every rule that a question with its items breaks."""
    scenes: dict[str, Item] = {}  # the items that are sound in themselves
    looks = defaultdict(set)
    for role, item_id in zip(ROLES, (question.query, *question.candidates), strict=True):
        item = items.get(item_id)
        if item is None:
            yield "item-missing", f"{role} {item_id!r} is no item"
            continue
        if (item.question, item.role) != (question.id, role):
            yield "item-place", f"{item_id} is used as {role}, but says {item.role} of {item.question}"
        attributes, objects = zip(*item.pairs, strict=True)
        sound = True
        if len(item.pairs) != question.n_objects or question.n_objects < 2:
            yield "object-count", f"{item_id} has {len(item.pairs)} pairs; n_objects is {question.n_objects}"
            sound = False
        for rule, names in (("distinct-objects", objects), ("distinct-attributes", attributes)):
            if twice := repeated(names):
                yield rule, f"{item_id} has {', '.join(twice)} more than once"
                sound = False
        if sound:
            scenes[role] = item
        yield from _captions(item)
        for attribute, look in zip(attributes, looks_of(item), strict=False):
            looks[attribute].add(look)
    for attribute, seen in looks.items():
        if len(seen) > 1:
            yield "attribute-instantiated-once", f"{attribute} appears as {' and as '.join(sorted(seen))}"
    if len(scenes) == len(ROLES):
        yield from _candidates(*(scenes[role].pairs for role in ROLES))


def _candidates(query, *candidates) -> Iterator[tuple[str, str]]:
    """The rules of A.2, on scenes of equal size without repetitions."""
    first = candidates[0]
    negatives = dict(zip(CANDIDATE_ROLES[1:], candidates[1:], strict=True))
    broken = []
    if bindings(first) != bindings(query):
        yield "candidate-1-preserves", f"lost {show(bindings(query) - bindings(first))}"
    else:
        if first == query:
            yield "candidate-1-reorders", "same order as in the query"
        for role, pairs in negatives.items():
            rule = _broken_rule(role, pairs, first)
            if rule:
                broken.append(role)
                yield rule, f"candidate 1 is {show(first)}; {role} is {show(pairs)}"
    rest = {role: bindings(pairs) for role, pairs in negatives.items() if role not in broken}
    for role, assignment in rest.items():
        if assignment >= bindings(query):
            yield "unique-answer", f"{role} has all bindings of the query"
    if len(query) > 2:
        for (role, one), (other, two) in combinations(rest.items(), 2):
            if one == two:
                yield "assignments-distinct", f"{role} and {other} have the same bindings"


def _broken_rule(role: str, pairs, first) -> str | None:
    (attributes, objects), (attributes_1, objects_1) = zip(*pairs, strict=True), zip(*first, strict=True)
    new_attributes = sorted(attributes) == sorted(attributes_1) and attributes != attributes_1
    new_objects = sorted(objects) == sorted(objects_1) and objects != objects_1
    if role == "attribute_swap":
        if objects != objects_1:
            return "attribute-swap-keeps-object-order"
        return None if new_attributes else "attribute-swap-permutes"
    if role == "object_swap":
        if attributes != attributes_1:
            return "object-swap-keeps-attribute-order"
        return None if new_objects else "object-swap-permutes"
    if len(pairs) > 2:
        return None if new_attributes and new_objects else "joint-swap-permutes-both"
    kept, new = bindings(pairs) & bindings(first), bindings(pairs) - bindings(first)
    if len(kept) == 1:
        (attribute, name) = next(iter(new))
        (old_attribute, old_name) = next(iter(bindings(first) - kept))
        if (attribute == old_attribute) != (name == old_name):  # one replaced, hence by an absent one
            return None
    return "two-object-exception"


def _captions(item: Item) -> Iterator[tuple[str, str]]:
    """Text and generation form against the pairs; capitals, full stop and last comma make no difference."""
    forms = [("text-matches-pairs", item.text, [f"{a} {o}" for a, o in item.pairs])]
    if item.generation_text:
        looks, objects = looks_of(item), [o for _, o in item.pairs]
        phrases = map(" ".join, zip(looks, objects, strict=True)) if len(looks) == len(objects) else []
        forms.append(("generation-text-matches-pairs", item.generation_text, list(phrases)))
    for rule, text, expected in forms:
        try:
            found = split_caption(text)
        except ValueError as error:
            yield rule, f"{item.id}: {error}"
            continue
        if [p.casefold() for _, p in found] != [p.casefold() for p in expected]:
            yield rule, f"{item.id} is {show(item.pairs)}, but its caption says {text!r}"
        else:
            wrong = [f"{a} {p}" for a, p in found if a != article(p)]
            if wrong:
                yield "article", f"{item.id} says {', '.join(wrong)}"


def looks_of(item: Item) -> tuple[str, ...]:
    """Appearances of an item, read off the generation form where they are not given; () if neither tells."""
    if item.appearances or not item.generation_text:
        return item.appearances
    try:
        phrases = [p for _, p in split_caption(item.generation_text)]
    except ValueError:
        return ()
    ends = [f" {o}" for _, o in item.pairs]
    if len(phrases) != len(ends) or not all(map(str.endswith, phrases, ends)):
        return ()
    return tuple(map(str.removesuffix, phrases, ends))


def repeated(names: Sequence[str]) -> list[str]:
    """Names that occur more than once."""
    return sorted(name for name, n in Counter(names).items() if n > 1)


def show(pairs) -> str:
    """Bindings for a message, sets in sorted order."""
    pairs = sorted(pairs) if isinstance(pairs, (set, frozenset)) else pairs
    return ", ".join(f"{a} {o}" for a, o in pairs)
