"""A very small renderer of solids: signed distance functions, marched and softly lit.

`drawn_sprites` uses it for the few objects no emoji exists for. A shape is a function from points `(n, 3)`
to signed distances `(n,)` (negative inside, in scene units); a part is a shape with the brightness of its
surface. The view is orthographic along -z, x to the right and y up; [-1, 1] fills the picture. Only sums,
products, square roots and comparisons are used, one at a time and never by BLAS, so that the same picture
comes out of every machine.

Formulas of the primitives: https://iquilezles.org/articles/distfunctions/
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Shape = Callable[[np.ndarray], np.ndarray]

KEY_LIGHT = np.array([-0.44, 0.72, 0.54])  # where the light comes from: left, above, in front
HALFWAY = np.array([-0.25, 0.41, 0.88])  # between it and the eye
COARSE = 6  # pixels across a cell of the first, coarse pass
NEAR, FAR = 1.3, -1.3


@dataclass(frozen=True)
class Part:
    """A shape and the brightness of its surface, 0 (black) to 1 (white)."""

    shape: Shape
    brightness: float = 0.8


def dot(v: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Products of rows `(n, k)` with one vector or as many rows: `(n,)`."""
    w = np.asarray(w)
    return sum(v[..., k] * w[..., k] for k in range(v.shape[-1]))


def length(v: np.ndarray) -> np.ndarray:
    return np.sqrt(dot(v, v))


def sphere(centre: Sequence[float], radius: float) -> Shape:
    return lambda p: length(p - centre) - radius


def ellipsoid(centre: Sequence[float], radii: Sequence[float]) -> Shape:
    """The usual bound, not an exact distance: marching takes shorter steps because of it."""
    radii = np.asarray(radii, dtype=float)

    def shape(p: np.ndarray) -> np.ndarray:
        q = p - centre
        near, slope = length(q / radii), length(q / radii**2)
        return near * (near - 1) / np.maximum(slope, 1e-9)

    return shape


def box(centre: Sequence[float], half: Sequence[float], rounding: float = 0.0) -> Shape:
    """Box of the given half sizes, its edges rounded inwards by `rounding`."""

    def shape(p: np.ndarray) -> np.ndarray:
        q = np.abs(p - centre) - (np.asarray(half) - rounding)
        return length(np.maximum(q, 0)) + np.minimum(q.max(axis=-1), 0) - rounding

    return shape


def capsule(
    start: Sequence[float], end: Sequence[float], r_start: float, r_end: float | None = None
) -> Shape:
    """Round-ended rod whose radius goes linearly from `r_start` to `r_end`."""
    start, axis = np.asarray(start, dtype=float), np.subtract(end, start)
    r_end = r_start if r_end is None else r_end

    def shape(p: np.ndarray) -> np.ndarray:
        q = p - start
        t = np.clip(dot(q, axis) / dot(axis, axis), 0, 1)
        return length(q - t[:, None] * axis) - (r_start + (r_end - r_start) * t)

    return shape


def cylinder(
    start: Sequence[float],
    end: Sequence[float],
    r_start: float,
    r_end: float | None = None,
    rounding: float = 0.02,
) -> Shape:
    """Flat-ended rod, a cone when the two radii differ; the rims are rounded."""
    start, axis = np.asarray(start, dtype=float), np.subtract(end, start).astype(float)
    span = length(axis)
    axis, r_end = axis / span, r_start if r_end is None else r_end

    def shape(p: np.ndarray) -> np.ndarray:
        q = p - start
        along = dot(q, axis)
        across = length(q - along[:, None] * axis)
        radius = r_start + (r_end - r_start) * np.clip(along / span, 0, 1)
        d = np.stack([across - radius, np.abs(along - span / 2) - span / 2], axis=-1) + rounding
        return length(np.maximum(d, 0)) + np.minimum(d.max(axis=-1), 0) - rounding

    return shape


def torus(centre: Sequence[float], axis: Sequence[float], ring: float, tube: float) -> Shape:
    axis = np.asarray(axis, dtype=float) / length(np.asarray(axis, dtype=float))

    def shape(p: np.ndarray) -> np.ndarray:
        q = p - centre
        along = dot(q, axis)
        across = length(q - along[:, None] * axis)
        return length(np.stack([across - ring, along], axis=-1)) - tube

    return shape


def union(*shapes: Shape) -> Shape:
    return lambda p: np.min([shape(p) for shape in shapes], axis=0)


def without(shape: Shape, hole: Shape) -> Shape:
    return lambda p: np.maximum(shape(p), -hole(p))


def blend(first: Shape, second: Shape, width: float) -> Shape:
    """Union whose seam is smoothed over `width`."""

    def shape(p: np.ndarray) -> np.ndarray:
        a, b = first(p), second(p)
        h = np.maximum(width - np.abs(a - b), 0) / width
        return np.minimum(a, b) - h * h * width / 4

    return shape


def turn(parts: Sequence[Part], axis: str, cosine: float, sine: float) -> list[Part]:
    """The parts turned about the x, y or z axis; the angle is given by its cosine and sine, scaled to fit."""
    c, s = np.array([cosine, sine]) / np.sqrt(cosine * cosine + sine * sine)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]

    def before(p: np.ndarray) -> np.ndarray:
        q = p.copy()
        q[:, i], q[:, j] = c * p[:, i] + s * p[:, j], c * p[:, j] - s * p[:, i]
        return q

    return [Part(lambda p, shape=part.shape: shape(before(p)), part.brightness) for part in parts]


def render(parts: Sequence[Part], size: int = 360, half_width: float = 1.1) -> np.ndarray:
    """The parts seen along -z under a soft light from the upper left: uint8 (size, size, 4), grey RGBA.

    `half_width` is what half the picture spans in scene units. `size` is a multiple of `COARSE`. Alpha is 0
    or 255; scaling the picture down smooths it.
    """
    if size % COARSE:
        raise ValueError(f"size is {size}; it must be a multiple of {COARSE}")
    nearest = union(*[part.shape for part in parts])
    # A ray amid a cell that keeps clear of everything by the cell's radius speaks for the whole cell.
    radius = 1.5 * COARSE * half_width / size
    coarse = _march(_rays(size // COARSE, half_width, NEAR), nearest, 1.1 * radius)
    start = np.where(coarse > FAR, coarse + radius, FAR).reshape(size // COARSE, size // COARSE)
    points = _rays(size, half_width, start.repeat(COARSE, axis=0).repeat(COARSE, axis=1).ravel())
    points[:, 2] = _march(points, nearest, 1e-3)
    hit = points[:, 2] > FAR
    picture = np.zeros((size * size, 4), dtype=np.uint8)
    picture[hit, :3] = np.round(255 * _light(points[hit], parts, nearest))[:, None]
    picture[hit, 3] = 255
    return picture.reshape(size, size, 4)


def _rays(size: int, half_width: float, depth: float | np.ndarray) -> np.ndarray:
    axis = (np.arange(size) + 0.5) / size * 2 * half_width - half_width
    x, y = np.meshgrid(axis, -axis)
    return np.stack([x.ravel(), y.ravel(), np.broadcast_to(depth, size * size)], axis=-1)


def _march(points: np.ndarray, nearest: Shape, threshold: float, steps: int = 120) -> np.ndarray:
    """Depth at which each ray along -z comes as near as `threshold` to a part, FAR where none does."""
    points, depth = points.copy(), np.full(len(points), FAR)
    active = np.flatnonzero(points[:, 2] > FAR)
    for _ in range(steps):
        distance = nearest(points[active])
        arrived = distance < threshold
        depth[active[arrived]] = points[active[arrived], 2]
        # Bent and blended shapes overstate the distance a little.
        points[active, 2] -= 0.8 * distance
        active = active[~arrived & (points[active, 2] > FAR)]
        if not active.size:
            break
    return depth


def _light(surface: np.ndarray, parts: Sequence[Part], nearest: Shape) -> np.ndarray:
    corners = np.array([[1, -1, -1], [-1, -1, 1], [-1, 1, -1], [1, 1, 1]], dtype=float)
    normal = sum(corner * nearest(surface + 2e-3 * corner)[:, None] for corner in corners)
    normal /= np.maximum(length(normal), 1e-9)[:, None]
    owner = np.argmin([part.shape(surface) for part in parts], axis=0)
    brightness = np.array([part.brightness for part in parts])[owner]
    facing = (0.5 + 0.5 * dot(normal, KEY_LIGHT)) ** 2
    # Places with other parts close in front of them see less of the sky.
    open_sky = np.ones(len(surface))
    for reach in (0.04, 0.1, 0.2):
        open_sky -= 0.35 * np.clip(1 - nearest(surface + reach * normal) / reach, 0, 1)
    glint = np.clip(dot(normal, HALFWAY), 0, 1)
    for _ in range(5):
        glint = glint * glint
    edge = np.clip(1 - normal[:, 2], 0, 1) ** 2
    shade = brightness * (0.28 + 0.8 * facing + 0.12 * edge) * np.clip(open_sky, 0.3, 1) + 0.22 * glint
    return np.clip(shade, 0, 1)
