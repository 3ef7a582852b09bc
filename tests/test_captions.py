"""saber.captions: articles by pronunciation, and captions that can be taken apart again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saber.captions import (
    CAPTION_END,
    article,
    caption,
    generation_caption,
    join_pairs,
    pairs_of_caption,
    split_caption,
)
from saber.vocabulary import appearances, load_vocabulary

AN = """
    hour hourly honest heirloom heir honor hourglass herb herbal Herb herb-green umbrella urn igloo onyx
    orange x-ray X-ray 8-sided 8 80 80s 8th 800 8,000 81 11th 11 18 18,000 11-sided usher ushers unironed
    unissued unidentified uninvited unlit umpire ugly ultraviolet undone upside-down LED LEDs SUV MRI FBI F1
    S-shaped e-bike éclair École iridescent oak ivory icy opal emerald ombre ox oboe origami egg ear owl axe
""".split()
A = """
    unicorn unicycle ukulele university one-way one-eyed one ones once euro European US-made yo-yo uniform
    union unique unit useful used usual utensil utopian UFO USB U-shaped ewe eucalyptus eulogy UV ouija
    unidirectional house hot historic herbivore led 1 10 17 100 110 180 1,800 yellow yarn t-shirt cube
""".split()


@pytest.mark.parametrize("word", AN)
def test_article_is_an(word):
    assert article(word) == "an"


@pytest.mark.parametrize("word", A)
def test_article_is_a(word):
    assert article(word) == "a"


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("wooden igloo", "a"),
        ("orange ukulele", "an"),
        ("unicycle", "a"),
        ("hour unicorn", "an"),
        ("  icy university", "an"),
        ("one-way onyx urn", "a"),
        ("x-ray yo-yo", "an"),
    ],
)
def test_article_follows_the_first_word(phrase, expected):
    assert article(phrase) == expected


def test_real_vocabulary_differs_from_the_spelling_rule_only_where_it_should():
    vocabulary = load_vocabulary()
    phrases = [o.name for o in vocabulary.objects] + [a.name for a in vocabulary.attributes]
    phrases += [x for a in vocabulary.attributes for x in appearances(a, vocabulary.palette)]
    assert len(phrases) > 282
    by_sound = {p.split()[0] for p in phrases if (article(p) == "an") != (p[0] in "aeiou")}
    # a new word that starts this way is to be looked at, then added here
    assert by_sound <= {"hourglass", "unicorn", "unicycle", "ukulele", "uniform", "x-ray", "ewe", "euro"}


def test_empty_phrases_raise():
    with pytest.raises(ValueError, match="at least one word"):
        article("  ")
    with pytest.raises(ValueError, match="at least one phrase"):
        join_pairs([])


def test_captions_of_the_paper():
    assert CAPTION_END == ""
    assert caption([("striped", "cube"), ("transparent", "kite")]) == "A striped cube and a transparent kite"
    assert (
        generation_caption(["white and orange striped", "transparent"], ["cube", "kite"])
        == "A white and orange striped cube and a transparent kite"
    )


def test_one_and_three_pairs():
    assert caption([("icy", "owl")]) == "An icy owl"
    three = [("golden", "cannon"), ("orange", "submarine"), ("glowing", "giraffe")]
    assert caption(three) == "A golden cannon, an orange submarine, and a glowing giraffe"


def test_generation_caption_needs_an_appearance_for_each_object():
    with pytest.raises(ValueError, match="2 appearances for 1 objects"):
        generation_caption(["red", "blue"], ["cube"])


def test_split_accepts_other_punctuation():
    expected = [("a", "white and orange striped cube"), ("an", "icy owl"), ("a", "red t-shirt")]
    for text in (
        "A white and orange striped cube, an icy owl, and a red t-shirt",
        "a white and orange striped cube, an icy owl and a red t-shirt.",
        "A white and orange striped cube and an icy owl and A red t-shirt",
    ):
        assert split_caption(text) == expected


@pytest.mark.parametrize("text", ["", "red cube and a kite", "The red cube", "Apple pie"])
def test_split_refuses_other_sentences(text):
    with pytest.raises(ValueError, match="not a caption"):
        split_caption(text)


def test_pairs_of_caption_needs_attribute_and_object():
    assert pairs_of_caption("A tie-dye ice cream cone and an icy owl.") == (
        ("tie-dye", "ice cream cone"),
        ("icy", "owl"),
    )
    with pytest.raises(ValueError, match="'cube'"):
        pairs_of_caption("A red kite and a cube")


_VOCABULARY = load_vocabulary()
_PAIR = st.tuples(
    st.sampled_from([a.name for a in _VOCABULARY.attributes]),
    st.sampled_from([o.name for o in _VOCABULARY.objects]),
)


@given(st.lists(_PAIR, min_size=1, max_size=10))
def test_a_caption_taken_apart_gives_its_pairs(pairs):
    text = caption(pairs)
    assert text[0] == "A"
    assert pairs_of_caption(text) == tuple(pairs)
    assert [a for a, _ in split_caption(text)] == [article(attribute) for attribute, _ in pairs]


@given(st.data(), st.lists(_PAIR, min_size=1, max_size=10))
def test_a_generation_caption_taken_apart_gives_its_phrases(data, pairs):
    looks = [
        data.draw(st.sampled_from(appearances(_VOCABULARY.attribute(a), _VOCABULARY.palette)))
        for a, _ in pairs
    ]
    text = generation_caption(looks, [o for _, o in pairs])
    assert [p for _, p in split_caption(text)] == [f"{x} {o}" for x, (_, o) in zip(looks, pairs, strict=True)]
