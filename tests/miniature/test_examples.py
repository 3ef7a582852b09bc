"""Finetuning examples: negatives are the positive with words permuted, bindings broken, no more."""

import re
from collections import Counter

import numpy as np
import pytest

from saber.images.render import render_scene
from saber.miniature import examples, language
from saber.miniature.examples import NO_SEEN_WORDS, image_examples, text_examples
from saber.miniature.language import any_held_out, load_language
from saber.vocabulary import appearances, load_vocabulary

N = 120


@pytest.fixture(scope="module", params=[examples.WITH_SEEN_WORDS, NO_SEEN_WORDS])
def texts(request):
    return text_examples(N, 3, request.param)


def words(text):
    """The words of a sentence with their number, articles apart."""
    return Counter(w for w in re.findall(r"[\w'-]+", text.lower()) if w not in ("a", "an"))


def broken(pairs, negative):
    return len(set(negative) - set(pairs))


def test_negatives_are_permutations_of_the_positives_words(texts):
    for example in texts:
        right = words(example.positive)
        assert words(example.attribute_negative) == right == words(example.object_negative)
        for text in (example.positive, example.attribute_negative, example.object_negative):
            assert len(re.findall(r"\ban?\b", text)) == len(re.findall(r"\ban?\b", example.positive))
        assert len({example.positive, example.attribute_negative, example.object_negative}) == 3


def test_bindings_are_kept_by_the_positive_and_broken_by_the_negatives(texts, read_pairs):
    kinds = Counter()
    for example in texts:
        query = read_pairs(example.query)
        positive, attribute, obj = (
            read_pairs(t) for t in (example.positive, example.attribute_negative, example.object_negative)
        )
        assert sorted(query) == sorted(positive) and len(query) in (2, 3)
        # the same sentence: one has the objects where they were, the other the attributes
        assert [o for _, o in attribute] == [o for _, o in positive]
        assert [a for a, _ in obj] == [a for a, _ in positive]
        assert broken(positive, attribute) == broken(positive, obj) >= 2
        kinds[len(query), broken(positive, attribute)] += 1
        assert example.query == language.listing(query)
    assert set(kinds) == {(2, 2), (3, 2), (3, 3)} and min(kinds.values()) > 5, kinds


def test_no_held_out_pair_in_any_text(texts, read_pairs):
    for example in texts:
        for text in vars(example).values():
            assert not any_held_out(read_pairs(text))


def test_words_come_from_the_tiers_asked_for(read_pairs):
    tiers = load_language()
    seen = {*tiers.objects["seen"], *tiers.attributes["seen"]}

    def share(shares):
        found = [w for e in text_examples(N, 8, shares) for p in read_pairs(e.query) for w in p]
        return np.mean([word in seen for word in found])

    assert share(NO_SEEN_WORDS) == 0 and 0.2 < share(examples.WITH_SEEN_WORDS) < 0.6


def test_both_kinds_of_sentence_come_and_queries_vary_in_order(texts, read_pairs):
    verbs = "|".join(load_language().frames["verbs"])
    predicative = sum(bool(re.search(rf"\bthe .*\b({verbs})\b", e.positive)) for e in texts)
    assert 0.2 < predicative / N < 0.7
    same = sum(read_pairs(e.query) == read_pairs(e.positive) for e in texts)
    assert 0.2 < same / N < 0.7


def test_an_example_depends_on_seed_and_number_alone():
    assert text_examples(5, 3) == text_examples(9, 3)[:5] != text_examples(5, 4)


@pytest.fixture
def rendered(monkeypatch):
    """Calls of the renderer while image examples are made, which stay real."""
    calls = []

    def record(objects, looks, seed, size, flipped):
        calls.append((tuple(zip(looks, objects, strict=True)), seed, flipped))
        return render_scene(objects, looks, seed, size, flipped)

    monkeypatch.setattr(examples, "render_scene", record)
    return calls


def test_image_examples_show_the_same_looks_in_all_four(rendered):
    known = load_vocabulary("known")
    attribute_of = {look: a.name for a in known.attributes for look in appearances(a, known.palette)}
    made = image_examples(4, 2)
    assert len(rendered) == 16
    for k, example in enumerate(made):
        (query, positive, attribute, obj), seeds, _ = zip(*rendered[4 * k : 4 * k + 4], strict=True)
        looks, objects = zip(*positive, strict=True)
        assert query == positive and len(set(seeds)) == 4
        assert [o for _, o in attribute] == list(objects) and [look for look, _ in obj] == list(looks)
        for scene in (attribute, obj):
            assert sorted(x for x, _ in scene) == sorted(looks)
            assert sorted(x for _, x in scene) == sorted(objects)
            assert broken(positive, scene) >= 2
        for scene in (positive, attribute, obj):
            assert not any_held_out([(attribute_of[look], o) for look, o in scene])
        pictures = [np.asarray(item["image"]) for item in vars(example).values()]
        assert [p.shape for p in pictures] == [(192, 192, 3)] * 4
        assert len({p.tobytes() for p in pictures}) == 4


def test_image_examples_repeat():
    one, two = (image_examples(1, 6)[0] for _ in range(2))
    for a, b in zip(vars(one).values(), vars(two).values(), strict=True):
        assert a["image"].tobytes() == b["image"].tobytes()
