"""The square on which a texture is drawn, and the few tools all textures share: noise, cells, color ramps.

Colors are float arrays in 0..1 throughout. Textures are drawn at twice the wanted resolution and averaged
down, so that hard edges come out smooth.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image
from scipy.spatial import cKDTree

OVERSAMPLE = 2


@dataclass(frozen=True)
class Plane:
    """Coordinates of one texture.

    u, v: (n, n), to the right and down, 0..1 over ``size`` final pixels and a little beyond where the plane
    has a margin. n: side in drawn pixels. rng: generator of phases and of the positions of spots.
    """

    u: np.ndarray
    v: np.ndarray
    n: int
    size: int
    rng: np.random.Generator

    def count(self, small: float, large: float) -> float:
        """How many periods fit across: ``small`` at 48 pixels and below, ``large`` at 192 and above.

        A sprite of 40 pixels shows a few big features, one of 160 more and finer ones.
        """
        t = np.clip(np.log2(self.size / 48) / 2, 0, 1)
        return float(small * (large / small) ** t)

    def phase(self) -> float:
        """A random offset in 0..1."""
        return float(self.rng.random())


def make_plane(size: int, rng: np.random.Generator, margin: int = 0) -> Plane:
    """The plane of a texture of ``size`` x ``size`` final pixels with ``margin`` more on every side."""
    n = (size + 2 * margin) * OVERSAMPLE
    line = (((np.arange(n) + 0.5) / OVERSAMPLE - margin) / size).astype(np.float32)
    u, v = np.meshgrid(line, line)
    return Plane(u, v, n, size, rng)


def average_down(x: np.ndarray) -> np.ndarray:
    """Mean over OVERSAMPLE x OVERSAMPLE blocks: (n, n, c) -> (n / 2, n / 2, c)."""
    k = OVERSAMPLE
    return x.reshape(x.shape[0] // k, k, x.shape[1] // k, k, -1).mean((1, 3), dtype=np.float32)


def noise(p: Plane, cells_u: float, cells_v: float | None = None) -> np.ndarray:
    """Smooth noise (n, n) of mean 0 and spread about 1, with so many cells over one unit across and down."""
    extent = p.n / (OVERSAMPLE * p.size)
    cu, cv = (max(1, round(extent * k)) for k in (cells_u, cells_v or cells_u))
    grid = p.rng.standard_normal((cv + 4, cu + 4)).astype(np.float32)
    box = (1.5, 1.5, cu + 1.5, cv + 1.5)
    smooth = Image.fromarray(grid).resize((p.n, p.n), Image.Resampling.BICUBIC, box=box)
    return np.asarray(smooth) * 1.5


def ramp(t: np.ndarray, stops: list[tuple[float, tuple]]) -> np.ndarray:
    """Piecewise linear color ramp: ``stops`` are (position, color), ``t`` any shape; returns (..., 3)."""
    at = [s[0] for s in stops]
    colors = np.array([s[1] for s in stops], np.float32)
    return np.stack([np.interp(t, at, colors[:, c]) for c in range(3)], -1).astype(np.float32)


def look_up(table: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Color planes (3, n, n) of a table (m, 3) at index (n, n)."""
    return np.stack([np.take(table[:, k], index) for k in range(3)])


def mix(a: np.ndarray, b: np.ndarray, t: np.ndarray | float) -> np.ndarray:
    """``a`` where t is 0, ``b`` where it is 1; a mask of shape (n, n) gets its color axis."""
    t = np.asarray(t, np.float32)
    t = t[..., None] if t.ndim == 2 else t
    return (np.asarray(a, np.float32) * (1 - t) + np.asarray(b, np.float32) * t).astype(np.float32)


def smoothstep(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below ``low``, 1 above ``high``, smooth between."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def hexcolor(code: str) -> np.ndarray:
    """'f0a020' -> float RGB in 0..1."""
    return np.array([int(code[i : i + 2], 16) for i in (0, 2, 4)], np.float32) / 255


def lighter(color: np.ndarray, amount: float) -> np.ndarray:
    """The color moved towards white."""
    return mix(color, np.ones(3, np.float32), amount)


def darker(color: np.ndarray, amount: float) -> np.ndarray:
    """The color moved towards black."""
    return np.asarray(color, np.float32) * (1 - amount)


@dataclass(frozen=True)
class Cells:
    """Nearest and second nearest point of every pixel: index (n, n), distances (n, n) in units of u."""

    index: np.ndarray
    near: np.ndarray
    second: np.ndarray
    points: np.ndarray


def jittered_points(p: Plane, across: float, jitter: float = 0.35, stagger: bool = True) -> np.ndarray:
    """Points (m, 2) = (u, v) on a staggered grid, moved at random by up to ``jitter`` of its spacing."""
    k = max(2, round(across))
    rows, cols = np.mgrid[-3 : k + 3, -3 : k + 3].astype(np.float32)
    u, v = cols + (0.5 * (rows % 2) if stagger else 0), rows
    u = u + p.phase() + p.rng.uniform(-jitter, jitter, u.shape)
    v = v + p.phase() + p.rng.uniform(-jitter, jitter, v.shape)
    return (np.stack([u.ravel(), v.ravel()], 1) / k).astype(np.float32)


def cells(p: Plane, points: np.ndarray) -> Cells:
    """Voronoi cells of ``points`` on the plane."""
    distance, index = cKDTree(points).query(np.stack([p.u.ravel(), p.v.ravel()], 1), k=2)
    shape = (p.n, p.n)
    d = distance.astype(np.float32)
    return Cells(index[:, 0].reshape(shape), d[:, 0].reshape(shape), d[:, 1].reshape(shape), points)
