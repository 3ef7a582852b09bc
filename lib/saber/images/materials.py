"""Painters of hard and natural materials; same contract as in ``patterns``."""

import numpy as np

from saber.images.patterns import TAU, flat
from saber.images.plane import (
    Plane,
    cells,
    darker,
    hexcolor,
    jittered_points,
    lighter,
    mix,
    noise,
    ramp,
    smoothstep,
)


def wooden(p: Plane, color: np.ndarray) -> np.ndarray:
    """Upright planks: long wavy grain, a dark seam between two planks."""
    k = p.count(2.6, 3.4)
    plank = np.floor(k * p.u + 0.3)
    x = (k * p.u + 0.3) % 1
    tone = p.rng.uniform(-0.12, 0.12, 8).astype(np.float32)[plank.astype(int) % 8]
    bend = 0.35 * noise(p, 3, 2) + 2.7 * plank
    grain = np.sin(TAU * (p.count(2.2, 3.5) * x + bend + 0.25 * noise(p, 30, 3)))
    out = mix(color, darker(color, 0.5), 0.5 + 0.5 * grain)
    out = np.clip(out * (1 + tone[..., None]), 0, 1)
    return mix(out, darker(color, 0.78), np.abs(x - 0.5) > 0.455)


def marble(p: Plane, ground: np.ndarray, vein: np.ndarray) -> np.ndarray:
    """Polished stone with branching veins and cloudy shades."""
    out = mix(ground, vein, 0.3 * smoothstep(noise(p, 3) + noise(p, 6), -0.5, 2))
    for across, width, strength in ((2, 0.075, 0.95), (p.count(3, 4.5), 0.045, 0.75)):
        x = across * (0.7 * p.u + p.v) + 0.22 * noise(p, 3) + 0.13 * noise(p, 8) + p.phase()
        d = np.abs(x % 1 - 0.5)
        out = mix(out, vein, strength * smoothstep(-d, -width, -0.3 * width))
        out = mix(out, vein, 0.28 * smoothstep(-d, -3 * width, 0))
    return out


def brick(p: Plane, color: np.ndarray, mortar: np.ndarray) -> np.ndarray:
    """Running bond with wide mortar joints."""
    k = p.count(6, 9)
    row = np.floor(k * p.v)
    x, y = k * 0.5 * p.u + 0.5 * (row % 2) + p.phase(), k * p.v
    tone = p.rng.uniform(-0.18, 0.14, 4096).astype(np.float32)
    shade = tone[(row * 37 + np.floor(x)).astype(int) % 4096] + 0.05 * noise(p, 40)
    out = np.clip(flat(p, color) * (1 + shade[..., None]), 0, 1)
    joint = (np.abs(x % 1 - 0.5) > 0.44) | (np.abs(y % 1 - 0.5) > 0.39)
    return mix(out, mortar, joint)


def chocolate(p: Plane, color: np.ndarray) -> np.ndarray:
    """A bar: raised blocks with a light upper left and a dark lower right bevel."""
    k = p.count(4.4, 5.6)
    x, y = (k * p.u + p.phase()) % 1, (k * p.v + p.phase()) % 1
    out = flat(p, color)
    out = mix(out, lighter(color, 0.42), (np.minimum(x, y) < 0.2) & (np.maximum(x, y) < 0.86))
    out = mix(out, darker(color, 0.38), np.maximum(x, y) > 0.76)
    out = mix(out, lighter(color, 0.14), (np.abs(x - 0.48) < 0.14) & (np.abs(y - 0.48) < 0.14))
    return mix(out, darker(color, 0.62), np.maximum(x, y) > 0.94)


def crystal(p: Plane, color: np.ndarray) -> np.ndarray:
    """Cut facets, each with its own brightness and sheen, thin bright ridges between."""
    points = jittered_points(p, p.count(4.4, 6), 0.42)
    c = cells(p, points)
    tone = p.rng.uniform(0, 1, len(points)).astype(np.float32)
    turn = p.rng.uniform(0, TAU, len(points)).astype(np.float32)[c.index]
    x, y = p.u - points[c.index, 0], p.v - points[c.index, 1]
    t = tone[c.index] + p.count(2.4, 3) * (x * np.cos(turn) + y * np.sin(turn))
    out = ramp(
        t, [(0, darker(color, 0.7)), (0.45, color), (0.8, lighter(color, 0.55)), (1, lighter(color, 0.95))]
    )
    return mix(out, lighter(color, 0.8), 0.8 * (c.second - c.near < 0.012))


def scaly(p: Plane, color: np.ndarray) -> np.ndarray:
    """Overlapping round scales, bright in the middle, dark where the next one covers them."""
    k = p.count(5, 8)
    x, y = k * p.u + p.phase(), k * 1.5 * p.v + p.phase()
    best = np.full((p.n, p.n), 9, np.float32)
    for up in (0, 1, 2):  # a scale reaches over two rows below its own
        row = np.floor(y) - up
        d = np.hypot((x + 0.5 * (row % 2)) % 1 - 0.5, (y - row) / 1.9)
        best = np.where((d < 0.56) & (best > 1), d / 0.56, best)
    best = np.minimum(best, 1)
    lit = ramp(
        best,
        [(0, darker(color, 0.35)), (0.55, color), (0.8, lighter(color, 0.55)), (0.9, darker(color, 0.75))],
    )
    return lit


def soap_bubble(p: Plane) -> np.ndarray:
    """Thin-film colors in wide flowing bands."""
    t = 1.1 * p.v + 0.5 * p.u + 0.16 * noise(p, 3) + p.phase()
    film = ["ff9ad5", "ffd9a0", "d8ff9e", "8ff7e6", "8fc2ff", "c79bff", "ff9ad5"]
    return ramp((1.7 * t) % 1, [(i / 6, hexcolor(c)) for i, c in enumerate(film)])


def sandy(p: Plane) -> np.ndarray:
    """Coarse bright and dark grains over wind ripples."""
    k = min(p.n / 2.6, p.count(34, 84))
    ripple = np.sin(TAU * (p.count(4, 6) * (p.v + 0.06 * noise(p, 3)) + p.phase()))
    out = mix(hexcolor("d8b478"), hexcolor("f2dcab"), 0.5 + 0.4 * ripple)
    grain = noise(p, k)
    out = mix(out, hexcolor("8b6534"), 0.85 * smoothstep(grain, 0.7, 1.1))
    return mix(out, hexcolor("fff6dd"), 0.9 * smoothstep(-grain, 0.8, 1.2))


def cardboard(p: Plane) -> np.ndarray:
    """Flat kraft board, torn open in bands that show the flutes; strips of shiny parcel tape."""
    kraft = hexcolor("c49a66")
    out = mix(kraft, darker(kraft, 0.2), 0.4 * smoothstep(noise(p, 40, 8), 0, 2))
    k = p.count(2.2, 2.6)
    x = (k * p.u + p.phase() + 0.015 * noise(p, 14)) % 1
    flutes = 0.5 + 0.5 * np.sin(TAU * p.count(10, 20) * p.v)
    out = mix(out, mix(hexcolor("6d4a26"), hexcolor("e6c591"), flutes), x < 0.46)
    return mix(out, hexcolor("f4e3c3"), (x > 0.46) & (x < 0.56))


def icy(p: Plane) -> np.ndarray:
    """Pale blue blocks with white cracks and frost."""
    k = p.count(3.6, 4.8)
    points = jittered_points(p, k, 0.45)
    c = cells(p, points)
    tone = p.rng.uniform(0, 1, len(points)).astype(np.float32)[c.index]
    out = mix(hexcolor("4fa9dd"), hexcolor("bfe9fb"), np.clip(tone + 0.2 * noise(p, 8), 0, 1))
    gap = (c.second - c.near) * k + 0.05 * noise(p, 18)
    out = mix(out, hexcolor("2a7fb8"), smoothstep(-gap, -0.24, -0.2))
    out = mix(out, hexcolor("ffffff"), smoothstep(-gap, -0.17, -0.12))
    return mix(out, hexcolor("ffffff"), 0.6 * smoothstep(noise(p, 16), 1.2, 1.7))


def molten(p: Plane) -> np.ndarray:
    """Dark crust broken by glowing cracks, yellow in the middle and red at the rim."""
    c = cells(p, jittered_points(p, p.count(4, 5.5), 0.45))
    gap = (c.second - c.near) * p.count(4, 5.5) + 0.07 * noise(p, 14)
    crust = mix(hexcolor("241613"), hexcolor("4a2a20"), smoothstep(noise(p, 20), -1, 1.5))
    fire = ramp(
        gap,
        [
            (0.0, hexcolor("fff3a0")),
            (0.12, hexcolor("ffb61a")),
            (0.26, hexcolor("f4460a")),
            (0.4, (0.35, 0.05, 0.02)),
        ],
    )
    return mix(fire, crust, smoothstep(gap, 0.22, 0.4))


def leafy(p: Plane) -> np.ndarray:
    """Pointed leaves in layers, each with a light midrib, in several greens."""
    k = p.count(4.2, 6)
    tones = np.stack([hexcolor(c) for c in ("2c7a2f", "4fa53a", "86c24a", "1d5a2a", "a9d25c")])
    out = flat(p, hexcolor("123a1a"))
    for _ in range(3):
        points = jittered_points(p, k, 0.4)
        c = cells(p, points)
        turn = p.rng.uniform(0, TAU, len(points)).astype(np.float32)[c.index]
        x, y = (p.u - points[c.index, 0]) * k, (p.v - points[c.index, 1]) * k
        a, b = x * np.cos(turn) + y * np.sin(turn), np.abs(y * np.cos(turn) - x * np.sin(turn))
        width = 0.3 * np.clip(1 - (a / 0.62) ** 2, 0, None)
        leaf = (np.abs(a) < 0.62) & (b < width)
        color = tones[p.rng.integers(0, len(tones), len(points))][c.index]
        color = mix(color, color * 0.55, smoothstep(b / (width + 1e-3), 0.6, 1))
        out = mix(out, mix(color, lighter(color, 0.55), b < 0.035), leaf)
    return out


def newspaper(p: Plane) -> np.ndarray:
    """Columns of grey print on off-white, with black headlines and a picture here and there."""
    columns, rows = p.count(2.6, 3.6), p.count(15, 30)
    x, y = columns * p.u + p.phase(), rows * p.v + p.phase() * 4
    column, line = np.floor(x).astype(int), np.floor(y).astype(int)
    gutter = np.abs(x % 1 - 0.5) > 0.43
    text = ((y % 1) < 0.58) & ~gutter & (noise(p, 36, rows) > -0.75)
    out = mix(hexcolor("efe9d9"), hexcolor("55534f"), 0.9 * text)
    block = (line + 3 * column) % 9
    head = (block < 3) & ~gutter
    out = mix(out, hexcolor("efe9d9"), head)
    out = mix(out, hexcolor("1b1a1a"), head & (block == 1) & (noise(p, 22, 3) > -0.6))
    picture = (block > 5) & ~gutter & ((column + line // 9) % 2 == 0)
    return mix(out, mix(hexcolor("8d8b86"), hexcolor("45443f"), smoothstep(noise(p, 8), -1, 1)), picture)
