"""Finishes: how light falls on a texture when an object wears it.

A finish takes the cutout and the flat texture and returns a ``Dressed``. Light is never multiplied flat: dark
textures keep their highlights and pale ones their dark parts, so that the object stays recognisable in black
and in white. Colors here are planes, float32 (3, n, n): the masks (n, n) then apply without a color axis.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from saber.images.cutout import Cutout
from saber.images.plane import hexcolor, look_up, ramp, smoothstep

WHITE = np.ones((3, 1, 1), np.float32)


@dataclass(frozen=True)
class Dressed:
    """Body of a dressed object: color (3, n, n) in 0..1, already times alpha, and alpha (n, n).

    halo: color (3, 1, 1) of the light around it, or None. cast: part of the contact shadow it throws, 0..1.
    """

    color: np.ndarray
    alpha: np.ndarray
    halo: np.ndarray | None = None
    cast: float = 1.0


def _hex(code: str) -> np.ndarray:
    return hexcolor(code)[:, None, None]


def _blend(a: np.ndarray, b: np.ndarray, t: np.ndarray | float) -> np.ndarray:
    return a + (b - a) * t


def _luma(tile: np.ndarray) -> np.ndarray:
    return 0.3 * tile[0] + 0.59 * tile[1] + 0.11 * tile[2]


def _lit(c: Cutout, tile: np.ndarray, low: float, high: float, shine: float = 0.0) -> np.ndarray:
    """Texture under light: factor ``low`` in the dark parts to ``high`` in the bright ones, plus highlights.

    Pale textures darken less and dark ones gleam more: white must not turn grey, black must show its form.
    """
    luma = _luma(tile)
    low = low + 0.16 * luma
    gleam = 0.3 * (1 - luma) * c.light**2
    if shine:
        gleam += shine * smoothstep(c.light, 0.72, 1.0)
    # out = tile * factor, then out + gleam * (1 - out / 2)
    return tile * ((low + (high - low) * c.light) * (1 - 0.5 * gleam)) + gleam


def _body(color: np.ndarray, alpha: np.ndarray, **more) -> Dressed:
    return Dressed(np.clip(color, 0, 1) * alpha, alpha, **more)


def matte(c: Cutout, tile: np.ndarray) -> Dressed:
    """Plain color: full range of light and shade, shades richer in color rather than greyer."""
    richer = 1 - 0.3 * (1 - c.light) * (1 - tile / (tile.max(0) + 1e-3))
    return _body(_lit(c, tile, 0.46, 1.12, 0.12) * richer, c.alpha)


def textured(c: Cutout, tile: np.ndarray) -> Dressed:
    """Pattern or material: less shade, so that the texture's own contrast leads."""
    return _body(_lit(c, tile, 0.5, 1.1), c.alpha)


def gloss(c: Cutout, tile: np.ndarray) -> Dressed:
    """Polished: as textured, with white highlights."""
    return _body(_lit(c, tile, 0.46, 1.08, 0.4), c.alpha)


METALS = {
    "gold": ("3d2202", "a86a08", "f2b921", "ffe98a", "fffdf0"),
    "silver": ("141a24", "56616f", "a9b6c6", "e6eef6", "ffffff"),
    "copper": ("2e0d04", "8a3516", "d4703c", "ffb48a", "fff1e6"),
}


def _metal(name: str) -> Callable:
    stops = [(t, hexcolor(h)) for t, h in zip((0, 0.3, 0.6, 0.85, 1), METALS[name], strict=True)]
    lookup = ramp(np.linspace(0, 1, 512), stops)

    def finish(c: Cutout, tile: np.ndarray) -> Dressed:
        line = np.linspace(0, 2 * np.pi, c.n, dtype=np.float32)
        bend = 2 * np.pi * (1.7 * c.light + 0.7 * c.depth) + 1.6 * line[:, None] + 0.8 * line
        t = 0.25 + 0.62 * (0.5 + 0.5 * np.sin(bend)) ** 1.3 + 0.45 * (c.light - 0.45)
        return _body(look_up(lookup, (np.clip(t, 0, 1) * 511).astype(np.int32)), c.alpha)

    finish.__doc__ = f"Polished {name}: bands of reflection from near black to white that follow the form."
    return finish


def glow(c: Cutout, tile: np.ndarray) -> Dressed:
    """Lit from within: hardly any shade, hot inside, a bright rim, a halo of its color around.

    Black glows as a dark body with a pale rim and halo.
    """
    base = tile[:, :1, :1]
    luma = float(_luma(base).item())
    if luma < 0.2:
        rim = halo = _hex("cfc4ff")
        color = _blend(base, WHITE, 0.12 * c.depth * c.light)
    else:
        rim, halo = _blend(base, WHITE, 0.2), _blend(base, WHITE, 0.12)
        color = _blend(base, WHITE, 0.62 * (c.depth**2 * c.light**1.3))
        color = color * (1.05 - 0.4 * luma * (1 - c.light))
    color = _blend(color, rim, 0.8 * (1 - smoothstep(c.depth, 0.02, 0.5)))
    return _body(color, c.alpha, halo=halo, cast=0.0)


def ember(c: Cutout, tile: np.ndarray) -> Dressed:
    """Lava: cracks keep their own light whatever falls on them."""
    return _body(_blend(_lit(c, tile, 0.5, 1.15), tile, smoothstep(tile[0], 0.45, 0.9)), c.alpha)


def glass(c: Cutout, tile: np.ndarray) -> Dressed:
    """Clear: the ground shows through; bright rim, dark outline, highlights and faint lines of the form."""
    rim = (1 - smoothstep(c.depth, 0.0, 0.55)) * c.alpha
    spark = smoothstep(c.light, 0.68, 0.92)
    outline = (1 - smoothstep(c.depth, 0.0, 0.12)) * smoothstep(c.alpha, 0.1, 0.6)
    color = _blend(tile, WHITE, np.clip(spark + rim, 0, 1))
    color = _blend(color, _hex("3c5560"), np.clip(outline * 0.75 + c.lines * (c.light < 0.5), 0, 1))
    alpha = np.clip(0.1 + 0.38 * rim + 0.8 * spark + 0.55 * c.lines + 0.5 * outline, 0, 0.95) * c.alpha
    return _body(color, alpha, cast=0.35)


def bubble(c: Cutout, tile: np.ndarray) -> Dressed:
    """Soap film: colors strong at the rim and pale inside, see-through, small white highlights."""
    rim = 1 - smoothstep(c.depth, 0.05, 0.95)
    spark = smoothstep(c.light, 0.74, 0.95)
    color = _blend(tile, tile * tile, 0.75 * rim)
    color = _blend(color, WHITE, np.clip(spark + 0.5 * c.lines, 0, 1))
    alpha = np.clip(0.5 + 0.45 * rim + 0.5 * spark + 0.4 * c.lines, 0, 0.97) * c.alpha
    return _body(color, alpha, cast=0.35)


def ice(c: Cutout, tile: np.ndarray) -> Dressed:
    """Frozen: slightly see-through, deep blue in the shade, frosted white rim and highlights."""
    color = _blend(tile * _hex("5f9fd0"), tile, smoothstep(c.light, 0.1, 0.7))
    rim = 1 - smoothstep(c.depth, 0.05, 0.4)
    color = _blend(color, WHITE, np.clip(0.5 * rim + 0.7 * smoothstep(c.light, 0.8, 0.97), 0, 1))
    return _body(color, 0.94 * c.alpha, cast=0.7)


@lru_cache(maxsize=64)
def _strands(n: int) -> np.ndarray:
    """Noise (n, n) in -1..1 in strands that run outwards from the middle."""
    y, x = np.mgrid[:n, :n].astype(np.float32) - (n - 1) / 2
    table = np.random.default_rng(n).uniform(-1, 1, max(24, int(1.9 * n))).astype(np.float32)
    turn = np.arctan2(y, x) / (2 * np.pi) + 0.004 * np.sin(np.hypot(x, y) * 0.5)
    return table[np.floor(turn * len(table)).astype(int) % len(table)]


@lru_cache(maxsize=64)
def _grains(n: int) -> np.ndarray:
    """White noise (n, n) in -1..1."""
    return np.random.default_rng(n).uniform(-1, 1, (n, n)).astype(np.float32)


def fur(c: Cutout, tile: np.ndarray) -> Dressed:
    """Coat of hair: the outline is frayed into strands that stand out from the object."""
    alpha = np.maximum(smoothstep(c.soft + 0.25 * _strands(c.n), 0.38, 0.58), 0.85 * c.alpha)
    return _body(_lit(c, tile, 0.5, 1.12), alpha)


def crumbly(c: Cutout, tile: np.ndarray) -> Dressed:
    """Sand: matte, the outline crumbles grain by grain."""
    alpha = smoothstep(0.5 * (c.soft + c.alpha) + 0.25 * _grains(c.n), 0.42, 0.62)
    return _body(_lit(c, tile, 0.55, 1.06), alpha * smoothstep(c.soft, 0.2, 0.35))


FINISHES: dict[str, Callable[[Cutout, np.ndarray], Dressed]] = {
    "matte": matte,
    "textured": textured,
    "gloss": gloss,
    "gold": _metal("gold"),
    "silver": _metal("silver"),
    "copper": _metal("copper"),
    "glow": glow,
    "ember": ember,
    "glass": glass,
    "bubble": bubble,
    "ice": ice,
    "fur": fur,
    "crumbly": crumbly,
}
