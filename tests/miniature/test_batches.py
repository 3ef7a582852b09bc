"""Batches: the same wherever they are made, no held-out pair in them, noise in the attributes alone."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from saber.miniature import batches, language
from saber.miniature.batches import VIEW, ahead, contrastive_batch, dense_batch, generative_batch
from saber.training_scenes import Scenes, held_out, render_scenes
from saber.vocabulary import load_vocabulary


def same(one, two) -> bool:
    """Equality of batches, whatever they hold."""
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two)
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(two, f.name)) for f in dataclasses.fields(one))
    return one == two


def scene_pairs(key, n_objects, rows, views=1):
    """Names of the pairs of scenes made apart from any batch."""
    scenes = render_scenes(load_vocabulary("known"), VIEW, n_objects, key, range(rows), views=views)
    return [batches.names(scenes, i) for i in range(len(scenes.pairs))]


MAKERS = {
    "dense, aligned": lambda key: dense_batch(1, 0.2, 0.5, key),
    "dense, real": lambda key: dense_batch(1, 0.7, 0.5, key),
    "generative": lambda key: generative_batch(1, key),
    "contrastive": lambda key: contrastive_batch(2, 0.9, key),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_batch_depends_on_its_key_alone(name):
    make = MAKERS[name]
    first, other = make((3, 1, 4)), make((3, 1, 5))
    np.random.default_rng(0).random()
    assert same(first, make((3, 1, 4))) and not same(first, other)
    assert not same(first, make((4, 1, 4)))


@pytest.mark.parametrize("workers", [1, 2])
def test_batches_made_ahead_are_the_same_in_the_same_order(workers, blank_scenes):
    arguments = [(2, (0, 1, i)) for i in range(11)]
    made = list(ahead(generative_batch, arguments, workers))
    assert len(made) == 11
    for one, two in zip(made, ahead(generative_batch, arguments, 0), strict=True):
        assert same(one, two)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_ahead_keeps_order_ends_early_and_passes_errors_on(workers):
    arguments = [(100 - i, 7) for i in range(40)]
    assert list(ahead(divmod, arguments, workers)) == [divmod(*a) for a in arguments]
    assert list(ahead(divmod, [], workers)) == []
    some = ahead(divmod, arguments, workers)
    assert [next(some) for _ in range(3)] == [divmod(*a) for a in arguments[:3]]
    some.close()
    failing = ahead(divmod, [(1, 1), (1, 0), (2, 1)], workers)
    assert next(failing) == (1, 0)
    with pytest.raises(ZeroDivisionError):
        next(failing)


def test_no_held_out_pair_in_any_text_or_scene(blank_scenes, read_pairs):
    known = load_vocabulary("known")
    texts, counts, seen = [], Counter(), set()
    for i in range(40):
        g, c = generative_batch(6, (5, 1, i)), contrastive_batch(6, 0.9, (5, 2, i))
        d = dense_batch(4, 1.0, 0.5, (5, 0, i))
        for scenes in (g.scenes, d):
            pairs = scenes.pairs.reshape(-1, 2).tolist()
            assert not any(held_out(a, o) for a, o in pairs)
            seen.update(map(tuple, pairs))
        texts += [*g.image_targets, *g.texts, *g.text_targets, *c.captions, *c.texts, *c.left, *c.right]
        assert not language.any_held_out([p for pairs in g.pairs for p in pairs])
        counts[g.scenes.pairs.shape[1]] += 1
    stated = [pair for text in texts for pair in read_pairs(text)]
    assert len(stated) > 4000 and not language.any_held_out(stated)
    assert len(counts) > 4 and min(counts) >= 2 and max(counts) <= 10
    assert len(seen) > 400
    assert {a for a, _ in stated} >= {a.name for a in known.attributes}


def test_aligned_scenes_hold_no_held_out_pair_and_fit_their_grid(monkeypatch):
    calls = []

    def record(vocabulary, view, size, n_objects, grid, jitter, key):
        calls.append((size, n_objects, grid, jitter))
        return key

    monkeypatch.setattr(batches, "aligned_batch", record)
    for i in range(100):
        assert dense_batch(3, 0.4 * i / 100, 0.4, (0, 0, i)) == (0, 0, i)
    n_attributes = len(load_vocabulary("known").attributes)
    for size, n_objects, grid, jitter in calls:
        assert size == 3 and n_objects <= min(grid**2, n_attributes)
        assert VIEW.size % grid == 0 and 0 < jitter <= 0.5
    jitters = [jitter for *_, jitter in calls]
    assert jitters == sorted(jitters) and jitters[0] < 0.1 and jitters[-1] > 0.45
    assert len({grid for _, _, grid, _ in calls}) == 2


def test_generative_texts_state_their_pairs_and_targets_their_scenes(blank_scenes, read_pairs):
    forms = Counter()
    for i in range(12):
        batch = generative_batch(5, (2, 1, i))
        scenes = [batches.names(batch.scenes, k) for k in range(5)]
        assert scenes == scene_pairs((2, 1, i), batch.scenes.pairs.shape[1], 5)
        for targets, pairs in ((batch.image_targets, scenes), (batch.text_targets, batch.pairs)):
            for text, expected in zip(targets, pairs, strict=True):
                assert sorted(read_pairs(text)) == sorted(expected)
                forms[text.startswith("A")] += 1
        for text, expected in zip(batch.texts, batch.pairs, strict=True):
            assert sorted(read_pairs(text)) == sorted(expected)
    assert min(forms[True], forms[False]) > 30


def scenes_of(batch, key, read_pairs):
    """Pairs of the batch's scenes, in the order of its images."""
    return scene_pairs(key, len(read_pairs(batch.texts[0])), len(batch.images))


def test_without_noise_texts_keep_all_bindings(blank_scenes, read_pairs):
    for i in range(8):
        batch = contrastive_batch(6, 0.0, (1, 2, i))
        scenes = scenes_of(batch, (1, 2, i), read_pairs)
        for texts in (batch.captions, batch.texts):
            for text, pairs in zip(texts, scenes, strict=True):
                assert sorted(read_pairs(text)) == sorted(pairs)
        for left, right in zip(batch.left, batch.right, strict=True):
            assert sorted(read_pairs(left)) == sorted(read_pairs(right))


def test_full_noise_deals_attributes_anew_and_keeps_every_word(blank_scenes, read_pairs):
    kept = broken = 0
    for i in range(12):
        batch = contrastive_batch(6, 1.0, (1, 2, i))
        scenes = scenes_of(batch, (1, 2, i), read_pairs)
        for texts in (batch.captions, batch.texts):
            for text, pairs in zip(texts, scenes, strict=True):
                stated = read_pairs(text)
                for which in (0, 1):
                    assert sorted(p[which] for p in stated) == sorted(p[which] for p in pairs)
                kept += len(set(stated) & set(pairs))
                broken += len(set(stated) - set(pairs))
        for left, right in zip(batch.left, batch.right, strict=True):
            for which in (0, 1):
                words = [sorted(p[which] for p in read_pairs(t)) for t in (left, right)]
                assert words[0] == words[1]
    # a random deal of n attributes keeps one of n bindings on average
    assert broken > 2 * kept > 0


def test_half_the_noise_leaves_about_half_of_the_large_scenes_whole(blank_scenes, read_pairs):
    whole = total = 0
    for i in range(40):
        batch = contrastive_batch(6, 0.5, (9, 2, i))
        scenes = scenes_of(batch, (9, 2, i), read_pairs)
        if len(scenes[0]) >= 5:  # smaller ones are often whole by chance
            whole += sum(sorted(read_pairs(t)) == sorted(p) for t, p in zip(batch.texts, scenes, strict=True))
            total += len(scenes)
    assert total > 60 and 0.35 < whole / total < 0.65


def test_second_views_show_the_first_scenes_anew():
    key = (6, 2, 2)
    batch = contrastive_batch(4, 0.0, key)
    assert batch.images.shape == (4, 192, 192, 3) and batch.second.shape == (2, 192, 192, 3)
    for n in range(2, 11):
        twice = render_scenes(load_vocabulary("known"), VIEW, n, key, range(1), views=2)
        if np.array_equal(twice.images[0], batch.images[0]):
            break
    assert np.array_equal(twice.pairs[0], twice.pairs[1])
    assert np.array_equal(twice.images[1], batch.second[0])
    assert not np.array_equal(batch.images[0], batch.second[0])
    assert len(batch.captions) == len(batch.texts) == 4 and len(batch.left) == len(batch.right) == 2


def test_counts_are_drawn_with_their_probabilities():
    for counts in (batches.IMAGE_COUNTS, batches.TEXT_COUNTS, batches.DENSE_COUNTS):
        assert sum(counts.values()) == pytest.approx(1)
        rng = np.random.default_rng(0)
        drawn = Counter(batches.draw_count(counts, rng) for _ in range(3000))
        for n, probability in counts.items():
            assert drawn[n] / 3000 == pytest.approx(probability, abs=0.03)


def test_names_are_those_of_the_indices():
    scenes = Scenes(np.zeros((1, 2, 2, 3), np.uint8), np.array([[[0, 1], [5, 63]]]), np.array([[-1]]))
    known = load_vocabulary("known")
    assert batches.names(scenes, 0) == [
        (known.attributes[0].name, known.objects[1].name),
        (known.attributes[5].name, known.objects[63].name),
    ]
