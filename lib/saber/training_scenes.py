"""Training scenes of the shipped models: random sprite scenes, with held-out pairs kept out.

Both the small dual encoder and the miniature are trained on these, of one vocabulary, rendered by the
benchmark's own renderer. A scene depends on the seed and its own number alone, so that workers and reruns
change nothing.
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from saber import files
from saber.images.cutout import cutout
from saber.images.render import VARIANTS, dress, render_scene
from saber.images.sprites_backend import SpritesBackend
from saber.vocabulary import Vocabulary, instantiate

ALIGNED_LOOKS = 6  # appearances an attribute takes in aligned scenes, so that dressed objects can be kept
HELD_OUT_EVERY = 6  # one in six (attribute, object) pairs never appears in training
CHUNK = 250  # scenes a worker renders at a time


def held_out(attribute: int, obj: int) -> bool:
    """Whether the pair of vocabulary indices is kept out of every training scene."""
    return (attribute + obj) % HELD_OUT_EVERY == 0


def sample_pairs(
    vocabulary: Vocabulary, n_objects: int, rng: np.random.Generator, *, allow_held_out: bool = False
) -> list[tuple[int, int]]:
    """``(attribute, object)`` indices of ``n_objects`` pairs, all distinct; none held out unless allowed."""
    while True:
        objects = rng.choice(len(vocabulary.objects), n_objects, replace=False)
        attributes = rng.choice(len(vocabulary.attributes), n_objects, replace=False)
        # with ten pairs one draw in six survives, so the attributes are shuffled before all is drawn anew
        for _ in range(20):
            pairs = [(int(a), int(o)) for a, o in zip(attributes, objects, strict=True)]
            if allow_held_out or not any(held_out(a, o) for a, o in pairs):
                return pairs
            rng.shuffle(attributes)


def patch_owners(owner: np.ndarray, view: "Format") -> np.ndarray:
    """Index of the object that covers most of each patch, -1 where none covers ``view.min_share`` of it.

    ``owner`` is ``(size, size)``; the result ``((size / patch)^2,)`` in reading order.
    """
    patch = view.patch
    side = len(owner) // patch
    blocks = owner.reshape(side, patch, side, patch).transpose(0, 2, 1, 3).reshape(side * side, -1)
    counts = np.stack([(blocks == k).sum(1) for k in range(int(owner.max()) + 1)], axis=1)
    return np.where(counts.max(1) >= view.min_share * patch * patch, counts.argmax(1), -1)


@cache
def _few_looks(vocabulary: Vocabulary, attribute: int) -> tuple[str, ...]:
    chosen = vocabulary.attributes[attribute]
    rngs = (np.random.default_rng((attribute, i)) for i in range(ALIGNED_LOOKS))
    return tuple(instantiate(chosen, vocabulary.palette, rng) for rng in rngs)


@lru_cache(maxsize=60_000)
def _kept_body(name: str, appearance: str, diameter: int, variant: int) -> tuple[np.ndarray, np.ndarray]:
    c = cutout(name, diameter)
    body = dress(c, appearance, variant)
    picture = 255 * np.concatenate([body.color, body.alpha[None]]).transpose(
        1, 2, 0
    )  # color is premultiplied
    return picture.round().astype(np.uint8), np.packbits(c.alpha > 0.5)


def aligned_scene(
    objects: Sequence[str],
    appearances: Sequence[str],
    jitter: float,
    rng: np.random.Generator,
    size: int,
    grid: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Equal objects on a grid, each moved by at most ``jitter`` cells: image and owner map.

    Where patches and objects coincide a patch can be named from itself alone; that is where learning starts.
    ``grid``: cells a side; at most ``grid ** 2`` objects.
    """
    cell = size // grid
    diameter = (cell - 2, cell + 1)[rng.integers(2)]
    image = np.full((size, size, 3), rng.uniform(130, 155), np.float32)
    owner = np.full((size, size), -1, np.int8)
    for k, place in enumerate(rng.permutation(grid * grid)[: len(objects)]):
        body, packed = _kept_body(objects[k], appearances[k], diameter, int(rng.integers(VARIANTS)))
        n = len(body)
        seen = np.unpackbits(packed, count=n * n).reshape(n, n).astype(bool)
        center = (np.array(divmod(int(place), grid)) + 0.5 + rng.uniform(-jitter, jitter, 2)) * cell
        start = np.round(center - n / 2).astype(int)
        low, high = np.maximum(start, 0), np.minimum(start + n, size)
        here = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        there = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, start, strict=True))
        image[here] = image[here] * (1 - body[there][..., 3:] / 255) + body[there][..., :3]
        owner[here][seen[there]] = k
    return np.clip(image + 0.5, 0, 255).astype(np.uint8), owner


@dataclass(frozen=True)
class Format:
    """How a model sees a scene: image side ``size`` and ``patch``, the side of the labelled squares.

    ``min_share``: part of a square that its object must cover at least.
    """

    size: int
    patch: int
    min_share: float = 0.35


def aligned_batch(
    vocabulary: Vocabulary,
    view: Format,
    batch_size: int,
    n_objects: int,
    grid: int,
    jitter: float,
    key: tuple[int, ...],
) -> "Scenes":
    """A batch of aligned scenes of ``n_objects`` each."""
    images, pairs, patches = [], [], []
    for i in range(batch_size):
        rng = np.random.default_rng((*key, i))
        chosen = sample_pairs(vocabulary, n_objects, rng)
        looks = [_few_looks(vocabulary, a)[rng.integers(ALIGNED_LOOKS)] for a, _ in chosen]
        names = [vocabulary.objects[o].name for _, o in chosen]
        image, owner = aligned_scene(names, looks, jitter, rng, view.size, grid)
        images.append(image)
        pairs.append(chosen)
        patches.append(patch_owners(owner, view))
    return Scenes(np.stack(images), np.array(pairs), np.stack(patches))


@dataclass(frozen=True)
class Scenes:
    """Scenes of one object count: ``images`` (n, size, size, 3) uint8, ``pairs`` (n, n_objects, 2) of indices
    (attribute, object), ``patches`` (n, n_patches) the index within the pairs that covers each patch, or -1.
    """

    images: np.ndarray
    pairs: np.ndarray
    patches: np.ndarray

    def take(self, rows: np.ndarray) -> "Scenes":
        """The scenes of these rows."""
        return Scenes(self.images[rows], self.pairs[rows], self.patches[rows])

    def labels(self, which: int) -> np.ndarray:
        """Vocabulary index that covers each patch, or -1, as the patches; which: 0 attribute, 1 object."""
        names = np.take_along_axis(self.pairs[..., which], np.maximum(self.patches, 0), 1)
        return np.where(self.patches >= 0, names, -1)


def render_scenes(
    vocabulary: Vocabulary,
    view: Format,
    n_objects: int,
    key: tuple[int, ...],
    rows: range,
    allow_held_out: bool = False,
    views: int = 1,
) -> Scenes:
    """Random scenes of the benchmark's own renderer; scene ``i`` depends on ``(*key, n_objects, i)``.

    With ``views`` > 1 each scene is rendered so many times, places and sizes drawn anew, one after another.
    """
    images, pairs, patches = [], [], []
    for i in rows:
        rng = np.random.default_rng((*key, n_objects, i))
        chosen = sample_pairs(vocabulary, n_objects, rng, allow_held_out=allow_held_out)
        looks = [instantiate(vocabulary.attributes[a], vocabulary.palette, rng) for a, _ in chosen]
        names = [vocabulary.objects[o].name for _, o in chosen]
        for seed in [(*key, n_objects, i), *((*key, n_objects, i, k) for k in range(1, views))]:
            flipped = bool(rng.random() < 0.5)
            image, owner = render_scene(names, looks, seed, view.size, flipped, return_owner=True)
            images.append(image)
            pairs.append(chosen)
            patches.append(patch_owners(owner, view))
    return Scenes(np.stack(images), np.array(pairs), np.stack(patches))


def make_pool(
    vocabulary: Vocabulary,
    view: Format,
    folder: Path,
    *,
    scenes_per_count: int,
    key: tuple[int, ...],
    object_counts: Sequence[int] = range(1, 11),
    allow_held_out: bool = False,
    workers: int = 2,
) -> dict[int, Scenes]:
    """Render scenes per object count once and keep them in ``folder``; existing ones are taken up.

    The renderer's fingerprint is part of the files' names: another renderer, other scenes.
    """
    parts, renderer = ("images", "pairs", "patches"), SpritesBackend().fingerprint[:12]
    stems = {n: "-".join(map(str, (*key, n, scenes_per_count, renderer))) for n in object_counts}
    paths = {n: [folder / f"{part}-{stem}.npy" for part in parts] for n, stem in stems.items()}
    missing = [n for n in object_counts if not all(path.exists() for path in paths[n])]
    if missing:
        # forked, since a fresh worker would import torch and dress every object again for each object count
        with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as executor:
            starts = range(0, scenes_per_count, CHUNK)
            rows = [range(s, min(s + CHUNK, scenes_per_count)) for s in starts]
            jobs = {
                n: [executor.submit(render_scenes, vocabulary, view, n, key, r, allow_held_out) for r in rows]
                for n in missing
            }
            for n, futures in jobs.items():
                done = [f.result() for f in futures]
                for part, path in zip(parts, paths[n], strict=True):
                    files.write_with(path, partial(_save, np.concatenate([getattr(d, part) for d in done])))
                print(f"rendered {scenes_per_count} scenes of {n} objects", flush=True)
    return {n: Scenes(*(np.load(path, mmap_mode="r") for path in paths[n])) for n in object_counts}


def _save(array: np.ndarray, path: Path) -> None:
    with open(path, "wb") as file:
        np.save(file, array)
