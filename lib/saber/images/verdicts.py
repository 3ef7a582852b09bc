"""Verdicts of the screening: ``images/verdicts.csv``, which a person may also write in a spreadsheet.

Columns ``item,verdict,comment,picture``; verdict is ``accept`` or ``reject``. Rows are only ever added, so
the file is the history of the screening: the last row of an item counts. ``picture`` (first digits of the
SHA-256 of the judged picture) ties a verdict to what was seen: it lapses when the item gets another picture.
Blank, as in a file written by hand, it means the present one.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Literal

from PIL import Image

from saber import files
from saber.images.manifest import pixel_digest, read_manifest

VERDICTS = "images/verdicts.csv"
ACCEPT, REJECT = WORDS = ("accept", "reject")
DIGITS = 16  # of the picture's digest


@dataclass(frozen=True)
class Verdict:
    """One row of the verdicts file."""

    item: str
    verdict: Literal["accept", "reject"]
    comment: str = ""
    picture: str = ""


COLUMNS = tuple(f.name for f in fields(Verdict))


def read_history(benchmark) -> list[Verdict]:
    """All rows ever given, oldest first; empty without a file.

    Raises:
        ValueError: names every row that is wrong (unknown item, unknown verdict, wrong number of cells).
    """
    path = Path(benchmark.folder) / VERDICTS
    if not path.exists():
        return []
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, skipinitialspace=True)
        header = tuple(reader.fieldnames or ())
        missing, unknown = (
            [c for c in COLUMNS[:2] if c not in header],
            [c for c in header if c not in COLUMNS],
        )
        if missing or unknown:
            raise ValueError(
                f"{path}: columns are {', '.join(header) or 'none'}; item and verdict are needed, "
                f"comment and picture may follow, separated by commas"
            )
        rows, errors = [], []
        for cells in reader:
            problem = _problem(cells, benchmark)
            if problem:
                errors.append(f"  row {reader.line_num}: {problem}")
            else:
                cells = {c: (cells.get(c) or "").strip() for c in COLUMNS}
                rows.append(Verdict(**cells | {"verdict": cells["verdict"].lower()}))
    if errors:
        raise ValueError(f"{path}: {len(errors)} wrong rows\n" + "\n".join(errors))
    return rows


def _problem(cells: dict, benchmark) -> str | None:
    if None in cells or any(cells[c] is None for c in ("item", "verdict")):
        return "wrong number of cells; put a comment with a comma in double quotes"
    item, verdict = cells["item"].strip(), cells["verdict"].strip()
    if item not in benchmark.items:
        return f"item {item!r} is not in this benchmark"
    if verdict.lower() not in WORDS:
        return f"verdict of {item} is {verdict!r}; write accept or reject"
    return None


def read_verdicts(benchmark) -> dict[str, Verdict]:
    """The verdict on each item's present picture; items without one are absent."""
    history = read_history(benchmark)
    pictures = _pictures(benchmark, {row.item for row in history})
    return {row.item: row for row in history if row.picture in ("", pictures[row.item])}


def record_verdict(benchmark, item_id: str, verdict: str, comment: str = "") -> Verdict:
    """Add a verdict on the present picture of an item; the earlier rows stay.

    Raises:
        ValueError: unknown item or verdict, or the item has no picture to judge.
    """
    if item_id not in benchmark.items:
        raise ValueError(
            f"item {item_id!r} is not in this benchmark; ids look like {next(iter(benchmark.items))!r}"
        )
    if verdict not in WORDS:
        raise ValueError(f"verdict must be accept or reject, not {verdict!r}")
    picture = _pictures(benchmark, {item_id})[item_id]
    if not picture:
        raise ValueError(f"item {item_id} has no readable picture to judge: run build_images first")
    row = Verdict(item_id, verdict, " ".join(comment.split()), picture)
    write_history(benchmark, [*read_history(benchmark), row])
    return row


def tie_to_pictures(benchmark) -> None:
    """Fill in the blank ``picture`` cells, before pictures are replaced."""
    history = read_history(benchmark)
    blank = {row.item for row in history if not row.picture}
    if blank:
        pictures = _pictures(benchmark, blank)
        write_history(benchmark, [r if r.picture else replace(r, picture=pictures[r.item]) for r in history])


def write_history(benchmark, rows: Sequence[Verdict]) -> None:
    """Replace the verdicts file at once."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(astuple, rows))
    files.write_text(Path(benchmark.folder) / VERDICTS, text.getvalue())


def _pictures(benchmark, item_ids) -> dict[str, str]:
    """Short digest of each item's present picture (from the manifest if it knows it), ``""`` if none."""
    records = read_manifest(benchmark.folder) if item_ids else {}
    digests = {}
    for item_id in item_ids:
        path = benchmark.image_path(benchmark.items[item_id])
        try:
            if item_id in records and path.exists():
                digests[item_id] = records[item_id].pixels[:DIGITS]
            else:
                with Image.open(path) as image:
                    digests[item_id] = pixel_digest(image)[:DIGITS]
        except (OSError, SyntaxError, ValueError):
            digests[item_id] = ""
    return digests
