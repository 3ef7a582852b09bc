"""Captions of scenes: "A striped cube and a transparent kite" (section A.3).

A caption is a conjunction of noun phrases, each with the article its pronunciation asks for. The text form of
a scene uses the attributes' names; the generation form uses their full appearance ("a white and orange
striped cube"). The paper prints the example with a full stop that may belong to its own sentence; here a
caption carries none (``CAPTION_END``). Of three and more phrases the last
has a comma before its "and".
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

CAPTION_END = ""

# Where `inflect` is wrong, matched against the whole first word (up to a space or hyphen). Found by comparing
# it with the 126,000 words of the CMU pronouncing dictionary, where it errs on 188, nearly all of them
# surnames and abbreviations; "herb" follows the American pronunciation, as the paper's spelling does.
ARTICLE_EXCEPTIONS = (
    (r"herb(s|ed|al|aceous|y)?", "an"),  # silent h in American English
    (r"usher\w*", "an"),
    (r"uni(ll|ron|ssu|solat)\w*", "an"),  # un + illuminated, ironed, issued, isolated: no "you" sound
    (r"(8[\d,.]*|1[18](,?\d{3})*)(s|st|th)?", "an"),  # eight..., eleven, eighteen, and these thousands
    (r"f\d+|(?-i:LED|SUV)s?", "an"),  # letters spelled out
    (r"ones|oneness|oneself", "a"),
    (r"ouija|usb|uv|unesco|unanimity|unidirectional|ulysses", "a"),
)

_EXCEPTIONS = [(re.compile(pattern, re.IGNORECASE), value) for pattern, value in ARTICLE_EXCEPTIONS]
_BEFORE_PHRASE = re.compile(r"(?:^|,\s+and\s+|,\s+|\s+and\s+)(an?)\s+", re.IGNORECASE)


@cache
def _engine():
    import inflect  # here, because its import can take seconds and readers of captions do not need it

    return inflect.engine()


@cache
def _article_of_word(word: str) -> str:
    stem = word.split("-")[0]
    for pattern, value in _EXCEPTIONS:
        if pattern.fullmatch(stem):
            return value
    # inflect knows plain letters only: "é" would count as a consonant
    plain = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return _engine().a(plain).split()[0]


def article(phrase: str) -> str:
    """The indefinite article of a noun phrase, by the pronunciation of its first word: "a" or "an".

    >>> article("orange ukulele"), article("ukulele")
    ('an', 'a')
    """
    words = phrase.split()
    if not words:
        raise ValueError("article needs a phrase of at least one word, got an empty one")
    return _article_of_word(words[0])


def join_pairs(phrases: Sequence[str]) -> str:
    """Noun phrases without articles -> one caption: "A x", "A x and a y", "A x, a y, and a z"."""
    if not phrases:
        raise ValueError("a caption needs at least one phrase, got none")
    full = [f"{article(p)} {p}" for p in phrases]
    if len(full) > 2:
        text = ", ".join(full[:-1]) + ", and " + full[-1]
    else:
        text = " and ".join(full)
    return text[0].upper() + text[1:] + CAPTION_END


def caption(pairs: Sequence[tuple[str, str]]) -> str:
    """Text form of a scene from its (attribute, object) pairs in order."""
    return join_pairs([f"{attribute} {name}" for attribute, name in pairs])


def generation_caption(appearances: Sequence[str], objects: Sequence[str]) -> str:
    """Generation form of a scene: full appearances ("white and orange striped") with their objects."""
    if len(appearances) != len(objects):
        raise ValueError(f"{len(appearances)} appearances for {len(objects)} objects; each object needs one")
    return join_pairs([f"{look} {name}" for look, name in zip(appearances, objects, strict=True)])


def split_caption(text: str) -> list[tuple[str, str]]:
    """The (article, phrase) list of a caption, ours or one of the same template; the inverse of `join_pairs`.

    A final full stop, capitals of articles and a missing comma before "and" make no difference. An "and"
    inside an appearance ("white and orange striped cube") is kept, because only an "and" before an article
    separates. Raises ValueError when the text does not begin with an article.
    """
    text = text.strip().removesuffix(".").rstrip()
    cuts = list(_BEFORE_PHRASE.finditer(text))
    if not cuts or cuts[0].start() != 0:
        raise ValueError(f"not a caption of the form 'A x, a y, and a z': {text!r}")
    ends = [c.start() for c in cuts[1:]] + [len(text)]
    return [(c[1].lower(), text[c.end() : end].strip()) for c, end in zip(cuts, ends, strict=True)]


def pairs_of_caption(text: str) -> tuple[tuple[str, str], ...]:
    """The (attribute, object) pairs of a text-form caption, for releases that give captions only.

    Each attribute must be one word, as all of ours are. Raises ValueError for another form.
    """
    pairs = []
    for _, phrase in split_caption(text):
        attribute, _, name = phrase.partition(" ")
        if not name:
            raise ValueError(f"phrase {phrase!r} of caption {text!r} has no attribute before its object")
        pairs.append((attribute, name))
    return tuple(pairs)
