"""Cutouts: size by the enclosing circle, light in range, errors about sprite files."""

import numpy as np
import pytest
from PIL import Image

from saber.images import cutout as module
from saber.images.cutout import cutout, sprite_file
from saber.vocabulary import load_objects

NAMES = [o.name for o in load_objects()]
STEM = next(o.sprite for o in load_objects() if o.name == "teapot")


@pytest.mark.parametrize("diameter", [36, 60, 117])
def test_objects_fill_their_circle_and_stay_inside(diameter):
    for name in NAMES[:: 12 if diameter > 36 else 3]:
        c = cutout(name, diameter)
        assert c.alpha.shape == c.light.shape == (c.n, c.n)
        ys, xs = np.nonzero(c.alpha > 0.5)
        r = np.hypot(xs + 0.5 - c.n / 2, ys + 0.5 - c.n / 2)
        assert 0.42 * diameter < r.max() <= 0.5 * diameter + 1, name
        # The smallest circle around something touches it on more than one side.
        far = r > r.max() - 0.06 * diameter
        angles = np.sort(np.arctan2(ys[far] + 0.5 - c.n / 2, xs[far] + 0.5 - c.n / 2))
        free = np.diff(np.append(angles, angles[0] + 2 * np.pi)).max()
        assert free < 1.25 * np.pi, name


def test_masks_are_in_range_and_mean_what_they_say():
    for name in ("teapot", "bicycle", "spider"):
        c = cutout(name, 64)
        for x in (c.light, c.alpha, c.soft, c.depth, c.lines, c.shadow, c.halo):
            assert x.shape == (c.n, c.n) and np.isfinite(x).all()
            assert x.min() >= -1e-6 and x.max() <= 1 + 1e-6
        assert (c.depth[c.alpha == 0] == 0).all()
        border = np.ones((c.n, c.n), bool)
        border[1:-1, 1:-1] = False
        assert c.alpha[border].max() == c.halo[border].max() == c.shadow[border].max() == 0
        rows = np.nonzero(c.alpha.max(1) > 0.5)[0]
        middle = (c.shadow.sum(1) * np.arange(c.n)).sum() / c.shadow.sum()
        assert middle > rows.mean()  # the shadow lies at the foot


def test_light_uses_most_of_its_range():
    for name in NAMES[::8]:
        c = cutout(name, 80)
        low, high = np.percentile(c.light[c.alpha > 0.9], [3, 97])
        assert high - low > 0.25, name


def test_unknown_objects_are_explained():
    with pytest.raises(ValueError, match=r"unknown object 'teapott'; near names: teapot"):
        sprite_file("teapott")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SPRITES", tmp_path)
    for cache in (module._master, cutout):
        cache.cache_clear()
    yield tmp_path
    for cache in (module._master, cutout):
        cache.cache_clear()


def test_unusable_sprites_are_explained(folder):
    file = folder / f"{STEM}.png"
    with pytest.raises(ValueError, match=r"sprite of object 'teapot' is missing"):
        cutout("teapot", 40)
    Image.new("RGB", (160, 160)).save(file)
    with pytest.raises(ValueError, match="must be of mode LA, not RGB"):
        cutout("teapot", 40)
    Image.new("LA", (160, 160)).save(file)
    with pytest.raises(ValueError, match="empty"):
        cutout("teapot", 40)


def test_a_square_has_its_diagonal_as_diameter(folder):
    pixels = np.zeros((160, 160, 2), np.uint8)
    pixels[20:120, 30:130] = 255
    Image.merge("LA", [Image.fromarray(pixels[..., k]) for k in (0, 1)]).save(folder / f"{STEM}.png")
    c = cutout("teapot", 100)
    side = np.sqrt((c.alpha > 0.5).sum())
    assert abs(side - 100 / 2**0.5) < 2
    ys, xs = np.nonzero(c.alpha > 0.5)
    assert abs(xs.mean() + 0.5 - c.n / 2) < 1 and abs(ys.mean() + 0.5 - c.n / 2) < 1
