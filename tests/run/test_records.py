import os
import subprocess
import sys

import pytest

from saber.run.records import RunRecord, read_json, write_json, write_text


def test_a_record_survives_writing_and_reading(tmp_path):
    record = RunRecord(status="done", cell=3, cells=3, line="é", seconds=1.5)
    record.write(tmp_path / "new" / "01.run.json")
    assert RunRecord.read(tmp_path / "new" / "01.run.json") == record
    assert record.update(cell=1).cell == 1 and record.cell == 3


@pytest.mark.parametrize("text", ["", "{", "[1]", None])
def test_a_missing_or_damaged_file_reads_as_nothing(tmp_path, text):
    if text is not None:
        (tmp_path / "x.json").write_text(text, encoding="utf-8")
    assert read_json(tmp_path / "x.json") == {}
    assert RunRecord.read(tmp_path / "x.json").status == ""


def test_fields_of_another_version_are_left_out(tmp_path):
    write_json(tmp_path / "x.json", {"status": "done", "colour": "red"})
    assert RunRecord.read(tmp_path / "x.json").status == "done"


def test_writing_leaves_the_old_file_when_it_fails(tmp_path):
    path = tmp_path / "x.txt"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "old"
    write_text(path, "new\n")
    assert path.read_bytes() == b"new\n"


def test_alive_is_only_a_running_process():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert RunRecord(status="running", pid=process.pid).alive
    assert not RunRecord(status="done", pid=os.getpid()).alive
    process.communicate(b"\n")
    assert not RunRecord(status="running", pid=process.pid).alive
    assert RunRecord(status="running", pid=process.pid, host="another host").alive
