"""Prepares the object sprites that ship with the package.

    python -m saber.images.prepare_sprites PACKAGE_DIR

PACKAGE_DIR is the unpacked npm package `@lobehub/fluent-emoji-3d` (the folder that holds `assets/`). What
each sprite is made from stands in `sprites/SOURCES.yaml`; the few that no emoji exists for come from
`drawn_sprites`. The same package gives the same bytes again.

A prepared sprite is a PNG of mode LA, 160 x 160 px: L is the shading, which the renderer multiplies with a
colour or texture, A is the shape. The object touches the canvas on its longer side and is centred on the
other.
"""

import argparse
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import yaml
from PIL import Image
from scipy import ndimage

from saber.images.drawn_sprites import draw

SPRITES = Path(__file__).parent / "sprites"
SOURCES = SPRITES / "SOURCES.yaml"
SIZE = 160
VISIBLE = 16  # alpha, 0 to 255, from which a pixel belongs to the object
LUMA = np.array([0.2126, 0.7152, 0.0722])
MIDDLE = 0.68  # brightness that the median of every object gets: bright enough for the colour to be plain
DARKEST = 0.12
STEEPEST = 2.2  # contrast against the original


def load_sources(path: Path = SOURCES) -> dict[str, dict]:
    """Sprite stem -> `{emoji: FILE, keep?: ..., erase?: ...}` or `{drawn: true}`, as `SOURCES.yaml` says.

    Raises ValueError that names the sprite when an entry has a key or a `keep` that is not known.
    """
    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    sources = {}
    for stem, entry in table.items():
        if isinstance(entry, str):
            entry = {"drawn": True} if entry == "drawn" else {"emoji": entry}
        if unknown := set(entry) - {"drawn", "emoji", "keep", "erase"}:
            raise ValueError(
                f"{path}: {stem}: unknown keys {sorted(unknown)}; valid: drawn, emoji, keep, erase"
            )
        if entry.get("keep") not in (None, "largest", "left", "right"):
            raise ValueError(f"{path}: {stem}: keep is {entry['keep']!r}; valid: largest, left, right")
        sources[stem] = entry
    return sources


def source_image(stem: str, entry: Mapping, package: Path | None) -> Image.Image:
    """The RGBA picture a sprite is made from, freed of what does not belong to the object.

    Raises FileNotFoundError when the package lacks the emoji, ValueError when no package is given but needed.
    """
    if entry.get("drawn"):
        return draw(stem)
    if package is None:
        raise ValueError(f"sprite {stem!r} comes from an emoji: give the folder of the npm package")
    file = Path(package) / "assets" / entry["emoji"]
    if not file.is_file():
        raise FileNotFoundError(
            f"sprite {stem!r}: {file} is missing; unpack @lobehub/fluent-emoji-3d 1.1.0 there"
        )
    with Image.open(file) as image:
        pixels = np.array(image.convert("RGBA"))
    for left, top, right, bottom in entry.get("erase", ()):
        pixels[top:bottom, left:right] = 0
    if entry.get("keep"):
        pixels[~_kept_piece(pixels[..., 3] > VISIBLE, entry["keep"])] = 0
    return Image.fromarray(pixels)


def _kept_piece(visible: np.ndarray, which: str) -> np.ndarray:
    """Mask of one connected piece of the picture, grown by two pixels so that its soft edge stays."""
    labels, count = ndimage.label(visible)
    sizes = ndimage.sum_labels(visible, labels, np.arange(1, count + 1))
    middles = [middle[1] for middle in ndimage.center_of_mass(visible, labels, np.arange(1, count + 1))]
    large = np.flatnonzero(sizes > 0.2 * sizes.max())
    best = {
        "largest": int(np.argmax(sizes)),
        "left": min(large, key=lambda piece: middles[piece]),
        "right": max(large, key=lambda piece: middles[piece]),
    }[which]
    return ndimage.binary_dilation(labels == best + 1, iterations=2)


def prepare(image: Image.Image, size: int = SIZE) -> Image.Image:
    """An RGBA picture as a sprite: mode LA, `size` x `size` px, the visible part scaled to fill it."""
    pixels = np.asarray(image).astype(np.float64)
    rows, columns = (np.flatnonzero((pixels[..., 3] > VISIBLE).any(axis=side)) for side in (1, 0))
    pixels = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    alpha = pixels[..., 3] / 255
    shading = _shading(pixels[..., :3] / 255, alpha)

    scale = size / max(alpha.shape)
    width, height = (max(1, round(extent * scale)) for extent in alpha.shape[::-1])
    # Shading is scaled weighted by alpha, lest the invisible pixels bleed into the edge.
    small_alpha = _scaled(alpha, width, height)
    small = _scaled(shading * alpha, width, height) / np.maximum(small_alpha, 1e-3)
    canvas = np.zeros((size, size, 2), dtype=np.uint8)
    top, left = (size - height) // 2, (size - width) // 2
    window = canvas[top : top + height, left : left + width]
    window[..., 1] = np.round(255 * np.clip(small_alpha, 0, 1))
    window[..., 0] = np.where(window[..., 1] > 0, np.round(255 * np.clip(small, 0, 1)), 0)
    return Image.fromarray(canvas)


def _scaled(plane: np.ndarray, width: int, height: int) -> np.ndarray:
    return np.asarray(
        Image.fromarray(plane.astype(np.float32)).resize((width, height), Image.Resampling.LANCZOS),
        dtype=np.float64,
    )


def _shading(colours: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Colours `(h, w, 3)` in 0..1 as one plane of shading in 0..1, its median the same for every object.

    Parts that differ in colour but not in luminance would melt into one once the colour is replaced, so the
    strongest direction of colour is added to the luminance (after Grundland and Dodgson, "Decolorize", 2007),
    and the inner edges are raised.
    """
    solid = alpha > 0.5
    grey = colours @ LUMA
    chroma = colours - grey[..., None]
    centred = chroma[solid] - chroma[solid].mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    direction = directions[:, -1]
    along = (chroma - chroma[solid].mean(axis=0)) @ direction
    # The direction's sign: brighter with brighter; where colour says nothing of brightness, warm is bright.
    lean = (along[solid] * (grey[solid] - grey[solid].mean())).sum()
    warm = direction[0] - direction[2]
    if (lean if abs(lean) > 0.05 * (along[solid] ** 2).sum() else warm) < 0:
        along = -along
    # Medians take the grain out that lossy colour leaves.
    plane = ndimage.median_filter(grey, 3) + 0.3 * ndimage.median_filter(along, 5)

    weight = ndimage.gaussian_filter(solid.astype(float), 3)
    blurred = ndimage.gaussian_filter(np.where(solid, plane, 0.0), 3) / np.maximum(weight, 1e-3)
    plane = plane + 0.5 * np.where(solid, plane - blurred, 0.0)

    low, median, high = np.percentile(plane[solid], [1, 50, 99])
    # Both sides of the median fill their range, but a flat object is not stretched until its grain shows.
    darker = min(STEEPEST, (MIDDLE - DARKEST) / max(median - low, 1e-3))
    brighter = min(STEEPEST, (1 - MIDDLE) / max(high - median, 1e-3))
    above = plane - median
    return np.clip(MIDDLE + np.where(above < 0, darker, brighter) * above, DARKEST, 1)


def encode(sprite: Image.Image) -> bytes:
    """The sprite as the bytes of a PNG file."""
    buffer = io.BytesIO()
    sprite.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def prepare_all(package: Path, folder: Path = SPRITES) -> list[Path]:
    """Writes every sprite of `SOURCES.yaml` into `folder`, each replaced whole or not, and returns the files.

    Raises FileNotFoundError that names the sprite when the package lacks an emoji.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for stem, entry in sorted(load_sources().items()):
        file = folder / f"{stem}.png"
        unfinished = file.with_suffix(".part")
        unfinished.write_bytes(encode(prepare(source_image(stem, entry, package))))
        os.replace(unfinished, file)
        files.append(file)
    return files


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m saber.images.prepare_sprites", description=__doc__.split("\n")[0]
    )
    parser.add_argument("package", type=Path, help="the unpacked npm package @lobehub/fluent-emoji-3d")
    parser.add_argument(
        "--folder", type=Path, default=SPRITES, help="where to write (default: the package's own set)"
    )
    options = parser.parse_args(arguments)
    try:
        files = prepare_all(options.package, options.folder)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files)} sprites, {megabytes:.1f} MB, in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
