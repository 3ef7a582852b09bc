"""One way to open an image file for every model: as a person would see it, in 8-bit RGB.

Models differ in how they resize and normalise, and do that themselves afterwards. What happens before is
the same for all: camera orientation applied, transparency laid over ``BACKGROUND``, palettes, grey levels,
CMYK and 16-bit samples brought to 8-bit RGB. Color profiles are left aside, as the models' own pipelines do.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from saber.embedders.content import Content, ItemError

VERSION = 1  # part of the fingerprints: raise it when a pixel may come out different
BACKGROUND = (255, 255, 255)


def open_image(path: Path) -> Image.Image:
    """The image in mode RGB, upright. Of an animation, the first frame.

    Raises ValueError that names the file when it is missing, damaged, cut short, too large to be real, or
    of a kind without a defined brightness range (32-bit floating point).
    """
    try:
        with Image.open(path) as image:
            image.load()
            return to_rgb(ImageOps.exif_transpose(image))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        # Pillow's own messages carry the file or none at all; say it once
        reason = str(error).replace(f" {str(path)!r}", "").replace(f": {str(path)!r}", "") or repr(error)
        raise ValueError(f"cannot read the image {path}: {reason}") from error


def to_rgb(image: Image.Image) -> Image.Image:
    """An image of any mode in mode RGB, transparency laid over ``BACKGROUND``."""
    if image.mode == "F":
        raise ValueError("floating-point samples have no defined white; save the image with 8 or 16 bits")
    if image.mode.startswith("I"):  # 16-bit grey: Pillow's own conversion clips everything above 255
        samples = np.asarray(image).astype(np.int64)
        if samples.min() < 0 or samples.max() > 65535:
            raise ValueError("samples outside 0 to 65535; save the image with 8 or 16 bits")
        transparent = image.info.get("transparency")
        grey = Image.fromarray(((samples + 128) // 257).astype(np.uint8), "L")
        if isinstance(transparent, int):
            grey.putalpha(Image.fromarray(np.where(samples == transparent, 0, 255).astype(np.uint8), "L"))
        image = grey
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        if image.mode in ("La", "RGBa"):  # premultiplied
            image = image.convert({"La": "LA", "RGBa": "RGBA"}[image.mode])
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, (*BACKGROUND, 255))
        image = Image.alpha_composite(ground, image)
    return image.convert("RGB")


def open_images(contents: Sequence[Content]) -> list[Image.Image]:
    """The images of the contents, in order, decoded on several threads.

    Raises ItemError that names every content whose image cannot be read.
    """

    def attempt(content: Content) -> Image.Image | ValueError:
        try:
            return open_image(content.image)
        except ValueError as error:
            return error

    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        images = list(pool.map(attempt, contents))
    failures = [
        (i, contents[i], str(e).removeprefix(f"cannot read the image {contents[i].image}: "))
        for i, e in enumerate(images)
        if isinstance(e, ValueError)
    ]
    if failures:
        raise ItemError(failures)
    return images
