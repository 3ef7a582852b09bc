"""What SABER is made of: items (image-caption pairs), questions with four candidates each, and the whole."""

from dataclasses import dataclass, field
from pathlib import Path

from saber.scenes import CANDIDATE_ROLES, Pairs

ROLES = ("query", *CANDIDATE_ROLES)
SUBSETS = ("independent", "nested")
PAIRINGS = {
    "T->T": ("text", "text"),
    "T->I": ("text", "image"),
    "I->T": ("image", "text"),
    "I->I": ("image", "image"),
}  # query modality, candidate modality


@dataclass(frozen=True)
class Item:
    """One image-caption pair.

    question: id of the question it belongs to; role: one of ``ROLES``.
    pairs: ((attribute, object), ...) in caption order; text: the caption, the benchmark's text modality.
    generation_text: the caption with full appearances, from which images are made; "" where a release lacks
    it.
    appearances: full appearance of each pair's attribute ("white and orange striped"); () where not given.
    image: path relative to the benchmark's folder, with "/"; None for a benchmark without images.
    seed, flipped: the renderer's seed, and whether the image is mirrored after rendering (A.4).
    """

    id: str
    question: str
    role: str
    pairs: Pairs
    text: str
    generation_text: str = ""
    appearances: tuple[str, ...] = ()
    image: str | None = None
    seed: int = 0
    flipped: bool = False


@dataclass(frozen=True)
class Question:
    """A query and its four candidates, as item ids; candidates in the order of ``CANDIDATE_ROLES``.

    subset: "independent" or "nested"; chain: id of the nested chain (A.5), None for independent questions.
    """

    id: str
    n_objects: int
    subset: str
    chain: str | None
    query: str
    candidates: tuple[str, str, str, str]


@dataclass(frozen=True)
class Benchmark:
    """Questions in order and all items by id; ``folder`` is where its files lie (no part of equality)."""

    questions: tuple[Question, ...]
    items: dict[str, Item]
    folder: Path | None = field(default=None, compare=False)

    @property
    def queries(self) -> list[Item]:
        """The query of each question, in question order."""
        return [self.items[q.query] for q in self.questions]

    @property
    def gallery(self) -> list[Item]:
        """All candidates, four per question in question order: the retrieval gallery of section 3."""
        return [self.items[i] for q in self.questions for i in q.candidates]

    def image_path(self, item: Item) -> Path:
        """Absolute or folder-relative path of an item's image file. ValueError when there is none to name."""
        if item.image is None:
            raise ValueError(f"item {item.id} has no image: this benchmark is text only")
        if self.folder is None:
            raise ValueError(
                f"item {item.id}: the benchmark has no folder yet; write it with write_benchmark first"
            )
        return self.folder / item.image
