"""The environment is found, made, completed and repaired; packages are toys, and no index is asked."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from saber.run import environment
from saber.run.environment import UNFINISHED, check, ensure, unmet


@pytest.fixture
def packages(tmp_path: Path):
    """Function (name, version) that fakes an installed package, and the folder it is in."""
    folder = tmp_path / "site-packages"

    def install(name: str, version: str) -> None:
        (folder / f"{name}-{version}.dist-info").mkdir(parents=True)

    return install, folder


def lock_file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "requirements.lock"
    path.write_text("# comment\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_unmet_names_what_is_missing_or_different(tmp_path, packages):
    install, folder = packages
    for name, version in [("numpy", "2.0"), ("Open_CLIP_torch", "3.3.0"), ("pandas", "3.0")]:
        install(name, version)
    lock = lock_file(
        tmp_path,
        "numpy==2.0", "open-clip-torch==3.3.0  # why", "pandas==3.1", "scipy==1.0",
        "pywinpty==3 ; os_name == 'nt'",
    )  # fmt: skip
    assert unmet(lock, [str(folder)]) == ["pandas is 3.0, wanted ==3.1", "scipy is missing"]


def test_the_first_folder_wins_as_in_an_import(tmp_path, packages):
    install, folder = packages
    install("numpy", "2.0")
    (tmp_path / "second" / "numpy-1.0.dist-info").mkdir(parents=True)
    assert unmet(lock_file(tmp_path, "numpy==2.0"), [str(folder), str(tmp_path / "second")]) == []


def test_a_cpu_build_of_torch_needs_no_nvidia_packages(tmp_path, packages):
    install, folder = packages
    lock = lock_file(tmp_path, "torch==2.1.0", "nvidia-nccl-cu13==2.0", "triton==3.0", "tritonparse==1")
    install("torch", "2.1.0+cpu")
    assert unmet(lock, [str(folder)]) == ["tritonparse is missing"]


def test_the_environment_of_these_tests_satisfies_the_lock():
    """What the tests pass with is what a newcomer gets."""
    assert check(Path(sys.executable), environment.REPO / "requirements.lock") == []


def test_an_interpreter_that_does_not_start(tmp_path):
    broken = tmp_path / "python"
    assert "it does not start" in check(broken, lock_file(tmp_path))[0]
    broken.write_text("#!/bin/sh\necho no such library >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    assert check(broken, lock_file(tmp_path)) == ["no such library"]


def wheel(folder: Path, name: str, version: str) -> None:
    """A package that holds its version, as an installable file."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)


def test_made_once_then_completed_then_repaired(tmp_path, monkeypatch):
    """One environment through its life: made, used, brought to a new lock, and made anew after a kill."""
    for version in ("1.0", "2.0"):
        wheel(tmp_path / "wheels", "saber_toy", version)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", (tmp_path / "wheels").as_uri())
    monkeypatch.setattr(environment, "link", lambda python, repo, log=None: None)  # needs the build backend
    checkout = tmp_path / "check out é"
    checkout.mkdir()
    said: list[str] = []

    def ready(lock: Path) -> str:
        said.clear()
        python = ensure(tmp_path / "outputs", lock, said.append, checkout)
        assert python == checkout / ".venv" / "bin" / "python"
        return subprocess.run(
            [python, "-c", "import saber_toy as t; print(t.VERSION)"], capture_output=True, text=True
        ).stdout

    lock = lock_file(tmp_path, "saber-toy==1.0")
    assert ready(lock) == "1.0\n" and "making the environment" in said[0]
    assert ready(lock) == "1.0\n" and said == []

    lock = lock_file(tmp_path, "saber-toy==2.0")
    assert ready(lock) == "2.0\n" and "bringing the environment" in said[0]

    (checkout / ".venv" / UNFINISHED).touch()
    (checkout / ".venv" / "leftover").touch()
    assert ready(lock) == "2.0\n" and "making the environment" in said[0]
    assert not (checkout / ".venv" / "leftover").exists()

    with pytest.raises(SystemExit) as failed:
        ready(lock_file(tmp_path, "saber-toy==3.0"))
    assert "saber-toy==3.0" in str(failed.value) and "saber-install.log" in str(failed.value)
    assert ready(lock_file(tmp_path, "saber-toy==2.0")) == "2.0\n" and said == [], (
        "a failure must not cost the environment"
    )
    assert {path.name for path in checkout.iterdir()} == {".venv"}


def test_an_active_environment_that_satisfies_the_lock_is_used(tmp_path, monkeypatch):
    said: list[str] = []
    active = tmp_path / "mine" / "bin"
    active.mkdir(parents=True)
    (active / "python").symlink_to(sys.executable)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "mine"))
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    assert ensure(tmp_path, lock_file(tmp_path), said.append, tmp_path) == active / "python" and said == []


def test_one_that_does_not_is_left_alone_and_named(tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setattr(environment, "NAMES", ())
    asked = {tmp_path / "conda" / "bin" / "python": ["a is missing", "b is missing", "c is missing"]}
    monkeypatch.setattr(environment, "check", lambda python, lock: asked.get(python, []))
    monkeypatch.setattr(environment, "_finished", lambda folder: True)
    python = ensure(tmp_path, lock_file(tmp_path), said.append, tmp_path)
    assert python == tmp_path / ".venv" / "bin" / "python"
    assert said == [
        "the active environment does not satisfy requirements.lock: a is missing; b is missing and 1 more"
    ]


def test_a_read_only_checkout_gets_its_environment_beside_the_outputs(tmp_path, monkeypatch):
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(environment, "NAMES", ())
    monkeypatch.setattr(environment.os, "access", lambda path, mode: False)
    made: list[Path] = []
    monkeypatch.setattr(environment, "install", lambda folder, lock, say, repo: made.append(folder))
    monkeypatch.setattr(environment, "check", lambda python, lock: [])
    monkeypatch.setattr(environment, "_finished", lambda folder: folder in made)
    python = ensure(tmp_path / "outputs", lock_file(tmp_path), print, tmp_path / "checkout")
    assert made == [tmp_path / "outputs" / ".venv"] and python == made[0] / "bin" / "python"


def test_no_python_to_build_with_is_a_clear_error(monkeypatch):
    monkeypatch.setattr(environment.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"no Python 3\.11 or newer"):
        environment.builder()


@pytest.mark.parametrize(
    ("found", "place", "said", "installed"),
    [
        ("", "conda", "installing saber", True),
        ("here", "conda", None, False),
        ("elsewhere", "conda", "saber is the one of elsewhere", False),
        ("elsewhere", "here/.venv", "installing saber", True),
        ("elsewhere", "out/.venv", "installing saber", True),
        ("elsewhere", "other/.venv", "saber is the one of elsewhere", False),
    ],
)
def test_the_link_to_the_checkout(tmp_path, monkeypatch, found, place, said, installed):
    """It is made where there is none or the environment is ours; a user's link to another checkout stays."""
    repo = tmp_path / "here"
    links: list[Path] = []
    monkeypatch.setattr(environment, "linked", lambda python: str(repo) if found == "here" else found)
    monkeypatch.setattr(environment, "link", lambda python, repo: links.append(python))
    words: list[str] = []
    environment.offer_link(tmp_path / place / "bin" / "python", tmp_path / "out", words.append, repo)
    assert bool(links) == installed
    assert words == [] if said is None else said in words[0]


def test_linked_names_the_checkout_of_these_tests():
    assert environment.linked(Path(sys.executable)) == str(environment.REPO)
