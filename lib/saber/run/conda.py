"""``python -m saber.run.conda`` writes ``environment.yml`` from ``requirements.lock``."""

from collections.abc import Sequence

from saber.paths import REPO
from saber.run.provenance import LOCK, pins
from saber.run.records import write_text

HEAD = """\
# The pins of requirements.lock for conda, written by: python -m saber.run.conda
#   conda env create -f environment.yml && conda activate saber && ./run_all.sh
name: saber
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def conda_environment(requirements: Sequence[str]) -> str:
    """Text of an ``environment.yml`` in which pip installs the given requirement lines."""
    quoted = (f'"{line}"' if ";" in line else line for line in requirements)
    return HEAD + "".join(f"      - {line}\n" for line in quoted)


if __name__ == "__main__":
    write_text(REPO / "environment.yml", conda_environment(pins(LOCK)))
