"""The vocabulary against the numbers and examples that the paper publishes, and its errors."""

import json
import re
from collections import Counter

import numpy as np
import pytest
import yaml

from saber.vocabulary import (
    FOLDER,
    appearances,
    instantiate,
    load_attributes,
    load_objects,
    load_vocabulary,
)

# Table 7 and section A.1.
TABLE_7 = {"basic color": 9, "other color": 2, "metallic": 3, "material": 19, "pattern": 15, "effect": 2}
TYPES = {"standalone": 27, "single-color": 4, "two-color": 6, "fixed-variant": 13}
PALETTE = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black")


@pytest.fixture(scope="module")
def vocabulary():
    return load_vocabulary()


def test_sizes_are_the_papers(vocabulary):
    assert len(vocabulary.objects) == 232
    assert Counter(a.category for a in vocabulary.attributes) == TABLE_7
    assert Counter(a.type for a in vocabulary.attributes) == TYPES
    assert vocabulary.palette == PALETTE


@pytest.mark.parametrize(
    ("name", "type_", "form"),
    [
        ("red", "standalone", "red"),
        ("sandy", "standalone", "sandy"),
        ("camouflage", "standalone", "camouflage"),
        ("transparent", "standalone", "transparent"),
        ("golden", "standalone", "golden"),
        ("tie-dye", "standalone", "tie-dye"),
        ("pink", "standalone", "pink"),
        ("soap-bubble", "standalone", "iridescent soap-bubble"),
        ("glowing", "single-color", "{color} glowing"),
        ("striped", "two-color", "{color 1} and {color 2} striped"),
        ("wooden", "fixed-variant", "{light-brown, dark-brown} wooden"),
    ],
)
def test_named_examples_of_the_paper(vocabulary, name, type_, form):
    attribute = vocabulary.attribute(name)
    assert (attribute.type, attribute.generation) == (type_, form)


@pytest.mark.parametrize("name", ["toothbrush", "teapot", "kayak", "cannon", "submarine", "giraffe"])
def test_named_objects_of_the_paper(vocabulary, name):
    assert vocabulary.object(name).name == name


def test_known_is_a_part_of_the_full_vocabulary(vocabulary):
    known = load_vocabulary("known")
    assert (len(known.objects), len(known.attributes)) == (64, 24)
    assert set(known.objects) <= set(vocabulary.objects)
    assert set(known.attributes) <= set(vocabulary.attributes)
    assert known == vocabulary.known()
    assert known.palette == vocabulary.palette


def test_appearances_by_type(vocabulary):
    expected = {"standalone": 1, "single-color": 9, "two-color": 72, "fixed-variant": 2}
    for a in vocabulary.attributes:
        forms = appearances(a, vocabulary.palette)
        assert len(forms) == len(set(forms)) == expected[a.type]
        assert all(re.fullmatch(r"[a-z-]+( [a-z-]+)*", f) for f in forms)
    assert appearances(vocabulary.attribute("wooden"), PALETTE) == ("light-brown wooden", "dark-brown wooden")
    assert "white and orange striped" in appearances(vocabulary.attribute("striped"), PALETTE)
    assert "red and red striped" not in appearances(vocabulary.attribute("striped"), PALETTE)
    assert appearances(vocabulary.attribute("glowing"), ("red", "blue")) == ("red glowing", "blue glowing")


def test_no_two_attributes_share_an_appearance(vocabulary):
    forms = [f for a in vocabulary.attributes for f in appearances(a, vocabulary.palette)]
    assert len(forms) == len(set(forms)) == 27 + 4 * 9 + 6 * 72 + 13 * 2


def test_instantiate_is_uniform_and_repeatable(vocabulary):
    striped = vocabulary.attribute("striped")
    draw = [instantiate(striped, PALETTE, np.random.default_rng(3)) for _ in range(2)]
    assert draw[0] == draw[1]
    rng = np.random.default_rng(0)
    counts = Counter(instantiate(striped, PALETTE, rng) for _ in range(7200))
    assert set(counts) == set(appearances(striped, PALETTE))
    chi2 = sum((n - 100) ** 2 / 100 for n in counts.values())
    assert 40 < chi2 < 112  # 71 degrees of freedom: 0.1 % to 99.9 %


def test_names_stand_before_a_noun(vocabulary):
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", a.name) for a in vocabulary.attributes)
    assert [o.name for o in vocabulary.objects] == sorted(o.name for o in vocabulary.objects)


def test_palette_colors_are_far_apart():
    _, palette = load_attributes()
    colors = np.array(list(palette.values()), float)
    gap = np.abs(colors[:, None] - colors[None]).sum(-1) + 1e9 * np.eye(len(colors))
    assert gap.min() > 100


def test_unknown_names_are_explained(vocabulary):
    with pytest.raises(KeyError, match=r"unknown object 'teapott'.*teapot"):
        vocabulary.object("teapott")
    with pytest.raises(KeyError, match=r"unknown attribute 'stripey'.*striped"):
        vocabulary.attribute("stripey")
    with pytest.raises(ValueError, match="'full' or 'known'"):
        load_vocabulary("mini")


def _write(folder, name, change):
    data = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    change(data)
    path = folder / name
    path.write_text(json.dumps(data), encoding="utf-8", newline="\n")  # JSON is YAML, and quicker to write
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["attributes"].pop(), "expected 2"),
        (
            lambda d: d["attributes"][0].update(category="colour"),
            "unknown category 'colour'; valid: basic color",
        ),
        (lambda d: d["attributes"][0].update(type="plain"), "unknown type 'plain'; valid: standalone"),
        (lambda d: d["attributes"][1].update(name="red"), "name given twice: red"),
        (lambda d: d["attributes"][0].update(name="Bright red"), "lower-case"),
        (lambda d: d["attributes"][0].update(generation="{color} red"), "must hold no slot"),
        (lambda d: d["attributes"][0].update(shade="dark"), "entry 1 must have exactly"),
        (lambda d: d["attributes"].__setitem__(4, "red"), "attribute 5 must be a mapping"),
        (lambda d: d["attributes"][0].update(known="yes"), "known must be bool"),
        (lambda d: d["attributes"][0].update(known=False), "known: true, expected 24"),
        (lambda d: d["attributes"][49].update(generation="red"), "appearance given twice: red"),
        (lambda d: d["palette"].update(red=[1, 2, 300]), "palette color 'red'"),
        (lambda d: d["palette"].pop("red"), "8 palette colors, expected 9"),
        (lambda d: d.pop("palette"), "two keys"),
    ],
)
def test_damaged_attributes_are_named(tmp_path, change, message):
    path = _write(tmp_path, "attributes.yaml", change)
    with pytest.raises(ValueError, match=message) as error:
        load_attributes(path)
    assert "attributes.yaml" in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop(), "231 objects, expected 232"),
        (lambda d: d.reverse(), "sorted by name"),
        (lambda d: d[3].update(name=d[2]["name"]), "name given twice"),
        (lambda d: d[3].update(sprite=d[2]["sprite"]), "sprite given twice"),
        (lambda d: d[3].pop("category"), "entry 4 must have exactly name, sprite, category, known"),
    ],
)
def test_damaged_objects_are_named(tmp_path, change, message):
    path = _write(tmp_path, "objects.yaml", change)
    with pytest.raises(ValueError, match=message):
        load_objects(path)


def test_missing_file_says_which(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"attributes\.yaml"):
        load_vocabulary(folder=tmp_path)
