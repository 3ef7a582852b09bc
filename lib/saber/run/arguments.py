"""The words of the command line, checked before anything is installed (standard library only).

``python -m saber.run.arguments WORDS`` ends with exit code 2 and a message when a word is wrong; otherwise it
prints the outputs folder, where ``run_all.sh`` makes the environment if the checkout is read-only.
"""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from saber.paths import REPO

NOTEBOOK_NAME = re.compile(
    r"(\d\d)_[a-z0-9_]+"
)  # scratch copies such as 04_saber_main-Copy1.ipynb are not ours

EXAMPLES = """\
examples:
  ./run_all.sh                          the whole paper in miniature (profile demo)
  ./run_all.sh --list                   what exists, what is up to date, what would run and why
  ./run_all.sh --profile laptop --only 04
  ./run_all.sh --from 04 --force        everything from notebook 04 on, once more
  ./run_all.sh --test                   lint and the whole test suite
  ./run_all.sh --test -- tests/metrics  words after -- go to pytest (or, in a run, to Snakemake)

A run that was stopped, at any moment, is resumed by the same command. Exit codes: 0 all is up to date, 1 a
notebook or a test failed, 2 a wrong word, parameter or notebook (nothing was run), 130 stopped by Ctrl-C."""


def suggestion(word: str, valid: Iterable[str]) -> str:
    """``" (did you mean 'demo'?); valid: demo, laptop"``: the end of a message about an unknown word."""
    names = sorted(valid)
    close = difflib.get_close_matches(word, names, n=1)
    return (f" (did you mean '{close[0]}'?)" if close else "") + f"; valid: {', '.join(names) or 'none'}"


def profile_files(params: Path) -> dict[str, Path]:
    """Profile name -> file: the YAML files with a top-level ``profile`` key; the others are registries."""
    return {
        path.stem: path
        for path in sorted(params.glob("*.yaml"))
        if re.search(r"^profile\s*:", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def notebook_files(notebooks: Path) -> dict[str, Path]:
    """Notebook number, such as ``"04"`` -> file, in order; two files of one number raise ``ValueError``."""
    found: dict[str, Path] = {}
    for path in sorted(notebooks.glob("*.ipynb")):
        if match := NOTEBOOK_NAME.fullmatch(path.stem):
            if match[1] in found:
                names = f"{found[match[1]].name} and {path.name}"
                raise ValueError(f"two notebooks have the number {match[1]}: {names}; rename one")
            found[match[1]] = path
    return found


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        known = [action for action in self._actions if action.help != argparse.SUPPRESS]
        words = [name for action in known for name in action.option_strings if name.startswith("--")]
        if match := re.fullmatch(r"unrecognized arguments: (\S+).*", message):
            message = f"unknown word {match[1]!r}{suggestion(match[1], words)}"
        self.exit(2, f"run_all.sh: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="run_all.sh",
        description="Run the notebooks of a profile end to end; what is up to date is left alone.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--profile", default="demo", metavar="NAME", help="which params/NAME.yaml (default: demo)"
    )
    parser.add_argument("--only", metavar="04,07", help="these notebooks, and those they need if out of date")
    parser.add_argument(
        "--from", dest="start", metavar="04", help="this notebook and all with a higher number"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="notebooks at a time (default: 2 if cores allow)"
    )
    parser.add_argument("--force", action="store_true", help="run the selected notebooks even if up to date")
    parser.add_argument("--list", action="store_true", help="state, outputs and minutes of each notebook")
    parser.add_argument("--dry-run", action="store_true", help="say what would run, and why; run nothing")
    parser.add_argument("--test", action="store_true", help="lint and tests instead of a run")
    parser.add_argument("--outputs", type=Path, metavar="DIR", help="where to write (default: outputs/)")
    parser.add_argument("--collection", type=Path, default=REPO, metavar="DIR", help=argparse.SUPPRESS)
    return parser


def _numbers(parser: argparse.ArgumentParser, option: str, words: str, valid: Sequence[str]) -> list[str]:
    chosen = [word.strip().zfill(2) for word in words.split(",") if word.strip()]
    for number in chosen:
        if number not in valid:
            parser.error(f"{option}: no notebook {number!r}{suggestion(number, valid)}")
    if not chosen:
        parser.error(f"{option} needs a notebook number; valid: {', '.join(valid)}")
    return chosen


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parsed and checked words; exits with code 2 and a message that names the valid ones.

    Adds to the options: ``selected``, the notebook numbers asked for (``None``: all); ``extra``, the words
    after ``--``; ``outputs``, absolute; ``notebooks`` and ``params``, the folders of the collection.
    """
    words, extra = list(words), []
    if "--" in words:
        cut = words.index("--")
        words, extra = words[:cut], words[cut + 1 :]
    parser = _parser()
    options = parser.parse_args(words)
    options.extra = extra
    options.notebooks, options.params = options.collection / "notebooks", options.collection / "params"
    outputs = options.outputs or os.environ.get("SABER_OUTPUTS") or options.collection / "outputs"
    options.outputs = Path(outputs).expanduser().resolve()

    profiles = profile_files(options.params)
    if options.profile not in profiles:
        parser.error(f"unknown profile {options.profile!r}{suggestion(options.profile, profiles)}")
    if options.jobs is not None and options.jobs < 1:
        parser.error(f"--jobs must be at least 1, not {options.jobs}")
    if options.only and options.start:
        parser.error("--only and --from exclude each other")
    if options.test and (options.only or options.start or options.list or options.dry_run or options.force):
        parser.error("--test stands alone; words after -- choose tests, as in --test -- tests/metrics")
    try:
        valid = list(notebook_files(options.notebooks))
    except ValueError as error:
        parser.error(str(error))
    options.selected = None
    if options.only:
        options.selected = sorted(set(_numbers(parser, "--only", options.only, valid)))
    if options.start:
        first = _numbers(parser, "--from", options.start, valid)
        if len(first) > 1:
            parser.error("--from takes one notebook number")
        options.selected = [number for number in valid if number >= first[0]]
    return options


if __name__ == "__main__":
    print(parse(sys.argv[1:]).outputs)
