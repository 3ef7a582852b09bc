"""What each stage trains on, made without torch, so that other processes can make it ahead of time.

A batch depends on the recipe's seed, the stage and the batch's number alone.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from saber.captions import caption
from saber.miniature import language
from saber.training_scenes import Format, Scenes, aligned_batch, render_scenes
from saber.vocabulary import load_vocabulary

# One label for each image token. A full scene's objects are little larger than a token: where each object
# needs a token of its own, a small share must do. To learn names, tokens that are mostly covered are better.
VIEW, COVERED = Format(192, 32, min_share=0.12), Format(192, 32, min_share=0.35)
OWN = 99_991  # ends the key of a batch's own draws; those of its scenes end in their number
# Aligned scenes, cells a side and objects: large ones cover four image tokens each, small ones are as large
# as in scenes of ten objects.
LARGE, SMALL = (3, 9), (4, 14)
STILL = 0.25  # share of the aligned scenes without jitter
# how often a scene has so many objects: full ones have more to name
DENSE_COUNTS = dict(
    zip(range(1, 11), (0.02, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.18, 0.2), strict=True)
)
# how often a scene has so many objects, in images and in texts
IMAGE_COUNTS = {2: 0.16, 3: 0.16, 4: 0.15, 5: 0.13, 6: 0.11, 7: 0.09, 8: 0.08, 9: 0.06, 10: 0.06}
TEXT_COUNTS = {2: 0.32, 3: 0.26, 4: 0.14, 5: 0.1, 6: 0.06, 7: 0.04, 8: 0.03, 9: 0.03, 10: 0.02}
AHEAD = 4  # batches made before they are asked for, for each worker


def draw_count(counts: dict[int, float], rng: np.random.Generator) -> int:
    """A number of objects with the given probabilities."""
    return int(rng.choice(list(counts), p=list(counts.values())))


def names(scenes: Scenes, row: int) -> language.Pairs:
    """The ``(attribute, object)`` names of one scene."""
    vocabulary = load_vocabulary("known")
    return [(vocabulary.attributes[a].name, vocabulary.objects[o].name) for a, o in scenes.pairs[row]]


def dense_batch(size: int, progress: float, aligned: float, key: tuple[int, ...]) -> Scenes:
    """Large objects in their cells, then small ones too and ever more out of place, then real scenes."""
    vocabulary, rng = load_vocabulary("known"), np.random.default_rng(key)
    if progress < aligned:
        moved = max(0.0, progress / aligned - STILL) / (1 - STILL)
        grid, n_objects = SMALL if moved and rng.random() < 0.7 else LARGE
        return aligned_batch(vocabulary, COVERED, size, n_objects, grid, 0.04 + 0.46 * moved, key)
    return render_scenes(vocabulary, COVERED, draw_count(DENSE_COUNTS, rng), key, range(size))


@dataclass(frozen=True)
class Generative:
    """Images with texts to write about them; texts with pairs they state and texts to write about those."""

    scenes: Scenes
    image_targets: list[str]
    texts: list[str]
    pairs: list[language.Pairs]
    text_targets: list[str]


def target(pairs: language.Pairs, rng: np.random.Generator) -> str:
    """What the model is to write: a caption or statements, in random order."""
    pairs = language.shuffled(pairs, rng)
    return caption(pairs) if rng.random() < 0.5 else language.statements(pairs)


def generative_batch(size: int, key: tuple[int, ...]) -> Generative:
    """``size`` images of one object count and as many texts."""
    rng = np.random.default_rng((*key, OWN))
    count = draw_count(IMAGE_COUNTS, rng)
    scenes = render_scenes(load_vocabulary("known"), VIEW, count, key, range(size))
    pairs = [language.sample_pairs(draw_count(TEXT_COUNTS, rng), rng) for _ in range(size)]
    return Generative(
        scenes,
        [target(names(scenes, i), rng) for i in range(size)],
        [language.random_text(p, rng) for p in pairs],
        pairs,
        [target(p, rng) for p in pairs],
    )


@dataclass(frozen=True)
class Contrastive:
    """``captions[k]`` and ``texts[k]`` belong to image k; ``second`` shows the first half's scenes again.

    ``left`` and ``right`` are texts of scenes without an image.
    """

    images: np.ndarray
    second: np.ndarray
    captions: list[str]
    texts: list[str]
    left: list[str]
    right: list[str]


def contrastive_batch(size: int, noise: float, key: tuple[int, ...]) -> Contrastive:
    """Scenes of one object count with texts, the share ``noise`` of which has attributes dealt at random."""
    rng = np.random.default_rng((*key, OWN))
    count, vocabulary, half = draw_count(IMAGE_COUNTS, rng), load_vocabulary("known"), size // 2
    twice = render_scenes(vocabulary, VIEW, count, key, range(half), views=2)
    once = render_scenes(vocabulary, VIEW, count, key, range(half, size))

    def noisy(pairs: language.Pairs) -> language.Pairs:
        return language.reassigned(pairs, rng) if rng.random() < noise else pairs

    def text(pairs: language.Pairs) -> str:
        return language.random_text(noisy(pairs), rng)

    seen = [names(twice, 2 * i) for i in range(half)] + [names(once, i) for i in range(size - half)]
    captions = [caption(language.shuffled(noisy(p), rng)) if rng.random() < 0.6 else text(p) for p in seen]
    unseen = [language.sample_pairs(draw_count({2: 0.4, 3: 0.3, 4: 0.3}, rng), rng) for _ in range(half)]
    return Contrastive(
        np.concatenate([twice.images[::2], once.images]),
        twice.images[1::2],
        captions,
        [text(p) for p in seen],
        [language.listing(language.shuffled(noisy(p), rng)) for p in unseen],
        [text(p) for p in unseen],
    )


def ahead(make: Callable, arguments: list[tuple], workers: int) -> Iterator:
    """``make(*a)`` for each of the arguments, in order, made by ``workers`` processes while one trains."""
    if not workers:
        yield from (make(*a) for a in arguments)
        return
    # forked, since a fresh worker would read and dress every sprite again
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as executor:
        waiting = [executor.submit(make, *a) for a in arguments[: AHEAD * workers]]
        try:
            for i in range(len(arguments)):
                yield waiting.pop(0).result()
                if i + AHEAD * workers < len(arguments):
                    waiting.append(executor.submit(make, *arguments[i + AHEAD * workers]))
        finally:
            executor.shutdown(cancel_futures=True)
