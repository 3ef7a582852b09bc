"""Painters of what is woven, sewn or grown as hair; same contract as in ``patterns``."""

import numpy as np

from saber.images.patterns import TAU, flat
from saber.images.plane import Plane, darker, hexcolor, lighter, mix, noise, smoothstep


def denim(p: Plane, color: np.ndarray) -> np.ndarray:
    """Washed twill with double seams in orange thread."""
    k = p.count(14, 34)
    twill = np.sin(TAU * k * (p.u + p.v))
    fade = smoothstep(noise(p, 4) + 0.6 * noise(p, 24), -1.2, 2.2)
    out = mix(darker(color, 0.22), lighter(color, 0.42), np.clip(0.55 * fade + 0.22 * twill + 0.12, 0, 1))
    s = p.count(2.1, 2.6)
    for t, along in ((p.u, p.v), (p.v, p.u)):
        x = (s * t + p.phase()) % 1
        out = mix(out, darker(color, 0.55), np.abs(x - 0.5) < 0.022)
        stitch = (np.abs(np.abs(x - 0.5) - 0.075) < 0.026) & ((along * p.count(9, 16)) % 1 < 0.66)
        out = mix(out, hexcolor("f2a13c"), stitch)
    return out


def leather(p: Plane, color: np.ndarray) -> np.ndarray:
    """Tufted as on a chesterfield: padded diamonds, dark creases, a button on each corner."""
    k = p.count(3.6, 5)
    a, b = k * (p.u * 1.25 + p.v) + p.phase(), k * (p.u * 1.25 - p.v)
    x, y = a % 1 - 0.5, b % 1 - 0.5
    pad = (0.25 - x * x) * (0.25 - y * y) * 16
    light = 0.42 * pad - 0.25 * (x - y) + 0.04 * noise(p, 50)
    out = np.clip(flat(p, darker(color, 0.25)) + light[..., None] * lighter(color, 0.25), 0, 1)
    out = mix(out, darker(color, 0.8), np.minimum(0.5 - np.abs(x), 0.5 - np.abs(y)) < 0.045)
    corner = np.hypot(0.5 - np.abs(x), 0.5 - np.abs(y))
    return mix(out, mix(lighter(color, 0.55), darker(color, 0.5), corner / 0.15), corner < 0.14)


def wicker(p: Plane, color: np.ndarray) -> np.ndarray:
    """Basket weave: strands over and under, rounded, dark in the gaps."""
    k = p.count(5, 8)
    x, y = k * p.u + p.phase(), k * p.v + p.phase()
    over = (np.floor(x) + np.floor(y)) % 2 > 0.5
    a, b = np.where(over, x % 1, y % 1), np.where(over, y % 1, x % 1)
    thirds = np.abs((a * 2) % 1 - 0.5) * 2
    round_ = (1 - 0.55 * thirds**2) * (1 - 1.6 * (b - 0.5) ** 2)
    out = mix(darker(color, 0.72), lighter(color, 0.25), round_ * 1.05 - 0.05)
    return mix(out, darker(color, 0.82), (thirds > 0.9) | (np.abs(a - 0.5) > 0.45))


def furry(p: Plane) -> np.ndarray:
    """Strands that fall outwards from the middle, light tips over dark roots."""
    x, y = p.u - 0.5 + 0.02 * noise(p, 5), p.v - 0.42 + 0.02 * noise(p, 5)
    r, angle = np.hypot(x, y), np.arctan2(y, x) / TAU
    strands = p.rng.standard_normal((int(p.count(9, 14)) + 2, int(p.count(90, 190)))).astype(np.float32)
    row = r * p.count(9, 14) + 0.6 * np.sin(TAU * (angle * 41 + p.phase()))
    cell = strands[np.floor(row).astype(int) % len(strands), np.floor(angle * strands.shape[1]).astype(int)]
    tip = row % 1
    return 0.52 + 0.21 * cell + 0.34 * (tip - 0.5)


def knitted(p: Plane) -> np.ndarray:
    """Columns of V stitches of thick yarn."""
    k = p.count(5, 8)
    x = k * p.u + p.phase()
    side = np.abs(x % 1 - 0.5)
    y = k * 1.25 * p.v + 1.1 * (0.5 - side) + p.phase()
    yarn = (1 - (2 * (y % 1) - 1) ** 2) * (1 - (4 * side - 1) ** 2 * 0.75)
    fluff = 0.07 * noise(p, p.count(30, 70))
    return yarn + fluff


def sequined(p: Plane) -> np.ndarray:
    """Small discs in rows, some of them flashing white."""
    k = p.count(9.5, 16)
    y = k * p.v + p.phase()
    x = k * p.u + 0.5 * (np.floor(y) % 2) + p.phase()
    flash = p.rng.random(4096).astype(np.float32)
    t = flash[(np.floor(y) * 61 + np.floor(x)).astype(int) % 4096]
    d = np.hypot(x % 1 - 0.5, y % 1 - 0.5)
    t = np.clip(t + 0.45 * ((0.5 - x % 1) + (0.5 - y % 1)), 0.12, 1)
    return np.where(d > 0.47, 0, t)
