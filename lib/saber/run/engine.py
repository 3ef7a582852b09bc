"""From a checked collection to a finished run: the plan, Snakemake, progress for people, and a clean stop."""

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from saber.paths import REPO
from saber.run.collection import Notebook
from saber.run.progress import Reporter
from saber.run.records import read_json, write_json, write_text
from saber.run.status import record_file, state_file

OFFLINE_PROFILES = {"demo", "smoke"}  # they download nothing; the others fetch models from the Hub
GRACE_SECONDS = 15


class BusyError(RuntimeError):
    """Another run is writing to the same outputs."""


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[int]:
    """Hold a profile's outputs for this run; the system lets go when the run ends, in whatever way.

    Yields the descriptor, which is handed on to Snakemake; raises :class:`BusyError` when another run holds
    it.
    """
    path = folder / "state" / "run.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip() or "unknown process"
            raise BusyError(
                f"another run ({who}) is writing to {folder}; wait for it or choose another --outputs"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}, started {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        file.flush()
        yield file.fileno()


def environment(profile: str, outputs: Path, jobs: int, cores: int) -> dict[str, str]:
    """Environment of the notebooks: this library, these outputs, a fair share of the cores, no chatter."""
    env = dict(os.environ)
    threads = str(max(1, cores // jobs))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        env.setdefault(name, threads)
    env.setdefault("OMP_WAIT_POLICY", "passive")
    env.setdefault("TQDM_DISABLE", "1")  # progress is told by cell; a bar would stay in the saved notebook
    env.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts; same sums at every run
    path = [str(REPO / "lib"), *filter(None, [os.environ.get("PYTHONPATH")])]
    env.update(
        SABER_OUTPUTS=str(outputs),
        PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        PYTHONPATH=os.pathsep.join(path),
        PYTHONNOUSERSITE="1",
        PYTHONUNBUFFERED="1",
        TOKENIZERS_PARALLELISM="false",
        HF_HUB_DISABLE_PROGRESS_BARS="1",
        HF_HUB_DISABLE_TELEMETRY="1",
    )
    if profile in OFFLINE_PROFILES:
        env["HF_HUB_OFFLINE"] = "1"
    if not os.access(Path.home(), os.W_OK):  # as in containers: caches of libraries go beside the outputs
        env["HOME"] = str(outputs / ".home")
        (outputs / ".home").mkdir(parents=True, exist_ok=True)
    return env


def write_plan(folder: Path, notebooks: Sequence[Notebook], profile_file: Path) -> Path:
    """The Snakefile's configuration, and for each notebook the words for ``execute``, one a line."""
    for notebook in notebooks:
        record = record_file(folder, notebook.number).relative_to(folder)
        words = [str(notebook.path.resolve()), notebook.executed, "--params", str(profile_file.resolve())]
        words += ["--record", str(record), *(["--expect", *notebook.writes] if notebook.writes else [])]
        write_text(folder / "state" / f"{notebook.number}.args", "\n".join(words) + "\n")
    path = folder / "state" / "plan.json"
    keys = ("number", "name", "needs", "executed")
    write_json(path, {"notebooks": [{key: getattr(notebook, key) for key in keys} for notebook in notebooks]})
    return path


def run_notebooks(
    folder: Path,
    notebooks: Sequence[Notebook],
    records: dict[str, dict],
    profile_file: Path,
    selected: Sequence[str],
    waiting: Sequence[str],
    jobs: int,
    env: dict[str, str],
    extra: Sequence[str] = (),
) -> int:
    """Bring the selected notebooks up to date with Snakemake; returns the exit code of the command.

    ``folder`` is the profile's outputs folder, ``records`` are the dependency records of the selected
    notebooks and those they need, ``waiting`` the numbers that are known to be out of date, or forced.
    """
    executed = {notebook.number: notebook.executed for notebook in notebooks}
    with exclusive(folder) as lock, tempfile.TemporaryDirectory(prefix="saber-") as sources:
        for number, record in records.items():
            if read_json(state_file(folder, number)) != record:
                write_json(state_file(folder, number), record)
        places = {
            "--snakefile": REPO / "Snakefile",
            "--directory": folder,
            "--configfile": write_plan(folder, notebooks, profile_file),
            "--runtime-source-cache-path": sources,  # one that is kept would hide changes of the Snakefile
        }
        command = [sys.executable, "-m", "snakemake", *(executed[number] for number in selected)]
        command += [str(word) for pair in places.items() for word in pair]
        command += ["--cores", str(jobs), "--keep-going", "--nolock", "--scheduler", "greedy"]
        command += ["--rerun-triggers", "mtime", "--rerun-incomplete"]
        command += ["--forcerun", *(f"notebook_{number}" for number in waiting)] if waiting else []
        command += extra
        log_path = folder / "logs" / "snakemake.log"
        log_path.parent.mkdir(parents=True, exist_ok=True)
        reporter = Reporter(folder, notebooks)
        with log_path.open("w", encoding="utf-8") as log, _stoppable() as stopped:
            process = subprocess.Popen(
                command, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
                start_new_session=True, pass_fds=[lock], preexec_fn=_die_with_parent,
            )  # fmt: skip
            while process.poll() is None and not stopped:
                reporter.look()
                time.sleep(0.2)
            if stopped:
                _stop(process)
        reporter.look()
        if stopped:
            print("\nstopped; the same command goes on where this run was", flush=True)
            return 128 + stopped[0]
        return reporter.conclude(process.returncode, log_path)


@contextlib.contextmanager
def _stoppable() -> Iterator[list[int]]:
    """Collect the first signal that asks for an end instead of dying of it."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    old = {number: signal.signal(number, lambda number, _: received.append(number)) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _stop(process: subprocess.Popen) -> None:
    """Ctrl-C for Snakemake and its notebooks; after a while, force."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
            return


def _die_with_parent() -> None:
    """On Linux, Snakemake dies with the command that started it, and the notebooks end with Snakemake."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG
