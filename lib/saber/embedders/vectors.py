"""The last step of every adapter, checked unit vectors, and the first, the fingerprint."""

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from saber.embedders.content import Content, ItemError
from saber.files import file_digest


def unit_rows(vectors: np.ndarray, contents: Sequence[Content]) -> np.ndarray:
    """Rows ``(n, dim)`` divided by their norms, float32.

    Raises ItemError for rows with NaN or Inf and for zero vectors: a cosine with them means nothing.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(contents):
        raise ValueError(f"{len(contents)} contents gave an array of shape {vectors.shape}")
    norms = np.sqrt(np.square(vectors).sum(axis=1))
    failures = []
    for row in np.flatnonzero(~(np.isfinite(norms) & (norms > 0))):
        what = "a zero vector" if norms[row] == 0 else "a vector with NaN or Inf"
        failures.append((int(row), contents[row], f"the model returned {what}"))
    if failures:
        raise ItemError(failures)
    return (vectors / norms[:, None]).astype(np.float32)


def fingerprint(identity: dict) -> str:
    """SHA-256 (64 hex digits) of the facts in ``identity``, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def major_versions(*packages: str) -> dict[str, str]:
    """``{"torch": "2", ...}``: the first number of each installed version, without importing anything."""
    return {package: version(package).split(".")[0] for package in packages}


_COUNTED = (".json", ".txt", ".jinja", ".model", ".safetensors", ".bin", ".pt", ".py")


def folder_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of the files of a model folder that can change a vector, by path relative to the folder.

    Read-me files, licences and hidden files are not among them.
    """
    folder = Path(folder)
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix in _COUNTED
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}
