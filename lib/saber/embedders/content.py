"""What is embedded, by what, and the two errors that say what went wrong with which item."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

CUT, UNKNOWN_WORDS = 1, 2  # bits of ``Embedder.text_flags``
SHOWN = 5  # items named in a message before "and N more"


@dataclass(frozen=True)
class Content:
    """A text, an image file, or both together as one item.

    Two contents are the same item when text and image *bytes* are equal, wherever the file lies.
    """

    text: str | None = None
    image: Path | None = None

    def __post_init__(self):
        if self.text is None and self.image is None:
            raise ValueError("an empty Content: give it a text, an image path, or both")
        if self.text is not None and not isinstance(self.text, str):
            raise TypeError(f"Content.text must be a str, not {type(self.text).__name__}")
        if self.image is not None:
            object.__setattr__(self, "image", Path(self.image))

    @property
    def modalities(self) -> frozenset[str]:
        """Which of "text" and "image" it holds."""
        return frozenset(m for m in ("text", "image") if getattr(self, m) is not None)

    def digest(self) -> str:
        """SHA-256 (64 hex digits) of the text and the bytes of the image file.

        Raises OSError when the image cannot be read.
        """
        whole = hashlib.sha256(b"saber content 1")
        if self.text is not None:
            whole.update(b"text" + hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).digest())
        if self.image is not None:
            with self.image.open("rb") as file:
                whole.update(b"image" + hashlib.file_digest(file, "sha256").digest())
        return whole.hexdigest()

    def __str__(self) -> str:
        text = None if self.text is None else self.text if len(self.text) <= 60 else self.text[:57] + "..."
        parts = [f"image {self.image}"] * (self.image is not None) + [f"text {text!r}"] * (text is not None)
        return " with ".join(parts)


class Embedder(Protocol):
    """Everything that turns contents into vectors.

    ``fingerprint`` is a SHA-256 over all that can change a vector (model, revision, weights, adapter,
    dtype, instruction, pooling, preprocessing, library versions) and over nothing else: not the device, not
    the batch size, not the neighbours in the batch. ``identity`` holds the same facts readably.
    """

    name: str
    fingerprint: str
    identity: dict
    dim: int
    modalities: frozenset[str]

    def embed(self, contents: Sequence[Content]) -> np.ndarray:
        """float32 ``(n, dim)``, rows of norm 1. Raises ItemError for the rows that cannot be embedded."""
        ...

    def text_flags(self, contents: Sequence[Content]) -> np.ndarray:
        """uint8 ``(n,)``: bit ``CUT`` where the text is longer than the model takes and loses its end, bit
        ``UNKNOWN_WORDS`` where the tokenizer replaces a word by its unknown-word token."""
        ...


class ItemError(ValueError):
    """Some items could not be embedded; ``failures`` holds (row, content, reason) of each."""

    def __init__(self, failures: Sequence[tuple[int, Content, str]], hint: str = ""):
        self.failures = tuple(failures)
        shown = [f"item {row} ({content}): {reason}" for row, content, reason in self.failures[:SHOWN]]
        more = f"\n... and {len(self.failures) - SHOWN} more" * (len(self.failures) > SHOWN)
        super().__init__("\n".join(shown) + more + (f"\n{hint}" if hint else ""))


class TextWarning(UserWarning):
    """Some texts were cut or hold words that the tokenizer does not know."""


class ModelUnavailable(RuntimeError):
    """A model's weights are not on this machine and cannot be fetched; the message says how to get them."""


def check_modalities(name: str, modalities: frozenset[str], contents: Sequence[Content]) -> None:
    """Raise ItemError for the contents that hold something the model does not take."""
    failures = [
        (row, content, f"{name} takes {' and '.join(sorted(modalities))} only")
        for row, content in enumerate(contents)
        if not content.modalities <= modalities
    ]
    if failures:
        raise ItemError(failures)


def text_messages(name: str, flags: np.ndarray) -> list[str]:
    """Sentences that count the cut texts and those with unknown words; empty when all is well."""
    n_cut, n_unknown = int(np.sum((flags & CUT) > 0)), int(np.sum((flags & UNKNOWN_WORDS) > 0))
    messages = []
    if n_cut:
        messages.append(f"{name}: {n_cut} of {len(flags)} texts are longer than the model takes and were cut")
    if n_unknown:
        messages.append(
            f"{name}: {n_unknown} of {len(flags)} texts hold words that its tokenizer does not know"
        )
    return messages
