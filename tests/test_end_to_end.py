"""The real notebooks in the profile smoke, through run_all.sh: a run, a second one, and a killed one."""

import csv
import json
import math
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from saber.paths import NOTEBOOKS, REPO
from saber.run.collection import load_collection
from saber.run.records import RunRecord
from saber.run.status import record_file

LIMIT_SECONDS = 1200  # a machine under heavy load; alone it takes a tenth of that
COLLECTION = load_collection(NOTEBOOKS)


def command(outputs: Path, *words: str) -> list[str]:
    return [str(REPO / "run_all.sh"), "--profile", "smoke", "--outputs", str(outputs), *words]


def run_all(outputs: Path, *words: str) -> str:
    result = subprocess.run(
        command(outputs, *words), cwd="/", text=True, timeout=LIMIT_SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
    return result.stdout


def checkout() -> dict[str, int]:
    """Files of the checkout that a run must leave alone -> time of change."""
    return {
        str(path): path.stat().st_mtime_ns
        for folder in ("notebooks", "params", "lib")
        for path in sorted((REPO / folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> tuple[Path, str]:
    """Outputs of an undisturbed run, in a folder with a space and an accent, and what the run printed."""
    outputs = tmp_path_factory.mktemp("end to end é")
    before = checkout()
    text = run_all(outputs)
    assert checkout() == before, "a run must not write into the checkout"
    return outputs / "smoke", text


def test_every_promised_file_is_there(smoke):
    folder, text = smoke
    for notebook in COLLECTION:
        assert f"{notebook.name}" in text
        for name in notebook.outputs:
            assert (folder / name).stat().st_size > 0, name
    assert f"{len(COLLECTION)} ran, 0 failed" in text


def test_tables_stand_beside_their_sources(smoke):
    """Each table as csv, md and tex, each figure as pdf and png."""
    folder, _ = smoke
    tables = sorted((folder / "tables").glob("table_*.csv"))
    assert tables
    for path in tables:
        assert path.with_suffix(".md").stat().st_size and path.with_suffix(".tex").stat().st_size
    figures = sorted((folder / "figures").glob("figure_*.png"))
    assert figures
    for path in figures:
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


def test_numbers_have_sizes_and_intervals(smoke):
    folder, _ = smoke
    with (folder / "numbers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = "table row column value n low high published delta profile model_fingerprint".split()
    assert rows and list(rows[0]) == columns
    measured = [row for row in rows if row["value"]]
    assert measured
    for row in measured:
        value = float(row["value"])
        assert math.isfinite(value) and row["profile"] == "smoke", row
        if row["low"]:
            assert float(row["low"]) <= value <= float(row["high"]) and float(row["n"]) > 0, row


@pytest.mark.parametrize("notebook", COLLECTION, ids=lambda notebook: notebook.name)
def test_executed_notebooks_are_whole_and_quiet(smoke, notebook):
    folder, _ = smoke
    cells = json.loads((folder / notebook.executed).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    injected = [cell for cell in code if "injected-parameters" in cell["metadata"].get("tags", [])]
    assert len(injected) == 1 and '"smoke"' in "".join(injected[0]["source"])
    for output in (output for cell in code for output in cell["outputs"]):
        assert output["output_type"] != "error"
        if output["output_type"] == "stream":
            text = "".join(output["text"])
            assert text.count("\n") <= 60 and "Warning" not in text, text[:2000]


def test_a_second_run_has_nothing_to_do(smoke):
    folder, _ = smoke
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert "nothing to do: every selected notebook is up to date" in run_all(folder.parent)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
    assert run_all(folder.parent, "--list").count(": up to date") == len(COLLECTION)


def tables(folder: Path) -> dict[str, bytes]:
    names = ("tables/*.csv", "tables/*.md", "tables/*.tex", "numbers/*.csv", "data/saber/*.jsonl")
    files = [path for name in names for path in sorted(folder.glob(name))] + [folder / "numbers.csv"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_killed_run_ends_with_the_same_tables(smoke, tmp_path):
    """kill -9 in the middle of the second notebook; the rerun's files equal those of the undisturbed run."""
    second = COLLECTION[1].number
    with subprocess.Popen(command(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + LIMIT_SECONDS
        while RunRecord.read(record_file(tmp_path / "smoke", second)).cell < 8:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        for victim in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
            os.kill(victim.pid, signal.SIGKILL)
    assert not (tmp_path / "smoke" / COLLECTION[1].executed).exists()
    text = run_all(tmp_path)
    assert f"{len(COLLECTION) - 1} ran, 0 failed" in text, text
    assert tables(tmp_path / "smoke") == tables(smoke[0])
