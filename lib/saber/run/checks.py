"""``run_all.sh --test``: lint, formatting and the test suite; nothing is written to the checkout."""

import os
import subprocess
import sys
from collections.abc import Sequence

from saber.paths import REPO

LINTED = ("lib", "tests", "notebooks", "benchmarks")


def run_checks(words: Sequence[str] = ()) -> int:
    """Run them all, whatever fails; 0 if all passed. ``words`` choose tests, as on pytest's command line."""
    env = {**os.environ, "PYTHONNOUSERSITE": "1", "MPLBACKEND": "agg", "TOKENIZERS_PARALLELISM": "false"}
    folders = [folder for folder in LINTED if (REPO / folder).exists()]
    ruff = [sys.executable, "-m", "ruff"]
    commands = {
        "lint": [*ruff, "check", "--no-cache", *folders],
        "format": [*ruff, "format", "--check", "--no-cache", *folders],
        "tests": [sys.executable, "-m", "pytest", *words],
    }
    failed = []
    for name, command in commands.items():
        print(f"{name}: {' '.join(command[1:])}", flush=True)
        if subprocess.run(command, cwd=REPO, env=env).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr, flush=True)
    return 1 if failed else 0
