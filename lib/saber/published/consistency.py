"""Cells of the paper's tables that do not follow from the other cells they should follow from.

Published numbers are never altered: this module recomputes what can be recomputed (means, weighted means,
sums, the same number printed in two tables, the marks of best and second best, the granularity of accuracies
on known numbers of questions, the text's claims) and lists every cell that comes out different.
"""

from functools import cache

import pandas as pd

from saber.published.claims import recompute_claims
from saber.published.data import PAIRINGS, SPELLINGS, TABLES, TEXT_TABLES, lookup, published, row_key

COLUMNS = ["table", "row", "column", "published", "recomputed", "delta", "check", "explained"]
COUNTS = tuple(str(n) for n in range(2, 11))
MMEB = ("Image", "Video", "VisDoc", "Text", "Agent")
BEST_OF_PAIR = frozenset({4, 14})  # best of each pretrained-finetuned pair, by the captions
BEST_IN_ROW = frozenset({3})
HALF = 0.05  # half a unit of the printed digit


def inconsistencies() -> pd.DataFrame:
    """Every published cell (or claim of the text) that differs from its recomputation at the printed digit.

    Returns:
        Columns table (<NA> for a claim of the text), row, column, published, recomputed, delta = published -
        recomputed, check (which rule), explained (True when rounding of the inputs can explain it, so that
        the paper need not be wrong).
    """
    return _all().copy()


@cache
def _all() -> pd.DataFrame:
    found = [*_means(), *_weighted(), *_totals(), *_repeated(), *_granularity(), *_marks(), *_text()]
    frame = pd.DataFrame(found, columns=COLUMNS)
    frame["table"] = frame["table"].astype("Int64")
    return frame


def _compare(table, row, column, value, recomputed, check, slack):
    """One finding, or none: ``slack`` is how far rounding of the inputs alone can move ``recomputed``."""
    if abs(value - recomputed) <= HALF + 1e-9:  # a tie such as 35.65 may have been rounded either way
        return []
    delta = round(value - recomputed, 10)
    return [
        (table, row, column, value, round(recomputed, 10), delta, check, abs(delta) <= HALF + slack + 1e-9)
    ]


def _means():
    """Table 2 against the Mean columns of Tables 17-19, and every mean against the cells it averages."""
    for title, table in (("MCQ", 17), ("Independent", 18), ("Nested", 19)):
        for row in published(2)["row"].unique():
            for pairing in PAIRINGS:
                mean = lookup(table, row, f"{pairing} Mean")
                cells = [lookup(table, row, f"{pairing} {n}") for n in COUNTS]
                # accuracies on 200 questions are printed exactly, mAP is rounded
                slack = 0.0 if table == 17 else HALF
                yield from _compare(
                    table, row, f"{pairing} Mean", mean, sum(cells) / 9, "mean over counts", slack
                )
                cell = lookup(2, row, f"{title} {pairing}")
                yield from _compare(2, row, f"{title} {pairing}", cell, mean, f"equals Table {table}", 0.0)
            cells = [lookup(2, row, f"{title} {pairing}") for pairing in PAIRINGS]
            mean = lookup(2, row, f"{title} Mean")
            yield from _compare(2, row, f"{title} Mean", mean, sum(cells) / 4, "mean over pairings", HALF)


def _weighted():
    """Overall scores as means weighted by the number of data sets (MMEB-v3) or of classes (Table 16)."""
    tasks = {name: lookup(4, "# of Datasets", name) for name in MMEB}
    for table, prefix in ((4, ""), *((t, "MMEB-v3 ") for t in range(11, 16))):
        for row in _result_rows(table):
            mean = sum(lookup(table, row, prefix + name) * n for name, n in tasks.items()) / sum(
                tasks.values()
            )
            value = lookup(table, row, f"{prefix}All")
            yield from _compare(table, row, f"{prefix}All", value, mean, "mean over 182 tasks", HALF)
    categories = [c for c in published(16)["column"].unique() if c != "All"]
    classes = {c: lookup(16, "# Classes", c) for c in categories}
    for row in _result_rows(16):
        mean = sum(lookup(16, row, c) * n for c, n in classes.items()) / sum(classes.values())
        yield from _compare(16, row, "All", lookup(16, row, "All"), mean, "mean over 38 classes", HALF)


def _totals():
    for table in (7, 8):
        parts = published(table).query("row != 'Total'")["value"].sum()
        yield from _compare(table, "Total", "#", lookup(table, "Total", "#"), parts, "sum", 0.0)
    for table, row, whole in (
        (4, "# of Datasets", "All"),
        (16, "# Classes", "All"),
        (16, "# Instances", "All"),
    ):
        parts = published(table).query("row == @row and column != @whole")["value"].sum()
        yield from _compare(table, row, whole, lookup(table, row, whole), parts, "sum", 0.0)


def _repeated():
    """The same model on the same data in two tables prints the same number."""
    pairs = [(t, f"MCQ {p}", 2, f"MCQ {p}") for t in range(11, 15) for p in PAIRINGS]
    pairs += [(t, f"MMEB-v3 {name}", 4, name) for t in range(11, 15) for name in (*MMEB, "All")]
    for table, column, other, other_column in pairs:
        for row in _result_rows(table):
            first = lookup(other, _full_name(row), other_column)
            if first == first:  # a row the other table has
                value = lookup(table, row, column)
                yield from _compare(table, row, column, value, first, f"equals Table {other}", 0.0)


def _granularity():
    """An accuracy on n questions is a multiple of 100 / n (Table 17: 200 an object count; Table 15: 360)."""
    for table, n in ((15, 360), (17, 200)):
        frame = published(table).assign(row=lambda f: row_key(f))
        frame = frame[~frame["column"].str.contains("Mean|MMEB")]
        for cell in frame.itertuples():
            nearest = round(cell.value * n / 100) * 100 / n
            check = f"k of {n} questions"
            yield from _compare(table, cell.row, cell.column, cell.value, nearest, check, 0.0)


def _marks():
    """Bold is the best and underlined the second best of its column (Table 3: row; Tables 4, 14: pair)."""
    for table in TABLES:
        frame = published(table)
        if table in TEXT_TABLES or not frame["bold"].fillna(0).any():
            continue
        frame = frame[~frame["row"].str.startswith("#")]
        frame = frame.assign(row=row_key(frame))
        block = frame["row"] if table in BEST_IN_ROW else frame["column"]
        if table in BEST_OF_PAIR:
            block = block + frame.groupby("column").cumcount().floordiv(2).astype(str)
        for mark, rank in (("bold", 1), ("underline", 2)):
            if not frame[mark].any():
                continue
            place = frame.groupby(block)["value"].rank(method="dense", ascending=False)
            wrong = frame[(frame[mark] == 1) != (place == rank)]
            for cell in wrong.itertuples():
                said = float(getattr(cell, mark))
                yield table, cell.row, cell.column, said, 1 - said, 2 * said - 1, f"{mark} mark", False


def _text():
    claims = recompute_claims()
    for claim in claims[claims["same"].eq(False)].itertuples():
        delta = -claim.delta
        where = (pd.NA, f"section {claim.section}", claim.claim)
        yield (
            *where,
            claim.published,
            round(claim.recomputed, 10),
            delta,
            "claim of the text",
            bool(claim.agrees),
        )


def _result_rows(table: int) -> list[str]:
    return [row for row in row_key(published(table)).unique() if not row.startswith("#")]


def _full_name(row: str) -> str:
    return next((full for full, short in SPELLINGS.items() if row in short), row)
