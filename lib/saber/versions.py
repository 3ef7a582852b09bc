"""Versions for the last cell of a notebook: what these results were computed with."""

import platform
from importlib.metadata import version

import pandas as pd

import saber

PACKAGES = "torch transformers sentence-transformers open_clip_torch numpy scipy pandas pillow".split()


def versions() -> pd.DataFrame:
    """One row per package that can change a result: columns package, version."""
    rows = [("saber", saber.__version__), ("python", platform.python_version())]
    rows += [(name, version(name)) for name in PACKAGES]
    return pd.DataFrame(rows, columns=["package", "version"])
