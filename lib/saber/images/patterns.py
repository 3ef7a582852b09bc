"""Painters of the plain colors and of the pattern attributes.

A painter takes the plane and its fixed colors and returns (n, n, 3) in 0..1. A painter of an attribute with
color slots knows no color: it returns a tone (n, n) in 0..1, which ``textures`` looks up in a ramp made of
the colors, so that one drawing serves all 72 pairs. Painters draw the flat texture; light is for ``shading``.
"""

import numpy as np

from saber.images.plane import (
    Plane,
    cells,
    darker,
    hexcolor,
    jittered_points,
    mix,
    noise,
    ramp,
    smoothstep,
)

TAU = 2 * np.pi


def flat(p: Plane, color: np.ndarray) -> np.ndarray:
    """One color all over."""
    return np.broadcast_to(np.asarray(color, np.float32), (p.n, p.n, 3)).copy()


def even(p: Plane) -> np.ndarray:
    """One tone all over, for one color slot."""
    return np.zeros((p.n, p.n), np.float32)


def striped(p: Plane) -> np.ndarray:
    """Straight diagonal bands of equal width."""
    k = p.count(4.5, 6.5)
    return (k * (p.u + 0.75 * p.v) + p.phase()) % 1 > 0.5


def polka_dot(p: Plane) -> np.ndarray:
    """Round dots of color 2 on color 1, in staggered rows."""
    k = p.count(4, 6.5)
    y = k * p.v * 1.15 + p.phase()
    x = k * p.u + 0.5 * (np.floor(y) % 2) + p.phase()
    return np.hypot(x % 1 - 0.5, (y % 1 - 0.5) / 1.15) < 0.32


def checkered(p: Plane) -> np.ndarray:
    """Upright squares in alternation."""
    k = p.count(6, 9)
    return (np.floor(k * p.u + p.phase()) + np.floor(k * p.v + p.phase())) % 2


def zigzag(p: Plane) -> np.ndarray:
    """Horizontal chevron bands."""
    k = p.count(4.2, 6)
    teeth = np.abs((k * 0.8 * p.u + p.phase()) % 1 - 0.5) * 1.9
    return (k * p.v + teeth + p.phase()) % 1 > 0.5


def two_tone(p: Plane) -> np.ndarray:
    """Color 1 on the left half, color 2 on the right, a sharp edge between them."""
    return p.u + 0.12 * (p.v - 0.5) + 0.05 * (p.phase() - 0.5) > 0.5


def ombre(p: Plane) -> np.ndarray:
    """Color 1 above melts into color 2 below."""
    return smoothstep(p.v + 0.02 * (p.phase() - 0.5), 0.24, 0.76)


def camouflage(p: Plane) -> np.ndarray:
    """Woodland: patches of olive, khaki, dark brown and near black."""
    out = flat(p, hexcolor("6f7a3c"))
    k = p.count(6.5, 9)
    for color, level in (("b3a671", 0.45), ("4a3723", 0.6), ("23281b", 0.85)):
        out = mix(out, hexcolor(color), smoothstep(noise(p, k * 1.2, k), level, level + 0.06))
    return out


def tie_dye(p: Plane) -> np.ndarray:
    """Bright dye in a spiral, bleached between the arms."""
    x, y = p.u - 0.5 + 0.025 * noise(p, 7), p.v - 0.5 + 0.025 * noise(p, 7)
    r = np.hypot(x, y)
    turns = np.arctan2(y, x) / TAU + 1.1 * r + p.phase()
    dye = ["e3239d", "ff7a1a", "ffe02e", "2fc25b", "1fb6e8", "6a35d6", "e3239d"]
    out = ramp(turns % 1, [(i / 6, hexcolor(c)) for i, c in enumerate(dye)])
    bleach = smoothstep(np.sin(TAU * (turns * 6 + 0.15 * noise(p, 9))), 0.35, 1)
    return mix(out, np.ones(3), 0.9 * bleach)


def zebra(p: Plane) -> np.ndarray:
    """Black on white, wavering bands that fork and end."""
    k = p.count(6, 7)
    wave = k * (p.v + 0.25 * np.abs(p.u - 0.5)) + 0.42 * noise(p, 4, 3) + p.phase()
    band = np.sin(TAU * wave) + 0.35 * noise(p, 7)
    return mix(hexcolor("f8f0dc"), hexcolor("1f1612"), smoothstep(band, -0.12, 0.12))


def leopard(p: Plane) -> np.ndarray:
    """Broken dark rosettes with a brown heart, on tawny."""
    c = cells(p, jittered_points(p, p.count(4.5, 7), 0.22))
    k = p.count(4.5, 7)
    d = c.near * k + 0.05 * noise(p, 3 * k)
    broken = noise(p, 2.2 * k) > -0.9
    out = mix(hexcolor("e0ab5c"), hexcolor("a8672a"), smoothstep(-d, -0.25, -0.2))
    return mix(out, hexcolor("1c130d"), (np.abs(d - 0.3) < 0.105) & broken)


def rainbow(p: Plane) -> np.ndarray:
    """The six bands of a rainbow flag, each a little arched, in their order from above."""
    bow = p.v + 0.18 * (2 * p.u - 1) ** 2 + 0.02 * (p.phase() - 0.5)
    colors = np.stack([hexcolor(c) for c in ("e81f27", "ff8c1a", "ffe21f", "22a745", "2456d6", "8a2bc2")])
    return colors[np.clip(np.floor((bow - 0.1) / 0.83 * 6), 0, 5).astype(int)]


def plaid(p: Plane, ground: np.ndarray, band: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Tartan: broad half-transparent bands both ways, a thin light line between them."""
    k = p.count(3.2, 4.5)
    out = flat(p, ground)
    for t in (p.u, p.v):
        x = (k * t + p.phase()) % 1
        out = mix(out, band, 0.62 * (x < 0.42))
        out = mix(out, line, 0.85 * (np.abs(x - 0.71) < 0.055))
    return out


def floral(p: Plane, petal: np.ndarray) -> np.ndarray:
    """Five-petalled flowers with a yellow heart and a leaf, on cream."""
    k = p.count(3.4, 4.6)
    points = jittered_points(p, k, 0.12)
    c = cells(p, points)
    x, y = (p.u - points[c.index, 0]) * k, (p.v - points[c.index, 1]) * k
    turn = p.rng.uniform(0, TAU, len(points)).astype(np.float32)[c.index]
    r, angle = np.hypot(x, y), np.arctan2(y, x) + turn
    out = flat(p, hexcolor("fbf3df"))
    leaf = np.hypot((r - 0.42) / 0.17, (((angle / TAU * 2) % 1) - 0.5) / 0.16) < 1
    out = mix(out, hexcolor("3f9a4a"), leaf)
    flower = r < 0.2 + 0.17 * np.abs(np.cos(2.5 * angle))
    out = mix(out, petal, flower)
    out = mix(out, darker(petal, 0.35), flower & (np.abs(np.cos(2.5 * angle)) < 0.28) & (r > 0.1))
    return mix(out, hexcolor("ffc61a"), r < 0.115)


def starry(p: Plane, sky: np.ndarray, cloud: np.ndarray) -> np.ndarray:
    """A night sky: soft nebula, dust of small stars, some large four-pointed ones."""
    out = mix(sky, cloud, smoothstep(noise(p, 4) + 0.5 * noise(p, 9), 0.1, 1.7) * 0.8)
    for across, radius, color in ((p.count(7, 16), 0.13, "ffffff"), (p.count(3.2, 4.5), 0.5, "fff3b8")):
        points = jittered_points(p, across, 0.42)
        c = cells(p, points)
        k = max(2, round(across))
        x, y = np.abs(p.u - points[c.index, 0]) * k, np.abs(p.v - points[c.index, 1]) * k
        size = p.rng.uniform(0.6, 1, len(points)).astype(np.float32)[c.index] * radius
        star = np.sqrt(x) + np.sqrt(y) < np.sqrt(size) if radius > 0.2 else np.hypot(x, y) < size
        out = mix(out, hexcolor(color), star | (np.hypot(x, y) < 0.3 * size))
    return out


def cow_print(p: Plane, spot: np.ndarray) -> np.ndarray:
    """Large irregular patches on white."""
    k = p.count(7.5, 6.5)
    patch = noise(p, k) + 0.25 * noise(p, 3 * k)
    return mix(hexcolor("f7ecd2"), spot, smoothstep(patch, 0.22, 0.3))
