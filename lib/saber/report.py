"""The report of a profile: one HTML file that holds everything, reads without JavaScript, and prints.

It takes what is there: tables and figures that a profile lacks are listed with what is known about why, and
nothing in it depends on the clock, so that the same results give the same bytes.
"""

import base64
import re
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from PIL import Image

from saber import files, paths
from saber.numbers import MINIATURES, merge_numbers, profile_label, read_reasons
from saber.published import TABLES, inconsistencies, recompute_claims
from saber.tables.html import anchor, signed
from saber.tables.layouts import layout_for

LARGEST = 15
FIGURES = {
    1: "Overview: SABER reassigns attributes among objects; text-only finetuning repairs the binding.",
    2: "SABER multiple-choice questions: a query and its four candidates.",
    3: "A nested chain: each query adds one attribute-object pair to the one before.",
    4: "Binding margin of the attention by layer.",
    5: "Instance retrieval on ILIAS: top five of two models.",
    6: "Instance retrieval within fine-grained classes of ILIAS.",
    7: "Accuracy on CLEVR-bind against SABER at two objects, image to text.",
    8: "Accuracy on SABER against MMEB-v3 over instructions.",
    9: "Examples of the external attribute-binding benchmarks.",
}
CSS_PIXELS_PER_INCH = 96


def write_report(profile: str) -> Path:
    """Write ``outputs/<profile>/report.html`` from the profile's numbers, tables and figures.

    Also merges the numbers into ``numbers.csv`` (:func:`saber.numbers.merge_numbers`). Works with any part of
    the tables and figures, even none.

    Raises:
        ValueError: a numbers file that is damaged.
    """
    numbers, reasons = merge_numbers(profile), read_reasons(profile)
    tables = [_table(profile, number, numbers) for number in TABLES]
    figures = [_figure(profile, number) for number in FIGURES]
    text = (
        _environment()
        .get_template("report.html.j2")
        .render(
            profile=profile,
            label=profile_label(profile),
            miniature=profile in MINIATURES,
            counts=_counts(numbers),
            models=_models(numbers),
            largest=_largest(numbers),
            tables=[t for t in tables if t],
            figures=[f for f in figures if f],
            extra=[_long(name, frame) for name, frame in _named(numbers)],
            missing=_missing(reasons),
            absent_tables=[n for n, t in zip(TABLES, tables, strict=True) if not t],
            absent_figures=[n for n, f in zip(FIGURES, figures, strict=True) if not f],
            claims=recompute_claims().to_dict("records"),
            inconsistencies=inconsistencies().to_dict("records"),
            captions=FIGURES,
        )
    )
    return files.write_text(paths.outputs_dir(profile) / "report.html", text)


def _counts(numbers: pd.DataFrame) -> dict[str, int]:
    measured = numbers[numbers["value"].notna()]
    inside = measured["published"].between(measured["low"], measured["high"])
    return {
        "cells": len(numbers),
        "measured": len(measured),
        "compared": int(measured["delta"].notna().sum()),
        "inside": int(inside.sum()),
        "tables": int(numbers["table"].nunique()),
    }


def _models(numbers: pd.DataFrame) -> list[dict]:
    """Rows that a model stands behind, with its fingerprint, in order of appearance."""
    named = numbers[numbers["model_fingerprint"].fillna("") != ""]
    return named.drop_duplicates(["row", "model_fingerprint"])[["row", "model_fingerprint"]].to_dict(
        "records"
    )


def _largest(numbers: pd.DataFrame) -> list[dict]:
    """Cells farthest from the paper; ties in the order of the tables."""
    compared = numbers[numbers["delta"].notna()]
    order = compared["delta"].astype(float).abs().round(6).sort_values(ascending=False, kind="stable").index
    return [_cell(row) for row in compared.loc[order[:LARGEST]].to_dict("records")]


def _cell(row: dict) -> dict:
    """A row of numbers with nan as None."""
    return {k: None if pd.isna(v) else v for k, v in row.items()}


def _table(profile: str, number: int, numbers: pd.DataFrame) -> dict | None:
    path = paths.tables_dir(profile) / f"table_{number:02d}.html"
    if path.exists():
        html = path.read_text(encoding="utf-8")  # our own fragment, escaped when it was made
        return {"number": number, "anchor": anchor(number), "html": html}
    frame = numbers[numbers["table"] == number]
    return _long(number, frame) if len(frame) else None


def _long(name: int | str, frame: pd.DataFrame) -> dict:
    caption = layout_for(name).caption if isinstance(name, int) else ""
    cells = [_cell(row) for row in frame.to_dict("records")]
    return {"number": name, "anchor": anchor(name), "html": None, "caption": caption, "cells": cells}


def _named(numbers: pd.DataFrame):
    """Numbers of the text, which belong to no table of the paper."""
    named = numbers["table"].map(lambda table: isinstance(table, str)).astype(bool)
    return numbers[named].groupby("table", sort=False)


def _missing(reasons: pd.DataFrame) -> list[dict]:
    """Missing values as one line a table, row and reason, with the number of cells."""
    groups = reasons.groupby(["table", "row", "reason"], sort=False)["column"]
    return [
        {"table": table, "row": row, "reason": reason, "cells": int((columns != "").sum())}
        for (table, row, reason), columns in groups
    ]


def _figure(profile: str, number: int) -> dict | None:
    path = paths.figures_dir(profile) / f"figure_{number:02d}.png"
    if not path.exists():
        return None
    with Image.open(path) as image:
        alt = image.info.get("Description") or FIGURES[number]
        dpi = image.info.get("dpi", (CSS_PIXELS_PER_INCH,))[0]
        width = round(image.width / dpi * CSS_PIXELS_PER_INCH)
        height = round(width * image.height / image.width)
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return {"number": number, "alt": alt, "width": width, "height": height, "data": data}


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["num"] = _num
    environment.filters["fine"] = _fine
    environment.filters["signed"] = lambda v: "" if v is None or pd.isna(v) else signed(v)
    environment.filters["arrows"] = lambda text: re.sub("->", "→", str(text))
    return environment


def _num(value) -> str:
    """A number as the tables print it: ``53.6``, ``1,800``; two digits below one; a dash for nothing."""
    if value is None or pd.isna(value):
        return "–"
    return f"{value:,.{0 if abs(value) >= 1000 else 2 if 0 < abs(value) < 1 else 1}f}"


def _fine(value) -> str:
    """A number with at most two digits, and only those it has: ``52.45``, ``8.6``, ``1,800``."""
    return "–" if value is None or pd.isna(value) else f"{round(value, 2):,.10g}"
