"""How far apart any two attributes look, by color and texture statistics.

Every appearance is drawn on the same few objects, in several nuisance variants. Each statistic is measured in
units of its own nuisance variation. Two appearances are as far apart as their mean statistics on one object
(averaged over the objects); the ratio compares that with how far two variants of one appearance lie apart. A
ratio above 1: two attributes differ more than two pictures of the same one do.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
from scipy.ndimage import binary_dilation, gaussian_filter
from scipy.spatial.distance import cdist

from saber.images.cutout import cutout
from saber.images.render import SHIFTS, VARIANTS, render_object
from saber.images.textures import known_appearances

# To Oklab, a color space where equal steps look about equal: https://bottosson.github.io/posts/oklab/
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    np.float32,
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ],
    np.float32,
)

CHUNK = 64  # pictures at a time
CORNERS = (0, SHIFTS - 1, VARIANTS - SHIFTS, VARIANTS - 1)  # the nuisance variants farthest apart


def oklab(rgb: np.ndarray) -> np.ndarray:
    """sRGB uint8 (..., 3) -> Oklab float32 (..., 3): lightness 0 to 1, green-red, blue-yellow."""
    x = np.arange(256) / 255
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4).astype(np.float32)
    return np.cbrt(linear[rgb] @ _TO_CONES.T) @ _TO_LAB.T


def statistics(images: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Color and texture statistics of one object in many pictures: uint8 (m, n, n, 3) -> float (m, 40).

    mask: bool (n, n), where the object is. Per channel of Oklab: mean, spread, skewness, upper minus lower
    and left minus right half, spread in three bands of detail. For lightness and for color: how the
    directions of edges are distributed (second, fourth and sixth harmonic). In a ring around the object: mean
    color, spread of lightness.
    """
    lab = oklab(images)
    inside = lab[:, mask]  # (m, pixels, 3)
    mean = inside.mean(1)
    off = inside - mean[:, None]
    values = [mean, np.sqrt((off**2).mean(1)), np.cbrt((off**3).mean(1))]
    for place in np.nonzero(mask):
        first = place < np.median(place)
        values.append(inside[:, first].mean(1) - inside[:, ~first].mean(1))

    filled = np.where(mask[..., None], lab, mean[:, None, None])  # the outline itself is no texture
    scale = np.sqrt(mask.sum()) / 40
    levels = [filled] + [gaussian_filter(filled, (0, s * scale, s * scale, 0)) for s in (0.7, 1.7, 4)]
    values += [np.sqrt(((a - b)[:, mask] ** 2).mean(1)) for a, b in pairwise(levels)]

    gy, gx = np.gradient(levels[1], axis=(1, 2))
    for channels in (slice(0, 1), slice(1, 3)):  # lightness, where light and shade are seen too; color
        edge = (gx + 1j * gy)[:, mask, channels]
        strength = np.abs(edge) + 1e-12
        twice = (edge / strength) ** 2  # an edge has no sign: angle and angle + 180 degrees are one
        weight = strength**2 / (strength**2).sum((1, 2), keepdims=True)
        for k in (1, 2, 3):
            harmonic = (weight * twice**k).sum((1, 2))
            values += [harmonic.real[:, None], harmonic.imag[:, None]]

    near = binary_dilation(mask, iterations=1)
    ring = binary_dilation(near, iterations=max(1, round(3 * scale))) & ~near
    around = lab[:, ring]
    values += [around.mean(1), around[..., :1].std(1)]
    return np.concatenate(values, axis=1)


def measure(
    objects: Sequence[str],
    diameter: int = 44,
    variants: Sequence[int] = CORNERS,
    attributes: Sequence[str] | None = None,
) -> tuple[list[str], np.ndarray]:
    """Statistics of every appearance on every object: forms, and array (form, object, variant, statistic).

    diameter: size of an object in pixels. variants: nuisance variants drawn. attributes: leave out all
    others; None takes the whole vocabulary.
    """
    wanted = None if attributes is None else set(attributes)
    forms = [f for f, a in known_appearances().items() if wanted is None or a.attribute in wanted]
    values = []
    for name in objects:
        mask = cutout(name, diameter).alpha > 0.5
        for v in variants:
            images = np.stack([render_object(name, form, diameter, v) for form in forms])
            parts = [statistics(images[i : i + CHUNK], mask) for i in range(0, len(images), CHUNK)]
            values.append(np.concatenate(parts))
    table = np.array(values, float).reshape(len(objects), len(variants), len(forms), -1)
    return forms, table.transpose(2, 0, 1, 3)


def nearest_pairs(forms: Sequence[str], values: np.ndarray) -> pd.DataFrame:
    """Every pair of attributes with the two appearances in which they look most alike, nearest first.

    forms, values: what ``measure`` returns. Columns: attribute, other, appearance, other_appearance, between,
    within (the larger one of the two, at least the vocabulary's median), ratio = between / within.
    """
    x = values / _nuisance(values)
    within = _spread(x)
    means = x.mean(2)
    between = np.zeros((len(forms), len(forms)))
    for k in range(means.shape[1]):
        between += cdist(means[:, k], means[:, k]) / means.shape[1]
    names, members = _by_attribute(forms)
    least = float(np.median([within[m].mean() for m in members]))
    rows = []
    for i, mine in enumerate(members):
        for j in range(i + 1, len(members)):
            other = members[j]
            larger = np.maximum(np.maximum.outer(within[mine], within[other]), least)
            ratio = between[np.ix_(mine, other)] / larger
            a, b = np.unravel_index(ratio.argmin(), ratio.shape)
            d = between[mine[a], other[b]]
            rows.append((names[i], names[j], forms[mine[a]], forms[other[b]], d, larger[a, b], ratio[a, b]))
    columns = ["attribute", "other", "appearance", "other_appearance", "between", "within", "ratio"]
    return pd.DataFrame(rows, columns=columns).sort_values("ratio", ignore_index=True)


def confusions(forms: Sequence[str], values: np.ndarray) -> pd.DataFrame:
    """Pictures whose nearest other picture, of the same object in other variants, shows another attribute.

    forms, values: what ``measure`` returns, at least two variants. Columns: appearance, taken_for, times.
    """
    _, members = _by_attribute(forms)
    owner = np.zeros(len(forms), int)
    for i, m in enumerate(members):
        owner[m] = i
    x = values / _nuisance(values)
    n_variants = x.shape[2]
    found = []
    for k in range(x.shape[1]):
        for v in range(n_variants):
            rest = np.delete(x[:, k], v, axis=1).reshape(-1, x.shape[-1])
            nearest = cdist(x[:, k, v], rest).argmin(1) // (n_variants - 1)
            found += [(forms[i], forms[nearest[i]]) for i in np.nonzero(owner[nearest] != owner)[0]]
    table = pd.DataFrame(found, columns=["appearance", "taken_for"])
    return table.value_counts(sort=True).rename("times").reset_index()


def _nuisance(values: np.ndarray) -> np.ndarray:
    """Spread of each statistic over the variants of one appearance on one object."""
    return (values - values.mean(2, keepdims=True)).std((0, 1, 2)) + 1e-9


def _spread(x: np.ndarray) -> np.ndarray:
    """Mean distance of two variants of an appearance on one object: (forms,)."""
    pairs = combinations(range(x.shape[2]), 2)
    return np.mean([np.linalg.norm(x[:, :, a] - x[:, :, b], axis=-1).mean(1) for a, b in pairs], axis=0)


def _by_attribute(forms: Sequence[str]) -> tuple[list[str], list[np.ndarray]]:
    owners = np.array([known_appearances()[f].attribute for f in forms])
    names = list(dict.fromkeys(owners.tolist()))
    return names, [np.nonzero(owners == name)[0] for name in names]
