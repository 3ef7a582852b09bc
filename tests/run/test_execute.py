"""One notebook at a time, through the command that the Snakefile calls."""

import json
import subprocess
import sys

import pytest

from saber.run.execute import failure, first_line, last_words
from saber.run.records import RunRecord


def execute(toys, path, *words, **environment) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "saber.run.execute", str(path), str(toys.out / "out.ipynb"), *words]
    command += ["--params", str(toys.root / "params" / "demo.yaml"), "--record", str(toys.out / "run.json")]
    env = {**toys.environment(), **environment}
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd="/", timeout=300)


def test_the_kernel_is_this_interpreter_whatever_the_user_has_installed(toys, tmp_path):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = ["/bin/false", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "x", "language": "python"}), encoding="utf-8")
    startup = tmp_path / "ipython" / "profile_default" / "startup" / "00.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("intruder = True", encoding="utf-8")
    cells = [
        "import os, sys, saber\nprint(sys.executable, saber.__file__)",
        "print(os.getcwd())\nassert 'intruder' not in globals()\n\n\n",
        "",
    ]
    toys.profile()
    environment = {"JUPYTER_DATA_DIR": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")}
    result = execute(toys, toys.notebook("01_where", cells=cells), **environment)
    assert result.returncode == 0, result.stdout + result.stderr
    text = (toys.out / "out.ipynb").read_text(encoding="utf-8")
    outputs = json.dumps(
        [cell["outputs"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    )
    assert json.dumps(sys.executable)[1:-1] in outputs
    assert json.dumps(str(toys.out))[1:-1] in outputs, (
        "the working directory is that of the executed notebook"
    )
    record = RunRecord.read(toys.out / "run.json")
    assert (record.status, record.cell, record.cells) == ("done", 3, 3)
    assert "cell 2/3  import os, sys, saber" in result.stdout


@pytest.mark.parametrize(
    ("cell", "words", "error"),
    [
        ("import os\nos._exit(1)", (), "the kernel died (often: out of memory)"),
        ("raise SystemExit", (), "a cell ended the notebook before its last cell"),
        ("x = 1", ("--expect", "tables/never.csv"), "did not write"),
    ],
)
def test_ways_to_fail(toys, cell, words, error):
    toys.profile()
    result = execute(toys, toys.notebook("01_fails", cells=[cell, "print('last')"]), *words)
    assert result.returncode == 1
    record = RunRecord.read(toys.out / "run.json")
    assert record.status == "failed" and error in record.error, record
    assert {path.name for path in toys.out.iterdir()} == {"run.json", "out.failed.ipynb"}


def test_a_wrong_notebook_or_profile_is_named_before_anything_runs(toys):
    toys.profile("demo")
    path = toys.notebook("01_x", tag="no")
    result = execute(toys, path)
    assert result.returncode == 2 and "0 code cells tagged 'parameters'" in result.stderr
    path = toys.notebook("01_x", "profile = 'demo'\nx = 1")
    result = execute(toys, path)
    assert result.returncode == 2 and "x is missing, 01_x declares it" in result.stderr


def test_first_line():
    assert first_line("\n# comment\n%time\n  x = 1\ny = 2") == "x = 1"
    assert first_line("# only a comment") == ""
    assert len(first_line("x" * 500)) == 100


def test_last_words():
    def stream(text):
        return {"output_type": "stream", "name": "stderr", "text": text}

    assert last_words([stream("a\nb\n"), stream("10 %\r90 %"), {"output_type": "display_data"}]) == "90 %"
    assert last_words([stream("\n")]) == "" and last_words([]) == ""


def test_failure_is_one_plain_line():
    assert failure(ValueError("\x1b[31mred\x1b[0m\nmore")) == "ValueError: red"
    assert failure(KeyError()) == "KeyError:"
