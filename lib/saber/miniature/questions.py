"""Questions of trained and of held-out pairs apart, in SABER's form (A.2).

``trained``: no candidate holds a held-out pair. ``held out``: all pairs of the query are held out, so that
no right binding was ever seen together in an image or a text; the wrong ones mostly were, which makes these
questions rather harder.
"""

from collections.abc import Iterable

import numpy as np

from saber.benchmark import make_example
from saber.items import Benchmark
from saber.miniature.batches import OWN
from saber.miniature.language import any_held_out
from saber.training_scenes import held_out
from saber.vocabulary import load_vocabulary

PARTS = ("trained", "held out")


def make_questions(
    part: str, seed: int, questions_per_count: int, object_counts: Iterable[int] = range(2, 11)
) -> Benchmark:
    """Independent questions of one part, of the known vocabulary, as a benchmark; images are named, not made.

    Raises ValueError for an unknown part.
    """
    if part not in PARTS:
        raise ValueError(f"unknown part {part!r}; choose from {', '.join(PARTS)}")
    made = [
        _question(part, n, np.random.default_rng((seed, PARTS.index(part), n, i, OWN)), i)
        for n in object_counts
        for i in range(questions_per_count)
    ]
    return Benchmark(tuple(q for q, _ in made), {item.id: item for _, items in made for item in items})


def _question(part: str, n: int, rng: np.random.Generator, index: int):
    vocabulary = load_vocabulary("known")
    name = f"{part.replace(' ', '-')}-n{n:02d}-{index:04d}"
    while True:
        query = _query(part == "held out", n, rng)
        for _ in range(500):  # the query is kept while its candidates are drawn anew
            question, items = make_example(name, None, query, {}, vocabulary, rng)
            if part == "held out" or not any(any_held_out(item.pairs) for item in items):
                return question, items


def _query(want_held_out: bool, n: int, rng: np.random.Generator):
    """Pairs of distinct words, all held out or none."""
    vocabulary = load_vocabulary("known")
    while True:
        objects, attributes = [], rng.permutation(len(vocabulary.attributes))[:n]
        for a in attributes:
            fits = [
                o
                for o in range(len(vocabulary.objects))
                if held_out(int(a), o) == want_held_out and o not in objects
            ]
            if not fits:
                break
            objects.append(fits[rng.integers(len(fits))])
        if len(objects) == n:
            return tuple(
                (vocabulary.attributes[a].name, vocabulary.objects[o].name)
                for a, o in zip(attributes, objects, strict=True)
            )
