"""Contact sheets: small pictures with readable labels on one PIL image, for notebooks and for screening."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from saber.images.render import render_object
from saber.vocabulary import Vocabulary, appearances

MARGIN = 6
INK, PAPER = (30, 30, 30), (255, 255, 255)


def grid(
    images: Sequence[Image.Image | np.ndarray],
    captions: Sequence[str] | None = None,
    columns: int = 5,
    font_size: int = 13,
) -> Image.Image:
    """Images of one size in rows of ``columns``, a caption below each, wrapped to the image's width.

    images: PIL images or uint8 arrays (h, w, 3). Raises ValueError when there are none, when sizes differ, or
    when captions and images differ in number.
    """
    tiles = [x if isinstance(x, Image.Image) else Image.fromarray(np.asarray(x, np.uint8)) for x in images]
    if not tiles:
        raise ValueError("a grid needs at least one image")
    if columns < 1:
        raise ValueError(f"columns must be at least 1, not {columns}")
    sizes = {t.size for t in tiles}
    if len(sizes) > 1:
        raise ValueError(f"all images of a grid must have one size; found {sorted(sizes)}")
    if captions is not None and len(captions) != len(tiles):
        raise ValueError(f"{len(captions)} captions for {len(tiles)} images")
    font = ImageFont.load_default(font_size)
    width, height = tiles[0].size
    lines = [_wrap(c, font, width) for c in captions] if captions is not None else [[]] * len(tiles)
    line_height = round(font_size * 1.3)
    columns = min(columns, len(tiles))
    rows = [range(i, min(i + columns, len(tiles))) for i in range(0, len(tiles), columns)]
    tops, y = [], MARGIN
    for row in rows:
        tops.append(y)
        y += height + MARGIN + line_height * max(len(lines[k]) for k in row)
    sheet = Image.new("RGB", (MARGIN + columns * (width + MARGIN), y), PAPER)
    pen = ImageDraw.Draw(sheet)
    for row, top in zip(rows, tops, strict=True):
        for column, k in enumerate(row):
            left = MARGIN + column * (width + MARGIN)
            sheet.paste(tiles[k], (left, top))
            for i, line in enumerate(lines[k]):
                pen.text((left, top + height + i * line_height), line, INK, font)
    return sheet


def objects_sheet(
    vocabulary: Vocabulary, appearance: str = "white", diameter: int = 72, columns: int = 16
) -> Image.Image:
    """Every object of the vocabulary in one appearance, with its name."""
    names = [o.name for o in vocabulary.objects]
    images = [render_object(name, appearance, diameter) for name in names]
    return grid(images, names, columns)


def attributes_sheet(
    vocabulary: Vocabulary, *objects: str, diameter: int = 72, columns: int = 6, forms: int = 3
) -> Image.Image:
    """Every attribute of the vocabulary on the given objects, side by side.

    Each attribute shows up to ``forms`` of its appearances, spread evenly over all of them, in cells that are
    labelled with the generation form. Without objects: teapot, rabbit and guitar.
    """
    names = objects or ("teapot", "rabbit", "guitar")
    cells, labels = [], []
    for attribute in vocabulary.attributes:
        every = appearances(attribute, vocabulary.palette)
        picked = np.unique(np.linspace(0, len(every) - 1, forms).round().astype(int))
        for i in picked:
            strip = [render_object(name, every[i], diameter) for name in names]
            cells.append(np.concatenate(strip, axis=1))
            labels.append(every[i])
    return grid(cells, labels, columns)


def _wrap(text: str, font, width: int) -> list[str]:
    """Break at spaces so that each line fits the width; a single longer word stays whole."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
