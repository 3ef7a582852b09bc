"""The paper's tables as data.

``table_NN.csv`` holds one table in long format, transcribed cell by cell:
``table,row,column,value,group,bold, underline``. Nothing is corrected: what does not add up is listed by
:mod:`saber.published.consistency`. ``group`` is the second row key of Tables 3 (pairing), 9 (construction),
15 (finetuning modality) and 20, else empty. ``bold`` and ``underline`` are 0 or 1, and empty in Tables 2, 9,
10, 17, 18 and 19, whose marks the text version of the paper that was transcribed does not carry.

Source: *Stuck on Shuffle: On Attribute-Object Binding in Vision-Language Models*, arXiv 2610.22602, Tables
1-20.
"""

import math
from functools import cache
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent
TABLES = range(1, 21)
TEXT_TABLES = frozenset({1, 20})
PAIRINGS = ("T->T", "T->I", "I->T", "I->I")

# One model, several spellings: tables with narrow columns abbreviate the names of Table 2.
SPELLINGS = {
    "CLIP ViT-B/32": ("CLIP B/32",),
    "LABCLIP ViT-B/32": ("LABCLIP B/32",),
    "TripletCLIP ViT-B/32": ("TripletCLIP B/32",),
    "READ-CLIP ViT-B/32": ("READ-CLIP B/32",),
    "PE-Core-bigG-14-448": ("PE CORE-G", "PE-Core bigG-14-448"),
    "Qwen3-VL-Embedding-2B": ("Qwen3-VL Emb-2B",),
    "Qwen3-VL-Embedding-8B": ("Qwen3-VL Emb-8B", "Qwen3-VL-Emb-8B"),
}


def published(table: int) -> pd.DataFrame:
    """One table of the paper in long format, in the paper's order of rows and columns.

    Args:
        table: 1 to 20.

    Returns:
        Columns table, row, column, value, group, bold, underline. ``value`` is float (percent in the result
        tables, counts in 7 to 9: Table 9's sentences are represented by their lengths), or text in Tables 1
        and 20. ``bold`` and ``underline`` are nullable integers.

    Raises:
        ValueError: there is no such table.
    """
    return _read(table).copy()


def lookup(table: int, row: str, column: str, group: str | None = None) -> float:
    """The value the paper prints in one cell, nan when the paper has no such cell or no number in it.

    Model names may be spelled as in Table 2 wherever the table abbreviates them. In the tables with a second
    row key the group is given by ``group`` or in front of the row: ``lookup(3, "T->I ColorSwap",
    "Ours-8B")``. A row that occurs in several groups needs its group, else the answer is nan.

    Raises:
        ValueError: there is no such table.
    """
    cells = _cells(table)
    for r in (row, *SPELLINGS.get(row, ())):
        for c in (column, *SPELLINGS.get(column, ())):
            key = (f"{group} {r}" if group else r, c)
            if key in cells:
                return cells[key]
    return math.nan


@cache
def known_names() -> frozenset[str]:
    """Every name of a row or column of the paper's tables, in all spellings."""
    names = {name for table in TABLES for cell in _cells(table) for name in cell}
    return frozenset(names | SPELLINGS.keys())


def row_key(frame: pd.DataFrame) -> pd.Series:
    """Row names of a published table with the group, if any, in front: ``"T->I ColorSwap"``."""
    return (frame["group"] + " " + frame["row"]).str.strip()


@cache
def _read(table: int) -> pd.DataFrame:
    if table not in TABLES:
        raise ValueError(f"the paper has Tables {TABLES[0]} to {TABLES[-1]}, not {table!r}")
    frame = pd.read_csv(FOLDER / f"table_{table:02d}.csv", dtype=str, keep_default_na=False, encoding="utf-8")
    frame["table"] = frame["table"].astype(int)
    if table not in TEXT_TABLES:
        frame["value"] = frame["value"].astype(float)
    for mark in ("bold", "underline"):
        frame[mark] = pd.to_numeric(frame[mark].replace("", pd.NA)).astype("Int64")
    return frame


@cache
def _cells(table: int) -> dict[tuple[str, str], float]:
    frame = _read(table)
    values = pd.to_numeric(frame["value"], errors="coerce")
    cells = dict(zip(zip(row_key(frame), frame["column"], strict=True), values, strict=True))
    # a row name that is unique without its group needs none
    once = frame.groupby(["row", "column"])["value"].transform("size") == 1
    for row, column, value in zip(frame["row"][once], frame["column"][once], values[once], strict=True):
        cells.setdefault((row, column), value)
    return cells
