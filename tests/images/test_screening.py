import builtins
from dataclasses import dataclass, replace

import numpy as np
import pytest
from PIL import Image

from saber.benchmark import build_benchmark, read_benchmark, write_benchmark
from saber.images import build_images, make_backend
from saber.images.screening import (
    question_sheet,
    read_history,
    read_verdicts,
    record_verdict,
    regenerate_rejected,
    screened,
    screening_page,
    write_sheets,
)
from saber.images.sheets import SIDE, _font, _wrap
from saber.images.verdicts import VERDICTS
from saber.vocabulary import Object, Vocabulary, load_attributes


@dataclass
class Plain:
    """Plain colour from the seed."""

    name: str = "plain"
    fingerprint: str = "1"
    pool: str = "threads"
    concurrency: int | None = None
    seeded: bool = True

    def start(self, items, size, folder):
        pass

    def original(self, item):
        return None

    def render(self, item, size):
        colour = np.random.default_rng(item.seed).integers(256, size=3)
        return Image.new("RGB", (size, size), tuple(int(c) for c in colour))


@pytest.fixture
def benchmark(tmp_path):
    attributes, palette = load_attributes()
    objects = tuple(Object(n, n, "toy", True) for n in ("kite", "teapot", "cube", "cherry", "apple"))
    vocabulary = Vocabulary(objects, attributes[:12], tuple(palette))
    made = build_benchmark(vocabulary, seed=3, questions_per_count=2, object_counts=[2, 3])
    benchmark = write_benchmark(made, tmp_path / "saber")
    build_images(benchmark, Plain(), 16, progress=False)
    return benchmark


def first_items(benchmark, n):
    return list(benchmark.items)[:n]


def test_verdicts_are_recorded_and_the_last_counts(benchmark):
    assert read_verdicts(benchmark) == {} and read_history(benchmark) == []
    a, b = first_items(benchmark, 2)
    record_verdict(benchmark, a, "reject", "blurred, and\n a comma")
    record_verdict(benchmark, b, "accept")
    record_verdict(benchmark, a, "accept")
    current = read_verdicts(benchmark)
    assert {i: v.verdict for i, v in current.items()} == {a: "accept", b: "accept"}
    assert [v.comment for v in read_history(benchmark)] == ["blurred, and a comma", "", ""]
    with pytest.raises(ValueError, match="not in this benchmark"):
        record_verdict(benchmark, "nobody", "accept")
    with pytest.raises(ValueError, match="accept or reject"):
        record_verdict(benchmark, a, "maybe")
    benchmark.image_path(benchmark.items[b]).unlink()
    with pytest.raises(ValueError, match="build_images"):
        record_verdict(benchmark, b, "accept")


def test_verdict_lapses_with_its_picture_but_not_with_a_new_file_of_the_same(benchmark):
    a, b = first_items(benchmark, 2)
    for item in (a, b):
        record_verdict(benchmark, item, "reject")
    path = benchmark.image_path(benchmark.items[a])
    with Image.open(path) as image:
        image.load()
    image.save(path, compress_level=0)  # same picture, other bytes
    Image.new("RGB", (16, 16), (9, 9, 9)).save(benchmark.image_path(benchmark.items[b]))
    (benchmark.folder / "images/manifest.jsonl").unlink()
    assert read_verdicts(benchmark).keys() == {a}


def test_hand_written_file(benchmark):
    a, b = first_items(benchmark, 2)
    path = benchmark.folder / VERDICTS
    text = f'\ufeffitem,verdict,comment\r\n{a},Reject ,"one, two"\r\n{b},accept,\r\n'
    path.write_text(text, encoding="utf-8", newline="")
    found = read_verdicts(benchmark)
    assert (found[a].verdict, found[a].comment) == ("reject", "one, two") and found[b].verdict == "accept"
    path.write_text(f"verdict,item\nreject,{a}\n", encoding="utf-8")
    assert read_verdicts(benchmark)[a].verdict == "reject"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            ["nobody,accept,", "{a},maybe,", "{b},accept,"],
            ["row 2", "'nobody'", "row 3", "'maybe'", "2 wrong rows"],
        ),
        (["{a},accept,one, two,3"], ["row 2", "double quotes"]),
        (["{a}"], ["row 2", "number of cells"]),
    ],
)
def test_wrong_rows_are_all_named(benchmark, rows, words):
    a, b = first_items(benchmark, 2)
    text = "item,verdict,comment\n" + "\n".join(rows).format(a=a, b=b) + "\n"
    (benchmark.folder / VERDICTS).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as caught:
        read_verdicts(benchmark)
    for word in words:
        assert word in str(caught.value)
    with pytest.raises(ValueError):
        record_verdict(benchmark, a, "accept")
    assert (benchmark.folder / VERDICTS).read_text(encoding="utf-8") == text


def test_wrong_header_is_named(benchmark):
    (benchmark.folder / VERDICTS).write_text("item;verdict\nx;accept\n", encoding="utf-8")
    with pytest.raises(ValueError, match="item;verdict"):
        read_verdicts(benchmark)


def test_rejected_pictures_get_a_new_seed(benchmark):
    a, b, c = first_items(benchmark, 3)
    record_verdict(benchmark, a, "reject", "wrong colour")
    record_verdict(benchmark, b, "accept")
    with open(benchmark.folder / VERDICTS, "a", encoding="utf-8") as file:
        file.write(f"{c},reject\n")  # by hand, without a picture
    before = {i: benchmark.image_path(benchmark.items[i]).read_bytes() for i in benchmark.items}
    updated = regenerate_rejected(benchmark, Plain(), 16, progress=False)
    changed = {i for i in benchmark.items if updated.items[i] != benchmark.items[i]}
    assert changed == {a, c}
    assert replace(updated.items[a], seed=0) == replace(benchmark.items[a], seed=0)
    assert updated.questions == benchmark.questions
    assert read_benchmark(benchmark.folder) == updated
    for i in benchmark.items:
        assert (updated.image_path(updated.items[i]).read_bytes() != before[i]) == (i in changed)
    assert read_verdicts(updated).keys() == {b}  # the new pictures are to be judged again
    assert [(v.item, v.verdict) for v in read_history(updated)] == [
        (a, "reject"),
        (b, "accept"),
        (c, "reject"),
    ]
    assert regenerate_rejected(updated, Plain(), 16, progress=False) is updated


def test_a_picture_can_be_rejected_again_and_a_rebuild_keeps_the_seeds(benchmark):
    a, *_ = first_items(benchmark, 1)
    seeds, current = [benchmark.items[a].seed], benchmark
    for _ in range(3):
        record_verdict(current, a, "reject")
        current = regenerate_rejected(current, Plain(), 16, progress=False)
        seeds.append(current.items[a].seed)
    assert len(set(seeds)) == 4
    assert screened(benchmark) == current and screened(current) == current
    other = replace(benchmark, items=benchmark.items | {a: replace(benchmark.items[a], seed=5)})
    assert screened(other) == other  # another build altogether: its pictures were not judged
    write_benchmark(benchmark, benchmark.folder)  # as a notebook does that builds it anew
    assert build_images(screened(benchmark), Plain(), 16, progress=False).present == 20


def test_pictures_from_a_folder_cannot_be_regenerated(benchmark, tmp_path):
    a, *_ = first_items(benchmark, 1)
    record_verdict(benchmark, a, "reject")
    with pytest.raises(ValueError, match=a):
        regenerate_rejected(benchmark, make_backend("folder", folder=tmp_path), 16)


def test_question_sheet_shows_the_five_pictures_in_order(benchmark):
    question = benchmark.questions[-1]
    sheet = np.asarray(question_sheet(benchmark, question.id))
    seen = []
    for item_id in (question.query, *question.candidates):
        with Image.open(benchmark.image_path(benchmark.items[item_id])) as image:
            mask = (sheet == image.getpixel((8, 8))).all(axis=-1)
        assert mask.sum() >= 0.9 * SIDE**2
        seen.append(np.flatnonzero(mask.any(axis=0)).mean())
    assert seen == sorted(seen)
    with pytest.raises(ValueError, match=benchmark.questions[0].id):
        question_sheet(benchmark, "nothing")


def test_sheet_changes_with_verdict_and_survives_bad_images(benchmark):
    question = benchmark.questions[0]
    plain = question_sheet(benchmark, question.id).tobytes()
    record_verdict(benchmark, question.query, "reject", "a long comment " * 9)
    rejected = question_sheet(benchmark, question.id).tobytes()
    record_verdict(benchmark, question.query, "accept")
    accepted = question_sheet(benchmark, question.id).tobytes()
    assert len({plain, rejected, accepted}) == 3
    benchmark.image_path(benchmark.items[question.candidates[0]]).unlink()
    benchmark.image_path(benchmark.items[question.candidates[1]]).write_bytes(b"no picture")
    assert question_sheet(benchmark, question.id).tobytes() not in (plain, rejected, accepted)


def test_wrapped_lines_fit_and_lose_no_word():
    text = "light-brown wooden and white and orange striped fire extinguisher with a verylongwordindeed"
    font = _font(15)
    lines = _wrap(text, font, 150)
    assert " ".join(lines) == text
    assert len(lines) > 2
    assert all(font.getlength(line) <= 150 or " " not in line for line in lines)


def test_write_sheets_pages(benchmark, tmp_path):
    folder = tmp_path / "sheets ü"
    paths = write_sheets(benchmark, folder, per_page=1)
    assert [p.name for p in paths] == [f"screening_{n:04d}.png" for n in range(1, 5)]
    ids = [q.id for q in benchmark.questions]
    with Image.open(write_sheets(benchmark, folder, per_page=3)[0]) as page:
        heights = [question_sheet(benchmark, i).height for i in ids[:3]]
        assert page.height == sum(heights)
    assert len(list(folder.iterdir())) == 2  # the pages of the longer run are gone
    assert len(write_sheets(benchmark, folder, questions=ids[:1])) == 1


def find(box, kind, description=None):
    """All widgets of a kind inside a box, depth first."""
    children = getattr(box, "children", ())
    own = (
        [box]
        if type(box).__name__ == kind and description in (None, getattr(box, "description", None))
        else []
    )
    return own + [w for c in children for w in find(c, kind, description)]


def test_page_takes_verdicts_by_click(benchmark):
    pytest.importorskip("ipywidgets")
    page = screening_page(benchmark)
    chooser, picture = find(page, "Dropdown")[0], find(page, "Image")[0]
    toggles, comments = find(page, "ToggleButtons"), find(page, "Text")
    first, second = benchmark.questions[:2]
    assert chooser.value == first.id and len(toggles) == len(comments) == 5
    before = bytes(picture.value)
    toggles[0].value = "reject"
    comments[0].value = "no kite"
    toggles[2].value = "accept"
    verdicts = read_verdicts(benchmark)
    assert (verdicts[first.query].verdict, verdicts[first.query].comment) == ("reject", "no kite")
    assert verdicts[first.candidates[1]].verdict == "accept" and len(verdicts) == 2
    assert bytes(picture.value) != before
    assert "2 of 20 pictures judged, 1 rejected" in find(page, "HTML")[0].value
    find(page, "Button", "next")[0].click()
    assert chooser.value == second.id and all(t.value is None for t in toggles)
    assert len(read_history(benchmark)) == 3  # showing another question judges nothing
    find(page, "Button", "previous")[0].click()
    assert [t.value for t in toggles] == ["reject", None, "accept", None, None]
    assert len(read_history(benchmark)) == 3
    assert comments[0].value == "no kite"
    find(page, "Button", "accept the rest")[0].click()
    assert [t.value for t in toggles] == ["reject", "accept", "accept", "accept", "accept"]
    find(page, "Button", "next to judge")[0].click()
    assert chooser.value == second.id
    assert find(screening_page(benchmark), "Dropdown")[0].value == second.id
    with pytest.raises(ValueError, match="nothing"):
        screening_page(benchmark, start="nothing")


def test_page_tells_what_it_cannot_record(benchmark):
    pytest.importorskip("ipywidgets")
    question = benchmark.questions[0]
    benchmark.image_path(benchmark.items[question.query]).unlink()
    page = screening_page(benchmark)
    find(page, "ToggleButtons")[0].value = "accept"
    assert read_history(benchmark) == []
    assert "build_images" in find(page, "HTML")[0].value
    assert find(page, "ToggleButtons")[0].value is None


def test_without_ipywidgets_there_is_the_static_sheet(benchmark, monkeypatch, capsys):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "ipywidgets":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    sheet = screening_page(benchmark)
    assert sheet.tobytes() == question_sheet(benchmark, benchmark.questions[0].id).tobytes()
    assert "record_verdict" in capsys.readouterr().out
