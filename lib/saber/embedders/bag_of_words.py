"""A reference that cannot know who wears what: word counts, blind to order by construction.

Two texts with the same words get the same vector to the last bit, so on SABER's text-text questions the
candidates that only shuffle attributes and objects tie exactly.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from saber.embedders.content import Content, check_modalities
from saber.embedders.vectors import fingerprint, unit_rows
from saber.vocabulary import load_vocabulary

VERSION = 1
N_SHARED = 1024  # coordinates that all words outside the vocabulary share
_WORD = re.compile(r"\w+(?:[-'’]\w+)*")


def words(text: str) -> list[str]:
    """Lower-cased words in order of appearance; "polka-dot" is one word, punctuation is dropped."""
    return _WORD.findall(text.lower())


class BagOfWords:
    """One coordinate per word of SABER's vocabulary; other words are hashed into ``N_SHARED`` more."""

    modalities = frozenset(("text",))

    def __init__(self, name: str = "bag-of-words"):
        self.name = name
        vocabulary = load_vocabulary("full")
        phrases = ["a an and", *(entry.name for entry in (*vocabulary.objects, *vocabulary.attributes))]
        known = sorted({word for phrase in phrases for word in words(phrase)})
        self._column = {word: i for i, word in enumerate(known)}
        self.dim = len(known) + N_SHARED
        self.identity = {"adapter": f"bag of words {VERSION}", "words": known, "shared": N_SHARED}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the word list and the version of this module."""
        return fingerprint(self.identity)

    def embed(self, contents: Sequence[Content]) -> np.ndarray:
        """float32 ``(n, dim)``: word counts divided by their norm, so that equal bags are equal to the bit.

        Raises ItemError for images and for texts without a single word.
        """
        contents = list(contents)
        check_modalities(self.name, self.modalities, contents)
        counts = np.zeros((len(contents), self.dim))
        for row, content in enumerate(contents):
            for word in words(content.text):
                counts[row, self._index(word)] += 1
        return unit_rows(counts, contents)

    def text_flags(self, contents: Sequence[Content]) -> np.ndarray:
        """All zero: nothing is cut, and unknown words have their coordinates too."""
        return np.zeros(len(contents), np.uint8)

    def _index(self, word: str) -> int:
        column = self._column.get(word)
        if column is None:
            column = len(self._column) + int(hashlib.sha256(word.encode()).hexdigest(), 16) % N_SHARED
        return column
