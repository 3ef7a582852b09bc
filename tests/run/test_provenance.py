import os
from pathlib import Path

import pytest

from saber.run.collection import read_notebook
from saber.run.provenance import dependencies, differences, pins

LOCK = "# made by a tool\nnumpy==2.0\ntorch==2.1  # why\n"


@pytest.fixture
def place(toys, tmp_path):
    """A notebook, a library, a registry and a lock; ``record()`` is the notebook's dependency record."""

    class Place:
        path = toys.notebook("04_main", "profile = 'demo'\nmodels = ['a']", ["from saber.words import load"])
        params = toys.profile(models=["a"], other=1).parent
        library = tmp_path / "lib"
        lock = tmp_path / "requirements.lock"
        values: dict = {"profile": "demo", "models": ["a"], "other": 1}  # noqa: RUF012

        def record(self) -> dict:
            return dependencies(read_notebook(self.path), self.values, self.params, self.library, self.lock)

        def write(self, path: Path, text: str) -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    place = Place()
    place.write(place.library / "saber/__init__.py", "")
    place.write(
        place.library / "saber/words.py", "from saber import registry\n\n\ndef load():\n    return 1\n"
    )
    place.write(place.library / "saber/registry.py", "FILE = 'models.yaml'\n")
    place.write(place.library / "saber/unrelated.py", "x = 1\n")
    place.write(place.params / "models.yaml", "a: {size: 1}\nb: {size: 2}\n")
    place.write(place.params / "benchmarks.yaml", "c: 1\n")
    place.write(place.lock, LOCK)
    return place


def test_what_counts(place):
    record = place.record()
    assert record["parameter"] == {"profile": "demo", "models": ["a"]}
    assert sorted(record["library"]) == ["saber/__init__.py", "saber/registry.py", "saber/words.py"]
    assert list(record["registry"]) == ["models.yaml: a"]
    assert record["declared"] == {"needs": [], "writes": []}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "library/saber/words.py",
            "# new comment\nfrom saber import registry\ndef load():\n    '''New.'''\n    return 1",
        ),
        ("library/saber/unrelated.py", "x = 2"),
        ("params/models.yaml", "# comment\nb: {size: 3}\na: {size: 1}\n"),
        ("params/benchmarks.yaml", "c: 2\n"),
        ("lock", "numpy==2.0\n\n# another comment\ntorch==2.1\n"),
    ],
)
def test_what_does_not_change_results_changes_nothing(place, file, text):
    before = place.record()
    kind, _, rest = file.partition("/")
    place.write(getattr(place, kind) / rest if rest else getattr(place, kind), text)
    assert place.record() == before


@pytest.mark.parametrize(
    ("file", "text", "change"),
    [
        (
            "library/saber/words.py",
            "from saber import registry\ndef load():\n    return 2",
            "library saber/words.py",
        ),
        ("library/saber/registry.py", "FILE = './models.yaml'", "library saber/registry.py"),
        ("params/models.yaml", "a: {size: 9}\nb: {size: 2}\n", "registry models.yaml: a"),
        ("lock", "numpy==2.1\ntorch==2.1\n", "environment requirements.lock"),
    ],
)
def test_what_changes_results_is_named(place, file, text, change):
    before = place.record()
    kind, _, rest = file.partition("/")
    place.write(getattr(place, kind) / rest if rest else getattr(place, kind), text)
    assert differences(before, place.record()) == [change]


def test_a_changed_parameter_and_a_changed_cell(place, toys):
    before = place.record()
    place.values = {"profile": "demo", "models": ["a", "b"], "other": 2}
    assert differences(before, place.record()) == [
        "parameter models: ['a'] -> ['a', 'b']",
        "registry models.yaml: b",
    ]
    place.values = {"profile": "demo", "models": ["a"], "other": 1}
    toys.notebook("04_main", "profile = 'demo'\nmodels = ['a']", ["from saber.words import load", "load()"])
    assert differences(before, place.record()) == ["notebook cells"]


def test_outputs_and_metadata_of_the_notebook_do_not_count(place):
    before = place.record()
    text = place.path.read_text(encoding="utf-8")
    changed = text.replace('"execution_count": null', '"execution_count": 3').replace(
        "Python 3", "Python 3 (ipykernel)"
    )
    place.write(place.path, changed)
    assert changed != text and place.record() == before


def test_data_beside_a_module_counts_by_content(place):
    data = place.library / "saber/vocabulary/objects.yaml"
    place.write(place.library / "saber/vocabulary/__init__.py", "")
    place.write(place.library / "saber/registry.py", "import saber.vocabulary\nFILE = 'models.yaml'")
    place.write(data, "a: 1\n")
    before = place.record()
    os.utime(data, (1, 1))
    assert place.record() == before
    place.write(data, "a: 2\n")
    assert differences(before, place.record()) == ["data saber/vocabulary/"]


def test_pins_are_the_lines_without_comments(place):
    assert pins(place.lock) == ["numpy==2.0", "torch==2.1"]
