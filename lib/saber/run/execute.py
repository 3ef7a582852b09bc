"""Execute one notebook with papermill, in a kernel of this interpreter.

By hand: ``python -m saber.run.execute notebooks/04_saber_main.ipynb out.ipynb --params params/demo.yaml``.
The kernel is always this interpreter, whatever kernels and start-up files the user has installed. It is
reached over sockets in a private folder, so that no two runs can want the same port. The executed notebook
appears under its final name only when every cell has run; on failure the cells so far, with the traceback,
stand beside it as ``NAME.failed.ipynb``.
"""

import argparse
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import psutil

from saber.run.collection import ProblemsError, read_notebook
from saber.run.params import load_profile
from saber.run.records import RunRecord

BEAT_SECONDS = 2.0  # how often the record of a running cell is renewed, and the parent process looked for
SOCKET_PATH_LIMIT = 90  # Unix sockets have short names


class Progress:
    """Keeps the run record (and the log) of one notebook up to date while its cells run."""

    def __init__(self, path: Path | None, cells: int):
        self.path = path
        self.started = time.monotonic()
        last = RunRecord.read(path) if path else RunRecord()
        before = last.seconds if last.status == "done" else last.before
        self.record = RunRecord(status="running", cells=cells, before=before)
        self.running_cell: dict | None = None
        self.lock = threading.RLock()  # a signal may come while this thread holds it
        self.set()

    def set(self, **changes: object) -> None:
        with self.lock:
            self.record = self.record.update(seconds=round(time.monotonic() - self.started, 2), **changes)
            if self.path:
                self.record.write(self.path)

    def cell_starts(self, cell: dict, **_: object) -> None:
        """Hook of nbclient, called before each code cell; the cell that papermill injects is not counted."""
        if "injected-parameters" in cell.metadata.get("tags", []):
            return
        self.running_cell = cell
        self.set(cell=self.record.cell + 1, line=first_line(cell.source), note="")
        print(
            f"{self.record.seconds:7.1f} s  cell {self.record.cell}/{self.record.cells}  {self.record.line}",
            flush=True,
        )

    def beat(self) -> None:
        self.set(note=last_words(self.running_cell.get("outputs", [])) if self.running_cell else "")


def first_line(source: str) -> str:
    """The first line of a cell that says something."""
    lines = [
        line.strip()
        for line in source.splitlines()
        if line.strip() and not line.strip().startswith(("#", "%"))
    ]
    return lines[0][:100] if lines else ""


def last_words(outputs: Sequence[dict]) -> str:
    """The last line that a cell has printed so far, such as a progress bar."""
    for output in reversed(outputs):
        if output.get("output_type") == "stream" and output["text"].strip():
            return re.split(r"[\r\n]", output["text"].strip())[-1][-100:]
    return ""


def private_folder() -> Path:
    """A new folder for sockets and kernel files, with a short name."""
    folder = Path(tempfile.mkdtemp(prefix="saber-"))
    if len(str(folder)) > SOCKET_PATH_LIMIT:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="saber-", dir="/tmp"))
    return folder


def kill_kernel() -> None:
    """End all processes below this one at once."""
    for process in psutil.Process().children(recursive=True):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def run(
    notebook: Path, out: Path, values: dict, record: Path | None = None, expected: Sequence[Path] = ()
) -> int:
    """Execute a notebook; 0 when all cells ran and all ``expected`` files exist, 1 otherwise."""
    source = read_notebook(notebook)
    if lacking := sorted(set(source.parameters) - set(values)):
        raise ProblemsError([f"{name} is missing, {source.name} declares it" for name in lacking])
    # Only cells with something in them are executed.
    cells = sum(kind == "code" and bool(text.strip()) for kind, text in source.cells)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial, failed = (out.with_name(f"{out.stem}.{word}.ipynb") for word in ("partial", "failed"))
    for leftover in (out, partial, failed):
        leftover.unlink(missing_ok=True)

    folder = private_folder()
    progress = Progress(record, cells)
    parent = os.getppid()

    def stop(reason: str, code: int) -> NoReturn:
        """End at once; called by signals, and when the process that started this one is gone."""
        kill_kernel()
        progress.set(status="interrupted", error=reason)
        shutil.rmtree(folder, ignore_errors=True)
        print(f"stopped: {reason}", flush=True)
        os._exit(code)

    def watch() -> None:
        while progress.record.status == "running":
            time.sleep(BEAT_SECONDS)
            if os.getppid() != parent:
                stop("the run that started this notebook was killed", 1)
            if progress.record.status == "running":
                progress.beat()

    signal.signal(signal.SIGINT, lambda *_: stop("interrupted", 130))
    signal.signal(signal.SIGTERM, lambda *_: stop("terminated", 143))
    threading.Thread(target=watch, daemon=True).start()
    try:
        _execute(notebook, partial, {name: values[name] for name in source.parameters}, folder, progress)
        missing = [str(path) for path in expected if not path.exists()]
        if missing:
            raise FileNotFoundError(
                f"{notebook.name} ran but did not write {', '.join(missing)}, which its metadata promise"
            )
    except Exception as error:  # whatever ends a notebook, the cells so far are kept and the record says so
        summary = failure(error)
        if partial.exists():
            os.replace(partial, failed)
        progress.set(status="failed", error=summary)
        print(f"\nfailed in code cell {progress.record.cell} of {cells}: {progress.record.line}\n")
        print(
            _plain(str(error)) if hasattr(error, "evalue") else traceback.format_exc(),
            flush=True,
        )
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    os.replace(partial, out)
    progress.set(status="done", note="")
    print(f"{progress.record.seconds:7.1f} s  done", flush=True)
    return 0


def failure(error: Exception) -> str:
    """One line that says what went wrong."""
    if hasattr(error, "evalue"):  # papermill's, about a cell
        text = f"{error.ename}: {error.evalue}"
    elif type(error).__name__ == "DeadKernelError":
        text = "the kernel died (often: out of memory)"
    else:
        text = f"{type(error).__name__}: {error}"
    return _plain(text).strip().splitlines()[0][:300]


def _execute(notebook: Path, partial: Path, values: dict, folder: Path, progress: Progress) -> None:
    """papermill, with a kernel of this interpreter whose settings, history and sockets lie in ``folder``."""
    # jsonschema would compile a grammar for web addresses, which takes seconds and no notebook needs.
    sys.modules.setdefault("rfc3987_syntax", None)
    import nbformat
    import papermill
    from ipykernel.kernelspec import write_kernel_spec
    from traitlets.config import Config

    content = nbformat.read(notebook, as_version=4)
    write_kernel_spec(folder / "data" / "kernels" / "python3")
    os.environ.update(
        JUPYTER_PATH=str(folder / "data"), JUPYTER_RUNTIME_DIR=str(folder), IPYTHONDIR=str(folder / "ipython")
    )
    logging.getLogger("papermill").setLevel(logging.WARNING)
    os.chdir(partial.parent)  # papermill expands {} in path names; a bare file name has none
    executed = papermill.execute_notebook(
        content,
        partial.name,
        parameters=values,
        kernel_name="python3",
        progress_bar=False,
        autosave_cell_every=10,
        on_cell_execute=progress.cell_starts,
        config=Config(KernelManager={"transport": "ipc", "ip": str(folder / "k")}),
    )
    left = [cell for cell in executed.cells if cell.cell_type == "code" and cell.source.strip()]
    if any(cell.execution_count is None for cell in left):
        raise RuntimeError("a cell ended the notebook before its last cell (exit() or SystemExit)")


def _plain(text: str) -> str:
    """Text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def main(words: Sequence[str] | None = None) -> int:
    description = __doc__.splitlines()[0]
    parser = argparse.ArgumentParser(
        "python -m saber.run.execute", None, description, fromfile_prefix_chars="@"
    )
    parser.add_argument("notebook", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--params", type=Path, required=True, help="a profile, such as params/demo.yaml")
    parser.add_argument("--record", type=Path, help="file that tells how far the run is")
    parser.add_argument("--expect", type=Path, nargs="*", default=[], help="files the notebook must write")
    options = parser.parse_args(words)
    absolute = [path.resolve() for path in (options.notebook, options.out)]
    record = options.record.resolve() if options.record else None
    try:
        values = load_profile(options.params.stem, options.params.resolve().parent)
        return run(*absolute, values, record, [path.resolve() for path in options.expect])
    except ProblemsError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
