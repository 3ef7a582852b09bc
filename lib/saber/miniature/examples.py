"""Finetuning examples for the miniature: permuted hard negatives in sentences (section 4, in small).

A query lists the pairs; the positive states them in a sentence, and both negatives are that very sentence
with the attributes, or the objects, permuted. Two or three pairs, attributive or predicative. The full seven
constructions with their controls are another matter; these need no generator and no validation.
"""

from collections.abc import Sequence

import numpy as np

from saber.finetune import Example
from saber.images.render import render_scene
from saber.miniature import language
from saber.miniature.architecture import IMAGE_SIZE
from saber.miniature.batches import OWN
from saber.vocabulary import instantiate, load_vocabulary

WITH_SEEN_WORDS = (0.4, 0.3, 0.3)
NO_SEEN_WORDS = (0.0, 0.5, 0.5)


def _permuted(pairs: language.Pairs, order: Sequence[int]) -> tuple[language.Pairs, language.Pairs]:
    """The pairs with their attributes, and with their objects, in another order."""
    attributes = [(pairs[i][0], o) for i, (_, o) in zip(order, pairs, strict=True)]
    objects = [(a, pairs[i][1]) for i, (a, _) in zip(order, pairs, strict=True)]
    return attributes, objects


def _draw(rng: np.random.Generator, shares: Sequence[float]):
    """Pairs and their two negatives: two pairs swapped, or three of which two are swapped or all move on."""
    while True:
        n = 2 if rng.random() < 2 / 3 else 3
        order = (
            [1, 0]
            if n == 2
            else [[1, 2, 0], [1, 0, 2], [2, 1, 0], [0, 2, 1]][rng.choice(4, p=[0.5, *[1 / 6] * 3])]
        )
        pairs = language.sample_pairs(n, rng, shares)
        attribute_negative, object_negative = _permuted(pairs, order)
        if not language.any_held_out([*attribute_negative, *object_negative]):
            return pairs, attribute_negative, object_negative


def text_examples(n: int, seed: int, shares: Sequence[float] = WITH_SEEN_WORDS) -> list[Example]:
    """``n`` examples of text; ``shares``: of the tiers of words, see :func:`.language.sample_pairs`."""
    examples = []
    for i in range(n):
        rng = np.random.default_rng((seed, 0, i, OWN))
        scenes = _draw(rng, shares)
        frame = language.draw_frame(len(scenes[0]), rng)
        kind = "attributive" if rng.random() < (0.5 if len(scenes[0]) == 2 else 0.7) else "predicative"
        query = language.listing(language.shuffled(scenes[0], rng))
        examples.append(Example(query, *(language.sentence(pairs, kind, frame) for pairs in scenes)))
    return examples


def image_examples(n: int, seed: int) -> list[Example]:
    """``n`` examples of images: the query's scene placed anew, and the two permuted scenes (appendix E)."""
    from PIL import Image

    vocabulary, examples = load_vocabulary("known"), []
    for i in range(n):
        rng = np.random.default_rng((seed, 1, i, OWN))
        scenes = _draw(rng, (1.0, 0.0, 0.0))
        looks = {a: instantiate(vocabulary.attribute(a), vocabulary.palette, rng) for a, _ in scenes[0]}
        images = [
            render_scene(
                [o for _, o in p],
                [looks[a] for a, _ in p],
                (seed, 1, i, k),
                IMAGE_SIZE,
                bool(rng.integers(2)),
            )
            for k, p in enumerate((scenes[0], *scenes))
        ]
        examples.append(Example(*({"image": Image.fromarray(image)} for image in images)))
    return examples
