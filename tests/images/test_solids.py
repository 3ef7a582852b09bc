import numpy as np
import pytest

from saber.images.solids import (
    COARSE,
    Part,
    blend,
    box,
    capsule,
    cylinder,
    ellipsoid,
    render,
    sphere,
    torus,
    turn,
    union,
    without,
)


@pytest.mark.parametrize(
    ("shape", "point", "distance"),
    [
        (sphere((1, 0, 0), 0.5), (1, 2, 0), 1.5),
        (sphere((1, 0, 0), 0.5), (1, 0, 0), -0.5),
        (box((0, 0, 0), (1, 2, 3)), (4, 6, 3), 5.0),  # 3-4-5 from the edge
        (box((0, 0, 0), (1, 2, 3), 0.3), (0, 0, 3.5), 0.5),
        (box((0, 0, 0), (1, 2, 3)), (0.8, 0, 0), -0.2),
        (ellipsoid((0, 0, 0), (1, 2, 1)), (0, 2, 0), 0.0),
        (capsule((0, 0, 0), (0, 2, 0), 0.5), (1, 1, 0), 0.5),
        (capsule((0, 0, 0), (0, 2, 0), 0.5, 0.1), (0, 3, 0), 0.9),
        (cylinder((0, 0, 0), (2, 0, 0), 0.5, rounding=0), (1, 0, 1.5), 1.0),
        (cylinder((0, 0, 0), (2, 0, 0), 0.5, rounding=0), (3, 0, 0), 1.0),
        (cylinder((0, 0, 0), (2, 0, 0), 0.5, 0.1, rounding=0), (1, 1.3, 0), 1.0),
        (torus((0, 0, 0), (0, 0, 2), 1.0, 0.25), (1, 0, 1), 0.75),
        (union(sphere((0, 0, 0), 1), sphere((3, 0, 0), 1)), (3, 0, 2), 1.0),
        (without(sphere((0, 0, 0), 1), sphere((0, 0, 0), 0.5)), (0, 0, 0), 0.5),
        (blend(sphere((0, 0, 0), 1), sphere((9, 0, 0), 1), 0.1), (0, 0, 2), 1.0),
    ],
)
def test_distances_worked_out_by_hand(shape, point, distance):
    assert shape(np.array([point], dtype=float)) == pytest.approx([distance])


def test_blend_lies_within_the_union_grown_by_a_quarter_of_its_width():
    points = np.random.default_rng(0).uniform(-2, 2, (500, 3))
    parts = sphere((-0.4, 0, 0), 0.5), box((0.4, 0, 0), (0.3, 0.3, 0.3))
    sharp, soft = union(*parts)(points), blend(*parts, 0.2)(points)
    assert (soft <= sharp).all() and (soft >= sharp - 0.05 - 1e-12).all() and (soft < sharp).any()


@pytest.mark.parametrize(
    ("axis", "place"), [("x", (1, -3, 2)), ("y", (3, 2, -1)), ("z", (-2, 1, 3))]
)  # a quarter turn of (1, 2, 3), right-handed
def test_turn_by_a_quarter(axis, place):
    (turned,) = turn([Part(sphere((1, 2, 3), 0.5), 0.4)], axis, 0, 2)
    assert turned.shape(np.array([place], dtype=float)) == pytest.approx([-0.5])
    assert turned.brightness == 0.4


def test_a_sphere_is_a_disc_lit_from_the_upper_left():
    picture = render([Part(sphere((0, 0, 0), 0.6))], size=120, half_width=1.0)
    assert picture.shape == (120, 120, 4) and set(np.unique(picture[..., 3])) == {0, 255}
    x, y = np.meshgrid(np.arange(120) - 59.5, np.arange(120) - 59.5)
    distance = np.hypot(x, y) / 60 - 0.6
    clear = np.abs(distance) > 0.01  # less than a pixel from the rim either is right
    assert np.array_equal((picture[..., 3] > 0)[clear], distance[clear] < 0)
    assert picture[40, 40, 0] > picture[59, 59, 0] > picture[80, 80, 0] > 0


def test_the_coarse_pass_loses_nothing():
    """Every ray marched on its own from the front, slowly, agrees."""
    parts = [
        Part(capsule((-0.7, -0.5, 0.1), (0.8, 0.6, -0.2), 0.02)),
        Part(box((0.3, -0.4, 0), (0.2, 0.1, 0.3), 0.02)),
    ]
    shape = union(*[part.shape for part in parts])
    size = 60
    axis = (np.arange(size) + 0.5) / size * 2.2 - 1.1
    x, y = np.meshgrid(axis, -axis)
    depths = np.arange(1.3, -1.3, -0.004)
    nearest = np.full(size * size, np.inf)
    for depth in depths:
        nearest = np.minimum(
            nearest, shape(np.stack([x.ravel(), y.ravel(), np.full(size * size, depth)], axis=-1))
        )
    hit = render(parts, size)[..., 3].ravel() > 0
    assert hit[nearest < 0].all() and not hit[nearest > 0.005].any() and (nearest < 0).sum() > 100


def test_a_part_in_front_hides_the_one_behind():
    front, back = Part(sphere((0, 0, 0.6), 0.3), 1.0), Part(box((0, 0, -0.5), (0.6, 0.6, 0.1)), 0.1)
    picture = render([back, front], size=60)[..., 0]
    assert picture[30, 30] > 150 > 60 > picture[20, 20] > 0


def test_a_size_that_does_not_divide_says_so():
    with pytest.raises(ValueError, match=f"100.*multiple of {COARSE}"):
        render([Part(sphere((0, 0, 0), 0.5))], size=100)
