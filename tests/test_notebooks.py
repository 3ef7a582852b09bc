"""The committed notebooks: clean, readable, and agreed with the profiles."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from saber.paths import NOTEBOOKS, PARAMS
from saber.run.arguments import notebook_files, profile_files
from saber.run.collection import literal_assignments, load_collection
from saber.run.imports import syntax_tree
from saber.run.params import check_profile, edited_defaults, load_profile

FILES = list(notebook_files(NOTEBOOKS).values())
MACHINE_PATH = re.compile(r"(?<![\w.])/(root|home|Users|tmp|work|mnt|scratch)/|[A-Z]:\\\\")
NOTEBOOK = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def sources(path: Path, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == kind]


def lines(source: str) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


def test_there_are_notebooks():
    assert {"01", "04", "14"} <= set(notebook_files(NOTEBOOKS))


@NOTEBOOK
def test_no_outputs_and_nothing_of_a_machine(path):
    notebook = read(path)
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info", "saber"}
    assert set(notebook["metadata"]["language_info"]) <= {"name"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["kernelspec"]["display_name"] == "Python 3"
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= {"tags", "jupyter"}, cell["metadata"]
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert not MACHINE_PATH.search(path.read_text(encoding="utf-8"))


@NOTEBOOK
def test_cells_are_short_and_explained(path):
    code, text = sources(path, "code"), sources(path, "markdown")
    counts = [lines(source) for source in code]
    assert 10 <= len(code) <= 30
    assert median(counts) <= 6 and max(counts) <= 40 and min(counts) >= 1
    assert len(text) >= len(code)


@NOTEBOOK
def test_logic_is_in_the_library(path):
    for source in sources(path, "code"):
        for node in ast.walk(syntax_tree(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                assert node.end_lineno - node.lineno < 10, f"{node.name} belongs into lib/saber"


@NOTEBOOK
def test_first_a_title_and_last_the_versions(path):
    cells = read(path)["cells"]
    assert cells[0]["cell_type"] == "markdown" and re.match(r"# \S", "".join(cells[0]["source"]))
    titles = [
        line for source in sources(path, "markdown") for line in source.splitlines() if line.startswith("# ")
    ]
    assert len(titles) == 1
    assert "version" in sources(path, "code")[-1]


@NOTEBOOK
def test_each_parameter_stands_on_a_line_of_its_own_with_a_comment(path):
    """``papermill --help-notebook`` shows the comments, and reads one assignment a line."""
    (cell,) = [cell for cell in read(path)["cells"] if "parameters" in cell["metadata"].get("tags", [])]
    source = "".join(cell["source"])
    for line in source.strip().splitlines():
        assert re.fullmatch(r"\w+(: \w+)? = [^#]+  # \S.*", line), line
    assert len(literal_assignments(source)) == len(source.strip().splitlines())


def test_every_profile_fits_and_demo_has_the_defaults():
    notebooks = load_collection(NOTEBOOKS)
    for name in profile_files(PARAMS):
        values = load_profile(name)
        check_profile(values, notebooks)
        assert edited_defaults(values, notebooks) == []


def test_comments_of_a_parameter_are_the_same_everywhere():
    comments: dict[str, set[str]] = {}
    for path in FILES:
        for name, comment in re.findall(
            r"^(\w+) = .*?  # (.*)$", "\n".join(sources(path, "code")), re.MULTILINE
        ):
            if any(name in notebook.parameters for notebook in load_collection(NOTEBOOKS)):
                comments.setdefault(name, set()).add(comment)
    assert {name: found for name, found in comments.items() if len(found) > 1} == {}


def test_the_report_can_be_run_by_hand_before_anything_else(tmp_path):
    command = [
        sys.executable,
        "-m",
        "papermill",
        "--no-progress-bar",
        "14_report.ipynb",
        tmp_path / "out.ipynb",
    ]
    env = {**os.environ, "SABER_OUTPUTS": str(tmp_path)}
    done = subprocess.run(command, cwd=NOTEBOOKS, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "demo" / "report.html").stat().st_size > 1000
