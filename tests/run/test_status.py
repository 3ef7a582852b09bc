import os

import pytest

from saber.run.collection import load_collection
from saber.run.records import RunRecord, write_json, write_text
from saber.run.status import record_file, state_file, statuses

STATES = {"01": {"parameter": {"x": 1}}, "02": {"parameter": {}}}


@pytest.fixture
def folder(toys, tmp_path):
    """Outputs in which both notebooks are up to date, each file with its own age."""
    toys.notebook("01_a", writes=["tables/a.csv"])
    toys.notebook("02_b", needs=["01"])
    files = ["state/01.json", "tables/a.csv", "notebooks/01_a.ipynb", "state/02.json", "notebooks/02_b.ipynb"]
    for age, name in enumerate(files):
        write_text(tmp_path / name, "")
        if name.startswith("state"):
            write_json(tmp_path / name, STATES[name[6:8]])
        os.utime(tmp_path / name, (1000 + age, 1000 + age))
    return tmp_path


def reasons(toys, folder, states=STATES) -> list[str]:
    found = statuses(folder, load_collection(toys.root / "notebooks"), states)
    return [status.reason for status in found.values()]


def test_up_to_date(toys, folder):
    assert reasons(toys, folder) == ["", ""]


def test_never_ran(toys, tmp_path):
    toys.notebook("01_a")
    assert reasons(toys, tmp_path / "nowhere", {"01": {}}) == ["it has never run"]


def test_changes_are_named_and_travel_to_what_needs_them(toys, folder):
    states = {**STATES, "01": {"parameter": {"x": 2, "y": 1}, "library": {"saber/a.py": "1"}}}
    first = "changed: parameter x: 1 -> 2; parameter y: None -> 1 and 1 more"
    assert reasons(toys, folder, states) == [first, "01 runs first"]


def test_a_missing_output(toys, folder):
    (folder / "tables/a.csv").unlink()
    assert reasons(toys, folder) == ["tables/a.csv is missing", "01 runs first"]


def test_an_output_written_by_hand_after_the_run(toys, folder):
    os.utime(folder / "tables/a.csv", (2000, 2000))
    assert reasons(toys, folder)[0] == "tables/a.csv was written since its last run, by hand?"


def test_a_newer_input(toys, folder):
    os.utime(folder / "notebooks/01_a.ipynb", (2000, 2000))
    assert reasons(toys, folder) == ["", "01 ran since its last run"]
    os.utime(state_file(folder, "01"), (3000, 3000))
    assert reasons(toys, folder)[0] == "what it depends on changed since its last run"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (
            RunRecord("failed", 3, 9, error="KeyError: 'x'"),
            "the last run failed in code cell 3 of 9: KeyError: 'x'",
        ),
        (RunRecord("interrupted", 3, 9), "the last run was interrupted in code cell 3 of 9"),
        (RunRecord("running", 3, 9, pid=2**22 + 1), "the last run was interrupted in code cell 3 of 9"),
        (RunRecord("running", 3, 9), "it is running now, code cell 3 of 9"),
    ],
)
def test_the_last_run_explains_a_missing_notebook(toys, folder, record, reason):
    (folder / "notebooks/02_b.ipynb").unlink()
    record.write(record_file(folder, "02"))
    assert reasons(toys, folder) == ["", reason]
