"""Contact sheets: geometry, captions, errors."""

import numpy as np
import pytest
from PIL import Image

from saber.images.contact import MARGIN, attributes_sheet, grid, objects_sheet
from saber.vocabulary import load_vocabulary


def plain(color, size=(40, 30)):
    return Image.new("RGB", size, color)


def test_grid_places_images_row_by_row():
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    sheet = grid([plain(c) for c in colors], columns=2)
    assert sheet.size == (MARGIN + 2 * (40 + MARGIN), MARGIN + 2 * (30 + MARGIN))
    for k, c in enumerate(colors):
        left, top = MARGIN + k % 2 * (40 + MARGIN), MARGIN + k // 2 * (30 + MARGIN)
        assert sheet.getpixel((left, top)) == sheet.getpixel((left + 39, top + 29)) == c
    assert sheet.getpixel((MARGIN + 60, MARGIN + 50)) == (255, 255, 255)


def test_captions_are_below_their_image_and_wrap_inside_its_width():
    long = "a white and orange striped alarm clock"
    sheet = np.asarray(grid([plain((200, 200, 200))] * 2, [long, "a"], columns=2))
    ink = (sheet < 100).all(-1)
    assert not ink[: MARGIN + 30].any()
    below = ink[MARGIN + 30 :]
    left, right = below[:, : MARGIN + 40 + MARGIN // 2], below[:, MARGIN + 40 + MARGIN // 2 :]
    assert left.sum() > 5 * right.sum() > 0
    one_line = grid([plain((200, 200, 200))], ["a"])
    assert sheet.shape[0] > one_line.size[1] + 3 * 13


def test_arrays_are_taken_and_few_images_make_a_narrow_sheet():
    sheet = grid([np.full((20, 10, 3), 9, np.uint8)], columns=5)
    assert sheet.size == (MARGIN + 10 + MARGIN, MARGIN + 20 + MARGIN)


def test_unusable_arguments_are_explained():
    with pytest.raises(ValueError, match="at least one image"):
        grid([])
    with pytest.raises(ValueError, match="one size"):
        grid([plain((0, 0, 0)), plain((0, 0, 0), (10, 10))])
    with pytest.raises(ValueError, match="1 captions for 2 images"):
        grid([plain((0, 0, 0))] * 2, ["a"])
    with pytest.raises(ValueError, match="columns"):
        grid([plain((0, 0, 0))], columns=0)


def test_sheets_show_the_whole_vocabulary():
    known = load_vocabulary("known")
    objects = objects_sheet(known, diameter=40, columns=8)
    n = 40 + 2 * 7
    assert objects.width == MARGIN + 8 * (n + MARGIN)
    assert objects.height > 8 * (n + MARGIN)
    attributes = attributes_sheet(known, "teapot", "cube", diameter=40, columns=4, forms=2)
    cells = sum(1 if a.type == "standalone" else 2 for a in known.attributes)
    assert attributes.width == MARGIN + 4 * (2 * n + MARGIN)
    assert attributes.height > -(-cells // 4) * (n + MARGIN)
