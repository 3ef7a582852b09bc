"""The tables of a profile: wide, each measured row beside the paper's row it stands for.

``save_table`` writes ``table_NN.csv`` (numbers and intervals), ``.md``, ``.tex`` (booktabs) and ``.html``
(the fragment that the report takes) and returns the table, which a notebook shows by naming it.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from saber import files, paths
from saber.numbers import Reasons
from saber.tables.build import Table, build_table
from saber.tables.html import to_html
from saber.tables.layouts import Column, Layout, layout_for, plain_layout
from saber.tables.text import to_csv, to_latex, to_markdown

WRITERS = {"csv": to_csv, "md": to_markdown, "tex": to_latex, "html": to_html}


def display_table(
    profile: str,
    number: int | str,
    numbers: pd.DataFrame,
    *,
    layout: Layout | None = None,
    rows: Sequence[str] | None = None,
    published_row: Mapping[str, str | None] | None = None,
    reference: Sequence[str] = (),
    reasons: Reasons | None = None,
    paper_rows: bool = True,
) -> Table:
    """The table as an object that Jupyter shows as static HTML. Arguments as in :func:`save_table`."""
    layout = layout or layout_for(int(number))
    return build_table(
        profile,
        number,
        numbers,
        layout=layout,
        rows=rows,
        published_row=published_row,
        reference=reference,
        reasons=reasons,
        paper_rows=paper_rows,
    )


def save_table(profile: str, number: int, numbers: pd.DataFrame, **options) -> Table:
    """Write ``tables/table_NN.{csv,md,tex,html}`` and return the table.

    Args:
        profile: name of the profile.
        number: number of the paper's table.
        numbers: long rows with row, column, value, and low, high, published, delta where known: what
            :func:`saber.numbers.number_rows` returns. Text tables have texts as values.
        layout: columns and headings; default: those of the paper's table (:func:`layout_for`).
        rows: which rows in which order; default: all as they come.
        published_row: which row of the paper each row stands for, to name it: a row with published values is
            followed by ``(paper) CLIP ViT-B/32``.
        reference: rows such as chance that do not compete for best and second best.
        reasons: why values are missing, by row or (row, column): a line below the table each.
        paper_rows: whether to show the paper's rows at all.

    Best is bold and second best underlined within each column (of its block), measured rows only, by the
    printed digits; ties share the mark. Missing values are ``--``. Files are written atomically, with the
    same bytes for the same numbers.

    Raises:
        ValueError: a cell given twice, a column the layout lacks, a row without numbers.
    """
    table = display_table(profile, number, numbers, **options)
    for suffix, writer in WRITERS.items():
        files.write_text(paths.tables_dir(profile) / f"table_{number:02d}.{suffix}", writer(table))
    return table


__all__ = ["Column", "Layout", "Table", "display_table", "layout_for", "plain_layout", "save_table"]
