"""Training scenes: labels fit the picture, held-out pairs stay out, workers change nothing."""

import numpy as np
import pytest

from saber.miniature.batches import VIEW
from saber.training_scenes import (
    HELD_OUT_EVERY,
    Format,
    aligned_batch,
    held_out,
    make_pool,
    patch_owners,
    render_scenes,
    sample_pairs,
)
from saber.vocabulary import load_vocabulary

SMALL, LARGE = Format(128, 16), VIEW  # of the small dual encoder, and of the miniature
FORMATS = pytest.mark.parametrize("view", [SMALL, LARGE])


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
    patches = patch_owners(owner, SMALL)
    assert patches.shape == (64,) and patches[0] == 2 and patches[1] == 0
    assert patches[8] == -1 and (patches[2:8] == -1).all()
    larger = patch_owners(owner, Format(128, 32, 0.3))  # the first one: 352 of 1,024 pixels are of object 2
    assert larger.tolist() == [2] + [-1] * 15
    assert (patch_owners(owner, Format(128, 32)) == -1).all()


@pytest.mark.parametrize("view", [SMALL, LARGE, Format(128, 8, 0.5)])
def test_patch_owners_count_as_an_obvious_loop_does(view):
    owner = np.random.default_rng(view.patch).integers(-1, 3, (view.size, view.size)).astype(np.int8)
    owner[: view.size // 2] = np.repeat(np.arange(view.size // 2) // 8 % 3, view.size).reshape(-1, view.size)
    found, side = patch_owners(owner, view), view.size // view.patch
    for k in range(side * side):
        y, x = divmod(k, side)
        block = owner[y * view.patch :, x * view.patch :][: view.patch, : view.patch]
        counts = [(block == i).sum() for i in range(3)]
        assert found[k] == (int(np.argmax(counts)) if max(counts) >= view.min_share * block.size else -1)


@FORMATS
def test_labels_are_the_vocabulary_indices_of_the_covering_pair(vocabulary, view):
    scenes = render_scenes(vocabulary, view, 4, (3,), range(2))
    objects, attributes = scenes.labels(1), scenes.labels(0)
    assert scenes.images.shape == (2, view.size, view.size, 3)
    assert scenes.patches.shape == (2, (view.size // view.patch) ** 2)
    for i in range(2):
        covered = scenes.patches[i] >= 0
        assert covered.sum() >= 4 and (objects[i][~covered] == -1).all()
        expected = scenes.pairs[i][scenes.patches[i][covered]]
        assert (np.stack([attributes[i], objects[i]], 1)[covered] == expected).all()


@FORMATS
def test_labelled_patches_show_something(vocabulary, view):
    scenes = render_scenes(vocabulary, view, 3, (8,), range(2))
    side = view.size // view.patch
    blocks = scenes.images.reshape(2, side, view.patch, side, view.patch, 3).swapaxes(2, 3)
    spread = blocks.reshape(2, side * side, -1, 3).std(2).mean(2)
    assert spread[scenes.patches >= 0].mean() > 3 * spread[scenes.patches < 0].mean()


@FORMATS
def test_a_scene_depends_on_its_key_count_and_number_alone(vocabulary, view):
    together = render_scenes(vocabulary, view, 2, (4, 1), range(3))
    alone = render_scenes(vocabulary, view, 2, (4, 1), range(2, 3))
    assert (together.images[2] == alone.images[0]).all() and (together.pairs[2] == alone.pairs[0]).all()
    other = render_scenes(vocabulary, view, 2, (4, 2), range(2, 3))
    assert (other.images != alone.images).any()


@FORMATS
def test_a_second_view_has_the_same_pairs_in_another_layout(vocabulary, view):
    once = render_scenes(vocabulary, view, 3, (2, 5), range(3))
    twice = render_scenes(vocabulary, view, 3, (2, 5), range(3), views=2)
    assert len(twice.images) == len(twice.pairs) == len(twice.patches) == 6
    assert (twice.images[::2] == once.images).all() and (twice.patches[::2] == once.patches).all()
    assert (twice.pairs[::2] == once.pairs).all() and (twice.pairs[1::2] == once.pairs).all()
    for i in range(3):
        assert (twice.patches[2 * i] != twice.patches[2 * i + 1]).any()
        # every object is to be seen in both
        assert {*twice.patches[2 * i]} >= {0, 1, 2} <= {*twice.patches[2 * i + 1]}
    thrice = render_scenes(vocabulary, view, 3, (2, 5), range(1), views=3)
    assert len({image.tobytes() for image in thrice.images}) == 3


@pytest.mark.parametrize(("view", "n_objects", "grid"), [(SMALL, 12, 4), (LARGE, 8, 3)])
def test_aligned_scenes_depend_on_their_key_alone(vocabulary, view, n_objects, grid):
    options = {"n_objects": n_objects, "grid": grid, "jitter": 0.2}
    one, two = (aligned_batch(vocabulary, view, 3, key=(5, 1), **options) for _ in range(2))
    assert (one.images == two.images).all() and (one.pairs == two.pairs).all()
    assert (one.images != aligned_batch(vocabulary, view, 3, key=(5, 2), **options).images).any()
    assert one.images.shape == (3, view.size, view.size, 3) and one.pairs.shape == (3, n_objects, 2)
    assert (one.patches >= 0).mean() > 0.2
    assert not any(held_out(a, o) for a, o in one.pairs.reshape(-1, 2).tolist())


def test_without_jitter_objects_lie_in_their_own_cells(vocabulary):
    scenes = aligned_batch(vocabulary, LARGE, 3, 9, 3, 0.0, (1, 2))
    cells = scenes.patches.reshape(3, 3, 2, 3, 2).swapaxes(2, 3).reshape(3, 9, 4)
    found = []
    for scene in cells:
        owners = [sorted(set(cell[cell >= 0].tolist())) for cell in scene]
        assert all(len(owner) <= 1 for owner in owners)
        found.append([owner[0] for owner in owners if owner])
        assert len(found[-1]) == len(set(found[-1]))
    # a thin object may cover no patch well enough
    assert sum(map(len, found)) >= 0.75 * 3 * 9


def test_taken_rows_keep_their_labels(vocabulary):
    scenes = render_scenes(vocabulary, SMALL, 2, (7,), range(3))
    taken = scenes.take(np.array([2, 0]))
    assert (taken.images == scenes.images[[2, 0]]).all()
    assert (taken.labels(1) == scenes.labels(1)[[2, 0]]).all()


def test_a_pool_is_kept_and_the_same_for_any_number_of_workers(vocabulary, tmp_path):
    options = {"scenes_per_count": 6, "key": (1, 0), "object_counts": [2, 3]}
    one = make_pool(vocabulary, SMALL, tmp_path / "one", workers=1, **options)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "one").iterdir()}
    again = make_pool(vocabulary, SMALL, tmp_path / "one", workers=1, **options)
    two = make_pool(vocabulary, SMALL, tmp_path / "two", workers=2, **options)
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "one").iterdir()}
    for n in (2, 3):
        assert one[n].images.shape == (6, 128, 128, 3)
        assert (one[n].images == two[n].images).all() and (one[n].images == again[n].images).all()
        assert (one[n].patches == two[n].patches).all() and (one[n].pairs == two[n].pairs).all()
