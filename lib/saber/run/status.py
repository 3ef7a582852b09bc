"""Which notebooks are up to date, and why the others are not: Snakemake's question, answered in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saber.run.collection import Notebook
from saber.run.provenance import differences
from saber.run.records import RunRecord, read_json


@dataclass(frozen=True)
class Status:
    """A notebook, why it would run (empty when it is up to date), and its last run."""

    notebook: Notebook
    reason: str
    record: RunRecord


def state_file(folder: Path, number: str) -> Path:
    """Dependency record of a notebook in a profile's outputs folder."""
    return folder / "state" / f"{number}.json"


def record_file(folder: Path, number: str) -> Path:
    """Run record of a notebook in a profile's outputs folder."""
    return folder / "state" / f"{number}.run.json"


def statuses(folder: Path, notebooks: Sequence[Notebook], records: dict[str, dict]) -> dict[str, Status]:
    """Notebook number -> status, for the outputs in ``folder`` and the dependency records of now."""
    result: dict[str, Status] = {}
    for notebook in notebooks:
        old = read_json(state_file(folder, notebook.number))
        changes = differences(old, records[notebook.number])
        record = RunRecord.read(record_file(folder, notebook.number))
        reason = _reason(folder, notebook, changes, record, result)
        result[notebook.number] = Status(notebook, reason, record)
    return result


def _reason(folder: Path, notebook: Notebook, changes: list[str], record: RunRecord, others: dict) -> str:
    missing = [name for name in notebook.outputs if not (folder / name).exists()]
    if record.alive and missing:
        return f"it is running now, code cell {record.cell} of {record.cells}"
    if record.status == "failed" and missing:
        return f"the last run failed in code cell {record.cell} of {record.cells}: {record.error}"
    if record.status in {"running", "interrupted"} and missing:
        return f"the last run was interrupted in code cell {record.cell} of {record.cells}"
    if notebook.executed in missing:
        return "it has never run"
    if missing:
        return f"{missing[0]} is missing"
    if changes:
        more = f" and {len(changes) - 2} more" if len(changes) > 2 else ""
        return f"changed: {'; '.join(changes[:2])}{more}"
    first = [number for number in notebook.needs if others[number].reason]
    if first:
        return f"{first[0]} runs first"
    # Other outputs may rightly be older: what is resumed and found unchanged is not written again.
    ran = (folder / notebook.executed).stat().st_mtime_ns
    if state_file(folder, notebook.number).stat().st_mtime_ns > ran:
        return "what it depends on changed since its last run"
    for number in notebook.needs:
        if (folder / others[number].notebook.executed).stat().st_mtime_ns > ran:
            return f"{number} ran since its last run"
    for name in notebook.writes:
        if (folder / name).stat().st_mtime_ns > ran:
            return f"{name} was written since its last run, by hand?"
    return ""
