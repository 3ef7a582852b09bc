"""saber.benchmark_files and saber.dataset_card: what is written can be read, by us and by `datasets`."""

import json

import pytest
import yaml

from saber.benchmark import Item, build_benchmark, read_benchmark, write_benchmark
from saber.benchmark_files import read_unchecked, store_image, write_if_changed
from saber.vocabulary import load_vocabulary


@pytest.fixture(scope="module")
def benchmark():
    return build_benchmark(load_vocabulary("known"), seed=2, questions_per_count=4, object_counts=[2, 3])


@pytest.fixture
def folder(benchmark, tmp_path):
    return write_benchmark(benchmark, tmp_path / "a folder with ümlaut").folder


def test_what_is_written_is_read(benchmark, folder):
    found = read_benchmark(folder)
    assert found == benchmark
    assert list(found.items) == list(benchmark.items)
    assert found.folder == folder
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "items.jsonl", "questions.jsonl"]


def test_fields_of_the_files(folder):
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text("utf-8").splitlines()]
    assert (len(questions), len(items)) == (8, 40)
    assert list(questions[0]) == ["id", "n_objects", "subset", "chain", "query", "candidates"]
    assert list(items[0]) == (
        "id question role pairs text generation_text appearances image seed flipped".split()
    )
    assert questions[0]["chain"] is None and len(questions[0]["candidates"]) == 4
    assert [len(p) for p in items[0]["pairs"]] == [2, 2]
    assert b"\r" not in (folder / "items.jsonl").read_bytes()


def test_equal_content_is_left_untouched(benchmark, folder):
    times = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    write_benchmark(benchmark, folder)
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == times
    (folder / "items.jsonl").write_text("torn", encoding="utf-8")
    write_benchmark(benchmark, folder)
    assert read_benchmark(folder) == benchmark


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "file.txt"
    assert write_if_changed(target, b"old") and not write_if_changed(target, b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_if_changed(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_optional_fields_may_be_missing_or_null(folder):
    path = folder / "items.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    needed = ("id", "question", "role", "pairs", "text")
    rows = [{k: r[k] for k in needed} | {"image": None, "seed": None, "source": "x"} for r in rows]
    text = "\r\n".join(json.dumps(r) for r in rows) + "\r\n\r\n"
    path.write_text(text, encoding="utf-8-sig", newline="")  # as a Windows editor saves it
    found = read_benchmark(folder)
    first = next(iter(found.items.values()))
    assert isinstance(first, Item)
    assert (first.generation_text, first.appearances, first.image, first.seed, first.flipped) == (
        "",
        (),
        None,
        0,
        False,
    )


BAD_ITEM_FIELDS = [
    ("id", "", "a non-empty string, not ''"),
    ("question", 3, "the id of a question, not 3"),
    (
        "role",
        "joint swap",
        "one of query, preserved, attribute_swap, object_swap, joint_swap, not 'joint swap'",
    ),
    ("pairs", [], r"a list of \[attribute, object\], not \[\]"),
    ("pairs", [["red"]], r"a list of \[attribute, object\]"),
    ("pairs", None, r"a list of \[attribute, object\], not None"),
    ("text", " ", "a non-empty string"),
    ("generation_text", 5, "a string, not 5"),
    ("appearances", "red", "a list of strings"),
    ("appearances", ["red"], "1 entries for 2 pairs"),
    ("image", "/images/a.png", "a relative path"),
    ("image", "../a.png", "inside the folder"),
    ("image", "images\\a.png", "a relative path with '/'"),
    ("seed", -1, "an integer of 0 or more, not -1"),
    ("seed", 1.5, "an integer of 0 or more, not 1.5"),
    ("flipped", "yes", "true or false, not 'yes'"),
]
BAD_QUESTION_FIELDS = [
    ("n_objects", "two", "an integer of 0 or more, not 'two'"),
    ("n_objects", True, "an integer of 0 or more, not True"),
    ("subset", "chained", "one of independent, nested, not 'chained'"),
    ("chain", 4, "a non-empty string, or null"),
    ("query", None, "the id of an item"),
    ("candidates", ["a", "b", "c"], "a list of four item ids"),
]


def _change_line(path, number, change):
    lines = path.read_text("utf-8").splitlines()
    row = json.loads(lines[number - 1])
    change(row)
    lines[number - 1] = json.dumps(row)
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "field", "value", "message"),
    [("items.jsonl", *x) for x in BAD_ITEM_FIELDS] + [("questions.jsonl", *x) for x in BAD_QUESTION_FIELDS],
)
def test_errors_name_file_line_and_field(folder, file, field, value, message):
    _change_line(folder / file, 2, lambda row: row.__setitem__(field, value))
    with pytest.raises(ValueError, match=message) as caught:
        read_benchmark(folder)
    assert f"{file}, line 2: field '{field}'" in str(caught.value)


def test_a_missing_field_is_named_with_those_found(folder):
    _change_line(folder / "items.jsonl", 3, lambda row: row.pop("pairs"))
    with pytest.raises(ValueError, match="line 3: field 'pairs' is missing; found id, question, role, text"):
        read_benchmark(folder)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": ', "line 2: not a JSON object"),
        ('["id"]', "line 2: expected a JSON object"),
        ("", "line 1: field 'id' is missing; found no field"),
    ],
)
def test_lines_that_are_no_objects(folder, line, message):
    path = folder / "questions.jsonl"
    lines = path.read_text("utf-8").splitlines()
    lines[1:2] = [line]
    if not line:
        lines[0] = "{}"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_benchmark(folder)


def test_double_and_missing_items(folder):
    path = folder / "items.jsonl"
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines, lines[4]]), encoding="utf-8")
    with pytest.raises(ValueError, match="line 41: field 'id': 'ind-n02-0000-joint-swap' was used on line 5"):
        read_benchmark(folder)
    path.write_text("\n".join(lines[1:]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"'ind-n02-0000' names items .* ind-n02-0000-query$"):
        read_benchmark(folder)
    assert len(read_unchecked(folder).items) == 39


def test_missing_empty_and_binary_files(folder):
    (folder / "items.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"items.jsonl is not UTF-8"):
        read_benchmark(folder)
    (folder / "items.jsonl").write_bytes(b"\n")
    with pytest.raises(ValueError, match=r"items.jsonl is empty"):
        read_benchmark(folder)
    (folder / "questions.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"questions.jsonl does not exist.*01_benchmark_build"):
        read_benchmark(folder)


def test_card_says_what_is_there(folder):
    text = (folder / "README.md").read_text("utf-8")
    _, front, body = text.split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["counts"] == {"questions": 8, "candidates": 32, "items": 40}
    assert card["size_categories"] == ["n<1K"]
    assert {c["config_name"]: c["data_files"] for c in card["configs"]} == {
        "items": "items.jsonl",
        "questions": "questions.jsonl",
    }
    assert "8 questions with 32 candidates: 40 image-caption pairs" in body
    assert "| 3 | 2 | 2 |" in body


def test_datasets_reads_files_and_folder(benchmark, folder, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    cache = str(tmp_path / "cache")
    for name, n in (("questions", 8), ("items", 40)):
        file = str(folder / f"{name}.jsonl")
        rows = datasets.load_dataset("json", data_files=file, split="train", cache_dir=cache)
        assert len(rows) == n
        by_card = datasets.load_dataset(str(folder), name, split="train", cache_dir=cache)
        assert by_card[n - 1] == rows[n - 1]
    first = next(iter(benchmark.items.values()))
    assert rows[0]["pairs"] == [list(p) for p in first.pairs]
    assert rows[0]["text"] == first.text


def test_store_image_links_or_copies(tmp_path, monkeypatch):
    from PIL import Image

    Image.new("RGB", (3, 2), "red").save(tmp_path / "a.jpeg")
    folder = tmp_path / "out"
    assert store_image(None, "x", folder, None) is None
    assert store_image("a.jpeg", "x", None, tmp_path) is None
    assert store_image("a.jpeg", "odd/name", folder, tmp_path) == "images/odd%2Fname.jpg"
    assert (folder / "images" / "odd%2Fname.jpg").samefile(tmp_path / "a.jpeg")
    assert store_image("a.jpeg", "odd/name", folder, tmp_path) == "images/odd%2Fname.jpg"

    def other_disk(*_):
        raise OSError("cross-device link")

    monkeypatch.setattr("os.link", other_disk)
    assert store_image({"bytes": None, "path": "a.jpeg"}, "y", folder, tmp_path) == "images/y.jpg"
    assert (folder / "images" / "y.jpg").read_bytes() == (tmp_path / "a.jpeg").read_bytes()
    with pytest.raises(FileNotFoundError, match=r"'b.png' of item 'z'"):
        store_image("b.png", "z", folder, tmp_path)
    with pytest.raises(ValueError, match="item 'z' cannot be opened"):
        store_image({"bytes": b"no picture", "path": "b.png"}, "z", folder, tmp_path)
