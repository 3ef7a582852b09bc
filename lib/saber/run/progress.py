"""Progress as plain lines: which notebook, how far, how long.

A line when a notebook starts or ends, and in between one every 30 s.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from saber.run.collection import Notebook
from saber.run.records import RunRecord
from saber.run.status import record_file

QUIET_SECONDS = 30.0


def duration(seconds: float) -> str:
    """``"42 s"``, ``"2 min 05 s"``, ``"1 h 12 min"``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Reporter:
    """Watches the run records in ``<folder>/state`` and prints what changed in them since the last look."""

    def __init__(self, folder: Path, notebooks: Sequence[Notebook]):
        self.folder = folder
        self.names = {notebook.number: notebook.name for notebook in notebooks}
        self.width = max(map(len, self.names.values()))
        self.started = time.monotonic()
        self.old = {number: self._stamp(number) for number in self.names}
        self.said: dict[str, tuple[str, float]] = {}  # number -> (status, when) of the last line
        self.ran: dict[str, RunRecord] = {}

    def _stamp(self, number: str) -> int:
        path = record_file(self.folder, number)
        return path.stat().st_mtime_ns if path.exists() else 0

    def look(self) -> None:
        """Print a line for each notebook that started, ended, or has been silent for a while."""
        for number in self.names:
            if self._stamp(number) == self.old[number]:
                continue  # not of this run
            record = RunRecord.read(record_file(self.folder, number))
            if not record.status:
                continue
            self.ran[number] = record
            status, when = self.said.get(number, ("", 0.0))
            if record.status != status or (
                record.status == "running" and time.monotonic() - when >= QUIET_SECONDS
            ):
                self.said[number] = (record.status, time.monotonic())
                self._say(number, self._words(record))

    def _words(self, record: RunRecord) -> str:
        if record.status == "done":
            return f"done in {duration(record.seconds)}"
        if record.status == "failed":
            return f"FAILED after {duration(record.seconds)} in code cell {record.cell} of {record.cells}"
        if record.status == "interrupted":
            return f"stopped in code cell {record.cell} of {record.cells}"
        if record.cell == 0:
            return "starts" + (f" (last time {duration(record.before)})" if record.before else "")
        last = f", last time {duration(record.before)} in all" if record.before else ""
        doing = record.note or record.line
        return f"cell {record.cell} of {record.cells}, {duration(record.seconds)}{last}: {doing}"

    def _say(self, number: str, words: str) -> None:
        clock = int(time.monotonic() - self.started)
        print(f"[{clock // 60:02d}:{clock % 60:02d}] {self.names[number]:<{self.width}}  {words}", flush=True)

    def conclude(self, code: int, log: Path) -> int:
        """Say what failed and where to look; returns the exit code: 0, or 1 when something failed."""
        failed = [number for number, record in self.ran.items() if record.status in {"failed", "running"}]
        done = [number for number, record in self.ran.items() if record.status == "done"]
        for number in failed:
            record, name = self.ran[number], self.names[number]
            what = record.error or "it ended without a word (killed, or out of memory)"
            print(f"\n{name} failed in code cell {record.cell} of {record.cells}: {record.line}\n  {what}")
            kept = self.folder / "notebooks" / f"{name}.failed.ipynb"
            if kept.exists():
                print(f"  the cells so far, with the traceback: {kept}")
            print(f"  log: {self.folder / 'logs' / (name + '.log')}")
        if code and not failed:
            print(f"\nSnakemake ended with exit code {code}; its log: {log}")
            print("  " + "\n  ".join(log.read_text(encoding="utf-8").strip().splitlines()[-8:]))
        took = duration(time.monotonic() - self.started)
        if not code and not done:
            print(f"nothing to do: every selected notebook is up to date ({took})")
        else:
            print(f"\n{len(done)} ran, {len(failed)} failed in {took}; outputs in {self.folder}", flush=True)
        return 1 if code else 0
