"""Wide tables: what stands where, what is marked, what is missing, and texts that survive any name."""

import csv
import io
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from saber import paths
from saber.numbers import number_rows
from saber.published import TABLES, published
from saber.tables import display_table, layout_for, plain_layout, save_table
from saber.tables.html import to_html
from saber.tables.text import number_text, tex, to_csv, to_latex, to_markdown

NASTY = 'mini_clip & 50% <b>|x| #1 {$a$} ~^\\ "é" 日本 →'
STANDS_FOR = {NASTY: "CLIP ViT-B/32", "text only": None, "chance": None}


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_OUTPUTS", str(tmp_path / "with space é"))


def numbers(table=2):
    """Three rows: a model with intervals, a text model, chance."""
    rows = []
    for column in published(table)["column"].unique():
        rows.append((NASTY, column, 60.04, 51.0, 70.0))
        textual = "T->T" in column
        rows.append(("text only", column, *((25.3, 22.4, 28.4) if textual else (np.nan,) * 3)))
        rows.append(("chance", column, 99.0, np.nan, np.nan))
    frame = pd.DataFrame(rows, columns=["row", "column", "value", "low", "high"])
    return number_rows(table, frame, profile="demo", published_row=STANDS_FOR)


def build(table=2, **options):
    defaults = {
        "published_row": STANDS_FOR,
        "reference": ["chance"],
        "reasons": {"text only": "text-only model"},
    }
    return display_table("demo", table, numbers(table), **(defaults | options))


def small(values, **options):
    """A table of one column a name: values is {row: [..]}."""
    columns = [f"c{i}" for i in range(len(next(iter(values.values()))))]
    frame = pd.DataFrame(
        [(row, c, v) for row, cells in values.items() for c, v in zip(columns, cells, strict=True)],
        columns=["row", "column", "value"],
    )
    layout = plain_layout("Small.", columns, best_within=options.pop("best_within", "column"))
    return display_table("demo", "small", frame, layout=layout, **options)


def marks(table):
    return {line.row: [cell.mark for cell in line.cells] for line in table.lines if line.kind != "paper"}


def test_rows_follow_each_other_with_the_paper_below():
    table = build()
    assert [(line.kind, line.label) for line in table.lines] == [
        ("measured", NASTY),
        ("paper", "(paper) CLIP ViT-B/32"),
        ("measured", "text only"),
        ("reference", "chance"),
    ]
    assert [cell.value for cell in table.lines[1].cells][:3] == [53.6, 23.0, 22.3]
    assert table.lines[1].cells[0].delta == pytest.approx(6.44)
    assert [line.kind for line in build(paper_rows=False).lines] == ["measured", "measured", "reference"]
    assert build(rows=["chance", NASTY]).lines[0].row == "chance"


def test_headings_group_table_2_and_blocks_divide_table_17():
    table = build()
    assert table.headers[0] == ("SABER-MCQ", "T->T") and table.headers[-1] == ("Retrieval (nested)", "Mean")
    table = build(17)
    assert [h[0] for h in table.headers] == [*map(str, range(2, 11)), "Mean"]
    assert [line.block for line in table.lines] == [
        p for p in ("T->T", "T->I", "I->T", "I->I") for _ in "1234"
    ]
    fewer = numbers(17)
    fewer = fewer[~fewer["column"].str.contains(" (?:8|9|10)$")]
    table = display_table("demo", 17, fewer)
    assert [h[0] for h in table.headers] == ["2", "3", "4", "5", "6", "7", "Mean"]


def test_marks_share_ties_at_the_printed_digit_and_leave_out_references():
    table = small({"a": [1.04, 5], "b": [0.96, 3], "c": [0.5, 5.01], "chance": [9, 9]}, reference=["chance"])
    expected = {"a": ["best", "best"], "b": ["best", "second"], "c": ["second", "best"], "chance": ["", ""]}
    assert marks(table) == expected
    assert marks(small({"a": [1.0], "b": [np.nan]}, reasons={"b": "x"})) == {
        "a": [""],
        "b": [""],
    }  # no contest
    assert marks(small({"a": [2, 1], "b": [3, 4]}, best_within="row"))["a"] == ["best", "second"]
    assert marks(small({"a": [2, 1], "b": [3, 4]}, best_within="")) == {"a": ["", ""], "b": ["", ""]}


@pytest.mark.parametrize("number", [5, 6, 11, 12, 13, 16])
def test_marks_are_those_of_the_paper_on_its_own_numbers(number):
    frame = published(number)
    counts = [row for row in frame["row"].unique() if row.startswith("#")]
    table = display_table("paper", number, frame[["row", "column", "value"]], reference=counts)
    names = [column.name for column in layout_for(number).columns]
    bold = {
        (line.row, n)
        for line in table.lines
        for n, c in zip(names, line.cells, strict=True)
        if c.mark == "best"
    }
    assert bold == set(frame.query("bold == 1")[["row", "column"]].itertuples(index=False, name=None))


def test_missing_values_are_dashes_with_a_reason():
    table = build(reasons={"text only": "text-only model", "CLIP": "no weights"})
    assert table.notes == ("-- text only: text-only model (12 of 15 cells)", "-- CLIP: no weights")
    assert "| text only | <ins>25.3</ins> <small>[22.4, 28.4]</small> | -- | -- |" in to_markdown(table)
    assert "reason not recorded" in build(reasons=None).notes[0]


def test_errors_name_what_is_wrong_and_what_is_right():
    frame = numbers()
    with pytest.raises(ValueError, match=r"table 2: row 'chance', column 'MCQ T->T' is given twice"):
        display_table("demo", 2, pd.concat([frame, frame[frame["row"] == "chance"]]))
    with pytest.raises(ValueError, match=r"no column 'MCQ X'. Its columns: MCQ T->T"):
        display_table("demo", 2, frame.replace({"column": {"MCQ T->T": "MCQ X"}}))
    with pytest.raises(ValueError, match=r"no numbers for row 'chanse'. Rows: .*chance"):
        build(reference=["chanse"])


def test_number_text():
    assert [number_text(v, 1) for v in (53.64, -0.04, None, "open")] == ["53.6", "0.0", "--", "open"]
    assert number_text(28748.0, 0) == "28,748" and number_text(-0.05, 2) == "-0.05"


def test_csv_is_flat_and_complete():
    rows = list(csv.DictReader(io.StringIO(to_csv(build()))))
    assert rows[0]["row"] == NASTY and rows[0]["source"] == "measured"
    assert [rows[0]["MCQ T->T" + end] for end in ("", " low", " high")] == ["60.0", "51.0", "70.0"]
    assert (
        rows[1]["source"] == "paper" and rows[1]["row"] == "CLIP ViT-B/32" and rows[1]["MCQ T->I"] == "23.0"
    )
    assert rows[2]["MCQ T->I"] == "" and rows[3]["source"] == "reference"
    blocks = list(csv.DictReader(io.StringIO(to_csv(build(17)))))
    assert len(blocks) == 16 and blocks[4]["Pairing"] == "T->I" and blocks[4]["2"] == "60.0"


def test_markdown_keeps_its_columns_whatever_the_names():
    text = to_markdown(build())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {17}
    assert "**60.0** <small>[51.0, 70.0]</small>" in text and "<ins>25.3</ins>" in text
    assert "*(paper) CLIP ViT-B/32*" in text and "*53.6*" in text and "T→T" in text and "&lt;b>" in text
    assert "not the paper's results" in text


def test_html_is_well_formed_scoped_and_escaped():
    html = to_html(build(17))
    root = _parse(html)
    assert {th.get("scope") for th in root.iter("th")} == {"col", "row", "rowgroup"}
    assert len(list(root.iter("tbody"))) == 4 and root.find(".//th[@scope='rowgroup']").get("rowspan") == "4"
    assert "<b>" not in html and "&lt;b&gt;" in html
    assert build()._repr_html_() == to_html(build())
    head = _parse(to_html(build())).find(".//thead")
    assert [th.get("colspan") for th in head.iter("th") if th.get("scope") == "colgroup"] == ["5", "5", "5"]
    assert "Δ +6.4" in to_html(build()).replace("&nbsp;", " ")


def _parse(html):
    """The fragment as XML, which it is but for HTML's own spellings of a break and a space."""
    return ElementTree.fromstring(f"<div>{html.replace('<br>', '<br/>').replace('&nbsp;', ' ')}</div>")


def test_latex_has_rules_marks_and_escapes():
    text = to_latex(build())
    assert "\\cmidrule(lr){2-6} \\cmidrule(lr){7-11} \\cmidrule(lr){12-16}" in text
    assert (
        "\\textbf{60.0}" in text and "\\underline{25.3}" in text and "\\textit{(paper) CLIP ViT-B/32}" in text
    )
    assert "T$\\to$T" in text and "mini\\_clip \\& 50\\%" in text and "U+65E5" in text
    assert "the paper's results" in text and "text-only model" in text
    assert to_latex(build(17)).count("\\midrule") == 4


def test_tex_escapes_every_special_character():
    assert tex("a_b%c&d#e$f{g}h") == "a\\_b\\%c\\&d\\#e\\$f\\{g\\}h"
    assert tex("\\~^") == "\\textbackslash{}\\textasciitilde{}\\textasciicircum{}"
    assert tex("T->I é") == "T$\\to$I é" and tex("日") == "{[}U+65E5{]}"


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX on this machine")
def test_latex_compiles(tmp_path):
    tables = [
        build(),
        build(17),
        display_table("demo", 1, published(1)),
        display_table("paper", 9, _examples()),
    ]
    body = "\n".join(to_latex(table) for table in tables)
    document = "\\documentclass{article}\\usepackage{booktabs,graphicx}\\begin{document}\n"
    (tmp_path / "t.tex").write_text(f"{document}{body}\n\\end{{document}}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]


def _examples():
    frame = published(9)
    return frame.assign(row=frame["group"] + " " + frame["row"])


@pytest.mark.parametrize("number", TABLES)
def test_every_table_of_the_paper_has_a_layout_and_can_be_saved(number):
    frame = published(number)
    frame["row"] = (frame["group"] + " " + frame["row"]).str.strip()
    table = save_table("paper", number, frame)
    assert sum(len(line.cells) for line in table.lines) == len(frame)
    folder = paths.tables_dir("paper")
    assert {p.name for p in folder.iterdir()} == {
        f"table_{number:02d}.{s}" for s in ("csv", "md", "tex", "html")
    }
    first = {p.name: p.read_bytes() for p in folder.iterdir()}
    save_table("paper", number, frame)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == first
    assert all(b"\r" not in content for content in first.values())
