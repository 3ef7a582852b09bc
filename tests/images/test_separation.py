"""The measure of how alike attributes look, and the promise that no two look alike."""

import numpy as np
import pytest

from saber.images.cutout import cutout
from saber.images.render import render_object
from saber.images.separation import confusions, measure, nearest_pairs, oklab, statistics

LEAST = 1.1  # ratio; 1 would mean: as far apart as two pictures of the same appearance


@pytest.fixture(scope="module")
def measured():
    return measure(["teapot", "giraffe"], 44, variants=(0, 4, 8))


def test_oklab_of_known_colors():
    # From the definition's own page and from CSS Color 4.
    colors = np.array([[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 0, 255]], np.uint8)
    expected = [[1, 0, 0], [0, 0, 0], [0.62796, 0.22486, 0.12585], [0.45201, -0.03246, -0.31153]]
    assert np.allclose(oklab(colors), expected, atol=2e-4)


def test_ratio_of_clusters_with_known_spread():
    forms = ["red", "blue", "golden"]
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [30, 0], [0, 80]], float)[:, None, None]
    objects = rng.normal(0, 50, (1, 5, 1, 2))  # what an object adds to all appearances must not count
    steps = np.array([[1, 0], [-1, 0], [0, 2], [0, -2]], float)  # four variants, spread (sqrt 1/2, sqrt 2)
    pairs = nearest_pairs(forms, centers + objects + steps)
    # In units of the spread the variants are the corners of a square of side 2 and diagonal sqrt 8.
    within = (4 * 2 + 2 * 8**0.5) / 6
    found = {(r.attribute, r.other): r for r in pairs.itertuples()}
    assert found["red", "blue"].between == pytest.approx(30 / 0.5**0.5)
    assert found["red", "golden"].between == pytest.approx(80 / 2**0.5)
    assert found["blue", "golden"].between == pytest.approx(np.hypot(30 / 0.5**0.5, 80 / 2**0.5))
    assert all(r.within == pytest.approx(within) for r in found.values())
    assert pairs.ratio.tolist() == sorted(pairs.ratio)
    assert pairs.ratio[0] == pytest.approx(30 / 0.5**0.5 / within)


def test_statistics_tell_direction_place_and_size_of_a_pattern():
    mask = np.zeros((48, 48), bool)
    mask[4:44, 4:44] = True
    y, x = np.mgrid[:48, :48]

    def picture(on):
        return np.repeat((np.where(on, 200, 60)).astype(np.uint8)[..., None], 3, -1)

    level, upright, coarse, half = statistics(
        np.stack([picture(y // 4 % 2), picture(x // 4 % 2), picture(y // 10 % 2), picture(y < 24)]), mask
    )
    assert level.shape == (40,)
    second = 24  # cosine of the second harmonic of lightness, behind 8 triples
    assert level[second] < -0.9 and upright[second] > 0.9
    assert half[9] > 0.3 and abs(level[9]) < 0.15  # upper minus lower half
    assert level[15] > coarse[15]  # more fine detail


def test_no_two_attributes_look_alike(measured):
    pairs = nearest_pairs(*measured)
    assert len(pairs) == 50 * 49 // 2
    nearest = pairs.iloc[0]
    assert nearest.ratio > LEAST, f"look alike: {nearest.appearance} and {nearest.other_appearance}"


def test_hardly_any_picture_is_taken_for_another_attribute(measured):
    forms, values = measured
    assert confusions(forms, values).times.sum() <= 0.001 * len(forms) * values.shape[1] * values.shape[2]


def test_no_two_attributes_look_alike_on_large_sprites():
    some = ["white", "silver", "marble", "knitted", "newspaper", "sequined", "black", "furry", "cow-print"]
    assert nearest_pairs(*measure(["giraffe"], 110, attributes=some)).ratio[0] > LEAST


def test_look_alikes_would_be_found():
    # The same pictures under two names: no distance at all, and half of them are taken for the other.
    forms, values = measure(["teapot"], 40, attributes=["camouflage", "molten"])
    twin = np.concatenate([values, values[:1] + 1e-6])
    pairs = nearest_pairs([*forms, "zebra-print"], twin)
    assert forms[0] == "molten lava"
    assert (pairs.attribute[0], pairs.other[0]) == ("molten", "zebra-print")
    assert pairs.ratio[0] < 0.01 < LEAST < pairs.ratio[1]
    found = confusions([*forms, "zebra-print"], twin)
    assert {(r.appearance, r.taken_for) for r in found.itertuples()} <= {
        ("molten lava", "zebra-print"),
        ("zebra-print", "molten lava"),
    }
    assert found.times.sum() >= 4


def test_attributes_can_be_left_out():
    forms, values = measure(["teapot"], 40, (0,), ["red", "wooden"])
    assert forms == ["red", "light-brown wooden", "dark-brown wooden"]
    mask = cutout("teapot", 40).alpha > 0.5
    expected = statistics(render_object("teapot", "red", 40, 0)[None], mask)
    assert values.shape == (3, 1, 1, 40)
    assert values[0, 0, 0] == pytest.approx(expected[0], abs=1e-6)
