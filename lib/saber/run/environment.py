"""Find or make the Python environment of ``requirements.lock`` (standard library and pip only).

Run as a file by ``run_all.sh``, before anything is installed: prints the interpreter to use. An active
virtual or conda environment that satisfies the lock is used as it is; otherwise ``.venv`` in the checkout (in
the outputs folder when the checkout cannot be written to), which is made, completed or repaired as needed.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
MINIMUM = (3, 11)
NAMES = ("python3.13", "python3.12", "python3.11", "python3", "python")
UNFINISHED = "saber-installing"  # in an environment whose installation has begun and not ended
BESIDE_TORCH = re.compile(r"(nvidia|cuda)-|triton$")  # builds of torch for other hardware come without


def unmet(lock: Path, folders: list[str] | None = None) -> list[str]:
    """Pins of the lock that this interpreter's packages do not satisfy, in words; about 0.1 s.

    ``folders`` are searched for installed packages, ``sys.path`` by default. A build of torch for other
    hardware, such as 2.14.1+cpu, satisfies its pin and may come without NVIDIA's packages.
    """
    try:
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name
    except ImportError:
        try:
            from pip._vendor.packaging.requirements import Requirement
            from pip._vendor.packaging.utils import canonicalize_name
        except ImportError:
            return ["it has neither packaging nor pip"]
    installed: dict[str, str] = {}
    for folder in reversed(sys.path if folders is None else folders):
        for entry in Path(folder or ".").glob("*.dist-info"):
            name, _, version = entry.name.removesuffix(".dist-info").rpartition("-")
            installed[canonicalize_name(name)] = version
    other_build = "+" in installed.get("torch", "")
    found = []
    for line in lock.read_text(encoding="utf-8").splitlines():
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text:
            continue
        pin = Requirement(text)
        name = canonicalize_name(pin.name)
        if (pin.marker and not pin.marker.evaluate()) or (other_build and BESIDE_TORCH.match(name)):
            continue
        if name not in installed:
            found.append(f"{name} is missing")
        elif not pin.specifier.contains(installed[name], prereleases=True):
            found.append(f"{name} is {installed[name]}, wanted {pin.specifier}")
    return found


def check(python: Path, lock: Path) -> list[str]:
    """:func:`unmet` of another interpreter; also when it cannot be started or is too old."""
    command = [str(python), "-I", __file__, "--unmet", str(lock)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"it does not start: {error}"]
    if result.returncode:
        return [_last(result.stderr) or "it does not start"]
    return result.stdout.split("\n")[:-1]


def active() -> list[Path]:
    """Interpreters of the active virtual and conda environments."""
    folders = [os.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    return [Path(folder) / "bin" / "python" for folder in folders if folder]


def builder() -> str:
    """A Python that can make an environment: new enough, and with ``ensurepip``; ends the command if none."""
    probe = f"import ensurepip, sys, venv; sys.exit(sys.version_info < {MINIMUM})"
    for name in (*NAMES, sys.executable):
        path = shutil.which(name)
        if path and subprocess.run([path, "-I", "-c", probe], capture_output=True).returncode == 0:
            return path
    raise SystemExit(
        "run_all.sh: no Python 3.11 or newer that can make a virtual environment was found.\n"
        "Install one (on Debian and Ubuntu also its package python3-venv), "
        "or activate the conda environment of environment.yml."
    )


def ensure(outputs: Path, lock: Path, say: Callable[[str], None], repo: Path = REPO) -> Path:
    """The interpreter to use; makes or repairs ``.venv`` if no environment satisfies the lock."""
    home = repo if os.access(repo, os.W_OK) else outputs
    folder = home / ".venv"
    python = folder / "bin" / "python"
    for other in active():
        problems = check(other, lock) if other != python else ["it is .venv itself"]
        if not problems:
            return other
        if other != python:
            more = f" and {len(problems) - 2} more" if len(problems) > 2 else ""
            say(f"the active environment does not satisfy {lock.name}: {'; '.join(problems[:2])}{more}")
    if _finished(folder) and not check(python, lock):
        return python
    for name in NAMES:  # an image whose own Python has everything
        found = shutil.which(name)
        if found and not check(Path(found), lock):
            return Path(found)
    home.mkdir(parents=True, exist_ok=True)
    with _alone(home, say):
        if not (_finished(folder) and not check(python, lock)):  # another run may just have made it
            install(folder, lock, say, repo)
    problems = check(python, lock)
    if problems:
        raise SystemExit(f"run_all.sh: {folder} is not as it should be: {'; '.join(problems[:5])}")
    return python


def install(folder: Path, lock: Path, say: Callable[[str], None], repo: Path = REPO) -> None:
    """Make an environment, or bring one up to date; one left half-installed by a kill is made anew."""
    python = folder / "bin" / "python"
    if not _finished(folder):
        say(f"making the environment {folder} (once; a few GB, mostly torch)")
        _call([builder(), "-m", "venv", "--clear", str(folder)], None)
    else:
        say(f"bringing the environment {folder} up to date with {lock.name}")
    mark, log = folder / UNFINISHED, folder / "saber-install.log"
    mark.touch()
    try:
        _call([*_pip(python), "-r", str(lock)], log, say)
        link(python, repo, log)
    finally:  # pip undoes what fails or is interrupted; only a kill leaves the mark
        mark.unlink()


def link(python: Path, repo: Path, log: Path | None = None) -> None:
    """Install saber itself as a link to the checkout; nothing is written into the checkout."""
    _call([*_pip(python), "--no-build-isolation", "-e", str(repo)], log)


def _pip(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-deps"]


def linked(python: Path) -> str:
    """The checkout whose saber an interpreter imports without help, as in JupyterLab by hand; "" if none."""
    code = "import importlib.util as u; s = u.find_spec('saber'); print(s.origin if s and s.origin else '')"
    result = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True)
    origin = result.stdout.strip()
    return str(Path(origin).resolve().parents[2]) if origin else ""


def offer_link(python: Path, outputs: Path, say: Callable[[str], None], repo: Path = REPO) -> None:
    """Link saber into an environment that has none, or into our own; one of the user's is not turned over."""
    found = linked(python)
    by_hand = f"JupyterLab by hand needs PYTHONPATH={repo / 'lib'}"
    ours = python.parents[1] in {repo / ".venv", outputs / ".venv"}
    if found == str(repo):
        return
    if found and not ours:
        say(f"note: in this environment saber is the one of {found}; the run uses this checkout; {by_hand}")
        return
    say("installing saber into the environment, as a link to this checkout")
    try:
        link(python, repo)
    except SystemExit as error:
        say(f"{error}\nnot possible; the run goes on; {by_hand}")


def _finished(folder: Path) -> bool:
    """Whether there is an environment with a working interpreter and no installation that was cut short."""
    if (folder / UNFINISHED).exists():
        return False
    try:
        return (
            subprocess.run([str(folder / "bin" / "python"), "-I", "-c", ""], capture_output=True).returncode
            == 0
        )
    except OSError:
        return False


def _call(command: list[str], log: Path | None, say: Callable[[str], None] | None = None) -> None:
    """Run a command, its output in ``log``, with a word now and then; its failure ends the command."""
    started = told = time.monotonic()
    seen = 0
    lines: list[str] = []
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
        log.open("a", encoding="utf-8") if log else contextlib.nullcontext() as file,
    ):
        for line in process.stdout:
            lines = [*lines[-19:], line.rstrip()]
            if file:
                file.write(line)
            seen += line.startswith("Collecting ")
            unpacking = line.startswith("Installing collected")
            if say and (unpacking or time.monotonic() - told > 15):
                told = time.monotonic()
                say(f"  {told - started:.0f} s: {seen} packages found" + ", unpacking them" * unpacking)
    if process.returncode:
        where = f"\nall of it: {log}" if log else ""
        raise SystemExit("\n".join(lines) + f"\nrun_all.sh: {' '.join(command[1:4])} failed{where}")


@contextlib.contextmanager
def _alone(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """One installation in a folder at a time; a second waits."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run that is making the environment")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _last(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""


def main(words: list[str]) -> None:
    if words[0] == "--unmet":
        sys.stdout.writelines(f"{problem}\n" for problem in unmet(Path(words[1])))
        return

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    outputs, lock = Path(words[0]), REPO / "requirements.lock"
    python = ensure(outputs, lock, say)
    offer_link(python, outputs, say)
    print(python)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        raise SystemExit("\nrun_all.sh: stopped; the same command goes on with the environment") from None
