"""saber.benchmark: what is built, how it depends on the seed, and that a smaller one is part of a larger."""

import dataclasses
import os
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

import saber
from saber.benchmark import ROLES, Benchmark, build_benchmark, write_benchmark
from saber.captions import caption, generation_caption
from saber.scenes import CANDIDATE_ROLES, bindings
from saber.vocabulary import Attribute, Object, Vocabulary, appearances, load_vocabulary


def small_vocabulary() -> Vocabulary:
    """Twelve attributes of all four types and eleven objects, in no particular order."""
    plain = [Attribute(c, "basic color", "standalone", c, (), True) for c in ("red", "blue", "icy", "orange")]
    single = [
        Attribute(n, "effect", "single-color", f"{{color}} {n}", (), True) for n in ("glowing", "starry")
    ]
    double = [
        Attribute(n, "pattern", "two-color", f"{{color 1}} and {{color 2}} {n}", (), True)
        for n in ("striped", "plaid", "checkered")
    ]
    fixed = [
        Attribute(n, "material", "fixed-variant", "-", (f"light {n}", f"dark {n}"), True)
        for n in ("wooden", "denim", "marble")
    ]
    names = [*"cube kite owl anchor hourglass teapot kayak unicycle igloo giraffe".split(), "ice cream cone"]
    objects = [Object(n, n, "thing", True) for n in names]
    return Vocabulary(tuple(objects), tuple(fixed + plain + double + single), ("red", "orange", "white"))


@pytest.fixture(scope="module")
def small():
    return build_benchmark(small_vocabulary(), seed=5, questions_per_count=6, object_counts=[2, 3, 4, 10])


def _items(benchmark, question):
    return [benchmark.items[i] for i in (question.query, *question.candidates)]


def test_sizes_order_and_ids(small):
    assert len(small.questions) == 24 and len(small.items) == 120
    assert len(small.queries) == 24 and len(small.gallery) == 96
    assert Counter((q.n_objects, q.subset) for q in small.questions) == {
        (n, s): 3 for n in (2, 3, 4, 10) for s in ("independent", "nested")
    }
    assert [q.id for q in small.questions[:6]] == [
        "ind-n02-0000",
        "ind-n02-0001",
        "ind-n02-0002",
        "nest-c000-n02",
        "nest-c001-n02",
        "nest-c002-n02",
    ]
    question = small.questions[3]
    assert (question.chain, question.query) == ("c000", "nest-c000-n02-query")
    assert question.candidates[1] == "nest-c000-n02-attribute-swap"
    assert small.questions[0].chain is None


def test_queries_and_gallery_are_in_question_order(small):
    for number, question in enumerate(small.questions):
        assert small.queries[number].id == question.query
        assert tuple(i.id for i in small.gallery[4 * number : 4 * number + 4]) == question.candidates
    assert {i.role for i in small.queries} == {"query"}
    assert [i.role for i in small.gallery[:4]] == list(CANDIDATE_ROLES)


def test_items_carry_both_texts_and_their_place(small):
    for question in small.questions:
        for role, item in zip(ROLES, _items(small, question), strict=True):
            assert (item.question, item.role, len(item.pairs)) == (question.id, role, question.n_objects)
            assert item.text == caption(item.pairs)
            assert item.generation_text == generation_caption(item.appearances, [o for _, o in item.pairs])
            assert item.image == f"images/{item.id}.png"
    seeds = [item.seed for item in small.items.values()]
    assert len(set(seeds)) == len(seeds) and all(0 <= s < 2**31 for s in seeds)


def test_an_attribute_is_instantiated_once_per_question_and_once_per_chain(small):
    looks = defaultdict(set)
    vocabulary = small_vocabulary()
    for question in small.questions:
        for item in _items(small, question):
            for (attribute, _), look in zip(item.pairs, item.appearances, strict=True):
                looks[question.chain or question.id, attribute].add(look)
                assert look in appearances(vocabulary.attribute(attribute), vocabulary.palette)
    assert all(len(seen) == 1 for seen in looks.values())
    # but anew in each: the same attribute looks different elsewhere
    assert len({look for (_, a), seen in looks.items() if a == "striped" for look in seen}) > 3


def test_chains_keep_their_bindings_over_gaps_in_the_counts(small):
    for chain in ("c000", "c001", "c002"):
        steps = [small.items[q.query] for q in small.questions if q.chain == chain]
        assert [len(s.pairs) for s in steps] == [2, 3, 4, 10]
        for before, after in pairwise(steps):
            assert bindings(before.pairs) < bindings(after.pairs)
    assert len({bindings(i.pairs) for i in small.queries}) == 24


def test_a_smaller_benchmark_is_part_of_a_larger_one(small):
    for per_count, counts in ((2, [2, 3, 4, 10]), (6, [3]), (4, [10, 2]), (2, [4])):
        part = build_benchmark(small_vocabulary(), 5, per_count, counts)
        assert len(part.questions) == per_count * len(counts)
        assert set(part.questions) <= set(small.questions)
        assert all(small.items[i] == item for i, item in part.items.items())


def test_seed_decides(small):
    same = build_benchmark(small_vocabulary(), 5, 6, [2, 3, 4, 10])
    other = build_benchmark(small_vocabulary(), 6, 6, [2, 3, 4, 10])
    assert same == small != other
    assert not any(other.items[i].pairs == item.pairs for i, item in small.items.items())


def test_order_of_the_vocabulary_is_of_no_influence(small):
    vocabulary = small_vocabulary()
    turned = dataclasses.replace(
        vocabulary, objects=vocabulary.objects[::-1], attributes=vocabulary.attributes[::-1]
    )
    assert build_benchmark(turned, 5, 6, [2, 3, 4, 10]) == small


_SCRIPT = """
import sys
from saber.benchmark import build_benchmark, write_benchmark
from saber.vocabulary import load_vocabulary
write_benchmark(build_benchmark(load_vocabulary("known"), 3, 4, [2, 5]), sys.argv[1])
"""


def test_files_are_equal_in_every_process(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(saber.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", _SCRIPT, str(there)], env=env, check=True)
    write_benchmark(build_benchmark(load_vocabulary("known"), 3, 4, [2, 5]), here)
    names = sorted(p.name for p in there.iterdir())
    assert names == ["README.md", "items.jsonl", "questions.jsonl"]
    assert all((here / name).read_bytes() == (there / name).read_bytes() for name in names)


def test_full_size_on_the_real_vocabulary():
    vocabulary = load_vocabulary()
    full = build_benchmark(vocabulary, seed=0)
    assert (len(full.questions), len(full.gallery), len(full.items)) == (1800, 7200, 9000)
    assert len({q.chain for q in full.questions}) == 101
    used = [pair for item in full.queries for pair in item.pairs]
    assert {o for _, o in used} == {o.name for o in vocabulary.objects}
    assert {a for a, _ in used} == {a.name for a in vocabulary.attributes}
    flipped = sum(item.flipped for item in full.items.values())
    assert abs(flipped - 4500) < 4 * (9000 * 0.25) ** 0.5  # probability 0.5, four standard deviations
    # section 3: one positive for an independent query, those of all later steps for a nested one; a negative
    # of a later step that leaves the early bindings in place contains them as well, and counts
    by_binding = defaultdict(set)
    for item in full.gallery:
        for binding in item.pairs:
            by_binding[binding].add(item.id)
    for question, query in zip(full.questions, full.queries, strict=True):
        positives = set.intersection(*(by_binding[b] for b in query.pairs))
        if question.subset == "independent":
            assert positives == {question.candidates[0]}
        else:
            steps = [f"nest-{question.chain}-n{n:02d}-" for n in range(question.n_objects, 11)]
            assert {f"{step}preserved" for step in steps} <= positives
            assert all(p.startswith(tuple(steps)) for p in positives)
            assert not positives & set(question.candidates[1:])


def test_known_vocabulary_suffices_for_ten_objects():
    assert len(build_benchmark(load_vocabulary("known"), 1, 2).questions) == 18


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"questions_per_count": 5}, "positive even number.*not 5"),
        ({"questions_per_count": 0}, "positive even number"),
        ({"object_counts": []}, "at least one, not \\[\\]"),
        ({"object_counts": [2, 2]}, "distinct numbers"),
        ({"object_counts": [1, 2]}, "at least 2 objects, not 1"),
        ({"object_counts": [12]}, "need 12 distinct objects, but the vocabulary has 11"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_impossible_sizes_raise(changes, message):
    arguments = {"seed": 0, "questions_per_count": 2, "object_counts": [2]} | changes
    with pytest.raises(ValueError, match=message):
        build_benchmark(small_vocabulary(), **arguments)


def test_image_path(small, tmp_path):
    item = small.queries[0]
    with pytest.raises(ValueError, match="no folder yet"):
        small.image_path(item)
    placed = Benchmark(small.questions, small.items, tmp_path)
    assert placed.image_path(item) == tmp_path / "images" / "ind-n02-0000-query.png"
    with pytest.raises(ValueError, match="text only"):
        placed.image_path(dataclasses.replace(item, image=None))
