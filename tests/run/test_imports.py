from pathlib import Path

import pytest

from saber.run.imports import closure, data_files, imported_names, syntax_tree


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A package ``house`` whose modules import each other in every way."""
    files = {
        "house/__init__.py": "",
        "house/paths.py": "ROOT = 'templates'",
        "house/templates/page.html": "x",
        "house/notes.txt": "not named by any module",
        "house/words/__init__.py": "from .load import load",
        "house/words/load.py": "from pathlib import Path",
        "house/words/objects.yaml": "a: 1",
        "house/words/pictures/cat.png": "x",
        "house/words/pictures/SOURCES.md": "x",
        "house/words/deep/__init__.py": "",
        "house/words/deep/other.csv": "x",
        "house/metrics/__init__.py": "",
        "house/metrics/mcq.py": "from house import paths\nfrom . import ties",
        "house/metrics/ties.py": "",
        "house/metrics/unused.py": "",
        "house/plugins/__init__.py": "",
        "house/plugins/load.py": "import importlib\ndef f(name):\n    return importlib.import_module(name)",
        "house/plugins/one.py": "from ..words.deep import things",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def reached(source: str, library: Path) -> set[str]:
    return {path.relative_to(library / "house").as_posix() for path in closure([source], library)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import numpy", set()),
        ("import house", {"__init__.py"}),
        ("import house.metrics.ties as t", {"__init__.py", "metrics/__init__.py", "metrics/ties.py"}),
        ("from house.metrics import ties", {"__init__.py", "metrics/__init__.py", "metrics/ties.py"}),
        (
            "%matplotlib inline\ndef f():\n    from house.metrics.mcq import accuracy",
            {"__init__.py", "paths.py", "metrics/__init__.py", "metrics/mcq.py", "metrics/ties.py"},
        ),
        ("from house.words import load", {"__init__.py", "words/__init__.py", "words/load.py"}),
        ("%%bash\nfrom house import paths", set()),
    ],
)
def test_closure(library, source, expected):
    assert reached(source, library) == expected


def test_an_import_by_computed_name_reaches_the_whole_package(library):
    found = reached("import house.plugins.load", library)
    assert {"plugins/one.py", "words/deep/__init__.py"} <= found


def test_relative_imports_are_resolved_against_their_module():
    tree = syntax_tree("from . import a\nfrom ..b import c\nfrom .d.e import f")
    names = imported_names(tree, "house.metrics.mcq")
    assert names == {
        "house.metrics",
        "house.metrics.a",
        "house.b",
        "house.b.c",
        "house.metrics.d.e",
        "house.metrics.d.e.f",
    }
    assert imported_names(syntax_tree("from . import a"), "house.metrics", is_package=True) == {
        "house.metrics", "house.metrics.a"
    }  # fmt: skip


def test_data_of_a_package_counts_its_subpackages_and_notes_do_not(library):
    files = data_files(closure(["import house.words"], library), library)
    assert [file.name for file in files] == ["objects.yaml", "cat.png"]


def test_of_the_root_package_only_named_data_counts(library):
    root = library / "house"
    assert data_files(closure(["import house"], library), library) == []
    assert data_files(closure(["import house.paths"], library), library) == [root / "templates" / "page.html"]
