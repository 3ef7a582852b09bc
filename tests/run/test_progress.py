import pytest

from saber.run import progress
from saber.run.collection import load_collection
from saber.run.progress import Reporter, duration
from saber.run.records import RunRecord
from saber.run.status import record_file


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3600, "1 h 00 min"),
        (7380, "2 h 03 min"),
    ],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


@pytest.fixture
def reporter(toys, tmp_path, capsys):
    """A reporter on outputs that hold the record of an earlier run of notebook 02."""
    for name in ("01_build", "02_use"):
        toys.notebook(name)
    RunRecord("failed", 1, 2, error="old").write(record_file(tmp_path, "02"))
    return Reporter(tmp_path, load_collection(toys.root / "notebooks"))


def test_lines_when_something_happens_and_not_in_between(reporter, tmp_path, capsys, monkeypatch):
    def look(**fields) -> str:
        RunRecord(**fields).write(record_file(tmp_path, "01"))
        reporter.look()
        return capsys.readouterr().out

    reporter.look()
    assert capsys.readouterr().out == "", "an earlier run is no news"
    assert "01_build  starts (last time 2 min 00 s)" in look(status="running", before=120)
    assert look(status="running", cell=2, cells=9, line="x = 1", seconds=3) == ""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    assert "cell 2 of 9, 40 s: x = 1" in look(status="running", cell=2, cells=9, line="x = 1", seconds=40)
    assert ": 57 %" in look(status="running", cell=2, cells=9, line="x = 1", note="57 %", seconds=41)
    assert "01_build  done in 42 s" in look(status="done", cell=9, cells=9, seconds=42)
    assert look(status="done", cell=9, cells=9, seconds=42) == ""
    assert reporter.conclude(0, tmp_path / "log") == 0
    assert f"1 ran, 0 failed in 0 s; outputs in {tmp_path}" in capsys.readouterr().out


def test_a_failure_says_where_to_look(reporter, tmp_path, capsys):
    RunRecord("failed", 2, 9, line="1 / 0", error="ZeroDivisionError").write(record_file(tmp_path, "01"))
    kept = tmp_path / "notebooks" / "01_build.failed.ipynb"
    kept.parent.mkdir()
    kept.touch()
    reporter.look()
    assert reporter.conclude(1, tmp_path / "log") == 1
    text = capsys.readouterr().out
    assert "01_build failed in code cell 2 of 9: 1 / 0\n  ZeroDivisionError" in text
    assert str(kept) in text and str(tmp_path / "logs" / "01_build.log") in text


def test_a_notebook_that_vanished_counts_as_failed(reporter, tmp_path, capsys):
    RunRecord("running", 2, 9, line="big = 1").write(record_file(tmp_path, "01"))
    reporter.look()
    assert reporter.conclude(1, tmp_path / "log") == 1
    assert "it ended without a word (killed, or out of memory)" in capsys.readouterr().out


def test_trouble_of_snakemake_itself_is_shown(reporter, tmp_path, capsys):
    (tmp_path / "log").write_text("WorkflowError:\nno space left on device\n", encoding="utf-8")
    assert reporter.conclude(1, tmp_path / "log") == 1
    assert "no space left on device" in capsys.readouterr().out
    assert reporter.conclude(0, tmp_path / "log") == 0
    assert "nothing to do" in capsys.readouterr().out
