"""What a notebook's results depend on, as a small readable record.

The record of notebook NN is written to ``state/NN.json`` only when its content changes, and is an input of
the notebook's rule in the Snakefile. Snakemake's comparison of file times then reruns exactly what depends on
a change: touching a file, a commit, a comment or a docstring rerun nothing.
"""

import ast
import hashlib
import json
import platform
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import yaml

from saber.paths import REPO
from saber.run.arguments import profile_files
from saber.run.collection import Notebook
from saber.run.imports import closure, data_files

LIBRARY = REPO / "lib"
LOCK = REPO / "requirements.lock"


def dependencies(
    notebook: Notebook, values: dict, params: Path, library: Path = LIBRARY, lock: Path = LOCK
) -> dict:
    """The record: kind of dependency -> name -> value or digest.

    ``values`` is the checked profile and ``params`` its folder, in which the registries lie too. Of a
    registry such as ``models.yaml`` the entries count that the notebook's parameter ``models`` chooses;
    without such a parameter all do if the notebook itself loads it.
    """
    modules = closure([source for kind, source in notebook.cells if kind == "code"], library)
    parameters = {name: values[name] for name in notebook.parameters}
    code = {path.relative_to(library).as_posix(): _code_digest(tree) for path, tree in modules.items()}
    data: dict[str, list[str]] = {}
    for path in data_files(modules, library):
        folder = path.parent.relative_to(library).as_posix() + "/"
        data.setdefault(folder, []).append(f"{path.name} {_file_digest(path)}")
    cells = "\n".join(source for kind, source in notebook.cells if kind == "code")
    profiles = set(profile_files(params).values())
    registries = {
        path.name: _registry(path, parameters.get(path.stem))
        for path in sorted(params.glob("*.yaml"))
        if path not in profiles
        and (path.stem in parameters or path.name in cells or "load_registry" in cells)
    }
    return {
        "notebook": {"cells": _digest(json.dumps(notebook.cells))},
        "parameter": parameters,
        "library": code,
        "data": {folder: _digest("\n".join(lines)) for folder, lines in data.items()},
        "registry": {
            f"{file}: {name}": digest
            for file, entries in registries.items()
            for name, digest in entries.items()
        },
        "environment": {
            "requirements.lock": _digest("\n".join(pins(lock))),
            "Python": ".".join(platform.python_version_tuple()[:2]),
        },
        "declared": {"needs": list(notebook.needs), "writes": list(notebook.writes)},
    }


def differences(old: dict, new: dict) -> list[str]:
    """What changed between two records, in words: ``"parameter saber_seed: 1 -> 2"``, ``"library
    saber/scenes.py"``."""
    found = []
    for kind in new:
        before, after = old.get(kind, {}), new[kind]
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                values = f": {before.get(name)!r} -> {after.get(name)!r}" if kind == "parameter" else ""
                found.append(f"{kind} {name}{values}")
    return found


def pins(lock: Path) -> list[str]:
    """The requirement lines of a lock file, without comments."""
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lock.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line]


def _registry(path: Path, chosen: object) -> dict[str, str]:
    """Entry -> digest of a registry; only the chosen entries where the notebook names them."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if isinstance(content, list):
        content = {str(entry.get("name", index)): entry for index, entry in enumerate(content)}
    names: Iterable = content
    if isinstance(chosen, list) and all(name in content for name in chosen):
        names = chosen
    return {str(name): _digest(json.dumps(content[name], sort_keys=True, default=str)) for name in names}


@cache
def _code_digest(tree: ast.Module) -> str:
    """Of what can change a result: not of comments, layout and docstrings."""
    return _digest(ast.dump(tree))


def _file_digest(path: Path) -> str:
    stat = path.stat()
    return _content_digest(path, stat.st_size, stat.st_mtime_ns)


@cache
def _content_digest(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
