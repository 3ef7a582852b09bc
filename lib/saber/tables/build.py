"""From long rows to a wide table: which cells stand where, which are best, what is missing and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from saber.numbers import Reasons, missing_cells, profile_label
from saber.tables.layouts import Column, Layout


@dataclass(frozen=True)
class Cell:
    """A value (None: missing), its interval, its difference from the paper (paper rows), "best" or
    "second"."""

    value: float | str | None = None
    low: float | None = None
    high: float | None = None
    delta: float | None = None
    mark: str = ""


@dataclass(frozen=True)
class Line:
    """One printed row. ``kind`` is "measured", "reference" (never marked as best) or "paper"."""

    block: str
    row: str
    kind: str
    cells: tuple[Cell, ...]

    @property
    def label(self) -> str:
        return f"(paper) {self.row}".rstrip() if self.kind == "paper" else self.row


@dataclass(frozen=True)
class Table:
    """A wide table ready to be written or shown (as the last line of a notebook cell, or by ``display``).

    ``names`` are the canonical column names (without the block), ``headers`` their headings, top down.
    """

    number: int | str
    layout: Layout
    profile: str
    names: tuple[str, ...]
    headers: tuple[tuple[str, ...], ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        return f"Table {self.number}" if isinstance(self.number, int) else str(self.number).capitalize()

    @property
    def caption(self) -> str:
        """Caption with the profile's label and what italics and brackets mean."""
        parts = [self.layout.caption, profile_label(self.profile)]
        if any(line.kind == "paper" for line in self.lines):
            parts.append("Rows marked (paper) give the published value of the row above.")
        return " ".join(parts)

    def _repr_html_(self) -> str:
        from saber.tables.html import to_html

        return to_html(self)


def build_table(
    profile: str,
    number: int | str,
    numbers: pd.DataFrame,
    *,
    layout: Layout,
    rows: Sequence[str] | None = None,
    published_row: Mapping[str, str | None] | None = None,
    reference: Sequence[str] = (),
    reasons: Reasons | None = None,
    paper_rows: bool = True,
) -> Table:
    """Arrange long rows as a table. For the arguments see :func:`saber.tables.save_table`."""
    _check(number, numbers, layout, rows, reference)
    order = list(rows) if rows is not None else list(dict.fromkeys(numbers["row"]))
    cells = {(n.row, n.column): n._asdict() for n in numbers.itertuples(index=False)}
    measured = {column for _, column in cells}
    blocks: dict[str, list[Column]] = {}
    for column in layout.columns:
        if column.name in measured:  # object counts and pairings that a profile leaves out are no columns
            blocks.setdefault(column.block, []).append(column)
    headers = tuple(dict.fromkeys(c.header for columns in blocks.values() for c in columns))
    lines: list[Line] = []
    for block, columns in blocks.items():
        names = {c.header: c.name for c in columns}
        block_lines = []
        for row in order:
            found = [cells.get((row, names.get(header)), {}) for header in headers]
            kind = "reference" if row in reference else "measured"
            block_lines.append(Line(block, row, kind, tuple(_cell(f) for f in found)))
            if paper_rows and any(_number(f.get("published")) is not None for f in found):
                paper = [Cell(_number(f.get("published")), delta=_number(f.get("delta"))) for f in found]
                label = (published_row or {}).get(row) or ""
                block_lines.append(Line(block, label, "paper", tuple(paper)))
        lines += _marked(block_lines, layout)
    notes = _notes(number, numbers[numbers["row"].isin(order)], reasons)
    names = tuple(c.name.removeprefix(f"{b} ") for b, columns in blocks.items() for c in columns)
    return Table(number, layout, profile, tuple(dict.fromkeys(names)), headers, tuple(lines), notes)


def _check(number, numbers, layout, rows, reference) -> None:
    twice = numbers[numbers.duplicated(["row", "column"])]
    if len(twice):
        cell = twice.iloc[0]
        raise ValueError(f"table {number}: row {cell['row']!r}, column {cell['column']!r} is given twice")
    known = [c.name for c in layout.columns]
    unknown = sorted(set(numbers["column"]) - set(known))
    if unknown:
        raise ValueError(f"table {number} has no column {unknown[0]!r}. Its columns: {', '.join(known)}")
    have = set(numbers["row"])
    absent = [row for row in (*(rows or ()), *reference) if row not in have]
    if absent:
        raise ValueError(f"table {number}: no numbers for row {absent[0]!r}. Rows: {', '.join(sorted(have))}")


def _cell(found: dict) -> Cell:
    value = found.get("value")
    if isinstance(value, str):
        return Cell(value or None)
    return Cell(_number(value), _number(found.get("low")), _number(found.get("high")))


def _number(value) -> float | None:
    return None if value is None or pd.isna(value) else float(value)


def _marked(lines: list[Line], layout: Layout) -> list[Line]:
    """Mark best and second best among measured rows, by the printed digits, ties shared."""
    compete = [i for i, line in enumerate(lines) if line.kind == "measured"]
    grid = {
        (i, j): round(cell.value, layout.decimals)
        for i in compete
        for j, cell in enumerate(lines[i].cells)
        if isinstance(cell.value, float)
    }
    axis = {"column": 1, "row": 0}.get(layout.best_within)
    if axis is None:
        return lines
    marks = {}
    for group in {key[axis] for key in grid}:
        group_cells = {key: value for key, value in grid.items() if key[axis] == group}
        top = sorted(set(group_cells.values()), reverse=True)
        if len(group_cells) > 1:
            for key, value in group_cells.items():
                marks[key] = "best" if value == top[0] else "second" if value == top[1] else ""
    return [
        Line(
            line.block,
            line.row,
            line.kind,
            tuple(
                Cell(c.value, c.low, c.high, c.delta, marks.get((i, j), "")) for j, c in enumerate(line.cells)
            ),
        )
        for i, line in enumerate(lines)
    ]


def _notes(number, numbers: pd.DataFrame, reasons: Reasons | None) -> tuple[str, ...]:
    """One line a row and reason: ``"-- all-MiniLM-L6-v2: text-only model (12 of 15 cells)"``."""
    missing = missing_cells(number, numbers, reasons)
    total = numbers.groupby("row")["column"].size()
    notes = []
    for (row, reason), cells in missing.groupby(["row", "reason"], sort=False):
        count = f" ({len(cells)} of {total[row]} cells)" if row in total else ""
        notes.append(f"-- {row}: {reason or 'reason not recorded'}{count}")
    return tuple(notes)
