"""Images that exist already: rendered elsewhere, taken by camera, or the authors' own."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import ClassVar

from PIL import Image, ImageOps

from saber.images.protocol import BackendUnusable

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")


@dataclass(frozen=True)
class FolderBackend:
    """Takes each item's picture from ``folder``.

    A picture is found by the item's relative path (``images/q0001-query.png``), by the file name alone, or by
    the item id, each with any usual suffix; the first that exists counts. It is brought upright (EXIF), put
    on white where it is transparent, converted to RGB and saved under the item's path at its own size. A
    picture that lies in its place already is left as it is.
    """

    folder: Path | str
    name: ClassVar[str] = "folder"
    fingerprint: ClassVar[str] = hashlib.sha256(b"folder 1: upright, on white, RGB").hexdigest()
    pool: ClassVar[str] = "threads"
    concurrency: ClassVar[int | None] = None
    seeded: ClassVar[bool] = False

    @cached_property
    def _files(self) -> dict[str, Path]:
        """Pictures by relative path without suffix (posix)."""
        root = Path(self.folder)
        if not root.is_dir():
            raise BackendUnusable(
                f"image backend 'folder': {str(root)!r} is no folder; set its option 'folder'"
            )
        files = {}
        found = [p for p in sorted(root.rglob("*")) if p.suffix.lower() in SUFFIXES and p.name[0] != "."]
        for path in sorted(found, key=lambda p: SUFFIXES.index(p.suffix.lower())):
            if path.is_file():
                files.setdefault(path.relative_to(root).with_suffix("").as_posix(), path)
        return files

    def start(self, items: Sequence, size: int, folder: Path) -> None:
        """Nothing to prepare."""

    def original(self, item) -> Path:
        """The file of this item; FileNotFoundError says under which names it was looked for."""
        names = [item.id]
        if item.image:
            relative = PurePosixPath(item.image).with_suffix("")
            names = [relative.as_posix(), relative.name, item.id]
        for name in names:
            if name in self._files:
                return self._files[name]
        tried = " or ".join(repr(n) for n in dict.fromkeys(names))
        raise FileNotFoundError(f"no picture {tried} ({', '.join(SUFFIXES)}) in {self.folder}")

    def render(self, item, size: int) -> Image.Image:
        """The picture upright in RGB; ``size`` is ignored, the models resize as they need."""
        path = self.original(item)
        try:
            with Image.open(path) as image:
                upright = ImageOps.exif_transpose(image)
                if upright.has_transparency_data:
                    upright = upright.convert("RGBA")
                    white = Image.new("RGBA", upright.size, "white")
                    upright = Image.alpha_composite(white, upright)
                return upright.convert("RGB")
        except (OSError, SyntaxError, ValueError) as error:
            raise ValueError(f"{path} cannot be read as a picture ({error})") from error
