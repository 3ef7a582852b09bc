"""Build SABER: 1,800 questions, 7,200 candidates and 9,000 items at full size (section 3 and appendix A).

The data types come from `saber.items`, the files from `saber.benchmark_files`; both are offered here too.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from saber.benchmark_files import read_benchmark, write_benchmark
from saber.captions import caption, generation_caption
from saber.items import ROLES, SUBSETS, Benchmark, Item, Question
from saber.scenes import Pairs, check_size, grow_query, make_candidates, sample_query
from saber.vocabulary import Vocabulary, instantiate

__all__ = [
    "ROLES",
    "SUBSETS",
    "Benchmark",
    "Item",
    "Question",
    "build_benchmark",
    "read_benchmark",
    "write_benchmark",
]


def build_benchmark(
    vocabulary: Vocabulary,
    seed: int,
    questions_per_count: int = 200,
    object_counts: Iterable[int] = range(2, 11),
) -> Benchmark:
    """Build SABER in memory; images are named, not yet made.

    vocabulary: the objects, attributes and palette to draw from.
    seed: integer >= 0. Every question has its own generator, so one is the same however many others are asked
    for,
        and whatever the other object counts.
    questions_per_count: even; at each object count half of the questions are independent and half are steps
    of
        nested chains, one chain for each.
    object_counts: distinct numbers >= 2. Every chain grows from two objects by one binding at a time (A.5) up
    to
        the largest count, and the steps at the counts asked for are kept; with a gap in the counts a kept
        step therefore contains the one before and adds as many bindings as objects.

    An attribute is instantiated once per independent question and once per chain, so that it looks the same
    in all images that are positives of one another (A.3). Raises ValueError for sizes that cannot be met.
    """
    counts = _check_sizes(vocabulary, seed, questions_per_count, object_counts)
    half = questions_per_count // 2
    examples = {
        (n, "independent", i): _independent(vocabulary, seed, n, i) for n in counts for i in range(half)
    }
    for index in range(half):
        for n, example in _chain(vocabulary, seed, counts[-1], index):
            if n in counts:
                examples[n, "nested", index] = example
    made = [examples[key] for key in sorted(examples)]
    return Benchmark(tuple(q for q, _ in made), {item.id: item for _, items in made for item in items})


def _check_sizes(vocabulary, seed, questions_per_count, object_counts) -> list[int]:
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, not {seed}")
    if questions_per_count < 2 or questions_per_count % 2:
        raise ValueError(
            f"questions_per_count must be a positive even number (half independent, half nested), "
            f"not {questions_per_count}; the paper uses 200"
        )
    if not isinstance(object_counts, Iterable) or isinstance(object_counts, str):
        raise ValueError(f"object_counts must be a list of whole numbers, not {object_counts!r}")
    counts = list(object_counts)
    if not all(isinstance(n, int | np.integer) for n in counts):
        raise ValueError(f"object_counts must be whole numbers, not {counts}")
    if not counts or len(set(counts)) < len(counts):
        raise ValueError(f"object_counts must be distinct numbers of 2 and more, at least one, not {counts}")
    names = [a.name for a in vocabulary.attributes], [o.name for o in vocabulary.objects]
    for n in counts:
        check_size(n, *names)
    return sorted(counts)


def _independent(vocabulary, seed: int, n: int, index: int) -> tuple[Question, list[Item]]:
    rng = np.random.default_rng([seed, SUBSETS.index("independent"), n, index])
    query = sample_query(n, *_names(vocabulary), rng)
    return make_example(f"ind-n{n:02d}-{index:04d}", None, query, {}, vocabulary, rng)


def _chain(
    vocabulary, seed: int, largest: int, index: int
) -> Iterator[tuple[int, tuple[Question, list[Item]]]]:
    """(object count, example) of every step of one chain; a step never depends on later ones."""
    chain, looks, query = f"c{index:03d}", {}, None
    for n in range(2, largest + 1):
        rng = np.random.default_rng([seed, SUBSETS.index("nested"), n, index])
        names = _names(vocabulary)
        query = sample_query(n, *names, rng) if query is None else grow_query(query, *names, rng)
        yield n, make_example(f"nest-{chain}-n{n:02d}", chain, query, looks, vocabulary, rng)


def make_example(
    question_id, chain, query: Pairs, looks: dict[str, str], vocabulary, rng
) -> tuple[Question, list[Item]]:
    """One question and its items. ``looks`` (attribute -> appearance) is shared by a chain, and grows."""
    scenes = {"query": query, **make_candidates(query, *_names(vocabulary), rng)}
    for attribute in [a for pairs in scenes.values() for a, _ in pairs]:
        if attribute not in looks:
            looks[attribute] = instantiate(vocabulary.attribute(attribute), vocabulary.palette, rng)
    items = []
    for role, pairs in scenes.items():
        item_id = f"{question_id}-{role.replace('_', '-')}"
        appearances = tuple(looks[a] for a, _ in pairs)
        items.append(
            Item(
                id=item_id,
                question=question_id,
                role=role,
                pairs=pairs,
                text=caption(pairs),
                generation_text=generation_caption(appearances, [o for _, o in pairs]),
                appearances=appearances,
                image=f"images/{item_id}.png",
                seed=int(rng.integers(2**31)),
                flipped=bool(rng.random() < 0.5),
            )
        )
    subset = "independent" if chain is None else "nested"
    ids = tuple(item.id for item in items)
    return Question(question_id, len(query), subset, chain, ids[0], ids[1:]), items


def _names(vocabulary) -> tuple[list[str], list[str]]:
    """Attribute and object names, sorted, so that the order of the data files has no influence."""
    return sorted(a.name for a in vocabulary.attributes), sorted(o.name for o in vocabulary.objects)
