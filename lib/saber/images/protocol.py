"""What an image backend is, and the ways in which it can say no.

A backend turns one benchmark item into one picture. Three exist (``sprites``, ``openai``, ``folder``);
anything with these attributes works in :func:`saber.images.build_images`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from PIL import Image


class ImageBackend(Protocol):
    """Renders items; holds no state that a second process could not rebuild by unpickling it.

    Attributes:
        name: short name, recorded with every image.
        fingerprint: hex digest of all that can change a picture besides the item itself (renderer version,
            sprite files, model, prompt); images made under another fingerprint are made anew.
        pool: whether several items are rendered in ``"processes"`` (work of the CPU) or in ``"threads"``
            (waiting for a server or a disk).
        concurrency: number of workers that the backend wants; None leaves it to the caller.
        seeded: whether another ``item.seed`` gives another picture, so that a rejected one can be made again.
    """

    name: str
    fingerprint: str
    pool: Literal["processes", "threads"]
    concurrency: int | None
    seeded: bool

    def start(self, items: Sequence, size: int, folder: Path) -> None:
        """Called once, before the first item is rendered; raises what must stop them all."""

    def original(self, item) -> Path | None:
        """The file that the picture is taken from, if any; FileNotFoundError where it is missing."""

    def render(self, item, size: int) -> Image.Image:
        """One RGB picture; ``size`` is its side in pixels where the backend decides it."""


class BackendUnusable(RuntimeError):
    """No item can be made (no key, no money, over the cost limit): the whole build stops."""


class Refused(RuntimeError):
    """The service declines this item for its content: asking again is useless, other items go on."""


def looks(item) -> tuple[str, ...]:
    """The item's appearances, one a pair; ValueError for an item of a release that does not give them."""
    if len(item.appearances) != len(item.pairs):
        raise ValueError(
            f"item {item.id} has {len(item.appearances)} appearances for {len(item.pairs)} pairs, so its "
            f"image cannot be made; use the image backend 'folder' for images that exist"
        )
    return item.appearances
