"""run_all.sh itself: words, places and missing Pythons. (The whole of it is run by test_end_to_end.)"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


def run_all(
    *words: str, script: Path = REPO / "run_all.sh", **environment: str
) -> subprocess.CompletedProcess:
    env = {**os.environ, **environment}
    return subprocess.run([script, *words], capture_output=True, text=True, cwd="/", env=env, timeout=120)


def test_help_needs_no_environment(tmp_path):
    result = run_all("--help", VIRTUAL_ENV=str(tmp_path), CONDA_PREFIX=str(tmp_path))
    assert result.returncode == 0 and result.stderr == ""
    assert "--profile NAME" in result.stdout and "examples:" in result.stdout


def test_a_wrong_word_ends_before_anything_is_installed(tmp_path):
    checkout = tmp_path / "check out é"
    shutil.copytree(REPO / "lib" / "saber" / "run", checkout / "lib" / "saber" / "run")
    for name in (
        "run_all.sh",
        "requirements.lock",
        "lib/saber/__init__.py",
        "lib/saber/paths.py",
        "params/demo.yaml",
    ):
        (checkout / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPO / name, checkout / name)
    (checkout / "notebooks").mkdir()
    result = run_all("--profile", "dmo", script=checkout / "run_all.sh")
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr == "run_all.sh: unknown profile 'dmo' (did you mean 'demo'?); valid: demo\n"
    assert not (checkout / ".venv").exists()


def test_no_python_is_a_clear_error(tmp_path):
    for tool in ("bash", "dirname", "env"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    result = run_all(PATH=str(tmp_path), VIRTUAL_ENV="", CONDA_PREFIX="")
    assert result.returncode == 1
    assert "Python 3.11 or newer is needed and none was found" in result.stderr


@pytest.mark.parametrize("name", ["run_all.sh", ".ci/run"])
def test_scripts_are_executable_and_parse(name):
    assert os.access(REPO / name, os.X_OK)
    assert subprocess.run(["bash", "-n", REPO / name]).returncode == 0
