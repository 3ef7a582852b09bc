"""Training scenes: labels fit the picture, held-out pairs stay out, workers change nothing."""

import numpy as np
import pytest

from saber.mini_clip.scenes import (
    HELD_OUT_EVERY,
    aligned_batch,
    held_out,
    make_pool,
    patch_owners,
    render_scenes,
    sample_pairs,
)
from saber.vocabulary import load_vocabulary


@pytest.fixture(scope="module")
def vocabulary():
    return load_vocabulary("known")


def test_pairs_are_distinct_and_none_is_held_out(vocabulary):
    rng = np.random.default_rng(0)
    for n in (1, 2, 10):
        for _ in range(50):
            pairs = sample_pairs(vocabulary, n, rng)
            assert len({a for a, _ in pairs}) == len({o for _, o in pairs}) == n
            assert not any(held_out(a, o) for a, o in pairs)


def test_held_out_pairs_are_a_sixth_and_every_word_is_seen(vocabulary):
    grid = np.array([[held_out(a, o) for o in range(64)] for a in range(24)])
    assert grid.mean() == pytest.approx(1 / HELD_OUT_EVERY, abs=0.01)
    assert not grid.all(axis=0).any() and not grid.all(axis=1).any()
    rng = np.random.default_rng(1)
    allowed = {p for _ in range(200) for p in sample_pairs(vocabulary, 5, rng, allow_held_out=True)}
    assert any(held_out(a, o) for a, o in allowed)


def test_patch_owners_name_what_covers_most_of_a_patch():
    owner = np.full((128, 128), -1, np.int8)
    owner[:16, :16] = 2
    owner[16:32, :4] = 1  # a quarter of a patch
    owner[:10, 16:32] = 0
    owner[10:16, 16:32] = 2
    patches = patch_owners(owner)
    assert patches.shape == (64,) and patches[0] == 2 and patches[1] == 0
    assert patches[8] == -1 and (patches[2:8] == -1).all()


def test_labels_are_the_vocabulary_indices_of_the_covering_pair(vocabulary):
    scenes = render_scenes(vocabulary, 4, (3,), False, range(2))
    objects, attributes = scenes.labels(1), scenes.labels(0)
    for i in range(2):
        covered = scenes.patches[i] >= 0
        assert covered.sum() >= 4 and (objects[i][~covered] == -1).all()
        expected = scenes.pairs[i][scenes.patches[i][covered]]
        assert (np.stack([attributes[i], objects[i]], 1)[covered] == expected).all()


def test_aligned_scenes_depend_on_their_key_alone(vocabulary):
    one, two = (aligned_batch(vocabulary, 3, 0.2, (5, 1)) for _ in range(2))
    assert (one.images == two.images).all() and (one.pairs == two.pairs).all()
    assert (one.images != aligned_batch(vocabulary, 3, 0.2, (5, 2)).images).any()
    assert (one.patches >= 0).mean() > 0.2


def test_a_pool_is_kept_and_the_same_for_any_number_of_workers(vocabulary, tmp_path):
    options = {"scenes_per_count": 6, "key": (1, 0), "object_counts": [2, 3]}
    one = make_pool(vocabulary, tmp_path / "one", workers=1, **options)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "one").iterdir()}
    again = make_pool(vocabulary, tmp_path / "one", workers=1, **options)
    two = make_pool(vocabulary, tmp_path / "two", workers=2, **options)
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "one").iterdir()}
    for n in (2, 3):
        assert one[n].images.shape == (6, 128, 128, 3)
        assert (one[n].images == two[n].images).all() and (one[n].images == again[n].images).all()
