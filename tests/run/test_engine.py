"""The whole engine on toy notebooks: order, failures, what runs again, stops and kills."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from saber.run.engine import BusyError, environment, exclusive
from saber.run.records import RunRecord


def ran(toys, before: dict[str, int]) -> set[str]:
    """Numbers of the notebooks that ran since ``before`` (run record -> time of change)."""
    return {name[:2] for name, stamp in records(toys).items() if stamp != before.get(name)}


def records(toys) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in toys.file("state").glob("*.run.json")}


def tree(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()
    }


def test_a_collection_from_first_run_to_changes(toys, table_cell):
    """Failure in the middle, then a repair, then a change of one parameter after the other."""
    toys.notebook("01_build", "profile = 'demo'\nx = 1", [table_cell("a", "x")], writes=["tables/a.csv"])
    toys.notebook("02_broken", "profile = 'demo'\ny = 's'", ["print('before')", "1 / 0", "print('after')"])
    read = "from saber.paths import tables_dir\nfirst = (tables_dir(profile) / 'a.csv').read_text()"
    cells = [read, table_cell("c", "first, z")]
    toys.notebook("04_use", "profile = 'demo'\nz = [1]", cells, needs=["01"], writes=["tables/c.csv"])
    toys.profile(x=1, y="s", z=[1])
    collection = tree(toys.root)

    result = toys.run()
    assert result.returncode == 1, result.stdout
    assert toys.file("tables/c.csv").read_text() == "('1', [1])"
    assert toys.file("notebooks/01_build.ipynb").exists() and toys.file("notebooks/04_use.ipynb").exists()
    assert not toys.file("notebooks/02_broken.ipynb").exists()
    kept = toys.file("notebooks/02_broken.failed.ipynb")
    assert "ZeroDivisionError" in kept.read_text() and "before" in kept.read_text()
    for words in (
        "02_broken failed in code cell 3 of 4: 1 / 0", "ZeroDivisionError: division by zero", str(kept),
        str(toys.file("logs/02_broken.log")), "2 ran, 1 failed",
    ):  # fmt: skip
        assert words in result.stdout
    assert "ZeroDivisionError" in toys.file("logs/02_broken.log").read_text()
    assert tree(toys.root) == collection, "a run with --outputs must write nothing beside the notebooks"
    assert "the last run failed in code cell 3 of 4" in toys.run("--list").stdout

    before = records(toys)
    toys.notebook("02_broken", "profile = 'demo'\ny = 's'", ["print('repaired')"])
    result = toys.run()
    assert result.returncode == 0 and ran(toys, before) == {"02"}, result.stdout
    assert not kept.exists()

    before = records(toys)
    for path in (*toys.root.rglob("*"), *toys.out.rglob("tables/a.csv"), Path(__file__)):
        if path.is_relative_to(toys.root):
            path.touch()
    assert "nothing to do" in toys.run().stdout
    asked = toys.run(
        "--", "--quiet"
    )  # words for Snakemake: it is asked even though nothing seems to be needed
    assert asked.returncode == 0 and "nothing to do" in asked.stdout and ran(toys, before) == set(), (
        asked.stdout
    )

    toys.profile(x=1, y="s", z=[2])
    assert "changed: parameter z: [1] -> [2]" in toys.run("--dry-run").stdout
    assert ran(toys, before) == set(), "--dry-run must run nothing"
    result = toys.run("--only", "2,04")
    assert ran(toys, before) == {"04"} and toys.file("tables/c.csv").read_text() == "('1', [2])", (
        result.stdout
    )

    before = records(toys)
    toys.profile(x=5, y="s", z=[2])
    result = toys.run("--from", "04")  # 01 is not selected, but needed
    assert ran(toys, before) == {"01", "04"} and toys.file("tables/c.csv").read_text() == "('5', [2])", (
        result.stdout
    )

    before = records(toys)
    result = toys.run("--only", "02", "--force")
    assert result.returncode == 0 and ran(toys, before) == {"02"}, result.stdout
    assert "last time" in result.stdout

    listing = toys.run("--list").stdout
    assert listing.count("up to date, ran in") == 3 and "tables/c.csv" in listing
    toys.file("tables/a.csv").unlink()
    assert "01_build: would run: tables/a.csv is missing" in toys.run("--list").stdout
    assert "04_use: would run: 01 runs first" in toys.run("--list").stdout


def wait_until(true: Callable[[], object], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


def gone(pid: int) -> bool:
    """Whether a process has ended (one that waits to be collected by its parent has)."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_stop_and_kill_leave_nothing_half_done(toys, tmp_path, table_cell):
    """Ctrl-C and kill -9 in the middle of a cell, a second run meanwhile, and then a run to the end."""
    gate, pid = tmp_path / "open", tmp_path / "pid"
    slow = (
        f"import os, pathlib, time\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        f"while not pathlib.Path({str(gate)!r}).exists():\n    time.sleep(0.05)"
    )
    toys.notebook(
        "01_slow", cells=[table_cell("half", "1"), slow, table_cell("a", "1")], writes=["tables/a.csv"]
    )
    toys.notebook("02_next", cells=[table_cell("b", "2")], needs=["01"])
    toys.profile()

    def start() -> tuple[subprocess.Popen, int]:
        pid.unlink(missing_ok=True)
        process = subprocess.Popen(
            toys.command(),
            env=toys.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        wait_until(lambda: pid.exists() and pid.read_text())
        return process, int(pid.read_text())

    def nothing_final() -> bool:
        return not toys.file("notebooks/01_slow.ipynb").exists() and not toys.file("tables/b.csv").exists()

    process, kernel = start()
    second = toys.run()
    assert (
        second.returncode == 2
        and "another run (process" in second.stdout
        and str(process.pid) in second.stdout
    )
    assert "it is running now, code cell 3 of 4" in toys.run("--list").stdout
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "the same command goes on" in output, output
    wait_until(lambda: gone(kernel), 30)
    assert nothing_final()
    assert RunRecord.read(toys.file("state/01.run.json")).status == "interrupted"
    assert "the last run was interrupted in code cell 3 of 4" in toys.run("--list").stdout

    process, kernel = start()
    process.kill()
    process.communicate()
    wait_until(lambda: gone(kernel), 30)
    assert nothing_final()

    gate.touch()
    result = toys.run()
    assert result.returncode == 0 and "2 ran, 0 failed" in result.stdout, result.stdout
    assert toys.file("tables/a.csv").read_text() == "1" and toys.file("tables/b.csv").read_text() == "2"
    left = {path.name for path in toys.file("notebooks").iterdir()}
    assert left == {"01_slow.ipynb", "02_next.ipynb"}


def test_a_folder_is_held_by_one_run_at_a_time(tmp_path):
    with exclusive(tmp_path):
        with pytest.raises(BusyError, match=f"process {os.getpid()}"), exclusive(tmp_path):
            pass
    with exclusive(tmp_path):
        pass


def test_environment_shares_cores_and_stays_offline(tmp_path, monkeypatch):
    for name in ("OMP_NUM_THREADS", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    demo, laptop = (environment(name, tmp_path, jobs=2, cores=8) for name in ("demo", "laptop"))
    assert demo["OMP_NUM_THREADS"] == "4" and demo["SABER_OUTPUTS"] == str(tmp_path)
    assert demo["HF_HUB_OFFLINE"] == "1" and "HF_HUB_OFFLINE" not in laptop
    assert environment("demo", tmp_path, jobs=16, cores=2)["OMP_NUM_THREADS"] == "1"
    assert demo.get("HOME") == os.environ.get("HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    assert environment("demo", tmp_path, jobs=1, cores=1)["HOME"] == str(tmp_path / ".home")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert environment("demo", tmp_path, jobs=2, cores=8)["OMP_NUM_THREADS"] == "3"


def test_metadata_of_the_executed_notebook(toys):
    """The executed notebook carries its parameters and counts from 1 to n."""
    toys.notebook("01_counts", "profile = 'demo'\nx = [1]", ["x", "%time x"])
    toys.profile(x=[7])
    result = toys.run()
    assert result.returncode == 0, result.stdout
    cells = json.loads(toys.file("notebooks/01_counts.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4]
    assert "x = [7]" in "".join(code[1]["source"]) and "[7]" in json.dumps(code[2]["outputs"])
