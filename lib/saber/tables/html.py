"""A table as an HTML fragment, for notebooks and for the report."""

import itertools
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from saber.tables.build import Table
from saber.tables.text import interval_text, number_text


def to_html(table: Table) -> str:
    """The table with scoped headings, best and second marked, intervals and differences as small text."""
    cells = [cell for line in table.lines for cell in line.cells]
    groups = []
    if any(len(header) > 1 for header in table.headers):
        titles = (header[0] if len(header) > 1 else "" for header in table.headers)
        groups = [(title, len(list(group))) for title, group in itertools.groupby(titles)]
    blocks = [(block, list(lines)) for block, lines in itertools.groupby(table.lines, lambda x: x.block)]
    return _template().render(
        table=table,
        anchor=anchor(table.number),
        decimals=table.layout.decimals,
        groups=groups,
        stubs=1 + bool(table.layout.block_header),
        blocks=blocks,
        any_mark=any(cell.mark for cell in cells),
        any_interval=any(interval_text(cell, 1) for cell in cells),
        any_delta=any(cell.delta is not None for cell in cells),
    )


def signed(value: float) -> str:
    """``+9.4`` or ``−0.5`` with a real minus sign; what rounds to nothing is ``+0.0``."""
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", "−")


def anchor(number: int | str) -> str:
    """The fragment's id: ``table-02``."""
    return f"table-{number:02d}" if isinstance(number, int) else "table-" + str(number).replace(" ", "-")


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    environment.globals.update(
        number_text=number_text,
        interval_text=interval_text,
        arrows=lambda text: text.replace("->", "→"),
        signed=signed,
    )
    return environment.get_template("table.html.j2")
