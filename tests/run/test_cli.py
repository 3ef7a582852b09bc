"""What the command says and returns when nothing may run."""

import errno

import pytest

from saber.run.cli import main
from saber.run.engine import exclusive


def words(toys, *more: str) -> list[str]:
    return ["--collection", str(toys.root), "--outputs", str(toys.out), *more]


@pytest.mark.parametrize(
    ("notebook", "profile", "message"),
    [
        ({"tag": "parameter"}, {}, "01_a.ipynb has 0 code cells tagged 'parameters'"),
        ({"kernel": "old_env"}, {}, "01_a.ipynb names the kernel 'old_env'"),
        ({"kernel": None}, {}, "01_a.ipynb names no kernel"),
        ({}, {"sead": 1}, "params/demo.yaml: no notebook has a parameter 'sead'"),
        ({"parameters": "profile = 'demo'\nx = 1"}, {"x": "1"}, "params/demo.yaml: x must be a whole number"),
        ({"parameters": "profile = 'demo'\nx = 1"}, {}, "params/demo.yaml: x is missing"),
        ({"needs": ["00"]}, {}, "01_a.ipynb needs notebook '00'"),
    ],
)
@pytest.mark.parametrize("option", [[], ["--list"], ["--dry-run"]])
def test_errors_come_before_anything_runs(toys, capsys, notebook, profile, message, option):
    toys.notebook("01_a", **notebook)
    toys.notebook("02_fine")
    toys.profile(**profile)
    assert main(words(toys, *option)) == 2
    error = capsys.readouterr().err
    assert message in error and "nothing was run" in error
    assert not toys.out.exists()


def test_list_and_dry_run_write_nothing(toys, capsys):
    toys.notebook("01_a", writes=["tables/t.csv"])
    toys.notebook("02_b", needs=["01"])
    toys.profile()
    assert main(words(toys, "--list")) == 0
    text = capsys.readouterr().out
    assert "01_a: would run: it has never run" in text and "tables/t.csv (not yet)" in text
    assert main(words(toys, "--dry-run", "--only", "02")) == 0
    text = capsys.readouterr().out
    assert "2 of 2 notebooks to run" in text and "01_a: it has never run\n02_b: it has never run" in text
    assert not toys.out.exists()


def test_a_default_that_was_edited_in_a_notebook_is_noted(toys, capsys):
    toys.notebook("01_a", "profile = 'demo'\nx = 2")
    toys.profile(x=1)
    assert main(words(toys, "--list")) == 0
    assert "note: 01_a.ipynb says x = 2; used is 1 of the profile" in capsys.readouterr().out


def test_a_busy_folder_is_refused(toys, capsys):
    toys.notebook("01_a")
    toys.profile()
    with exclusive(toys.out / "demo"):
        assert main(words(toys)) == 2
    assert "wait for it or choose another --outputs" in capsys.readouterr().err


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_outputs_that_cannot_be_written_are_named(toys, capsys, monkeypatch, code):
    toys.notebook("01_a")
    toys.profile()

    def refuse(*_, **__):
        raise OSError(code, "cannot", str(toys.out))

    monkeypatch.setattr("saber.run.cli.run_notebooks", refuse)
    assert main(words(toys)) == 2
    assert "choose a folder you may write to with --outputs DIR" in capsys.readouterr().err
