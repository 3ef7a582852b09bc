"""What is remembered of a notebook's last run, in ``state/NN.run.json``, and how files are written."""

import json
import os
import socket
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self


def write_text(path: Path, text: str) -> None:
    """Write a file at once or not at all: a kill at any moment leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    os.replace(partial, path)


def write_json(path: Path, value: object) -> None:
    """Write indented JSON, sorted by key, atomically."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict:
    """The mapping in a JSON file; empty when the file is missing or damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class RunRecord:
    """The last run of one notebook.

    ``status``: running, done, failed or interrupted. ``cell`` of ``cells`` counts code cells from 1.
    ``seconds`` since its start; ``before``: those of the last complete run, 0 if there was none.
    """

    status: str = ""
    cell: int = 0
    cells: int = 0
    line: str = ""  # first line of the cell
    note: str = ""  # last line that the cell printed
    error: str = ""
    seconds: float = 0.0
    before: float = 0.0
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The record in a file; an empty one (``status == ""``) when there is none."""
        known = {name: value for name, value in read_json(path).items() if name in cls.__dataclass_fields__}
        return cls(**known)

    def write(self, path: Path) -> None:
        write_json(path, asdict(self))

    def update(self, **changes: object) -> Self:
        return replace(self, **changes)

    @property
    def alive(self) -> bool:
        """Whether the run is still going on; a process of another host is taken to be."""
        if self.status != "running":
            return False
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
