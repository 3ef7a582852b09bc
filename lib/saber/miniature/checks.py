"""A first look at a miniature: binding of trained and of held-out pairs, and plain retrieval."""

from functools import lru_cache

import numpy as np
import pandas as pd
from PIL import Image

from saber.captions import caption
from saber.images.render import render_scene
from saber.items import PAIRINGS, Item
from saber.metrics.intervals import wilson_interval
from saber.metrics.mcq import mcq_credit, question_scores
from saber.miniature import language
from saber.miniature.architecture import DEFAULT_INSTRUCTION, IMAGE_SIZE
from saber.miniature.batches import VIEW, names
from saber.miniature.questions import PARTS, make_questions
from saber.training_scenes import render_scenes
from saber.vocabulary import load_vocabulary

RANDOM_SCENE_OBJECTS = 3


def check_miniature(
    model, seed: int, questions_per_count: int, n_scenes: int, batch_size: int = 64
) -> pd.DataFrame:
    """Measures of a SentenceTransformer, one row a measure and pairing: value in percent, n, low, high.

    Measures: the four-way accuracy of each of ``PARTS``, over 2 to 10 objects, and R@1 among ``n_scenes``
    random scenes of three objects. Intervals are Wilson's.
    """
    rows = []
    for part in PARTS:
        inputs = _questions(part, seed, questions_per_count)
        vectors = {k: _encode(model, given, batch_size) for k, given in inputs.items()}
        vectors = {k: v.reshape(len(v) // 5, 5, -1) for k, v in vectors.items()}
        for pairing, (query, candidate) in PAIRINGS.items():
            credit = mcq_credit(question_scores(vectors[query][:, 0], vectors[candidate][:, 1:]))
            rows.append((f"{part} pairs", pairing, credit))
    rows += [("R@1", pairing, hits) for pairing, hits in _random_scenes(model, seed, n_scenes, batch_size)]
    return pd.DataFrame([_row(*row) for row in rows])


def _row(measure: str, pairing: str, credit: np.ndarray) -> dict:
    low, high = wilson_interval(float(credit.sum()), len(credit))
    share = {"value": float(credit.mean()), "low": float(low), "high": float(high)}
    return {"measure": measure, "pairing": pairing, "n": len(credit)} | {k: 100 * v for k, v in share.items()}


# Several models are looked at one after another: their questions and scenes are drawn once.
@lru_cache(maxsize=len(PARTS))
def _questions(part: str, seed: int, questions_per_count: int) -> dict[str, list]:
    """Texts and images of a part: of each question the query and its four candidates."""
    benchmark = make_questions(part, seed, questions_per_count)
    items = [benchmark.items[i] for q in benchmark.questions for i in (q.query, *q.candidates)]
    return {"text": [item.text for item in items], "image": [_picture(item) for item in items]}


@lru_cache(maxsize=1)
def _scenes(seed: int, n: int) -> dict[tuple[str, int], list]:
    """Random scenes: captions in two orders, images in two layouts."""
    scenes = render_scenes(
        load_vocabulary("known"), VIEW, RANDOM_SCENE_OBJECTS, (seed,), range(n), allow_held_out=True, views=2
    )
    rng = np.random.default_rng(seed)
    pairs = [names(scenes, 2 * i) for i in range(n)]
    return {
        ("text", 0): [caption(p) for p in pairs],
        ("text", 1): [caption(language.shuffled(p, rng)) for p in pairs],
        ("image", 0): [{"image": Image.fromarray(x)} for x in scenes.images[::2]],
        ("image", 1): [{"image": Image.fromarray(x)} for x in scenes.images[1::2]],
    }


def _random_scenes(model, seed: int, n: int, batch_size: int):
    """Hits of each query at the first place, by pairing."""
    vectors = {key: _encode(model, given, batch_size) for key, given in _scenes(seed, n).items()}
    for pairing, (query, candidate) in PAIRINGS.items():
        scores = vectors[query, 0] @ vectors[candidate, 1].T
        yield pairing, (scores.argmax(1) == np.arange(n)).astype(float)


def _encode(model, inputs: list, batch_size: int) -> np.ndarray:
    return model.encode(inputs, prompt=DEFAULT_INSTRUCTION, batch_size=batch_size, show_progress_bar=False)


def _picture(item: Item) -> dict:
    objects = [name for _, name in item.pairs]
    image = render_scene(objects, item.appearances, item.seed, IMAGE_SIZE, item.flipped)
    return {"image": Image.fromarray(image)}
