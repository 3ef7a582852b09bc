"""Where the objects of a scene stand: scattered, apart from each other, never in a row."""

from functools import lru_cache

import numpy as np

MOST_OBJECTS = 10
BANK = 48  # arrangements kept per number of objects; each is turned and mirrored at random
MARGIN = 0.03  # free border of the image, as a part of its side
GAP = 1.07  # least distance of two centers, in diameters
# Diameters of the circle around an object, as parts of the image's side inside the margin: one ladder for
# all, so that few sizes are ever drawn.
LADDER = tuple(0.46 / 1.1**k for k in range(8))
# Step of the larger objects; the smaller ones are one step down. About 0.87 of the densest packing of so many
# circles in a square, so that there are many different arrangements.
STEP = {1: 0, 2: 0, 3: 1, 4: 1, 5: 3, 6: 4, 7: 5, 8: 5, 9: 5, 10: 6}


@lru_cache(maxsize=MOST_OBJECTS)
def arrangements(n: int) -> np.ndarray:
    """(BANK, n, 2) centers in the unit square of the free area, at least GAP diameters apart."""
    d = LADDER[STEP[n]]
    rng = np.random.default_rng([7, n])
    found = []
    while len(found) < BANK:
        xy = rng.uniform(d / 2, 1 - d / 2, (n, 2))
        for _ in range(200):
            delta = xy[:, None] - xy[None]
            distance = np.sqrt((delta**2).sum(-1)) + 10 * np.eye(n)
            if distance.min() >= GAP * d:
                break
            push = np.clip(GAP * d * 1.02 - distance, 0, None) / 2
            xy = xy + (delta / np.maximum(distance, 1e-6)[..., None] * push[..., None]).sum(1)
            xy = np.clip(xy, d / 2, 1 - d / 2)
        if distance.min() >= GAP * d and _scattered(xy):
            found.append(xy)
    return np.array(found)


def _scattered(xy: np.ndarray) -> bool:
    """No row and no column: both coordinates vary, and from three objects on no line passes near all."""
    if len(xy) == 1:
        return True
    if np.ptp(xy, axis=0).min() < 0.14:
        return False
    return len(xy) == 2 or np.linalg.svd(xy - xy.mean(0), compute_uv=False)[1] / np.sqrt(len(xy)) > 0.1


def place(n: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Centers (n, 2) = (x, y) in pixels and diameters (n,) in whole pixels of n objects in a square image."""
    bank = arrangements(n)
    xy = bank[rng.integers(len(bank))]
    if rng.random() < 0.5:
        xy = xy[:, ::-1]
    xy = np.where(rng.random(2) < 0.5, xy, 1 - xy)[rng.permutation(n)]
    inner = size * (1 - 2 * MARGIN)
    steps = STEP[n] + rng.integers(2, size=n)
    return size * MARGIN + xy * inner, np.floor(np.array(LADDER)[steps] * inner).astype(int)
