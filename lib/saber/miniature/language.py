"""Texts of the miniature: captions, lists, statements and sentences of a scene given as pairs of words.

A scene is a list of ``(attribute, object)`` names. Words come in three tiers: those seen in images (the known
vocabulary), the rest of SABER's vocabulary, and others, the last two in text only. A pair of the known
vocabulary that is held out of the images is held out of every text as well, of negatives and of noise too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from saber.captions import article, caption
from saber.training_scenes import held_out
from saber.vocabulary import load_vocabulary

Pairs = list[tuple[str, str]]
FILE = Path(__file__).with_name("language.yaml")
TIERS = ("seen", "saber", "other")
DEFAULT_SHARES = (0.5, 0.25, 0.25)  # how often a text takes its words from each tier


@dataclass(frozen=True)
class Language:
    """Objects and attributes by tier, and the material of sentences."""

    objects: dict[str, tuple[str, ...]]
    attributes: dict[str, tuple[str, ...]]
    frames: dict[str, tuple[str, ...]]

    def all_objects(self) -> tuple[str, ...]:
        """Objects of all tiers."""
        return tuple(name for tier in TIERS for name in self.objects[tier])

    def all_attributes(self) -> tuple[str, ...]:
        """Attributes of all tiers."""
        return tuple(name for tier in TIERS for name in self.attributes[tier])


@cache
def load_language() -> Language:
    """The three tiers and the sentence material of ``language.yaml``."""
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    full, seen = load_vocabulary("full"), load_vocabulary("known")
    frames = {key: tuple(data[key]) for key in ("openers", "subjects", "middles", "tails", "verbs")}
    objects = _tiers([x.name for x in full.objects], [x.name for x in seen.objects], data["objects"])
    attributes = _tiers(
        [x.name for x in full.attributes], [x.name for x in seen.attributes], data["attributes"]
    )
    return Language(objects, attributes, frames)


def _tiers(full: list[str], seen: list[str], other: list[str]) -> dict[str, tuple[str, ...]]:
    rest = [name for name in full if name not in seen]
    return dict(zip(TIERS, map(tuple, (seen, rest, other)), strict=True))


@cache
def _held_out_names() -> frozenset[tuple[str, str]]:
    seen = load_vocabulary("known")
    return frozenset(
        (a.name, o.name)
        for i, a in enumerate(seen.attributes)
        for j, o in enumerate(seen.objects)
        if held_out(i, j)
    )


def any_held_out(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether one of the pairs is kept out of training."""
    return not _held_out_names().isdisjoint(pairs)


def sample_pairs(
    n: int, rng: np.random.Generator, shares: Sequence[float] = DEFAULT_SHARES, mixed: float = 0.3
) -> Pairs:
    """``n`` pairs of distinct words, none held out.

    ``shares``: probability of each tier, drawn apart for objects and for attributes; with probability
    ``mixed`` both are drawn from all tiers of positive share together.
    """
    language = load_language()
    tiers = [tier for tier, share in zip(TIERS, shares, strict=True) if share > 0]
    while True:
        if rng.random() < mixed:
            groups = [
                [name for tier in tiers for name in table[tier]]
                for table in (language.attributes, language.objects)
            ]
        else:
            groups = [
                table[TIERS[rng.choice(3, p=shares)]] for table in (language.attributes, language.objects)
            ]
        if min(map(len, groups)) < n:
            continue
        chosen = [[g[i] for i in rng.choice(len(g), n, replace=False)] for g in groups]
        pairs = list(zip(*chosen, strict=True))
        for _ in range(10):  # a reordering is often enough
            if not any_held_out(pairs):
                return pairs
            rng.shuffle(chosen[0])
            pairs = list(zip(*chosen, strict=True))


def shuffled(pairs: Pairs, rng: np.random.Generator) -> Pairs:
    """The pairs in random order."""
    return [pairs[i] for i in rng.permutation(len(pairs))]


def reassigned(pairs: Pairs, rng: np.random.Generator) -> Pairs:
    """The attributes dealt anew at random, as in a noisy web caption; no held-out pair arises."""
    for _ in range(20):
        order = rng.permutation(len(pairs))
        dealt = [(pairs[i][0], o) for i, (_, o) in zip(order, pairs, strict=True)]
        if not any_held_out(dealt):
            return dealt
    return pairs


def listing(pairs: Pairs) -> str:
    """``red cube, blue kite and golden key``."""
    phrases = [f"{a} {o}" for a, o in pairs]
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " and " + phrases[-1]


def statements(pairs: Pairs) -> str:
    """``the cube is red. the kite is blue.``"""
    return " ".join(f"the {o} is {a}." for a, o in pairs)


KINDS = ("attributive", "predicative", "respective", "anaphoric")


def draw_frame(n: int, rng: np.random.Generator) -> dict[str, str]:
    """Everything of a sentence that is not a pair, so that a positive and its negatives can share it."""
    frames = load_language().frames

    def pick(key: str) -> str:
        return frames[key][rng.integers(len(frames[key]))]

    frame = {
        "opener": pick("openers"),
        "subject": pick("subjects"),
        "tail": pick("tails"),
        "verb": pick("verbs"),
    }
    return frame | {f"middle {i}": pick("middles") if rng.random() < 0.5 else "" for i in range(n)}


def sentence(pairs: Pairs, kind: str, frame: dict[str, str]) -> str:
    """One sentence (two for ``anaphoric``) around the pairs.

    kind: ``attributive`` "a red cube", ``predicative`` "the cube was red", ``respective`` "the cube and the
    kite were red and blue respectively", ``anaphoric`` "... a cube and a kite. the first was red and the
    second was blue" (two pairs only).
    """
    opener, subject, tail, verb = (frame[k] for k in ("opener", "subject", "tail", "verb"))
    middles = [frame[f"middle {i}"] for i in range(len(pairs))]
    if len(pairs) < 2:
        raise ValueError(f"a sentence needs at least two pairs, not {pairs}")
    if kind == "attributive":
        parts = [f"{article(a)} {a} {o} {m}".strip() for (a, o), m in zip(pairs, middles, strict=True)]
        words = f"{opener} {subject} {', '.join(parts[:-1])} and {parts[-1]} {tail}"
    elif kind == "predicative":
        parts = [
            " ".join(f"the {o} {m} {verb} {a}".split()) for (a, o), m in zip(pairs, middles, strict=True)
        ]
        words = f"{opener} {' and '.join(parts)} {tail}"
    elif kind == "respective":
        objects, attributes = (
            f" and {d}".join(x) for d, x in (("the ", [o for _, o in pairs]), ("", [a for a, _ in pairs]))
        )
        words = f"{opener} the {objects} {middles[0]} were {attributes} respectively"
    elif kind == "anaphoric":
        (a1, o1), (a2, o2) = pairs
        words = (
            f"{opener} {subject} {article(o1)} {o1} and {article(o2)} {o2} {middles[0]}. "
            f"the first was {a1} and the second was {a2}"
        )
    else:
        raise ValueError(f"unknown kind of sentence {kind!r}; choose from {', '.join(KINDS)}")
    return " ".join(words.split()).replace(" .", ".") + "."


def random_text(pairs: Pairs, rng: np.random.Generator) -> str:
    """A text of any form that states the pairs, in random order."""
    pairs, n, draw = shuffled(pairs, rng), len(pairs), rng.random()
    if n == 1 or draw < 0.3:
        return caption(pairs)
    if draw < 0.45:
        return listing(pairs)
    if draw < 0.6:
        return statements(pairs)
    shares = (0.5, 0.3, 0.1, 0.1) if n == 2 else (0.6, 0.4, 0.0, 0.0)
    return sentence(pairs, KINDS[rng.choice(4, p=shares)], draw_frame(n, rng))


def words() -> set[str]:
    """Every word of every text, lower case, without punctuation; names of two words count as they are."""
    language = load_language()
    found = set("a an and the is are was were first second respectively".split())
    for texts in language.frames.values():
        found.update(word.strip(",.") for text in texts for word in text.lower().split())
    found.update(name.lower() for name in (*language.all_objects(), *language.all_attributes()))
    return found - {""}
