"""Images from the sprites that ship with the package: offline, free, about a hundredth of a second each."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from PIL import Image

import saber.vocabulary
from saber.images.protocol import looks

# The modules of saber.images that a picture depends on
RENDERER = ("render", "cutout", "fabrics", "layout", "materials", "patterns", "plane", "shading", "textures")


@dataclass(frozen=True)
class SpritesBackend:
    """Wraps :func:`saber.images.render.render_scene`; a picture depends on the item and the code alone."""

    name: ClassVar[str] = "sprites"
    pool: ClassVar[str] = "processes"
    concurrency: ClassVar[int | None] = None
    seeded: ClassVar[bool] = True

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the renderer's source, the sprites, and the tables of objects and attributes."""
        here, tables = Path(__file__).parent, Path(saber.vocabulary.__file__).parent
        files = [here / f"{module}.py" for module in RENDERER]
        files += [
            tables / "objects.yaml",
            tables / "attributes.yaml",
            *sorted((here / "sprites").glob("*.png")),
        ]
        digest = hashlib.sha256()
        for file in files:
            content = file.read_bytes()
            if file.suffix != ".png":  # the same on a checkout with other line ends
                content = content.replace(b"\r\n", b"\n")
            digest.update(f"{file.name} {hashlib.sha256(content).hexdigest()}\n".encode())
        return digest.hexdigest()

    def start(self, items: Sequence, size: int, folder: Path) -> None:
        """Nothing to prepare."""

    def original(self, item) -> Path | None:
        """No file: the picture is computed."""
        return None

    def render(self, item, size: int) -> Image.Image:
        """The scene as an RGB image of ``size`` x ``size`` pixels."""
        from saber.images.render import render_scene

        objects = [o for _, o in item.pairs]
        pixels = render_scene(objects, looks(item), seed=item.seed, size=size, flipped=item.flipped)
        return Image.fromarray(pixels)
