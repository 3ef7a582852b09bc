import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from saber.embedders import Content, ItemError
from saber.embedders.image_input import BACKGROUND, open_image, open_images, to_rgb

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (6, 4, 3), dtype=np.uint8)


def saved(tmp_path, image, name="a b é.png", **options):
    path = tmp_path / name
    image.save(path, **options)
    return path


def test_plain_rgb_is_unchanged(tmp_path):
    image = open_image(saved(tmp_path, Image.fromarray(PIXELS)))
    assert image.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(image), PIXELS)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_camera_orientation_is_applied(tmp_path, orientation):
    upright = Image.fromarray(PIXELS)
    turn = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, 1),  # stored turned left: shown after a turn to the right
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(turn(np.asarray(upright))))
    image = open_image(saved(tmp_path, stored, exif=exif))
    np.testing.assert_array_equal(np.asarray(image), PIXELS)


def test_transparency_is_laid_over_the_background(tmp_path):
    rgba = np.zeros((1, 3, 4), np.uint8)
    rgba[0] = [(10, 20, 30, 255), (10, 20, 30, 0), (0, 0, 0, 128)]
    pixels = np.asarray(open_image(saved(tmp_path, Image.fromarray(rgba))))
    assert tuple(pixels[0, 0]) == (10, 20, 30)
    assert tuple(pixels[0, 1]) == BACKGROUND == (255, 255, 255)
    assert abs(int(pixels[0, 2, 0]) - 127) <= 1


def test_grey_with_alpha_and_premultiplied():
    assert to_rgb(Image.new("LA", (1, 1), (90, 0))).getpixel((0, 0)) == BACKGROUND
    assert to_rgb(Image.new("LA", (1, 1), (90, 255))).getpixel((0, 0)) == (90, 90, 90)
    assert to_rgb(Image.new("RGBa", (1, 1), (0, 0, 0, 0))).getpixel((0, 0)) == BACKGROUND


def test_palettes_with_and_without_transparency(tmp_path):
    palette = Image.new("P", (2, 1))
    palette.putpalette([200, 10, 10, 10, 200, 10])
    palette.putpixel((1, 0), 1)
    pixels = np.asarray(open_image(saved(tmp_path, palette)))
    assert [tuple(p) for p in pixels[0]] == [(200, 10, 10), (10, 200, 10)]
    pixels = np.asarray(open_image(saved(tmp_path, palette, "t.png", transparency=1)))
    assert [tuple(p) for p in pixels[0]] == [(200, 10, 10), BACKGROUND]


def test_transparent_color_of_rgb_and_grey_files(tmp_path):
    rgb = Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8))
    pixels = np.asarray(open_image(saved(tmp_path, rgb, transparency=(4, 5, 6))))
    assert [tuple(p) for p in pixels[0]] == [(1, 2, 3), BACKGROUND]
    grey = Image.fromarray(np.array([[7, 9]], np.uint8))
    pixels = np.asarray(open_image(saved(tmp_path, grey, "g.png", transparency=7)))
    assert [tuple(p) for p in pixels[0]] == [BACKGROUND, (9, 9, 9)]


def test_grey_one_bit_and_cmyk(tmp_path):
    grey = open_image(saved(tmp_path, Image.new("L", (1, 1), 77)))
    assert grey.getpixel((0, 0)) == (77, 77, 77)
    bit = open_image(saved(tmp_path, Image.new("1", (1, 1), 1), "bit.png"))
    assert bit.getpixel((0, 0)) == (255, 255, 255)
    cmyk = open_image(saved(tmp_path, Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "c.jpg", quality=95))
    red, green, blue = cmyk.getpixel((4, 4))
    assert red > 240 and green < 15 and blue < 15


def test_sixteen_bit_grey_keeps_its_range(tmp_path):
    values = np.array([[0, 128, 257, 32768, 65535]], np.uint16)
    pixels = np.asarray(open_image(saved(tmp_path, Image.fromarray(values))))
    np.testing.assert_array_equal(pixels[0, :, 0], [0, 0, 1, 128, 255])
    assert (pixels[..., 0] == pixels[..., 2]).all()


def test_sixteen_bit_grey_with_a_transparent_value():
    image = Image.fromarray(np.array([[0, 257]], np.uint16))
    image.info["transparency"] = 257
    assert [to_rgb(image).getpixel((x, 0)) for x in (0, 1)] == [(0, 0, 0), BACKGROUND]


def test_floating_point_images_are_refused_by_name(tmp_path):
    path = saved(tmp_path, Image.fromarray(np.ones((2, 2), np.float32)), "f.tiff")
    with pytest.raises(ValueError, match=r"f\.tiff.*floating-point"):
        open_image(path)


def test_first_frame_of_an_animation(tmp_path):
    frames = [Image.new("RGB", (2, 2), c) for c in ("red", "blue")]
    path = saved(tmp_path, frames[0], "a.gif", save_all=True, append_images=frames[1:])
    assert open_image(path).getpixel((0, 0)) == (255, 0, 0)


def test_unreadable_files_are_named(tmp_path):
    whole = io.BytesIO()
    ImageOps.scale(Image.fromarray(PIXELS), 20).save(whole, "png")
    cut = tmp_path / "cut.png"
    cut.write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
    text = tmp_path / "text.png"
    text.write_text("no picture")
    for path in (cut, text, tmp_path / "absent.png", tmp_path):
        with pytest.raises(ValueError, match="cannot read the image") as caught:
            open_image(path)
        assert str(caught.value).count(str(path)) == 1


def test_open_images_keeps_the_order_and_names_every_bad_row(tmp_path):
    colors = [(i, 0, 0) for i in range(20)]
    contents = [
        Content(image=saved(tmp_path, Image.new("RGB", (2, 2), c), f"{i}.png")) for i, c in enumerate(colors)
    ]
    assert [image.getpixel((0, 0)) for image in open_images(contents)] == colors
    contents[3] = Content(image=tmp_path / "gone.png")
    contents[7] = Content(image=tmp_path / "lost.png")
    with pytest.raises(ItemError, match=r"item 3 .*gone\.png") as caught:
        open_images(contents)
    assert [row for row, _, _ in caught.value.failures] == [3, 7]
