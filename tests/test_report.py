"""The report: whole, partial and empty profiles; one file, no scripts, accessible, the same bytes."""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from saber import paths
from saber.figures.style import save_figure
from saber.numbers import number_rows, write_numbers
from saber.published import claims, inconsistencies, published
from saber.report import write_report
from saber.tables import save_table

NASTY = "mini_clip & 50% <script>alert(1)</script> é"
STANDS_FOR = {NASTY: "CLIP ViT-B/32", "text only": None}
ALT = 'Accuracy "falls" & <rises>'
VOID = {"meta", "br", "img"}


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_OUTPUTS", str(tmp_path / "with space é"))


class Page(HTMLParser):
    """Checks that every element is closed in order, and collects elements and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def fill(profile="demo", tables=(2, 17)):
    for table in tables:
        cells = []
        for column in published(table)["column"].unique():
            cells.append((NASTY, column, 60.0, 90, 50.0, 70.0))
            cells.append(
                ("text only", column, *((25.0, 90, 20.0, 30.0) if "T->T" in column else (np.nan,) * 4))
            )
        frame = pd.DataFrame(cells, columns=["row", "column", "value", "n", "low", "high"])
        frame = number_rows(
            table, frame, profile=profile, published_row=STANDS_FOR, fingerprints={NASTY: "sha256:<abc>"}
        )
        reasons = {"text only": "text-only model <x>", "CLIP ViT-B/32": "weights are not on this machine"}
        write_numbers(profile, table, frame, reasons)
        save_table(profile, table, frame, published_row=STANDS_FOR, reasons=reasons)
    fig = Figure(figsize=(2, 1))
    fig.subplots().plot([1, 2])
    save_figure(profile, 2, fig, alt=ALT)


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Folder, text and parsed page of one full report, made once."""
    folder = tmp_path_factory.mktemp("with space é")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SABER_OUTPUTS", str(folder))
        fill()
        return folder / "demo", *read()


def read(profile="demo"):
    path = write_report(profile)
    assert path == paths.outputs_dir(profile) / "report.html"
    text = path.read_text(encoding="utf-8")
    return text, Page(text)


def test_a_full_report(full):
    folder, text, page = full
    assert (folder / "numbers.csv").exists()
    assert "not the paper's results" in page.text and "in miniature" in page.text
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids)) and {"table-02", "table-17", "figure-02", "claims"} <= set(ids)
    links = [a["href"][1:] for a in page.all("a")]
    assert set(links) <= set(ids)
    assert "(paper) CLIP ViT-B/32" in page.text and "[50.0, 70.0]" in page.text and "Δ\xa0+6.4" in page.text
    assert "text-only model <x>" in page.text and "weights are not on this machine" in page.text
    assert "sha256:<abc>" in page.text
    assert text.count("<script") == 0 and "javascript:" not in text


def test_it_is_one_file_without_links_outside(full):
    folder, text, page = full
    assert not page.all("link") and not page.all("script") and not page.all("iframe")
    assert all(a["href"].startswith("#") for a in page.all("a"))
    assert "url(" not in text and "@import" not in text
    (image,) = page.all("img")
    data = base64.b64decode(image["src"].removeprefix("data:image/png;base64,"))
    assert data == (folder / "figures" / "figure_02.png").read_bytes()
    assert (image["alt"], image["width"], image["height"]) == (ALT, "192", "96")


def test_it_can_be_read_without_eyes_and_on_a_phone(full):
    _, text, page = full
    assert page.all("html")[0]["lang"] == "en"
    assert page.all("meta")[1] == {"name": "viewport", "content": "width=device-width, initial-scale=1"}
    assert all("scope" in th for th in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert "@media print" in text
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1 and max(np.diff(levels)) <= 1


def test_text_colours_have_contrast(full):
    _, text, _ = full
    style = text[text.index("<style>") : text.index("</style>")]
    pairs = re.findall(r"background: (#\w+); color: (#\w+)", style)
    pairs += [("#fff", c) for c in re.findall(r"(?<![-\w])color: (#\w+)", style)]
    assert len(pairs) >= 4
    for background, colour in pairs:
        bright, dark = sorted((_luminance(background), _luminance(colour)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, (background, colour)  # WCAG 2 AA


def _luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    rgb = np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_an_empty_profile_says_what_is_absent():
    _, page = read("smoke")
    assert "No tables yet" in page.text
    assert "Tables of the paper that this run did not write: 1, 2, 3, 4" in page.text
    assert "Figures of the paper that this run did not write: 1, 2, 3" in page.text


def test_a_table_without_its_page_and_numbers_of_the_text_are_listed():
    cells = pd.DataFrame({"row": ["mini"], "column": ["top four"], "value": [61.25], "published": [53.0]})
    write_numbers("demo", "section 5.1", number_rows("section 5.1", cells, profile="demo"))
    row = pd.DataFrame({"row": ["mini"], "column": ["MCQ T->T"], "value": [50.0]})
    write_numbers("demo", 2, number_rows(2, row, profile="demo", published_row={"mini": "Ours-8B"}))
    _, page = read()
    assert "Section 5.1" in page.text and "top four" in page.text and "+8.2" in page.text
    assert "MCQ T→T" in page.text and "99.3" in page.text and "−49.3" in page.text


def test_largest_differences_come_first():
    values = [50.0, 22.0, 30.0]
    columns = ["MCQ T->T", "MCQ T->I", "MCQ I->I"]
    cells = pd.DataFrame({"row": "mini", "column": columns, "value": values})
    write_numbers("paper", 2, number_rows(2, cells, profile="paper", published_row={"mini": "Ours-8B"}))
    _, page = read("paper")
    table = page.text[page.text.index("largest differences") :]
    order = sorted(columns, key=lambda c: table.index(c.replace("->", "→")))
    assert order == ["MCQ I->I", "MCQ T->T", "MCQ T->I"]  # 64.3, 49.3, 47.0
    assert "in miniature" not in page.text


def test_claims_and_inconsistencies_are_all_there():
    _, page = read()
    for text in claims()["text"]:
        assert text in page.text
    for column in inconsistencies()["column"]:
        assert column.replace("->", "→") in page.text
    assert page.text.count("agrees within rounding") == 1 and "differs" not in page.text


def test_the_same_results_give_the_same_bytes(full):
    folder, _, _ = full
    fill()
    assert write_report("demo").read_bytes() == (folder / "report.html").read_bytes()
