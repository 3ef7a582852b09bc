"""Scenes: what section A.4 asks of an image, and what training needs of the owner map."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import binary_erosion

from saber.images import render
from saber.images.cutout import cutout
from saber.images.layout import LADDER, MARGIN, STEP
from saber.images.render import VARIANTS, render_object, render_scene
from saber.images.textures import known_appearances
from saber.vocabulary import load_objects

NAMES = [o.name for o in load_objects()]
FORMS = list(known_appearances())


def scene(n, seed):
    rng = np.random.default_rng([seed, n])
    return [NAMES[i] for i in rng.permutation(len(NAMES))[:n]], [
        FORMS[i] for i in rng.permutation(len(FORMS))[:n]
    ]


@pytest.mark.parametrize("size", [96, 128, 192])
@pytest.mark.parametrize("n", range(1, 11))
def test_every_object_is_whole_and_nothing_overlaps(n, size):
    objects, forms = scene(n, 1)
    image, owner = render_scene(objects, forms, seed=[5, n], size=size, return_owner=True)
    assert image.shape == (size, size, 3) and image.dtype == np.uint8
    assert owner.shape == (size, size) and owner.dtype == np.int8
    assert owner.min() == -1 and owner.max() == n - 1
    inner = size * (1 - 2 * MARGIN)
    diameters = [int(LADDER[STEP[n] + step] * inner) for step in (0, 1)]
    for k, name in enumerate(objects):
        whole = {int((cutout(name, d).alpha > 0.5).sum()) for d in diameters}
        assert int((owner == k).sum()) in whole


@given(st.integers(2, 10), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=25, deadline=None)
def test_same_arguments_same_image_and_flip_mirrors_all(n, seed, flipped):
    objects, forms = scene(n, seed % 7)
    image, owner = render_scene(objects, forms, seed, 96, flipped, return_owner=True)
    again, other = render_scene(objects, forms, seed, 96, not flipped, return_owner=True)
    assert np.array_equal(image, again[:, ::-1]) and np.array_equal(owner, other[:, ::-1])
    assert np.array_equal(image, render_scene(objects, forms, seed, 96, flipped))


def test_another_seed_gives_another_scene():
    objects, forms = scene(4, 2)
    assert not np.array_equal(render_scene(objects, forms, 1, 96), render_scene(objects, forms, 2, 96))
    assert not np.array_equal(
        render_scene(objects, forms, [1, 2], 96), render_scene(objects, forms, [1, 3], 96)
    )


@pytest.mark.parametrize("form", ["red glowing", "white furry", "transparent", "golden", "black"])
def test_an_attribute_touches_its_own_object_only(form):
    objects, forms = scene(10, 3)
    forms = ["green" if "glowing" in f else f for f in forms]
    before, owner = render_scene(objects, ["blue", *forms[1:]], seed=8, size=192, return_owner=True)
    after = render_scene(objects, [form, *forms[1:]], seed=8, size=192)
    assert (before != after)[owner == 0].any()
    for k in range(1, 10):
        if forms[k] in ("transparent", "iridescent soap-bubble"):
            continue  # the ground, and a neighbour's shadow on it, may show through
        inside = binary_erosion(owner == k, iterations=2)
        assert np.abs(before[inside].astype(int) - after[inside]).max(initial=0) <= 2, (objects[k], forms[k])


def test_ground_is_neutral_mid_grey():
    image, owner = render_scene(["teapot", "cube"], ["red", "golden"], seed=1, size=192, return_owner=True)
    ground = image[owner == -1].astype(int)
    grey = np.ptp(ground, axis=1) <= 1
    assert grey.mean() > 0.95  # all but the antialiased outlines
    assert 120 < np.median(ground) < 160


def test_colors_are_what_they_are_called():
    def mean(form):
        c = cutout("teapot", 60)
        return render_object("teapot", form, 60)[c.alpha > 0.9].astype(float).mean(0)

    r, g, b = mean("red")
    assert r > 2 * g and r > 2 * b
    assert mean("black").mean() < 75 < 190 < mean("white").mean()
    assert np.ptp(mean("silver")) < 25


@pytest.mark.parametrize("form", ["black", "white"])
def test_objects_keep_their_form_in_black_and_in_white(form):
    for name in ("teapot", "giraffe", "camera", "guitar"):
        c = cutout(name, 90)
        grey = render_object(name, form, 90).mean(-1)
        inside = binary_erosion(c.alpha > 0.9, iterations=2)
        low, high = np.percentile(grey[inside], [2, 98])
        assert high - low > 25, (name, form)


def test_transparent_shows_the_ground_and_glowing_lights_it():
    name = "teapot"
    c = cutout(name, 60)
    inside, outside = c.depth > 0.95, (c.alpha == 0) & (c.soft > 0.2)
    ground = render._ground(c.n, 0)[0] * 255
    clear = render_object(name, "transparent", 60).mean(-1)
    assert np.median(np.abs(clear - ground)[inside]) < 25
    for solid in ("white", "black", "blue"):
        off = np.abs(render_object(name, solid, 60).astype(float) - ground[..., None]).max(-1)
        assert np.median(off[inside]) > 50
    glow = render_object(name, "red glowing", 60).astype(float)
    assert (glow[..., 0] - glow[..., 2])[outside].mean() > 40


def test_nuisance_variants_move_the_texture_and_keep_its_colors():
    drawn = [render_object("teapot", "white and orange striped", 60, v) for v in range(VARIANTS)]
    assert len({x.tobytes() for x in drawn}) == VARIANTS
    means = np.array([x[cutout("teapot", 60).alpha > 0.9].mean(0) for x in drawn])
    assert np.ptp(means, axis=0).max() < 25


def test_all_sprites_render():
    for name in NAMES:
        image = render_object(name, "red", 40)
        assert (np.ptp(image.astype(int), axis=-1) > 60).sum() > 40, name


def test_unusable_arguments_are_explained():
    with pytest.raises(ValueError, match=r"unknown object 'teapott'.*teapot"):
        render_scene(["teapott"], ["red"], 0)
    with pytest.raises(ValueError, match="unknown appearance"):
        render_scene(["teapot"], ["striped"], 0)
    with pytest.raises(ValueError, match="2 objects but 1 appearances"):
        render_scene(["teapot", "cube"], ["red"], 0)
    with pytest.raises(ValueError, match="exactly once"):
        render_scene(["teapot", "teapot"], ["red", "blue"], 0)
    with pytest.raises(ValueError, match="1 to 10 objects"):
        render_scene([], [], 0)
    with pytest.raises(ValueError, match="at least 96"):
        render_scene(["teapot"], ["red"], 0, size=64)


def test_image_does_not_depend_on_process_or_hash_seed():
    code = (
        "import hashlib; from saber.images.render import render_scene as r;"
        "image = r(['teapot', 'kite', 'cube'], ['red furry', 'cracked icy', 'sandy'], 3, 96);"
        "print(hashlib.sha256(image).hexdigest())"
    )
    here = render_scene(["teapot", "kite", "cube"], ["red furry", "cracked icy", "sandy"], 3, 96)
    path = os.pathsep.join(p for p in sys.path if p)
    environment = {**os.environ, "PYTHONHASHSEED": "123", "PYTHONPATH": path}
    out = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == hashlib.sha256(here).hexdigest()
