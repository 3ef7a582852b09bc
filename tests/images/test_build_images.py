import ast
import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import saber.images
from saber.benchmark import build_benchmark, write_benchmark
from saber.images import BackendUnusable, ImagesIncomplete, Refused, build_images, make_backend
from saber.images.manifest import MANIFEST, pixel_digest, read_manifest
from saber.images.sprites_backend import RENDERER, SpritesBackend
from saber.vocabulary import Object, Vocabulary, load_attributes


@dataclass
class Plain:
    """Plain colour from the seed; counts its calls and misbehaves for the items it is told to."""

    fingerprint: str = "1"
    name: str = "plain"
    trouble: dict = field(default_factory=dict)
    calls: list = field(default_factory=list)
    pool: str = "threads"
    concurrency: int | None = None
    seeded: bool = True
    seconds: float = 0.0

    def start(self, items, size, folder):
        self.announced = len(items)

    def original(self, item):
        return None

    def render(self, item, size):
        self.calls.append(item.id)
        time.sleep(self.seconds)
        if item.id in self.trouble:
            raise self.trouble[item.id]
        colour = tuple(int(c) for c in np.random.default_rng(item.seed).integers(256, size=3))
        return Image.new("RGB", (size, size), colour)


@pytest.fixture
def benchmark(tmp_path):
    attributes, palette = load_attributes()
    objects = tuple(Object(n, n, "toy", True) for n in ("kite", "teapot", "cube", "cherry", "apple"))
    vocabulary = Vocabulary(objects, attributes[:12], tuple(palette))
    made = build_benchmark(vocabulary, seed=3, questions_per_count=2, object_counts=[2, 3])
    return write_benchmark(made, tmp_path / "a folder ü")


def files(benchmark):
    return {p.name: p.read_bytes() for p in sorted((benchmark.folder / "images").iterdir())}


def test_builds_all_then_nothing(benchmark):
    backend = Plain()
    report = build_images(benchmark, backend, 16, progress=False)
    assert (report.made, report.present, report.complete) == (20, 0, True)
    assert len(backend.calls) == backend.announced == 20
    for item in benchmark.items.values():
        with Image.open(benchmark.image_path(item)) as image:
            assert image.size == (16, 16) and image.mode == "RGB"
            assert pixel_digest(image) == read_manifest(benchmark.folder)[item.id].pixels
    before = files(benchmark)
    times = [p.stat().st_mtime_ns for p in sorted((benchmark.folder / "images").iterdir())]
    again = build_images(benchmark, Plain(), 16, progress=False)
    assert (again.made, again.present) == (0, 20)
    assert files(benchmark) == before
    assert [p.stat().st_mtime_ns for p in sorted((benchmark.folder / "images").iterdir())] == times
    assert not [n for n in before if n.startswith(".")]


def test_result_does_not_depend_on_workers_or_history(benchmark, tmp_path):
    build_images(benchmark, Plain(), 16, progress=False)
    other = write_benchmark(benchmark, tmp_path / "other")
    build_images(other, Plain(fingerprint="0"), 16, progress=False)
    build_images(other, Plain(), 16, workers=3, progress=False)
    manifest = Path(MANIFEST).name
    assert files(other)[manifest] != b"" and files(other).keys() == files(benchmark).keys()
    for item in benchmark.items.values():
        with Image.open(benchmark.image_path(item)) as a, Image.open(other.image_path(item)) as b:
            assert a.tobytes() == b.tobytes()
    requests = [{r.item: r.request for r in read_manifest(b.folder).values()} for b in (benchmark, other)]
    assert requests[0] == requests[1]


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 12345},
        {"flipped": None},
        {"generation_text": "A thing"},
        {"appearances": ("red", "blue")},
    ],
)
def test_a_changed_request_remakes_exactly_that_image(benchmark, change):
    build_images(benchmark, Plain(), 16, progress=False)
    item = benchmark.items[benchmark.questions[0].candidates[1]]
    if change == {"flipped": None}:
        change = {"flipped": not item.flipped}
    changed = replace(benchmark, items=benchmark.items | {item.id: replace(item, **change)})
    backend = Plain()
    assert build_images(changed, backend, 16, progress=False).made == 1
    assert backend.calls == [item.id]


def test_another_size_or_fingerprint_remakes_all_and_an_equal_picture_keeps_its_file(benchmark):
    build_images(benchmark, Plain(), 16, progress=False)
    before = {n: c for n, c in files(benchmark).items() if n.endswith(".png")}
    assert build_images(benchmark, Plain(fingerprint="2"), 16, progress=False).made == 20
    assert {n: c for n, c in files(benchmark).items() if n.endswith(".png")} == before
    assert build_images(benchmark, Plain(fingerprint="2"), 24, progress=False).made == 20
    with Image.open(benchmark.image_path(benchmark.queries[0])) as image:
        assert image.size == (24, 24)


@pytest.mark.parametrize("keep_manifest", [True, False])
def test_damaged_images_are_noticed(benchmark, keep_manifest):
    build_images(benchmark, Plain(), 64, progress=False)
    before = files(benchmark)
    paths = [benchmark.image_path(i) for i in list(benchmark.items.values())[:5]]
    content = paths[0].read_bytes()
    paths[0].write_bytes(content[: len(content) - 30])  # cut off
    position = content.index(b"IDAT") + 10
    paths[1].write_bytes(paths[1].read_bytes()[:position] + b"\x55" + paths[1].read_bytes()[position + 1 :])
    paths[2].write_bytes(b"no picture at all")
    paths[3].unlink()
    paths[4].write_bytes(paths[4].read_bytes()[:-12])  # only the closing chunk is missing
    if not keep_manifest:
        (benchmark.folder / MANIFEST).unlink()
    backend = Plain()
    report = build_images(benchmark, backend, 64, progress=False)
    assert (report.made, report.present) == (5, 15)
    assert files(benchmark) == before


def test_torn_manifest_line_costs_nothing(benchmark):
    build_images(benchmark, Plain(), 16, progress=False)
    path = benchmark.folder / MANIFEST
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3] + b"\n[1]\nnull\n\xff\xfe")
    assert build_images(benchmark, Plain(), 16, progress=False).present == 20
    assert path.read_bytes() == whole


@pytest.mark.parametrize("workers", [1, 4])
def test_failing_items_do_not_spoil_others(benchmark, workers):
    ids = list(benchmark.items)
    trouble = {ids[2]: Refused("not this one"), ids[5]: ValueError("bad\nluck"), ids[7]: ZeroDivisionError()}
    with pytest.raises(ImagesIncomplete) as caught:
        build_images(benchmark, Plain(trouble=trouble), 16, workers=workers, progress=False)
    report = caught.value.report
    assert report.made == 17
    assert report.refused == {ids[2]: "not this one"}
    assert report.failed[ids[5]] == "bad luck" and "ZeroDivisionError" in report.failed[ids[7]]
    assert list(report.failed) == [ids[5], ids[7]]
    for item in (ids[2], ids[5], ids[7]):
        assert item in str(caught.value)
    backend = Plain()
    report = build_images(benchmark, backend, 16, progress=False, strict=False)
    assert (report.made, report.present) == (3, 17)
    assert sorted(backend.calls) == sorted([ids[2], ids[5], ids[7]])


@pytest.mark.parametrize("workers", [1, 3])
def test_unusable_backend_stops_and_keeps_what_is_made(benchmark, workers):
    ids = list(benchmark.items)
    backend = Plain(trouble={i: BackendUnusable("no key") for i in ids[8:]}, seconds=0.02)
    with pytest.raises(BackendUnusable, match="no key"):
        build_images(benchmark, backend, 16, workers=workers, progress=False)
    assert len(backend.calls) < 20
    again = Plain()
    report = build_images(benchmark, again, 16, progress=False)
    assert report.present >= 6 and report.made + report.present == 20


def test_interrupt_keeps_what_is_made(benchmark):
    ids = list(benchmark.items)
    with pytest.raises(KeyboardInterrupt):
        build_images(benchmark, Plain(trouble={ids[9]: KeyboardInterrupt()}), 16, progress=False)
    assert build_images(benchmark, Plain(), 16, progress=False).present == 9


def test_pictures_that_cannot_be_remade_are_not_replaced(benchmark):
    build_images(benchmark, Plain(name="openai"), 16, progress=False)
    before = files(benchmark)
    with pytest.raises(FileExistsError, match=r"20 images here .*openai"):
        build_images(benchmark, Plain(name="sprites"), 16, progress=False)
    (benchmark.folder / MANIFEST).unlink()
    with pytest.raises(FileExistsError, match=r"20 images here .*openai"):
        build_images(benchmark, Plain(name="sprites"), 16, progress=False)
    assert {n: c for n, c in files(benchmark).items()} == {
        n: c for n, c in before.items() if "manifest" not in n
    }
    assert build_images(benchmark, Plain(name="sprites"), 16, progress=False, overwrite=True).made == 20
    assert (
        build_images(benchmark, Plain(name="openai"), 16, progress=False).made == 20
    )  # sprites cost nothing
    photo = benchmark.image_path(benchmark.queries[0])
    Image.new("RGB", (9, 9)).save(photo)
    (benchmark.folder / MANIFEST).unlink()
    with pytest.raises(FileExistsError, match="unknown"):
        build_images(benchmark, Plain(name="openai"), 16, progress=False)


def test_bad_paths_are_named(benchmark):
    first, second = list(benchmark.items.values())[:2]

    def with_image(image):
        return replace(benchmark, items=benchmark.items | {first.id: replace(first, image=image)})

    for image, words in (
        (None, "empty"),
        ("/elsewhere/x.png", "relative"),
        ("../x.png", "relative"),
        (second.image, second.id),
    ):
        with pytest.raises(ValueError, match=words):
            build_images(with_image(image), Plain(), 16, progress=False)
    with pytest.raises(ValueError, match="write_benchmark"):
        build_images(replace(benchmark, folder=None), Plain(), 16, progress=False)
    with pytest.raises(ValueError, match="at least 1"):
        build_images(benchmark, Plain(), 16, workers=0, progress=False)


def test_old_temporary_files_are_swept(benchmark):
    build_images(benchmark, Plain(), 16, progress=False)
    folder = benchmark.folder / "images"
    for name, age in ((".a-1.png", 7200), (".b-2.png", 10)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    build_images(benchmark, Plain(), 24, progress=False)
    assert [p.name for p in folder.glob(".*")] == [".b-2.png"]


def test_manifest_is_one_sorted_json_object_a_line(benchmark):
    build_images(benchmark, Plain(), 16, workers=3, progress=False)
    rows = [
        json.loads(line) for line in (benchmark.folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    ]
    assert [r["item"] for r in rows] == sorted(benchmark.items)
    assert {r["backend"] for r in rows} == {"plain"}


def test_make_backend_names_what_is_valid():
    assert make_backend("sprites").name == "sprites"
    assert make_backend("openai", model="other").model == "other"
    with pytest.raises(ValueError, match="sprites, openai, folder"):
        make_backend("dalle")
    with pytest.raises(ValueError, match=r"does not know modell.*quality"):
        make_backend("openai", modell="x")
    with pytest.raises(ValueError, match="needs folder"):
        make_backend("folder")


def test_sprites_in_processes_equal_sprites_alone(benchmark, tmp_path):
    first = benchmark.questions[0]
    few = {i: benchmark.items[i] for i in (first.query, *first.candidates)}
    benchmark = replace(benchmark, questions=(first,), items=few)
    one = build_images(benchmark, SpritesBackend(), 96, progress=False)
    assert one.made == 5
    other = write_benchmark(benchmark, tmp_path / "other")
    build_images(other, SpritesBackend(), 96, workers=2, progress=False)
    assert files(other) == files(benchmark)
    pixels = {np.asarray(Image.open(benchmark.image_path(i))).tobytes() for i in benchmark.items.values()}
    assert len(pixels) == 5


def test_sprites_fingerprint_covers_every_module_of_the_renderer():
    """The modules of saber.images that render.py imports, directly or not, are the listed ones."""
    here = Path(saber.images.__file__).parent
    found, open_ = set(), {"render"}
    while open_:
        name = open_.pop()
        found.add(name)
        for node in ast.walk(ast.parse((here / f"{name}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("saber.images"):
                module = node.module.removeprefix("saber.images").lstrip(".")
                names = [module] if module else [a.name for a in node.names]
                open_ |= {n for n in names if (here / f"{n}.py").exists()} - found
    assert found == set(RENDERER)
    assert len(SpritesBackend().fingerprint) == 64
    assert SpritesBackend().fingerprint == SpritesBackend().fingerprint
