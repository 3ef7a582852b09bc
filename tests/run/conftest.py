"""Toy collections: small notebooks and profiles in a temporary folder, run by the real engine."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

REPO = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Toys:
    """A collection in ``root``; ``run`` calls the command on it with outputs in ``out``."""

    root: Path
    out: Path

    def notebook(
        self,
        name: str,
        parameters: str = "profile = 'demo'",
        cells: Sequence[str] = (),
        needs: Sequence[str] = (),
        writes: Sequence[str] = (),
        kernel: str | None = "python3",
        tag: str = "parameters",
    ) -> Path:
        """Write ``notebooks/<name>.ipynb``: a title, the parameters cell and code cells."""
        code = [(parameters, {"tags": [tag]}), *((source, {}) for source in cells)]
        content = [{"cell_type": "markdown", "metadata": {}, "source": f"# {name}", "id": "title"}] + [
            {"cell_type": "code", "metadata": meta, "source": source, "id": f"code-{index}"}
            | {"execution_count": None, "outputs": []}
            for index, (source, meta) in enumerate(code)
        ]
        metadata: dict = {"saber": {"needs": list(needs), "writes": list(writes)}}
        if kernel:
            metadata["kernelspec"] = {"name": kernel, "display_name": "Python 3", "language": "python"}
        path = self.root / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"cells": content, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def profile(self, name: str = "demo", **values: object) -> Path:
        """Write ``params/<name>.yaml``."""
        path = self.root / "params" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({"profile": name, **values}), encoding="utf-8")
        return path

    def command(self, *words: str) -> list[str]:
        """The command line, as run_all.sh starts it."""
        places = ["--collection", str(self.root), "--outputs", str(self.out)]
        return [sys.executable, "-m", "saber.run", *places, *words]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(REPO / "lib"), "OMP_NUM_THREADS": "1"}

    def run(self, *words: str) -> subprocess.CompletedProcess:
        """Run the command from the root of the file system; output and errors together."""
        return subprocess.run(
            self.command(*words), cwd="/", env=self.environment(), text=True, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def file(self, name: str) -> Path:
        """A file in the outputs of the profile demo."""
        return self.out / "demo" / name


@pytest.fixture
def toys(tmp_path: Path) -> Toys:
    return Toys(tmp_path / "ü (1) {x}" / "collection", tmp_path / "ü (1) {x}" / "out puts")


def write_cell(name: str, value: str) -> str:
    """Source of a cell that writes ``tables/<name>.csv`` in the outputs of its profile."""
    return (
        "from saber.paths import tables_dir\n"
        "tables_dir(profile).mkdir(parents=True, exist_ok=True)\n"
        f"(tables_dir(profile) / '{name}.csv').write_text(str(({value})))"
    )


@pytest.fixture
def table_cell():
    return write_cell
