"""Textures: every appearance of the vocabulary is drawn, in its own colors, and repeatably."""

import numpy as np
import pytest

from saber.images.textures import known_appearances, parse, texture
from saber.vocabulary import appearances, load_attributes

ATTRIBUTES, PALETTE = load_attributes()
TWO_COLOR = [a.name for a in ATTRIBUTES if a.type == "two-color"]
SINGLE_COLOR = [a.name for a in ATTRIBUTES if a.type == "single-color"]


def rgb(name):
    return np.array(PALETTE[name]) / 255


def draw(form, size=48, seed=0):
    return texture(form, size, np.random.default_rng(seed))


def test_every_appearance_is_parsed_to_its_attribute():
    for attribute in ATTRIBUTES:
        for form in appearances(attribute, tuple(PALETTE)):
            assert parse(form).attribute == attribute.name
    assert len(known_appearances()) == 521


def test_every_attribute_is_drawn():
    for attribute in ATTRIBUTES:
        for form in attribute.variants or appearances(attribute, tuple(PALETTE))[:1]:
            for size in (37, 96):
                x = draw(form, size)
                assert x.shape == (size, size, 3)
                assert x.dtype == np.float32
                assert np.isfinite(x).all() and x.min() >= 0 and x.max() <= 1


def test_same_generator_same_texture():
    for form in ("molten lava", "red furry", "white and orange striped", "leafy"):
        assert np.array_equal(draw(form, seed=4), draw(form, seed=4))
        assert not np.array_equal(draw(form, seed=4), draw(form, seed=5))


def test_basic_colors_are_the_palette():
    for name in PALETTE:
        assert np.allclose(draw(name), rgb(name), atol=0.003)


@pytest.mark.parametrize("name", TWO_COLOR)
def test_two_color_textures_hold_both_colors_and_nothing_else(name):
    x = draw(f"red and blue {name}", 96).reshape(-1, 3)
    red, blue = rgb("red"), rgb("blue")
    share = (x - red) @ (blue - red) / ((blue - red) @ (blue - red))
    assert np.allclose(x, red + share[:, None] * (blue - red), atol=0.01)
    assert 0.25 < share.mean() < 0.75
    assert (share < 0.05).mean() > 0.2 and (share > 0.95).mean() > 0.2


@pytest.mark.parametrize("name", TWO_COLOR)
def test_order_of_colors_exchanges_them(name):
    total = draw(f"green and pink {name}") + draw(f"pink and green {name}")
    assert np.allclose(total, rgb("green") + rgb("pink"), atol=0.01)


@pytest.mark.parametrize("name", SINGLE_COLOR)
def test_single_color_textures_are_nearest_to_their_color(name):
    chroma = {c: rgb(c) - rgb(c).mean() for c in PALETTE if c not in ("white", "black")}
    for color in chroma:
        mean = draw(f"{color} {name}", 64).reshape(-1, 3).mean(0)
        hue = {c: (mean - mean.mean()) @ v / np.linalg.norm(v) for c, v in chroma.items()}
        assert max(hue, key=hue.get) == color, (color, hue)


def directions(form):
    """Share of edge strength that runs along x, along y and along the two diagonals."""
    grey = draw(form, 96).mean(-1)
    gy, gx = np.gradient(grey)
    strength, angle = np.hypot(gx, gy), np.arctan2(gy, gx)
    return [(strength * np.cos(angle - t) ** 8).sum() / strength.sum() for t in np.arange(4) * np.pi / 4]


def test_patterns_have_their_directions():
    level, up, upright, down = 0, 1, 2, 3
    checks = directions("black and white checkered")
    assert checks[level] > 0.3 and checks[upright] > 0.3 and checks[up] < 0.2 and checks[down] < 0.2
    stripes = directions("black and white striped")
    assert stripes[up] > 0.6 and stripes[down] < 0.1
    zigzag = directions("black and white zigzag")
    assert zigzag[level] < 0.35 and abs(zigzag[up] - zigzag[down]) < 0.1
    halves = directions("black and white two-tone")
    assert halves[level] > 0.8
    assert directions("black and white ombre")[upright] > 0.9


def test_features_grow_finer_on_large_sprites():
    def crossings(size):
        row = draw("black and white striped", size).mean(-1)[size // 2]
        return int((np.diff(row > 0.5) != 0).sum())

    assert crossings(192) > crossings(48) >= 6


def test_unknown_appearances_are_explained():
    with pytest.raises(ValueError, match=r"unknown appearance 'red and blue stripes'.*striped"):
        texture("red and blue stripes", 32, np.random.default_rng(0))
    for form in ("", "striped", "red and red striped", "cyan glowing", "Red"):
        with pytest.raises(ValueError, match="unknown appearance"):
            parse(form)
    with pytest.raises(ValueError, match="at least 8 pixels"):
        texture("red", 4, np.random.default_rng(0))
