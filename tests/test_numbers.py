"""Long numbers: built, checked, written with the same bytes, merged in the order of the paper."""

import math

import numpy as np
import pandas as pd
import pytest

from saber import paths
from saber.numbers import (
    COLUMNS,
    merge_numbers,
    number_rows,
    profile_label,
    read_reasons,
    validate,
    write_numbers,
)

NAME = "mini_clip & 50 % <b> é"


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_OUTPUTS", str(tmp_path / "with space é"))


def measured(**changes):
    rows = {
        "row": [NAME, NAME, "text only", "text only"],
        "column": ["MCQ T->T", "MCQ T->I", "MCQ T->T", "MCQ T->I"],
        "value": [60.0, 30.0, 25.5, np.nan],
        "n": [90, 90, 90, None],
        "low": [50.1, 21.0, 17.0, np.nan],
        "high": [69.2, 40.0, 35.0, np.nan],
    }
    return pd.DataFrame(rows | changes)


def build(table=2, **options):
    stands_for = {NAME: "CLIP ViT-B/32", "text only": None}
    return number_rows(table, measured(), profile="demo", published_row=stands_for, **options)


def test_rows_carry_the_paper_and_the_difference():
    frame = build(fingerprints={NAME: "abc"})
    assert tuple(frame.columns) == COLUMNS
    assert frame["published"].tolist()[:2] == [53.6, 23.0]
    assert frame["delta"].tolist()[:2] == pytest.approx([60 - 53.6, 30 - 23.0])
    assert frame["published"].isna().tolist() == [False, False, True, True]
    assert frame["model_fingerprint"].tolist() == ["abc", "abc", "", ""]
    assert frame["n"].tolist()[:3] == [90, 90, 90] and frame["n"].isna().iloc[3]


def test_models_in_columns_and_named_sections():
    cells = pd.DataFrame({"row": ["T->I ColorSwap"], "column": ["mini"], "value": [50.0]})
    same = {"row": cells["row"][0]}
    frame = number_rows(
        3,
        cells,
        profile="demo",
        published_row={same["row"]: same["row"]},
        published_column={"mini": "CLIP ViT-B/32"},
    )
    assert frame["published"].item() == 17.9
    section = number_rows("section 5.1", cells.assign(published=3.3), profile="demo")
    assert section["delta"].item() == pytest.approx(46.7)
    assert math.isnan(number_rows("section 5.1", cells, profile="demo")["published"].item())


def test_a_published_name_with_a_typo_is_an_error():
    with pytest.raises(ValueError, match="no row or column 'CLIP ViT-B/23'"):
        number_rows(2, measured(), profile="demo", published_row={NAME: "CLIP ViT-B/23"})
    with pytest.raises(ValueError, match="lacks the columns"):
        number_rows(2, measured().drop(columns="value"), profile="demo")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("value", math.inf, "infinite"),
        ("value", 80.0, "outside its interval"),
        ("low", 61.0, "outside its interval"),
        ("high", 59.0, "outside its interval"),
        ("low", math.nan, "one end"),
        ("value", math.nan, "interval but no value"),
        ("n", 0, "n below 1"),
        ("delta", 0.0, "value - published"),
        ("column", "MCQ T->I", "given twice"),
        ("row", "", "empty row"),
        ("profile", "paper", "several profiles"),
    ],
)
def test_validation_names_the_cell(column, value, message):
    frame = build()
    frame.loc[0, column] = value
    if column == "value":
        frame["delta"] = frame["value"] - frame["published"]
    with pytest.raises(ValueError, match=message):
        validate(frame)


def test_the_columns_are_frozen():
    with pytest.raises(ValueError, match="exactly the columns table, row"):
        validate(build().assign(extra=1))


def test_a_missing_value_needs_a_reason():
    with pytest.raises(ValueError, match=r"row 'text only', column 'MCQ T->I' has no value and no reason"):
        write_numbers("demo", 2, build())
    assert not paths.numbers_dir("demo").exists()
    reasons = {("text only", "MCQ T->I"): "no images", "CLIP, big": "no weights, see README"}
    write_numbers("demo", 2, build(), reasons)
    assert read_reasons("demo").values.tolist() == [
        ["2", "text only", "MCQ T->I", "no images"],
        ["2", "CLIP, big", "", "no weights, see README"],
    ]
    complete = build().iloc[:3]
    write_numbers("demo", 2, complete)
    assert read_reasons("demo").empty  # the file of the earlier run is gone


def test_another_profile_or_table_is_an_error():
    with pytest.raises(ValueError, match="belong to profile demo, not paper"):
        write_numbers("paper", 2, build(), {"text only": "x"})
    with pytest.raises(ValueError, match="belong to table 2, not 17"):
        write_numbers("demo", 17, build(), {"text only": "x"})


def test_files_have_the_same_bytes_and_read_back():
    first = write_numbers("demo", 2, build(), {"text only": "x"}).read_bytes()
    assert write_numbers("demo", 2, build(), {"text only": "x"}).read_bytes() == first
    assert b"\r" not in first and first.decode("utf-8").splitlines()[0] == ",".join(COLUMNS)
    merged = merge_numbers("demo")
    pd.testing.assert_frame_equal(merged, build(), check_dtype=False)
    assert not list(paths.numbers_dir("demo").glob(".*"))


def test_merge_follows_the_paper_and_keeps_row_order():
    one = pd.DataFrame({"row": ["z", "a"], "column": ["c", "c"], "value": [1.0, 2.0]})
    for table in ("section 12", 17, 2, "section 5.1"):
        write_numbers("demo", table, number_rows(table, one, profile="demo"))
    merged = merge_numbers("demo")
    assert merged["table"].tolist() == [2, 2, 17, 17, *["section 12"] * 2, *["section 5.1"] * 2]
    assert merged["row"].tolist() == ["z", "a"] * 4
    written = (paths.outputs_dir("demo") / "numbers.csv").read_bytes()
    merge_numbers("demo")
    assert (paths.outputs_dir("demo") / "numbers.csv").read_bytes() == written


def test_merge_of_nothing_is_an_empty_table():
    assert merge_numbers("demo").empty
    assert (paths.outputs_dir("demo") / "numbers.csv").read_text() == ",".join(COLUMNS) + "\n"


def test_a_damaged_file_is_named():
    path = write_numbers("demo", 2, build(), {"text only": "x"})
    path.write_text(path.read_text().replace("60,", "sixty,"))
    with pytest.raises(ValueError, match=r"table_02\.csv.*rerun the notebook"):
        merge_numbers("demo")


def test_miniatures_say_so():
    assert "not the paper's results" in profile_label("demo") and "miniature" in profile_label("smoke")
    assert "miniature" not in profile_label("paper") and "not by the paper's authors" in profile_label(
        "paper"
    )
