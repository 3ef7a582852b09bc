"""Finishes: sound premultiplied colors, and what sets each apart."""

import numpy as np
import pytest

from saber.images.cutout import cutout
from saber.images.render import dress
from saber.images.shading import FINISHES
from saber.images.textures import known_appearances

ONE_OF_EACH = {a.finish: f for f, a in reversed(known_appearances().items())}


def test_every_finish_is_used_and_exists():
    assert set(ONE_OF_EACH) == set(FINISHES)


@pytest.mark.parametrize("finish", sorted(FINISHES))
@pytest.mark.parametrize("name", ["teapot", "bicycle"])
def test_bodies_are_sound(finish, name):
    c = cutout(name, 50)
    body = dress(c, ONE_OF_EACH[finish])
    assert body.color.shape == (3, c.n, c.n) and body.alpha.shape == (c.n, c.n)
    assert np.isfinite(body.color).all() and body.alpha.min() >= 0 and body.alpha.max() <= 1
    assert (body.color >= 0).all() and (body.color <= body.alpha + 1e-6).all()  # premultiplied
    assert 0 <= body.cast <= 1
    assert (body.alpha[c.soft == 0] == 0).all()


def test_caches_are_not_written_to():
    c = cutout("teapot", 50)
    before = c.alpha.copy(), c.light.copy(), c.depth.copy()
    first = dress(c, "white glowing").color.copy()
    for form in ONE_OF_EACH.values():
        dress(c, form)
    assert all(np.array_equal(a, b) for a, b in zip(before, (c.alpha, c.light, c.depth), strict=True))
    assert np.array_equal(first, dress(c, "white glowing").color)


def test_fur_stands_out_from_the_outline_and_glass_lets_through():
    c = cutout("teapot", 70)
    outside, inside = c.alpha == 0, c.depth > 0.9
    assert (dress(c, "red furry").alpha[outside] > 0.5).sum() > 20
    assert (dress(c, "red").alpha[outside] > 0).sum() == 0
    assert np.median(dress(c, "transparent").alpha[inside]) < 0.4
    assert dress(c, "red").alpha[inside].min() > 0.95


def test_metal_has_bands_that_plain_color_lacks():
    c = cutout("teapot", 90)
    inside = c.depth > 0.9

    def contrast(form):
        grey = dress(c, form).color.mean(0)
        return np.ptp(np.percentile(grey[inside], [5, 95]))

    assert contrast("golden") > 2 * contrast("yellow")
    assert contrast("silver") > 2 * contrast("white")
    assert contrast("copper") > 1.5 * contrast("orange")


def test_only_glowing_has_a_halo_and_it_throws_no_shadow():
    c = cutout("cube", 40)
    for form, appearance in known_appearances().items():
        if appearance.finish == "glow":
            body = dress(c, form)
            assert body.halo.shape == (3, 1, 1) and body.cast == 0
    assert dress(c, "red").halo is None and dress(c, "red").cast == 1
