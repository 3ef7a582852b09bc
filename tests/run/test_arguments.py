from pathlib import Path

import pytest

from saber.run.arguments import notebook_files, parse, profile_files, suggestion


@pytest.fixture
def folder(toys) -> Path:
    for name in ("01_build", "04_main", "07_more"):
        toys.notebook(name)
    toys.profile("demo")
    toys.profile("smoke")
    (toys.root / "params" / "models.yaml").write_text("mini: {loader: x}\n", encoding="utf-8")
    return toys.root


def words(folder: Path, *more: str) -> list[str]:
    return ["--collection", str(folder), *more]


def test_defaults(folder):
    options = parse(words(folder))
    assert options.profile == "demo" and options.selected is None and options.extra == []
    assert options.outputs == folder / "outputs"


def test_outputs_option_beats_the_environment(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_OUTPUTS", str(tmp_path / "by environment"))
    assert parse(words(folder)).outputs == tmp_path / "by environment"
    monkeypatch.chdir(tmp_path)
    assert parse(words(folder, "--outputs", "here")).outputs == tmp_path / "here"


def test_selection(folder):
    assert parse(words(folder, "--only", "7,01, 1")).selected == ["01", "07"]
    assert parse(words(folder, "--from", "4")).selected == ["04", "07"]
    assert parse(words(folder, "--jobs", "3", "--", "--executor", "slurm")).extra == ["--executor", "slurm"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--profile", "dmo"], "unknown profile 'dmo' (did you mean 'demo'?); valid: demo, smoke"),
        (["--profile", "models"], "unknown profile 'models'; valid: demo, smoke"),
        (["--only", "05"], "--only: no notebook '05'"),
        (["--only", "05"], "valid: 01, 04, 07"),
        (["--only", ","], "--only needs a notebook number"),
        (["--from", "09"], "--from: no notebook '09'"),
        (["--from", "01,04"], "--from takes one notebook number"),
        (["--only", "01", "--from", "04"], "exclude each other"),
        (["--lst"], "unknown word '--lst' (did you mean '--list'?)"),
        (["demo"], "unknown word 'demo'"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--jobs", "two"], "invalid int value: 'two'"),
        (["--test", "--list"], "--test stands alone"),
    ],
)
def test_wrong_words_end_with_the_valid_ones(folder, capsys, wrong, message):
    with pytest.raises(SystemExit) as stopped:
        parse(words(folder, *wrong))
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error and "--collection" not in error


def test_help_names_every_option(folder, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    options = "--profile --only --from --jobs --force --list --dry-run --test --outputs".split()
    assert all(option in text for option in options)


def test_scratch_notebooks_are_not_ours_and_twins_are_an_error(folder):
    for name in ("Untitled", "04_main-Copy1", "4_short"):
        (folder / "notebooks" / f"{name}.ipynb").write_text("{}", encoding="utf-8")
    assert list(notebook_files(folder / "notebooks")) == ["01", "04", "07"]
    (folder / "notebooks" / "04_twin.ipynb").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"04_main\.ipynb and 04_twin\.ipynb"):
        notebook_files(folder / "notebooks")


def test_registries_are_no_profiles(folder):
    assert list(profile_files(folder / "params")) == ["demo", "smoke"]


def test_suggestion_without_candidates():
    assert suggestion("x", []) == "; valid: none"
