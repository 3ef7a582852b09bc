"""Scenes of dressed objects on neutral grey ground: ``render_scene(["teapot"], ["golden"], seed=1)``.

What section A.4 asks of the image model holds here by construction: the objects are scattered and clearly
separated, each appears exactly once, and an attribute touches its own object only (shadows and halos lie on
the ground, below every body).
"""

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from saber.images.cutout import Cutout, cutout
from saber.images.layout import MOST_OBJECTS, place
from saber.images.shading import FINISHES, Dressed
from saber.images.textures import color, draw, known_appearances, parse

SHIFTS = 3  # nuisance variation: where an object's texture is cut from its drawing, so many places each way
VARIANTS = SHIFTS**2
MIDDLE = VARIANTS // 2
SHIFT = 0.07  # from one place to the next, as a part of the texture's side
GROUNDS = 6
SMALLEST = 96


def render_scene(
    objects: Sequence[str],
    appearances: Sequence[str],
    seed: int | Sequence[int],
    size: int = 192,
    flipped: bool = False,
    return_owner: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Render one scene: uint8 (size, size, 3).

    objects: 1 to 10 names of the vocabulary. appearances: generation form of each, such as "white and orange
    striped". seed: fixes places, sizes and nuisance variation. size: side in pixels, at least 96.
    flipped: mirror the whole image. return_owner: also return int8 (size, size), the index of the object at
    each pixel, -1 for the ground.
    Raises ValueError for unknown names, unequal lengths or a size that is too small.
    """
    _check(objects, appearances, size)
    rng = np.random.default_rng(seed)
    image = _ground(size, int(rng.integers(GROUNDS))).copy()
    owner = np.full((size, size), -1, np.int8)
    centers, diameters = place(len(objects), size, rng)
    variants = rng.integers(VARIANTS, size=len(objects))
    placed = []
    for k, (name, form) in enumerate(zip(objects, appearances, strict=True)):
        c = cutout(name, int(diameters[k]))
        placed.append((c, dress(c, form, int(variants[k])), *_windows(centers[k], c.n, size)))
    _stamp(image, owner, placed)
    picture = _picture(image)
    if flipped:
        picture, owner = (np.ascontiguousarray(x[:, ::-1]) for x in (picture, owner))
    return (picture, owner) if return_owner else picture


def render_object(name: str, appearance: str, diameter: int = 96, variant: int = MIDDLE) -> np.ndarray:
    """One object in one appearance, alone on the ground: uint8 (n, n, 3), n a third above the diameter."""
    c = cutout(name, diameter)
    image = _ground(c.n, 0).copy()
    everywhere = (slice(0, c.n), slice(0, c.n))
    owner = np.full((c.n, c.n), -1, np.int8)
    _stamp(image, owner, [(c, dress(c, appearance, variant), everywhere, everywhere)])
    return _picture(image)


def _picture(image: np.ndarray) -> np.ndarray:
    """Planes (3, size, size) in 0..1, overwritten, to uint8 (size, size, 3)."""
    image *= 255
    image += 0.5
    np.clip(image, 0, 255, out=image)
    out = np.empty((*image.shape[1:], 3), np.uint8)
    for k in range(3):  # four times as fast as a transposed copy
        out[..., k] = image[k]
    return out


def _stamp(image: np.ndarray, owner: np.ndarray, placed: Sequence[tuple]) -> None:
    """Put objects on the ground, in place: all shadows first, then all halos, then the bodies.

    placed: (cutout, dressed body, window of the image, window of the cutout) of each object.
    """
    for c, body, here, there in placed:
        if body.cast:
            image[:, *here] *= 1 - body.cast * c.shadow[there]
    for c, body, here, there in placed:
        if body.halo is not None:
            image[:, *here] += c.halo[there] * (body.halo - image[:, *here])
    for k, (c, body, here, there) in enumerate(placed):
        part = image[:, *here]
        part *= 1 - body.alpha[there]
        part += body.color[:, *there]
        owner[here][c.alpha[there] > 0.5] = k


def dress(c: Cutout, appearance: str, variant: int = MIDDLE) -> Dressed:
    """One cutout in one appearance, drawn in one of the VARIANTS nuisance variants."""
    look = parse(appearance)
    step = round(SHIFT * c.n)
    top, left = (step * k for k in divmod(variant, SHIFTS))
    drawing = _drawing(look.key, c.n)[..., top : top + c.n, left : left + c.n]
    return FINISHES[look.finish](c, color(look, drawing))


@lru_cache(maxsize=512)
def _drawing(key: str, n: int) -> np.ndarray:
    """Drawing shared by all colors of an attribute, larger than n by the shifts of all variants."""
    look = next(a for a in known_appearances().values() if a.key == key)
    margin = round(SHIFT * n) * (SHIFTS - 1) // 2
    return draw(look, n, np.random.default_rng(zlib.crc32(look.attribute.encode())), margin)


@lru_cache(maxsize=4 * GROUNDS)
def _ground(size: int, which: int) -> np.ndarray:
    """Neutral grey floor, planes (3, size, size) in 0..1: brighter to one side, darker to the corners."""
    rng = np.random.default_rng([11, which])
    line = np.linspace(-1, 1, size, dtype=np.float32)
    x, y = np.meshgrid(line, line)
    angle = rng.uniform(0, 2 * np.pi)
    level = rng.uniform(140, 152)
    grey = level + 7 * (x * np.cos(angle) + 0.6 * y) - 9 * (x * x + y * y) / 2
    return np.repeat(grey[None] / 255, 3, 0).astype(np.float32)


def _windows(center: np.ndarray, n: int, size: int) -> tuple[tuple, tuple]:
    """Slices of the image and of the cutout where an (n, n) cutout centered there meets the image."""
    here, there = [], []
    for c in center[::-1]:
        start = round(float(c) - n / 2)
        a, b = max(start, 0), min(start + n, size)
        here.append(slice(a, b))
        there.append(slice(a - start, b - start))
    return tuple(here), tuple(there)


def _check(objects: Sequence[str], appearances: Sequence[str], size: int) -> None:
    if len(objects) != len(appearances):
        raise ValueError(
            f"{len(objects)} objects but {len(appearances)} appearances; give one for each object"
        )
    if not 1 <= len(objects) <= MOST_OBJECTS:
        raise ValueError(f"a scene holds 1 to {MOST_OBJECTS} objects, not {len(objects)}")
    if len(set(objects)) != len(objects):
        raise ValueError(f"each object appears exactly once in a scene; given: {', '.join(objects)}")
    if size < SMALLEST:
        raise ValueError(f"size must be at least {SMALLEST} pixels, not {size}")
