import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saber.embedders import Content, ItemError
from saber.embedders.bag_of_words import N_SHARED, BagOfWords, words
from saber.vocabulary import load_vocabulary

BAG = BagOfWords()


def embed(*texts):
    return BAG.embed([Content(text=text) for text in texts])


def test_words():
    assert words("A Polka-dot kite, and a child's traffic light.") == [
        "a", "polka-dot", "kite", "and", "a", "child's", "traffic", "light"
    ]  # fmt: skip


def test_swapped_bindings_are_the_same_vector_to_the_bit():
    a, b, c = embed(
        "A red teapot, an orange kite, and a wooden cube",
        "An orange cube, a wooden teapot, and a red kite",
        "A red teapot, an orange kite, and a wooden boat",
    )
    assert (a == b).all() and not (a == c).all()


@given(st.lists(st.sampled_from(["red", "blue", "teapot", "zzz", "qqq", "a"]), min_size=1), st.randoms())
def test_order_never_matters(chosen, random):
    shuffled = list(chosen)
    random.shuffle(shuffled)
    first, second = embed(" ".join(chosen), ", ".join(shuffled).upper())
    assert (first == second).all()
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-6)


def test_cosine_is_that_of_the_counts():
    a, b = embed("red red teapot", "red kite kite kite")
    assert float(a @ b) == pytest.approx(2 / (5**0.5 * 10**0.5), abs=1e-6)


def test_each_word_of_the_vocabulary_has_its_own_coordinate():
    vocabulary = load_vocabulary("full")
    single = sorted({w for e in (*vocabulary.objects, *vocabulary.attributes) for w in words(e.name)})
    columns = embed(*single).argmax(axis=1)
    assert len(set(columns)) == len(single) and columns.max() < BAG.dim - N_SHARED


def test_other_words_count_too():
    a, b = embed("xylophonist", "red")
    assert a.argmax() >= BAG.dim - N_SHARED
    assert float(a @ b) == 0


def test_nothing_to_count_and_images_are_named():
    with pytest.raises(ItemError, match=r"item 1 .*zero vector"):
        embed("red", " ., ")
    with pytest.raises(ItemError, match="takes text only"):
        BAG.embed([Content(image="a.png")])


def test_fingerprint_follows_the_word_list():
    assert BAG.fingerprint == BagOfWords("another name").fingerprint
    other = BagOfWords()
    other.identity["words"] = other.identity["words"][1:]
    assert other.fingerprint != BAG.fingerprint
    assert embed("red").shape == (1, BAG.dim) and embed().shape == (0, BAG.dim)
