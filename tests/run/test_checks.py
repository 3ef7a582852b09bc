import subprocess

import pytest

from saber.run import checks


@pytest.mark.parametrize(
    ("codes", "expected"), [([0, 0, 0], 0), ([1, 0, 0], 1), ([0, 1, 0], 1), ([0, 0, 5], 1)]
)
def test_everything_is_run_whatever_fails(monkeypatch, capsys, codes, expected):
    """A lint error does not keep the tests from running, and any failure is the command's."""
    commands: list[list[str]] = []

    def run(command, **_):
        commands.append(command[1:])
        return subprocess.CompletedProcess(command, codes[len(commands) - 1])

    monkeypatch.setattr(checks.subprocess, "run", run)
    assert checks.run_checks(["tests/run", "-x"]) == expected
    assert [command[:3] for command in commands] == [
        ["-m", "ruff", "check"],
        ["-m", "ruff", "format"],
        ["-m", "pytest", "tests/run"],
    ]
    assert {"lib", "tests", "notebooks"} <= set(commands[0])
    assert ("failed:" in capsys.readouterr().err) == bool(expected)
