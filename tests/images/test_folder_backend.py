from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from saber.benchmark import build_benchmark, write_benchmark
from saber.images import BackendUnusable, ImagesIncomplete, build_images, make_backend
from saber.images.manifest import MANIFEST
from saber.vocabulary import Object, Vocabulary, load_attributes


@pytest.fixture
def benchmark(tmp_path):
    attributes, palette = load_attributes()
    objects = tuple(Object(n, n, "toy", True) for n in ("kite", "teapot", "cube", "cherry", "apple"))
    vocabulary = Vocabulary(objects, attributes[:12], tuple(palette))
    made = build_benchmark(vocabulary, seed=3, questions_per_count=2, object_counts=[2])
    return write_benchmark(made, tmp_path / "saber")


@pytest.fixture
def pictures(tmp_path, benchmark):
    """One picture for each item, under its id; each of another size, all PNG."""
    folder = tmp_path / "my pictures ü"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for n, item in enumerate(benchmark.items):
        pixels = rng.integers(256, size=(20 + n, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{item}.png")
    return folder


def build(benchmark, folder, **options):
    return build_images(benchmark, make_backend("folder", folder=folder), 64, progress=False, **options)


def pixels(path):
    with Image.open(path) as image:
        assert image.mode == "RGB"
        return np.asarray(image)


def test_takes_pictures_by_item_id_at_their_own_size(benchmark, pictures):
    assert build(benchmark, pictures, workers=2).made == 10
    for item in benchmark.items.values():
        expected = pixels(pictures / f"{item.id}.png")
        assert np.array_equal(pixels(benchmark.image_path(item)), expected)
    assert build(benchmark, pictures).present == 10


def test_other_names_and_kinds_are_found(benchmark, pictures):
    first, second, third, *_ = benchmark.items.values()
    items = benchmark.items | {first.id: replace(first, image="images/deep/one.png")}
    benchmark = replace(benchmark, items=items)
    (pictures / "images" / "deep").mkdir(parents=True)
    (pictures / f"{first.id}.png").rename(pictures / "images" / "deep" / "one.png")
    Image.open(pictures / f"{second.id}.png").save(
        pictures / f"{second.id}.WEBP", format="WEBP", lossless=True
    )
    expected = [pixels(pictures / "images" / "deep" / "one.png"), pixels(pictures / f"{second.id}.png")]
    (pictures / f"{second.id}.png").unlink()
    Image.new("L", (8, 8), 77).save(pictures / f"{third.id}.png")
    build(benchmark, pictures)
    found = [pixels(benchmark.image_path(benchmark.items[i.id])) for i in (first, second, third)]
    assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])
    assert (found[2] == 77).all() and found[2].shape == (8, 8, 3)


def test_missing_and_unreadable_pictures_are_listed_and_the_rest_is_taken(benchmark, pictures):
    ids = list(benchmark.items)
    (pictures / f"{ids[1]}.png").unlink()
    (pictures / f"{ids[4]}.png").write_bytes(b"no picture")
    with pytest.raises(ImagesIncomplete) as caught:
        build(benchmark, pictures)
    failed = caught.value.report.failed
    assert list(failed) == [ids[1], ids[4]] and caught.value.report.made == 8
    assert f"no picture 'images/{ids[1]}' or '{ids[1]}'" in failed[ids[1]] and str(pictures) in failed[ids[1]]
    assert "cannot be read" in failed[ids[4]]
    assert not benchmark.image_path(benchmark.items[ids[4]]).exists()
    Image.new("RGB", (5, 5)).save(pictures / f"{ids[1]}.png")
    Image.new("RGB", (5, 5)).save(pictures / f"{ids[4]}.png")
    report = build(benchmark, pictures)
    assert (report.made, report.present) == (2, 8)


def test_upright_and_on_white(benchmark, pictures):
    turned, clear = list(benchmark.items)[:2]
    source = np.zeros((4, 6, 3), np.uint8)
    source[0, 0] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: show it rotated clockwise
    Image.fromarray(source).save(pictures / f"{turned}.png", exif=exif)
    Image.new("RGBA", (4, 4), (255, 0, 0, 0)).save(pictures / f"{clear}.png")
    build(benchmark, pictures)
    upright = pixels(benchmark.image_path(benchmark.items[turned]))
    assert upright.shape == (6, 4, 3) and np.array_equal(upright, np.rot90(source, -1))
    assert (pixels(benchmark.image_path(benchmark.items[clear])) == 255).all()


def test_a_changed_source_is_taken_again(benchmark, pictures):
    build(benchmark, pictures)
    item = list(benchmark.items)[3]
    Image.new("RGB", (7, 7), (1, 2, 3)).save(pictures / f"{item}.png")
    assert build(benchmark, pictures).made == 1
    assert (pixels(benchmark.image_path(benchmark.items[item])) == (1, 2, 3)).all()


def test_pictures_in_their_place_are_left_as_they_are(benchmark):
    folder = benchmark.folder / "images"
    folder.mkdir()
    for n, item in enumerate(benchmark.items):
        Image.new("RGBA", (9, 9), (n, n, n, 128)).save(folder / f"{item}.png")
    before = {p: p.read_bytes() for p in folder.iterdir()}
    assert build(benchmark, benchmark.folder).made == 10
    assert build(benchmark, benchmark.folder).present == 10
    assert build(benchmark, folder).present == 10
    (benchmark.folder / MANIFEST).unlink()
    assert {p: p.read_bytes() for p in folder.iterdir()} == before
    bad = folder / f"{next(iter(benchmark.items))}.png"
    bad.write_bytes(b"\x89PNG nothing")
    with pytest.raises(ImagesIncomplete, match="cannot be read"):
        build(benchmark, folder)
    assert bad.read_bytes() == b"\x89PNG nothing"


def test_a_folder_that_is_none_stops_at_once(benchmark, tmp_path):
    with pytest.raises(BackendUnusable, match="nowhere"):
        build(benchmark, tmp_path / "nowhere")
