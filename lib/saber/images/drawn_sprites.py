"""The objects that no emoji exists for, modelled by hand from simple solids (see `solids`).

Each is a list of parts built lying in the picture plane and then turned into view.
"""

from collections.abc import Callable

import numpy as np
from PIL import Image

from saber.images.solids import (
    Part,
    Shape,
    blend,
    box,
    capsule,
    cylinder,
    ellipsoid,
    length,
    render,
    sphere,
    torus,
    turn,
    union,
    without,
)


def draw(name: str) -> Image.Image:
    """One drawn object as an RGBA image of 360 x 360 px, grey on a transparent ground.

    Raises KeyError with the valid names for a name that is not drawn.
    """
    if name not in DRAWN:
        raise KeyError(f"no drawing called {name!r}; drawn objects: {', '.join(sorted(DRAWN))}")
    return Image.fromarray(render(DRAWN[name]()))


def _cube() -> list[Part]:
    parts = [Part(box((0, 0, 0), (0.6, 0.6, 0.6), 0.05), 0.85)]
    return turn(turn(parts, "y", 0.78, -0.62), "x", 0.85, 0.52)


def _cannon() -> list[Part]:
    tail, mouth = np.array([-0.62, -0.02, 0.0]), np.array([0.92, 0.5, 0.0])
    along = (mouth - tail) / length(mouth - tail)

    def at(t: float) -> np.ndarray:
        return tail + t * (mouth - tail)

    barrel = union(
        capsule(at(0.04), at(0.1), 0.27),
        cylinder(at(0.05), at(0.97), 0.27, 0.18),
        cylinder(at(0.12), at(0.18), 0.305),
        cylinder(at(0.5), at(0.56), 0.255),
        cylinder(at(0.9), mouth, 0.245, rounding=0.04),
        capsule(at(-0.13), at(-0.12), 0.09),
    )
    barrel = without(barrel, cylinder(at(0.8), mouth + 0.1 * along, 0.125))
    carriage = union(
        box((-0.62, -0.4, -0.02), (0.42, 0.1, 0.13), 0.03),
        box((-0.2, -0.28, -0.02), (0.3, 0.16, 0.13), 0.03),
    )
    hub, half_hub = np.array([-0.02, -0.4, 0.36]), np.array([0, 0, 0.1])
    spokes = [capsule(hub, hub + 0.36 * np.array([x, y, 0]), 0.035) for x, y in _directions(8)]
    wheel = union(torus(hub, (0, 0, 1), 0.4, 0.075), *spokes, cylinder(hub - half_hub, hub + half_hub, 0.1))
    parts = [Part(barrel, 0.62), Part(carriage, 0.5), Part(wheel, 0.95)]
    return turn(turn(parts, "y", 0.9, -0.42), "x", 0.97, 0.2)


def _directions(count: int) -> list[tuple[float, float]]:
    """Unit vectors evenly around the circle; exact half-angle steps, no trigonometric function."""
    vectors = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]
    while len(vectors) < count:
        halves = []
        for (ax, ay), (bx, by) in zip(vectors, vectors[1:] + vectors[:1], strict=True):
            norm = np.sqrt((ax + bx) ** 2 + (ay + by) ** 2)
            halves += [(ax, ay), ((ax + bx) / norm, (ay + by) / norm)]
        vectors = halves
    return vectors


def _submarine() -> list[Part]:
    hull = blend(
        ellipsoid((0.02, -0.2, 0), (0.86, 0.36, 0.36)), capsule((-0.3, -0.2, 0), (0.45, -0.2, 0), 0.33), 0.1
    )
    hull = blend(hull, cylinder((-0.98, -0.2, 0), (-0.6, -0.2, 0), 0.1, 0.22), 0.2)
    tower = blend(hull, box((0.12, 0.2, 0), (0.27, 0.24, 0.15), 0.1), 0.08)
    deck = box((0.12, 0.43, 0), (0.3, 0.045, 0.18), 0.04)
    periscope = union(
        capsule((0.1, 0.4, 0), (0.1, 0.82, 0), 0.05),
        capsule((0.1, 0.82, 0), (0.3, 0.82, 0), 0.055),
        cylinder((0.28, 0.82, 0), (0.38, 0.82, 0), 0.08),
    )
    fins = union(
        box((-0.8, 0.06, 0), (0.1, 0.24, 0.035), 0.03),
        box((-0.8, -0.46, 0), (0.1, 0.24, 0.035), 0.03),
        box((-0.42, -0.3, 0.3), (0.14, 0.03, 0.16), 0.03),
    )
    blades = [
        ellipsoid((-1.0, -0.2 + 0.19 * y, 0.19 * x), (0.045, 0.06 + 0.13 * y * y, 0.06 + 0.13 * x * x))
        for x, y in [(1, 0), (-1, 0), (0, 1), (0, -1)]
    ]
    propeller = union(*blades, sphere((-1.0, -0.2, 0.0), 0.09))
    rims = union(*[torus((x, -0.12, 0.34), (0, 0.2, 1), 0.1, 0.035) for x in (-0.3, 0.1, 0.5)])
    panes = union(*[ellipsoid((x, -0.12, 0.33), (0.1, 0.1, 0.04)) for x in (-0.3, 0.1, 0.5)])
    parts = [
        Part(tower, 0.85),
        Part(deck, 0.95),
        Part(periscope, 0.6),
        Part(fins, 0.7),
        Part(propeller, 0.6),
        Part(rims, 1.0),
        Part(panes, 0.3),
    ]
    return turn(turn(parts, "y", 0.9, -0.4), "x", 0.97, 0.2)


def _snowboard() -> list[Part]:
    board = _board(0.98, 0.25, 0.035)
    edge = _board(1.0, 0.27, 0.02)
    bindings, straps = [], []
    for x in (-0.36, 0.36):
        bindings.append(box((x, 0, 0.06), (0.1, 0.2, 0.035), 0.03))
        bindings.append(
            without(
                cylinder((x, -0.13, 0.05), (x, -0.13, 0.3), 0.13, 0.11),
                cylinder((x, -0.1, 0.0), (x, -0.1, 0.5), 0.09),
            )
        )
        straps.append(
            without(
                cylinder((x, 0.06, 0.08), (x, 0.13, 0.1), 0.14), cylinder((x, 0.0, 0.08), (x, 0.2, 0.1), 0.1)
            )
        )
    parts = [Part(board, 0.9), Part(edge, 0.45), Part(union(*bindings), 0.4), Part(union(*straps), 0.65)]
    parts = turn(turn(parts, "x", 0.85, -0.55), "z", 0.72, 0.69)
    return parts


def _board(half_length: float, half_width: float, thickness: float) -> Shape:
    """A flat plate in the x-y plane with round ends that bend up (+z), and a slight waist."""

    def shape(p: np.ndarray) -> np.ndarray:
        x, y, z = p.T
        z = z - 0.9 * np.maximum(np.abs(x) - 0.62, 0) ** 2
        width = half_width * (0.86 + 0.14 * np.minimum(x * x / 0.4, 1))
        outside = np.sqrt(np.maximum(np.abs(x) - (half_length - half_width), 0) ** 2 + y * y) - width
        d = np.stack([outside, np.abs(z) - thickness], axis=-1) + 0.02
        return 0.8 * (length(np.maximum(d, 0)) + np.minimum(d.max(axis=-1), 0) - 0.02)

    return shape


def _kayak() -> list[Part]:
    def hull(p: np.ndarray) -> np.ndarray:
        x, y, z = p.T
        z = z - 0.16 * x * x  # bow and stern rise
        side = np.sqrt(x * x + (np.abs(y) + 1.35) ** 2) - 1.67  # two arcs meet in a point at each end
        d = np.stack([side, np.abs(z + 0.02) - 0.15], axis=-1) + 0.1
        body = length(np.maximum(d, 0)) + np.minimum(d.max(axis=-1), 0) - 0.1
        return 0.8 * np.maximum(body, -cockpit(np.stack([x, y, z], axis=-1)))

    cockpit = ellipsoid((-0.02, 0, 0.16), (0.34, 0.2, 0.24))
    rim = _oval((-0.02, 0, 0.14), 0.34, 0.2, 0.035)
    seat = ellipsoid((-0.16, 0, 0.0), (0.13, 0.13, 0.07))
    lines = union(*[_oval((x, 0, 0.14 + 0.16 * x * x), 0.1, 0.09, 0.02) for x in (-0.62, 0.6)])
    a, b = np.array([0.14, -0.42, 0.34]), np.array([0.38, 0.5, 0.34])
    step = (b - a) / length(b - a)
    shaft = capsule(a, b, 0.035)
    blades = [ellipsoid(end, (0.12, 0.22, 0.05)) for end in (a - 0.12 * step, b + 0.12 * step)]
    parts = [
        Part(hull, 0.85),
        Part(rim, 0.4),
        Part(seat, 0.3),
        Part(lines, 0.45),
        Part(union(shaft, *blades), 1.0),
    ]
    return turn(turn(turn(parts, "z", 0.97, 0.1), "x", 0.78, -0.62), "z", 0.88, 0.42)


def _oval(centre: tuple[float, float, float], rx: float, ry: float, tube: float) -> Shape:
    """A ring in the x-y plane, longer in x than in y."""

    def shape(p: np.ndarray) -> np.ndarray:
        q = (p - centre) * [ry / rx, 1, 1]
        across = np.sqrt(q[:, 0] ** 2 + q[:, 1] ** 2)
        return np.sqrt((across - ry) ** 2 + q[:, 2] ** 2) - tube

    return shape


DRAWN: dict[str, Callable[[], list[Part]]] = {
    "cannon": _cannon,
    "cube": _cube,
    "kayak": _kayak,
    "snowboard": _snowboard,
    "submarine": _submarine,
}
