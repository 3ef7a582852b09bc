"""Object sprites as cutouts: light and alpha of one object at one size, ready to be dressed in an attribute.

A sprite file is a 160 x 160 picture of mode LA: L says how light falls on the object, A where the object is.
Sizes are measured by the smallest circle around the object, so that two cutouts whose circles do not touch do
not overlap whatever their shapes.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import binary_erosion, gaussian_filter

from saber.vocabulary import load_objects

SPRITES = Path(__file__).parent / "sprites"
PAD = 0.16  # room around the circle for halo, fur and shadow, as a part of its diameter
LOCAL = 0.45  # part of the light that comes from local contrast: pale and dark parts of an object come closer


@dataclass(frozen=True)
class Cutout:
    """One object at one size; all arrays float32 (n, n) in 0..1, n = diameter + 2 pad. Do not write to them.

    light: how bright, continued beyond the outline. alpha: coverage.
    """

    light: np.ndarray
    alpha: np.ndarray
    diameter: int

    @property
    def n(self) -> int:
        """Side of the arrays in pixels."""
        return self.alpha.shape[0]

    @cached_property
    def soft(self) -> np.ndarray:
        """Alpha, blurred: 0.5 at a straight outline, 1 well inside, 0 well outside."""
        return self._blur(self.alpha, 0.05)

    @cached_property
    def depth(self) -> np.ndarray:
        """0 at the outline, 1 well inside."""
        return np.clip(2.2 * (self.soft - 0.5), 0, 1) * self.alpha

    @cached_property
    def lines(self) -> np.ndarray:
        """Where the light changes: the lines of the form."""
        return np.clip(9 * np.abs(self._blur(self.light, 0.012) - self._blur(self.light, 0.04)), 0, 1)

    @cached_property
    def shadow(self) -> np.ndarray:
        """Soft contact shadow on the ground below the object, 0 none to 1 full."""
        rows = np.nonzero(self.alpha.max(1) > 0.3)[0]
        top, bottom = int(rows[0]), int(rows[-1]) + 1
        height = max(2, round(0.3 * (bottom - top)))
        body = Image.fromarray(self.alpha[top:bottom]).resize((self.n, height), Image.Resampling.BOX)
        low = min(self.n, bottom + round(0.05 * self.diameter))
        flat = np.asarray(body)[-min(height, low) :]
        out = np.zeros_like(self.alpha)
        out[low - len(flat) : low] = flat
        out = np.roll(out, round(0.03 * self.diameter), axis=1)
        return self._faded(0.55 * self._blur(out, 0.055) + 0.25 * self._blur(out, 0.02))

    @cached_property
    def halo(self) -> np.ndarray:
        """Light that a glowing object throws around itself, fading to 0 at the border."""
        near, far = self._blur(self.alpha, 0.03), self._blur(self.alpha, 0.07)
        return self._faded(np.clip(1.3 * np.maximum(near, 1.15 * far), 0, 1))

    def _blur(self, x: np.ndarray, part: float) -> np.ndarray:
        return gaussian_filter(x, part * self.diameter, truncate=3)

    def _faded(self, x: np.ndarray) -> np.ndarray:
        line = np.minimum(np.arange(self.n), np.arange(self.n)[::-1]) / (0.08 * self.diameter)
        fade = np.clip(line, 0, 1).astype(np.float32)
        return x * np.minimum.outer(fade, fade)


@lru_cache(maxsize=512)
def cutout(name: str, diameter: int) -> Cutout:
    """The object's cutout with an enclosing circle of that diameter in pixels."""
    m = _master(name)
    n = diameter + 2 * int(np.ceil(PAD * diameter))
    half = m.radius * n / diameter
    x, y = m.center
    box = (x - half, y - half, x + half, y + half)
    small = [c.resize((n, n), Image.Resampling.LANCZOS, box=box) for c in (m.light, m.alpha)]
    light, alpha = (np.clip(np.asarray(c, np.float32), 0, 1) for c in small)
    return Cutout(light, alpha, diameter)


def sprite_file(name: str) -> Path:
    """Sprite of an object of the vocabulary; ValueError for an unknown object or a missing file."""
    stems = {o.name: o.sprite for o in load_objects()}
    if name not in stems:
        near = ", ".join(get_close_matches(str(name), stems, n=3)) or "see vocabulary/objects.yaml"
        raise ValueError(f"unknown object {name!r}; near names: {near}")
    path = SPRITES / f"{stems[name]}.png"
    if not path.is_file():
        raise ValueError(f"sprite of object {name!r} is missing: {path}")
    return path


@dataclass(frozen=True)
class _Master:
    light: Image.Image  # mode F, with a wide border
    alpha: Image.Image
    center: tuple[float, float]
    radius: float


@lru_cache(maxsize=512)
def _master(name: str) -> _Master:
    path = sprite_file(name)
    with Image.open(path) as picture:
        if picture.mode != "LA":
            raise ValueError(f"{path}: a sprite must be of mode LA, not {picture.mode}")
        light, alpha = (np.asarray(c, np.float32) / 255 for c in picture.split())
    if (alpha > 0.5).sum() < 16:
        raise ValueError(f"{path}: the sprite is empty")
    side = max(alpha.shape)
    wide = _inside_mean(light, alpha, 0.11 * side)
    light = np.where(alpha > 0.5, light, _inside_mean(light, alpha, 0.02 * side))
    light = np.clip((1 - LOCAL) * light + LOCAL * (0.55 + 1.1 * (light - wide)), 0, 1)
    center, radius = _enclosing_circle(alpha > 0.35)
    light, alpha = np.pad(light, side, mode="edge"), np.pad(alpha, side)
    pictures = (Image.fromarray(x.astype(np.float32)) for x in (light, alpha))
    return _Master(*pictures, (center[0] + side, center[1] + side), radius)


def _inside_mean(light: np.ndarray, alpha: np.ndarray, sigma: float) -> np.ndarray:
    """Blur of the light that counts the object's own pixels only, continued beyond the outline."""
    weight, total = (gaussian_filter(x, sigma, truncate=2.5) for x in (alpha, light * alpha))
    far = (light * alpha).sum() / alpha.sum()
    return (total + 1e-3 * far) / (weight + 1e-3)


def _enclosing_circle(mask: np.ndarray) -> tuple[tuple[float, float], float]:
    """Center (x, y) and radius of nearly the smallest circle around the mask's pixels, in pixels."""
    ys, xs = np.nonzero(mask & ~binary_erosion(mask))
    points = np.stack([xs, ys], 1) + 0.5
    center = (points.min(0) + points.max(0)) / 2
    for step in range(60):  # Badoiu and Clarkson: walk to the farthest point in ever smaller steps
        far = points[np.argmax(((points - center) ** 2).sum(1))]
        center = center + (far - center) / (step + 8)
    radius = np.sqrt(((points - center) ** 2).sum(1).max()) + 0.71
    return (float(center[0]), float(center[1])), float(radius)
