"""Places of the objects: apart, inside the image, scattered."""

import numpy as np
import pytest

from saber.images.layout import BANK, GAP, LADDER, MARGIN, STEP, arrangements, place


@pytest.mark.parametrize("n", range(2, 11))
def test_arrangements_are_apart_and_not_in_a_row(n):
    every = arrangements(n)
    d = LADDER[STEP[n]]
    assert every.shape == (BANK, n, 2)
    assert every.min() >= d / 2 - 1e-9 and every.max() <= 1 - d / 2 + 1e-9
    for xy in every:
        gaps = [np.hypot(*(xy[i] - xy[j])) for i in range(n) for j in range(i)]
        assert min(gaps) >= GAP * d - 1e-9
        assert np.ptp(xy[:, 1]) >= 0.14 and np.ptp(xy[:, 0]) >= 0.14
    assert len({tuple(xy.ravel()) for xy in every}) == BANK


def test_ten_objects_at_192_pixels_have_the_intended_size():
    assert 38 <= int(LADDER[STEP[10] + 1] * 192 * (1 - 2 * MARGIN)) <= 46
    assert 40 <= int(LADDER[STEP[10]] * 192 * (1 - 2 * MARGIN)) <= 48


@pytest.mark.parametrize("n", range(1, 11))
def test_placed_circles_lie_inside_the_margin_and_apart(n):
    for seed in range(20):
        centers, diameters = place(n, 192, np.random.default_rng(seed))
        assert centers.shape == (n, 2) and diameters.shape == (n,)
        radius = diameters[:, None] / 2
        low = 192 * MARGIN - 1e-9
        assert (centers - radius >= low).all() and (centers + radius <= 192 - low).all()
        for i in range(n):
            for j in range(i):
                assert np.hypot(*(centers[i] - centers[j])) > (diameters[i] + diameters[j]) / 2 + 1


def test_places_differ_with_the_seed_and_use_the_whole_image():
    every = np.concatenate([place(4, 192, np.random.default_rng(s))[0] for s in range(200)])
    assert len(np.unique(every.round(3), axis=0)) > 400
    assert np.abs(every.mean(0) - 96).max() < 6  # no side is preferred
    assert every.std(0).min() > 30
