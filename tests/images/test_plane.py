"""The tools that textures are drawn with, against slow obvious versions."""

import numpy as np

from saber.images.plane import (
    average_down,
    cells,
    hexcolor,
    jittered_points,
    look_up,
    make_plane,
    mix,
    noise,
    ramp,
    smoothstep,
)


def plane(size=24, margin=0, seed=0):
    return make_plane(size, np.random.default_rng(seed), margin)


def test_coordinates_span_the_square_and_go_on_in_the_margin():
    p = plane(10)
    assert p.u.shape == (20, 20)
    assert p.u[0, 0] == p.v[0, 0] == np.float32(0.025) and p.u[3, -1] == p.v[-1, 3] == np.float32(0.975)
    wide = plane(10, margin=2)
    assert wide.n == 28
    assert np.allclose(wide.u[4:-4, 4:-4], p.u) and np.allclose(wide.v[4:-4, 4:-4], p.v)


def test_features_per_side_follow_the_size():
    assert plane(30).count(4, 8) == plane(48).count(4, 8) == 4
    assert np.isclose(plane(96).count(4, 8), 4 * 2**0.5)
    assert plane(192).count(4, 8) == plane(300).count(4, 8) == 8


def test_average_down_is_the_mean_of_blocks():
    x = np.random.default_rng(0).random((6, 6, 3)).astype(np.float32)
    slow = [[x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean((0, 1)) for j in range(3)] for i in range(3)]
    assert np.allclose(average_down(x), slow)


def test_cells_are_nearest_points():
    p = plane(12)
    points = jittered_points(p, 4)
    c = cells(p, points)
    d = np.sqrt(((np.stack([p.u, p.v], -1)[:, :, None] - points) ** 2).sum(-1))
    assert np.allclose(c.near, d.min(-1), atol=1e-6)
    assert np.allclose(c.second, np.sort(d, -1)[..., 1], atol=1e-6)
    assert np.allclose(np.take_along_axis(d, c.index[..., None], -1)[..., 0], d.min(-1), atol=1e-6)


def test_points_cover_the_plane_and_its_margin():
    p = plane(48, margin=7)
    assert cells(p, jittered_points(p, 16)).near.max() < 1.2 / 16


def test_noise_is_smooth_with_mean_0_and_spread_1():
    fields = np.stack([noise(plane(seed=s), 6) for s in range(40)])
    assert abs(fields.mean()) < 0.1 and 0.7 < fields.std() < 1.3
    step = np.abs(np.diff(fields, axis=2)).mean()
    assert step < 0.25 * fields.std()
    assert np.abs(np.diff(np.stack([noise(plane(seed=s), 20) for s in range(40)]), axis=2)).mean() > 2 * step


def test_ramp_mix_and_tables():
    red, blue = hexcolor("ff0000"), hexcolor("0000ff")
    assert np.allclose(ramp(np.array([-1, 0, 0.5, 1, 2]), [(0, red), (1, blue)])[2], [0.5, 0, 0.5])
    assert np.allclose(mix(red, blue, np.array([[0, 1], [0.25, 0.5]]))[1, 0], [0.75, 0, 0.25])
    assert np.allclose(smoothstep(np.array([-1, 0, 0.5, 1, 3]), 0, 1), [0, 0, 0.5, 1, 1])
    table = np.random.default_rng(0).random((256, 3))
    index = np.array([[0, 255], [7, 7]], np.uint8)
    assert np.array_equal(look_up(table, index), np.moveaxis(table[index], -1, 0))
