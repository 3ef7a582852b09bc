"""Which request each image file was made from: ``images/manifest.jsonl``.

One JSON object a line: ``item``, ``backend``, ``request`` (SHA-256 of all that determines the picture),
``file`` (SHA-256 of the PNG, so that a damaged one is noticed), ``pixels`` (SHA-256 of the decoded picture,
by which a screening verdict knows the picture it was given to). The last line of an item counts; a line torn
by a kill is ignored. Backend and request are also kept in a text chunk inside the PNG, so an image survives
the loss of this file.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from PIL import Image, PngImagePlugin

from saber import files

MANIFEST = "images/manifest.jsonl"
CHUNK = "saber"  # key of the PNG text chunk, holding "<backend> <request>"
PNG_END = b"IEND\xaeB`\x82"  # Pillow also reads a PNG that lacks its last chunk


@dataclass(frozen=True)
class ImageRecord:
    """One line of the manifest; digests are SHA-256 in hex."""

    item: str
    backend: str
    request: str
    file: str
    pixels: str


def request_digest(backend, item, size: int) -> str:
    """SHA-256 (hex) of all that determines the picture of ``item`` made by ``backend``."""
    original = backend.original(item)
    request = {
        "backend": [backend.name, backend.fingerprint],
        "original": original and files.file_digest(original),
        "objects": [o for _, o in item.pairs],
        "appearances": list(item.appearances),
        "generation_text": item.generation_text,
        "seed": item.seed,
        "flipped": item.flipped,
        "size": size,
    }
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, ImageRecord]:
    """Records by item id; empty when there is no manifest. Lines that are not records are passed over."""
    path = Path(folder) / MANIFEST
    records = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = ImageRecord(**json.loads(line))
            except (ValueError, TypeError):  # torn by a kill: its image is recognised by the chunk in the PNG
                continue
            records[record.item] = record
    return records


def write_manifest(folder: Path, records: Mapping[str, ImageRecord]) -> None:
    """Replace the manifest at once, one line an item, sorted by id; an equal one is left alone."""
    path, text = Path(folder) / MANIFEST, "".join(_line(records[name]) for name in sorted(records))
    if not path.exists() or path.read_bytes() != text.encode():
        files.write_text(path, text)


def append_manifest(folder: Path, records: Iterable[ImageRecord]) -> None:
    """Add records behind the existing ones (one write, so that two processes do not mix their lines)."""
    with open(Path(folder) / MANIFEST, "a", encoding="utf-8", newline="\n") as file:
        file.write("".join(map(_line, records)))


def _line(record: ImageRecord) -> str:
    return json.dumps(asdict(record)) + "\n"


def save_image(image: Image.Image, path: Path, item: str, backend: str, request: str) -> ImageRecord:
    """Save as PNG (RGB, lossless, origin in a text chunk) atomically, and return the image's record.

    A file that shows the same picture stays as it is, so that what was computed from its bytes stays valid.
    """
    image = image.convert("RGB")
    try:
        with Image.open(path, formats=["PNG"]) as old:
            same = old.size == image.size and old.mode == "RGB" and old.tobytes() == image.tobytes()
            if same and path.read_bytes().endswith(PNG_END):
                return adopt_image(image, path, item, backend, request)
    except (OSError, SyntaxError, ValueError):  # none yet, or damaged
        pass
    info = PngImagePlugin.PngInfo()
    info.add_text(CHUNK, f"{backend} {request}")
    files.write_with(path, lambda t: image.save(t, format="PNG", pnginfo=info, compress_level=4))
    return adopt_image(image, path, item, backend, request)


def adopt_image(image: Image.Image, path: Path, item: str, backend: str, request: str) -> ImageRecord:
    """The record of a picture that lies in its place already; the file is left as it is."""
    return ImageRecord(item, backend, request, files.file_digest(path), pixel_digest(image))


def pixel_digest(image: Image.Image) -> str:
    """SHA-256 (hex) of size and RGB values: the same however the file was compressed."""
    image = image.convert("RGB")
    return hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()


def find_intact(path: Path, item: str, request: str, record: ImageRecord | None) -> ImageRecord | None:
    """The record of an existing, undamaged image of this request; None when it has to be made (again)."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest = hashlib.sha256(content).hexdigest()
    if record is not None and record.file == digest:
        return record if record.request == request else None
    try:  # not the file on record: only a PNG that decodes to its end and says the same request counts
        with Image.open(path, formats=["PNG"]) as image:
            backend, _, made_from = image.text.get(CHUNK, "").partition(" ")
            if made_from != request or not content.endswith(PNG_END):
                return None
            return ImageRecord(item, backend, request, digest, pixel_digest(image))
    except (OSError, SyntaxError, ValueError):
        return None


def origin(path: Path, record: ImageRecord | None) -> str | None:
    """Backend that made a picture, ``"unknown"`` if none of ours; None where no picture can be opened."""
    try:
        with Image.open(path) as image:
            chunk = getattr(image, "text", {}).get(CHUNK, "")
            return chunk.partition(" ")[0] or (record.backend if record else "unknown")
    except (OSError, SyntaxError, ValueError):
        return None
