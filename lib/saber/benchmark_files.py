"""SABER on disk: ``questions.jsonl`` and ``items.jsonl``, one JSON object a line, and a dataset card.

Fields are those of `saber.items.Question` and `saber.items.Item`. Both files open with
``datasets.load_dataset("json", data_files=...)``, and the folder with ``datasets.load_dataset(folder,
"items")``.
"""

import dataclasses
import io
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from PIL import Image

from saber.dataset_card import dataset_card
from saber.files import write_with
from saber.items import ROLES, SUBSETS, Benchmark, Item, Question

QUESTIONS, ITEMS, CARD = "questions.jsonl", "items.jsonl", "README.md"


def write_benchmark(benchmark: Benchmark, folder: Path | str) -> Benchmark:
    """Write the two files and the card; returns the benchmark with its folder set. Images are left alone.

    Each file is replaced at once, and one that holds the same content already keeps its modification time.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_if_changed(folder / ITEMS, _lines(benchmark.items.values()))
    write_if_changed(folder / CARD, dataset_card(benchmark).encode())
    write_if_changed(folder / QUESTIONS, _lines(benchmark.questions))
    return dataclasses.replace(benchmark, folder=folder)


def read_benchmark(folder: Path | str) -> Benchmark:
    """Read a folder written by `write_benchmark`, or anyone's files of the same fields.

    Fields that `saber.items.Item` has a default for may be missing or null; unknown fields are passed over.
    Raises FileNotFoundError for a missing file and ValueError that names file, line and field for anything
    malformed, or the question whose item does not exist. Whether the questions follow the paper's rules is
    another matter: `saber.validate`.
    """
    benchmark = read_unchecked(folder)
    for question in benchmark.questions:
        missing = [i for i in (question.query, *question.candidates) if i not in benchmark.items]
        if missing:
            raise ValueError(
                f"{benchmark.folder / QUESTIONS}: question {question.id!r} names items that are not in "
                f"{ITEMS}: {', '.join(missing)}"
            )
    return benchmark


def read_unchecked(folder: Path | str) -> Benchmark:
    """As `read_benchmark`, but questions may name items that do not exist (for `saber.validate`)."""
    folder = Path(folder)
    questions = _read(folder / QUESTIONS, _question)
    items = _read(folder / ITEMS, _item)
    return Benchmark(tuple(questions.values()), items, folder)


def has_benchmark(folder: Path | str) -> bool:
    """Whether the folder holds both files."""
    return all((Path(folder) / name).is_file() for name in (QUESTIONS, ITEMS))


def write_if_changed(path: Path, content: bytes) -> bool:
    """Replace a file at once, unless it holds exactly this content. Returns whether it was written."""
    if path.is_file() and path.read_bytes() == content:
        return False
    write_with(path, lambda temporary: temporary.write_bytes(content))
    return True


def store_image(value, item_id: str, folder: Path | None, root: Path | None) -> str | None:
    """Write or link one image of another dataset into ``folder``; returns its path relative to it.

    value: ``{"bytes", "path"}`` or a path, which is relative to ``root``; None (or no folder) gives None.
    Raises FileNotFoundError or ValueError that names the item.
    """
    if value is None or folder is None:
        return None
    content, path = (value.get("bytes"), value.get("path")) if isinstance(value, Mapping) else (None, value)
    source = None if content else Path(root or "", path)
    if source and not source.is_file():
        raise FileNotFoundError(f"image {path!r} of item {item_id!r} does not exist below {root}")
    try:
        with Image.open(io.BytesIO(content) if content else source) as image:
            suffix = {"JPEG": "jpg"}.get(image.format, image.format.lower())
    except OSError as error:
        raise ValueError(f"image of item {item_id!r} cannot be opened: {error}") from None
    relative = f"images/{quote(item_id, safe='')}.{suffix}"
    target = folder / relative
    target.parent.mkdir(parents=True, exist_ok=True)
    if content:
        write_if_changed(target, content)
    elif not (target.exists() and target.samefile(source)):
        target.unlink(missing_ok=True)
        try:
            os.link(source.resolve(), target)
        except OSError:  # another disk
            shutil.copyfile(source, target)
    return relative


def _lines(rows) -> bytes:
    return "".join(json.dumps(dataclasses.asdict(r), ensure_ascii=False) + "\n" for r in rows).encode()


def _read(path: Path, parse: Callable) -> dict:
    """Rows by id, in file order; ``parse(row, where)`` makes one of the dataclasses."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist; a SABER folder holds {QUESTIONS} and {ITEMS} "
            f"(notebook 01_benchmark_build writes them)"
        )
    found, first_line = {}, {}
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}: not a JSON object ({error.msg} at column {error.colno})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected a JSON object with named fields, found {_short(row)}")
        made = parse(row, where)
        if made.id in found:
            raise ValueError(
                f"{where}: field 'id': {made.id!r} was used on line {first_line[made.id]} already"
            )
        found[made.id], first_line[made.id] = made, number
    if not found:
        raise ValueError(f"{path} is empty: expected one JSON object a line")
    return found


def _question(row: dict, where: str) -> Question:
    get = _getter(row, where)
    return Question(
        id=get("id", _is_name, "a non-empty string"),
        n_objects=get("n_objects", _is_count, "an integer of 0 or more"),
        subset=get("subset", lambda v: v in SUBSETS, f"one of {', '.join(SUBSETS)}"),
        chain=get("chain", _is_name, "a non-empty string, or null", default=None),
        query=get("query", _is_name, "the id of an item"),
        candidates=tuple(
            get("candidates", lambda v: _is_list(v, _is_name) and len(v) == 4, "a list of four item ids")
        ),
    )


def _item(row: dict, where: str) -> Item:
    get = _getter(row, where)
    item = Item(
        id=get("id", _is_name, "a non-empty string"),
        question=get("question", _is_name, "the id of a question"),
        role=get("role", lambda v: v in ROLES, f"one of {', '.join(ROLES)}"),
        pairs=tuple(tuple(p) for p in get("pairs", _is_pairs, "a list of [attribute, object]")),
        text=get("text", _is_name, "a non-empty string"),
        generation_text=get("generation_text", lambda v: isinstance(v, str), "a string", default=""),
        appearances=tuple(
            get("appearances", lambda v: _is_list(v, _is_name), "a list of strings", default=[])
        ),
        image=get("image", _is_inside, "a relative path with '/' that stays inside the folder", default=None),
        seed=get("seed", _is_count, "an integer of 0 or more", default=0),
        flipped=get("flipped", lambda v: isinstance(v, bool), "true or false", default=False),
    )
    if item.appearances and len(item.appearances) != len(item.pairs):
        raise ValueError(
            f"{where}: field 'appearances' has {len(item.appearances)} entries for {len(item.pairs)} pairs"
        )
    return item


_REQUIRED = object()


def _getter(row: dict, where: str) -> Callable:
    def get(name: str, valid: Callable[[object], bool], expected: str, default=_REQUIRED):
        value = row.get(name)
        if value is None and default is not _REQUIRED:
            return default
        if name not in row:
            raise ValueError(f"{where}: field {name!r} is missing; found {', '.join(row) or 'no field'}")
        if not valid(value):
            raise ValueError(f"{where}: field {name!r} must be {expected}, not {_short(value)}")
        return value

    return get


def _is_name(value) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_list(value, valid: Callable) -> bool:
    return isinstance(value, list) and all(valid(v) for v in value)


def _is_pairs(value) -> bool:
    return _is_list(value, lambda p: _is_list(p, _is_name) and len(p) == 2) and len(value) > 0


def _is_inside(value) -> bool:
    return (
        _is_name(value)
        and "\\" not in value
        and not PurePosixPath(value).is_absolute()
        and ".." not in PurePosixPath(value).parts
    )


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
