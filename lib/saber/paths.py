"""The one place that builds paths.

Everything generated lies below ``outputs/<profile>/``. The environment variable ``SABER_OUTPUTS`` moves that
root elsewhere (``run_all.sh --outputs DIR`` sets it), so that a read-only checkout can be run.
"""

import os
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
NOTEBOOKS = REPO / "notebooks"
PARAMS = REPO / "params"


def outputs_dir(profile: str) -> Path:
    """Folder of everything a profile generates: ``$SABER_OUTPUTS/<profile>`` or ``outputs/<profile>``."""
    if not profile or Path(profile).name != profile:
        raise ValueError(f"profile must be a plain name such as 'demo', not {profile!r}")
    return Path(os.environ.get("SABER_OUTPUTS") or REPO / "outputs").resolve() / profile


def executed_dir(profile: str) -> Path:
    """Executed notebooks of a profile."""
    return outputs_dir(profile) / "notebooks"


def saber_dir(profile: str) -> Path:
    """The SABER benchmark of a profile: ``questions.jsonl``, ``items.jsonl`` and ``images/``."""
    return outputs_dir(profile) / "data" / "saber"


def embeddings_dir(profile: str) -> Path:
    """Embedding store of a profile."""
    return outputs_dir(profile) / "embeddings"


def models_dir(profile: str) -> Path:
    """Models that the profile's notebooks make, one folder each."""
    return outputs_dir(profile) / "models"


def numbers_dir(profile: str) -> Path:
    """One CSV per table, merged into ``numbers.csv`` by the report."""
    return outputs_dir(profile) / "numbers"


def tables_dir(profile: str) -> Path:
    """``table_NN.csv``, ``.md`` and ``.tex``."""
    return outputs_dir(profile) / "tables"


def figures_dir(profile: str) -> Path:
    """``figure_NN.pdf`` and ``.png``."""
    return outputs_dir(profile) / "figures"
