"""The command behind ``run_all.sh``: checks first, then --list, --dry-run, --test or a run."""

import errno
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from saber import machine
from saber.run.arguments import parse, profile_files
from saber.run.checks import run_checks
from saber.run.collection import ProblemsError, load_collection
from saber.run.engine import OFFLINE_PROFILES, BusyError, environment, run_notebooks
from saber.run.params import check_profile, edited_defaults, load_profile
from saber.run.progress import duration
from saber.run.provenance import dependencies
from saber.run.status import Status, statuses


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code (see ``--help``)."""
    options = parse(sys.argv[1:] if words is None else words)
    if options.test:
        return run_checks(options.extra)
    try:
        return _run(options)
    except (ProblemsError, BusyError) as error:
        print(f"run_all.sh: nothing was run\n{error}", file=sys.stderr)
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
        print(f"run_all.sh: {error}; choose a folder you may write to with --outputs DIR", file=sys.stderr)
    return 2


def _run(options: Namespace) -> int:
    notebooks = load_collection(options.notebooks)
    values = load_profile(options.profile, options.params)
    check_profile(values, notebooks)
    for note in edited_defaults(values, notebooks):
        print(f"note: {note}")
    folder = options.outputs / options.profile
    records = {notebook.number: dependencies(notebook, values, options.params) for notebook in notebooks}
    states = statuses(folder, notebooks, records)
    if options.list:
        return _list(folder, states)

    selected = options.selected or list(states)
    chosen = _with_needs(selected, states)
    waiting = [n for n in chosen if states[n].reason or (options.force and n in selected)]
    print(f"profile {options.profile}: {len(waiting)} of {len(states)} notebooks to run; outputs in {folder}")
    if options.dry_run:
        for number in waiting:
            print(f"{states[number].notebook.name}: {states[number].reason or 'forced'}")
        return 0
    if not waiting and not options.extra:
        print("nothing to do: every selected notebook is up to date")
        return 0
    cores = machine.cores()
    jobs = options.jobs or (min(2, cores) if options.profile in OFFLINE_PROFILES else 1)
    env = environment(options.profile, options.outputs, jobs, cores)
    file = profile_files(options.params)[options.profile]
    records = {number: records[number] for number in chosen}
    return run_notebooks(folder, notebooks, records, file, selected, waiting, jobs, env, options.extra)


def _list(folder: Path, states: dict[str, Status]) -> int:
    for state in states.values():
        done = state.record.status == "done"
        fresh = f"up to date, ran in {duration(state.record.seconds)}" if done else "up to date"
        print(f"{state.notebook.name}: {'would run: ' + state.reason if state.reason else fresh}")
        for name in state.notebook.outputs:
            print(f"    {name}{'' if (folder / name).exists() else ' (not yet)'}")
    print(f"\noutputs in {folder}")
    return 0


def _with_needs(selected: Sequence[str], states: dict[str, Status]) -> list[str]:
    """The selected numbers and those of the notebooks they need, directly or through others, in order."""
    chosen: set[str] = set()
    queue = list(selected)
    while queue:
        number = queue.pop()
        if number not in chosen:
            chosen.add(number)
            queue += states[number].notebook.needs
    return sorted(chosen)
