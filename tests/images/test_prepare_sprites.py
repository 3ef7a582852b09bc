import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

import saber.vocabulary
from saber.images import prepare_sprites
from saber.images.drawn_sprites import DRAWN, draw
from saber.images.prepare_sprites import (
    SIZE,
    SPRITES,
    encode,
    load_sources,
    prepare,
    prepare_all,
    source_image,
)

OBJECTS = yaml.safe_load(
    (Path(saber.vocabulary.__file__).parent / "objects.yaml").read_text(encoding="utf-8")
)
NAMED_BY_THE_PAPER = "cannon cherry cube giraffe kayak kite snowboard submarine teapot toothbrush".split()


@pytest.fixture(scope="module")
def sprites() -> dict[str, np.ndarray]:
    return {file.stem: np.array(Image.open(file)) for file in sorted(SPRITES.glob("*.png"))}


def test_every_object_has_its_sprite_and_every_sprite_its_source(sprites):
    stems = [entry["sprite"] for entry in OBJECTS]
    assert sorted(stems) == sorted(sprites) == sorted(load_sources())
    assert len(stems) == len(set(stems)) == 232


def test_objects_are_sorted_nouns_and_those_of_the_paper_are_known():
    names = [entry["name"] for entry in OBJECTS]
    assert names == sorted(set(names))
    assert all(name == name.lower() and name.isascii() and name.strip() == name for name in names)
    known = {entry["name"] for entry in OBJECTS if entry["known"]}
    assert len(known) == 64 and known >= set(NAMED_BY_THE_PAPER)


def test_mode_size_and_area(sprites):
    for stem, pixels in sprites.items():
        assert pixels.dtype == np.uint8 and pixels.shape == (SIZE, SIZE, 2), stem
        visible = pixels[..., 1] > prepare_sprites.VISIBLE
        assert 0.1 < visible.mean() < 0.99, stem
        rows, columns = np.flatnonzero(visible.any(1)), np.flatnonzero(visible.any(0))
        extents = [side[-1] - side[0] + 1 for side in (rows, columns)]
        assert max(extents) >= SIZE - 2, stem  # the longer side fills the canvas
        for side in (rows, columns):
            assert abs(side[0] - (SIZE - 1 - side[-1])) <= 3, f"{stem} is not centred"


def test_shading_is_bright_enough_to_show_a_colour_and_varied_enough_to_show_a_form(sprites):
    for stem, pixels in sprites.items():
        shading = pixels[..., 0][pixels[..., 1] > 127]
        assert 145 < np.median(shading) < 185, stem
        assert shading.std() > 8, stem


def test_the_set_is_small():
    assert sum(file.stat().st_size for file in SPRITES.glob("*.png")) < 5e6


def test_no_two_sprites_are_alike(sprites):
    stems = sorted(sprites)
    small = np.stack(
        [np.array(Image.fromarray(sprites[stem]).resize((40, 40), Image.Resampling.BOX)) for stem in stems]
    ).reshape(len(stems), -1, 2)
    mask, shading = small[..., 1] > 127, small[..., 0] / 255
    for i in range(len(stems)):
        for j in range(i):
            both = mask[i] & mask[j]
            overlap = both.sum() / (mask[i] | mask[j]).sum()
            if overlap < 0.6:
                continue
            correlation = np.corrcoef(shading[i][both], shading[j][both])[0, 1]
            # Measured: the nearest silhouettes are keyboard and envelope, 0.96; the nearest product is 0.62.
            assert overlap < 0.98 and overlap * correlation < 0.72, (stems[i], stems[j], overlap, correlation)


def test_licence_and_sources_are_with_the_sprites():
    assert "Copyright (c) Microsoft Corporation." in (SPRITES / "LICENSE").read_text(encoding="utf-8")
    assert "@lobehub/fluent-emoji-3d" in (SPRITES / "SOURCES.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_drawn_sprites_come_out_as_shipped(name):
    drawn, shipped = np.array(prepare(draw(name))), np.array(Image.open(SPRITES / f"{name}.png"))
    # One level is left to other builds of SciPy and Pillow, whose kernels differ in the last bit.
    assert np.abs(drawn.astype(int) - shipped).max() <= 1


def test_a_drawing_gives_the_same_bytes_twice():
    assert encode(prepare(draw("cube"))) == encode(prepare(draw("cube")))


def test_prepare_fills_centres_and_scales_a_known_picture():
    pixels = np.zeros((256, 256, 4), dtype=np.uint8)
    pixels[30:70, 100:180] = (250, 0, 0, 255)  # 80 wide, 40 high
    pixels[30:70, 140:180, :3] = (0, 0, 120)
    prepared = np.array(prepare(Image.fromarray(pixels)))
    visible = prepared[..., 1] > 127
    assert visible[40:120].all() and not visible[:39].any() and not visible[121:].any()
    assert prepared[80, 40, 0] > prepared[80, 120, 0] + 40  # the brighter half stays the brighter
    assert (prepared[..., 0][~visible & (prepared[..., 1] == 0)] == 0).all()


def test_parts_of_equal_luminance_but_different_colour_stay_apart():
    pixels = np.zeros((64, 64, 4), dtype=np.uint8)
    pixels[:, :32] = (255, 0, 0, 255)
    pixels[:, 32:] = (0, 76, 0, 255)  # luma 0.2126 and 0.2132
    prepared = np.array(prepare(Image.fromarray(pixels)))[..., 0].astype(int)
    assert abs(prepared[80, 40] - prepared[80, 120]) > 25


def test_keep_and_erase_free_the_object(tmp_path):
    pixels = np.zeros((64, 64, 4), dtype=np.uint8)
    pixels[10:50, 30:60] = 255  # the object
    pixels[20:44, 2:20] = 255  # another thing on the left
    (tmp_path / "assets").mkdir()
    Image.fromarray(pixels).save(tmp_path / "assets" / "x.webp", lossless=True)

    def opaque(**more):
        return np.array(source_image("x", {"emoji": "x.webp", **more}, tmp_path))[..., 3] > 0

    assert np.array_equal(opaque(), pixels[..., 3] > 0)
    assert opaque(keep="largest")[:, 30:].sum() == 40 * 30 and not opaque(keep="largest")[:, :22].any()
    assert opaque(keep="left")[:, :20].sum() == 24 * 18 and not opaque(keep="left")[:, 28:].any()
    assert np.array_equal(opaque(keep="right"), opaque(keep="largest"))
    assert opaque(erase=[[0, 0, 64, 40]]).sum() == 10 * 30 + 4 * 18


def test_errors_name_the_sprite_and_what_is_valid(tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match=r"teapot.*fluent-emoji-3d"):
        source_image("teapot", {"emoji": "1fad6.webp"}, tmp_path)
    with pytest.raises(KeyError, match="cannon, cube, kayak"):
        draw("teapot")
    table = tmp_path / "SOURCES.yaml"
    table.write_text("teapot: {emoji: 1fad6.webp, keep: top}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"teapot.*'top'.*largest"):
        load_sources(table)
    table.write_text("teapot: {emojy: 1fad6.webp}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="emojy"):
        load_sources(table)
    assert prepare_sprites.main([str(tmp_path), "--folder", str(tmp_path / "out")]) == 1
    assert "accordion" in capsys.readouterr().err


@pytest.mark.skipif(
    "SABER_EMOJI_PACKAGE" not in os.environ,
    reason="set SABER_EMOJI_PACKAGE to the unpacked npm package @lobehub/fluent-emoji-3d 1.1.0",
)
def test_the_whole_set_comes_out_byte_equal(tmp_path):
    files = prepare_all(Path(os.environ["SABER_EMOJI_PACKAGE"]), tmp_path)
    assert len(files) == 232
    for file in files:
        assert file.read_bytes() == (SPRITES / file.name).read_bytes(), file.name
