"""Texts of the miniature: every word once, no held-out pair anywhere, and no word with two meanings."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber.captions import caption
from saber.miniature import language
from saber.miniature.architecture import MAX_LENGTH
from saber.miniature.language import KINDS, TIERS, load_language
from saber.training_scenes import held_out
from saber.vocabulary import load_vocabulary

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(1, 10)
SHARES = st.sampled_from([language.DEFAULT_SHARES, (1.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.4, 0.3, 0.3)])
FRAME = {"opener": "at noon,", "subject": "we met", "tail": "again", "verb": "looked"} | {
    f"middle {i}": ("in sight", "")[i % 2] for i in range(10)
}


def forms(pairs, rng):
    """The pairs in every form there is, by name."""
    n = len(pairs)
    texts = {
        "caption": caption(pairs),
        "listing": language.listing(pairs),
        "statements": language.statements(pairs),
        "random": language.random_text(pairs, rng),
    }
    kinds = KINDS if n == 2 else KINDS[:3] if n > 2 else ()
    return texts | {kind: language.sentence(pairs, kind, language.draw_frame(n, rng)) for kind in kinds}


def test_the_tiers_are_the_known_vocabulary_the_rest_of_it_and_others():
    words, full, known = load_language(), load_vocabulary("full"), load_vocabulary("known")
    for tiers, all_names, entries, seen in (
        (words.objects, words.all_objects(), full.objects, known.objects),
        (words.attributes, words.all_attributes(), full.attributes, known.attributes),
    ):
        assert tiers["seen"] == tuple(x.name for x in seen)
        assert {*tiers["seen"], *tiers["saber"]} == {x.name for x in entries}
        assert len(tiers["saber"]) == len(entries) - len(seen) and len(tiers["other"]) >= 64
        assert all_names == tiers["seen"] + tiers["saber"] + tiers["other"]
        assert len(set(all_names)) == len(all_names)
    assert not set(words.all_objects()) & set(words.all_attributes())


def test_no_word_of_the_vocabulary_is_used_for_anything_else():
    words = load_language()
    names = {*words.all_objects(), *words.all_attributes()}
    assert all(name == name.lower() for name in names)
    around = {w.strip(",.") for texts in words.frames.values() for text in texts for w in text.split()}
    around |= set("a an and the is are was were first second respectively".split())
    around -= {""}
    assert around <= language.words()
    around |= set("system user assistant represent describe user's input".split())
    assert not around & names
    # a name of several words never comes about by chance, from an attribute before an object or from a frame
    single = {name for name in names if " " not in name} | around
    for name in names:
        if " " in name:
            assert not set(name.split()) <= single, name


def test_held_out_names_are_the_held_out_indices():
    known = load_vocabulary("known")
    for i, a in enumerate(known.attributes):
        for j, o in enumerate(known.objects):
            assert language.any_held_out([("old", "bench"), (a.name, o.name)]) == held_out(i, j)


@settings(max_examples=60)
@given(SEEDS, COUNTS, SHARES, st.sampled_from([0.0, 0.3, 1.0]))
def test_sampled_pairs_are_distinct_words_of_the_tiers_and_none_is_held_out(seed, n, shares, mixed):
    pairs = language.sample_pairs(n, np.random.default_rng(seed), shares, mixed)
    attributes, objects = zip(*pairs, strict=True)
    assert len(set(attributes)) == len(set(objects)) == len(pairs) == n
    assert not language.any_held_out(pairs)
    words = load_language()
    for names, table in ((attributes, words.attributes), (objects, words.objects)):
        tiers = [t for t in TIERS if set(names) & set(table[t])]
        assert all(shares[TIERS.index(t)] > 0 for t in tiers) and (mixed or len(tiers) == 1)
        assert set(names) <= {name for t in tiers for name in table[t]}
    again = language.sample_pairs(n, np.random.default_rng(seed), shares, mixed)
    assert pairs == again


def test_tiers_are_drawn_with_their_shares_and_every_allowed_pair_of_seen_words_can_come():
    rng, words = np.random.default_rng(0), load_language()
    tier = {name: t for t in TIERS for name in (*words.objects[t], *words.attributes[t])}
    draws = [language.sample_pairs(1, rng, (0.6, 0.3, 0.1), 0.0)[0] for _ in range(1500)]
    for which in (0, 1):
        found = Counter(tier[pair[which]] for pair in draws)
        assert [found[t] / 1500 for t in TIERS] == pytest.approx([0.6, 0.3, 0.1], abs=0.05)
    seen = Counter(p for _ in range(1500) for p in language.sample_pairs(10, rng, (1.0, 0.0, 0.0)))
    allowed = sum(not held_out(i, j) for i in range(24) for j in range(64))
    assert len(seen) > 0.999 * allowed


@given(SEEDS, COUNTS, SHARES)
def test_reassigned_attributes_are_the_same_ones_without_a_held_out_pair(seed, n, shares):
    rng = np.random.default_rng(seed)
    pairs = language.sample_pairs(n, rng, shares)
    dealt = language.reassigned(pairs, rng)
    assert not language.any_held_out(dealt)
    assert [o for _, o in dealt] == [o for _, o in pairs]
    assert sorted(a for a, _ in dealt) == sorted(a for a, _ in pairs)


def test_every_deal_of_three_attributes_comes_about_equally_often():
    rng = np.random.default_rng(3)
    pairs = [("old", "bench"), ("new", "barn"), ("heavy", "letter")]
    deals = Counter(tuple(language.reassigned(pairs, rng)) for _ in range(1200))
    assert len(deals) == 6 and max(deals.values()) < 1.4 * min(deals.values())


@settings(max_examples=60)
@given(SEEDS, COUNTS, SHARES)
def test_every_form_states_each_pair_once_and_is_tokenized_without_unknown_words(
    tokenizer, read_pairs, seed, n, shares
):
    rng = np.random.default_rng(seed)
    pairs = language.sample_pairs(n, rng, shares)
    for form, text in forms(pairs, rng).items():
        if form == "random":
            assert sorted(read_pairs(text)) == sorted(pairs), text
        else:
            assert read_pairs(text) == pairs, text
        tokens = tokenizer.convert_ids_to_tokens(tokenizer(text, add_special_tokens=False).input_ids)
        assert tokenizer.unk_token not in tokens, text
        assert len(tokens) + 20 <= MAX_LENGTH
        for pair in pairs:
            assert [tokens.count(word) for word in pair] == [1, 1], text
        assert "  " not in text and " ." not in text and " ," not in text and text == text.strip()


@given(SEEDS, st.integers(2, 10), st.sampled_from(KINDS))
def test_a_sentence_of_permuted_pairs_differs_in_the_pairs_alone(seed, n, kind):
    n = 2 if kind == "anaphoric" else n
    rng = np.random.default_rng(seed)
    pairs = language.sample_pairs(n, rng)
    frame, order = language.draw_frame(n, rng), rng.permutation(n)
    attributes, objects = zip(*pairs, strict=True)

    def around(pairs):
        text = language.sentence(pairs, kind, frame)
        for word in sorted({w for pair in pairs for w in pair}, key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", "#", text, count=1)
        return re.sub(r"\ban? #", "a #", text)

    permuted = [(attributes[k], o) for k, o in zip(order, objects, strict=True)]
    others = [(a, objects[k]) for k, a in zip(order, attributes, strict=True)]
    assert around(pairs) == around(permuted) == around(others)
    assert around(pairs).count("#") == 2 * n


def test_each_kind_of_sentence_by_hand():
    two, three = (
        [("red", "cube"), ("orange", "kite")],
        [("red", "cube"), ("orange", "kite"), ("old", "bench")],
    )
    assert language.listing(three) == "red cube, orange kite and old bench"
    assert language.listing(two[:1]) == "red cube"
    assert language.statements(two) == "the cube is red. the kite is orange."
    expected = {
        "attributive": "at noon, we met a red cube in sight and an orange kite again.",
        "predicative": "at noon, the cube in sight looked red and the kite looked orange again.",
        "respective": "at noon, the cube and the kite in sight were red and orange respectively.",
        "anaphoric": "at noon, we met a cube and a kite in sight. "
        "the first was red and the second was orange.",
    }
    assert {kind: language.sentence(two, kind, FRAME) for kind in KINDS} == expected
    assert language.sentence(three, "attributive", FRAME | {"opener": "", "tail": ""}) == (
        "we met a red cube in sight, an orange kite and an old bench in sight."
    )
    assert language.sentence(two, "anaphoric", FRAME | {"middle 0": ""}).startswith(
        "at noon, we met a cube and a kite. the first"
    )
    with pytest.raises(ValueError, match="unknown kind of sentence 'passive'; choose from attributive"):
        language.sentence(two, "passive", FRAME)


def test_random_texts_take_every_form_and_order():
    rng = np.random.default_rng(5)
    for n, texts in ((1, 20), (2, 400), (3, 400)):
        pairs = [("red", "cube"), ("orange", "kite"), ("old", "bench")][:n]
        drawn = [language.random_text(pairs, rng) for _ in range(texts)]
        marks = {
            "caption": sum(text[0] == "A" and text[-1] != "." for text in drawn),
            "listing": sum(text[-1] != "." and text[0] != "A" for text in drawn),
            "statements": sum(text.count(" is ") == n for text in drawn),
            "respective": sum("respectively." in text for text in drawn),
            "anaphoric": sum("the second was" in text for text in drawn),
        }
        marks["others"] = texts - sum(marks.values())
        if n == 1:
            assert marks["caption"] == texts
            continue
        assert min(marks[k] for k in ("caption", "listing", "statements", "others")) > 25, marks
        assert (marks["anaphoric"] > 0) == (marks["respective"] > 0) == (n == 2), marks
        first = sum(text.index("cube") < text.index("kite") for text in drawn)
        assert 0.4 < first / texts < 0.6


def test_shuffled_keeps_the_pairs():
    pairs = language.sample_pairs(6, np.random.default_rng(0))
    orders = {tuple(language.shuffled(pairs, np.random.default_rng(s))) for s in range(20)}
    assert all(sorted(order) == sorted(pairs) for order in orders) and len(orders) > 15


def test_the_longest_text_fits_the_model(tokenizer):
    words = load_language()

    def longest(texts):
        return max(texts, key=lambda text: len(tokenizer(text, add_special_tokens=False).input_ids))

    frame = {
        f"{key[:-1]}": longest(words.frames[key]) for key in ("openers", "subjects", "tails", "verbs")
    } | {f"middle {i}": longest(words.frames["middles"]) for i in range(10)}
    pairs = list(zip(words.all_attributes()[:10], words.all_objects()[:10], strict=True))
    for kind in KINDS[:3]:
        ids = tokenizer(language.sentence(pairs, kind, frame), add_special_tokens=False).input_ids
        assert 40 < len(ids) + 20 <= MAX_LENGTH
