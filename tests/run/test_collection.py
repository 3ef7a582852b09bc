import pytest

from saber.run.collection import ProblemsError, literal_assignments, load_collection, read_notebook


def test_reads_what_the_engine_needs(toys):
    path = toys.notebook(
        "04_main",
        "profile: str = 'demo'  # which\nmodels = ['a', -1.5]",
        ["x = 1"],
        needs=["01"],
        writes=["tables/t.csv"],
    )
    notebook = read_notebook(path)
    assert notebook.number == "04" and notebook.name == "04_main"
    assert notebook.parameters == {"profile": "demo", "models": ["a", -1.5]}
    assert notebook.needs == ("01",)
    assert notebook.outputs == ("notebooks/04_main.ipynb", "tables/t.csv")
    assert notebook.cells[-1] == ("code", "x = 1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tag": "parameter"}, "has 0 code cells tagged 'parameters'; exactly one"),
        ({"kernel": "py39"}, "names the kernel 'py39'; it must be 'python3'"),
        ({"kernel": None}, "names no kernel"),
        ({"parameters": "x = 1\ny = x * 2"}, "line 2: y must be a literal"),
        ({"parameters": "x = 1\nx = 2"}, "line 2: x is assigned twice"),
        ({"parameters": "print('hi')"}, "line 1 must be 'name = literal'"),
        ({"parameters": "x.y = 1"}, "line 1 must be 'name = literal'"),
        ({"parameters": "x = = 1"}, "line 1 is not Python"),
        ({"cells": ["ok = 1", "def f(:"]}, "cell 4, line 1 is not Python"),
        ({"writes": ["../x.csv"]}, "'../x.csv' must lie in a data folder"),
        ({"writes": ["state/x"]}, "'state/x' must lie in a data folder"),
    ],
)
def test_names_what_is_wrong_with_a_notebook(toys, change, message):
    path = toys.notebook("04_main", **change)
    with pytest.raises(ProblemsError) as raised:
        read_notebook(path)
    assert message in str(raised.value) and "04_main.ipynb" in str(raised.value)


def test_two_tagged_cells_and_unknown_metadata(toys):
    path = toys.notebook("04_main", cells=["y = 1"])
    text = path.read_text(encoding="utf-8").replace(
        '"metadata": {}, "source": "y', '"metadata": {"tags": ["parameters"]}, "source": "y'
    )
    path.write_text(text.replace('"needs"', '"need"'), encoding="utf-8")
    with pytest.raises(ProblemsError) as raised:
        read_notebook(path)
    assert "has 2 code cells tagged" in raised.value.problems[0]
    assert "unknown key 'need' in metadata.saber (did you mean 'needs'?)" in raised.value.problems[1]


@pytest.mark.parametrize("text", ["", "[]", '{"cells": [{"cell_type": "code"}]}'])
def test_a_file_that_is_no_notebook(tmp_path, text):
    (tmp_path / "01_x.ipynb").write_text(text, encoding="utf-8")
    with pytest.raises(ProblemsError, match=r"01_x\.ipynb is not a notebook"):
        load_collection(tmp_path)


def test_all_problems_of_a_collection_are_named_at_once(toys):
    toys.notebook("01_a", needs=["02"], writes=["t.csv"])
    toys.notebook("02_b", needs=["9"], writes=["t.csv"])
    with pytest.raises(ProblemsError) as raised:
        load_collection(toys.root / "notebooks")
    assert raised.value.problems == [
        "01_a.ipynb needs notebook 02, which does not come before it",
        "02_b.ipynb needs notebook '9'; valid: 01, 02",
        "02_b.ipynb and 01_a.ipynb both declare that they write t.csv",
    ]


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(ProblemsError, match="no notebooks"):
        load_collection(tmp_path)


def test_literals_keep_their_types():
    values = literal_assignments("a = 1\nb: float = 1.0  # why\nc = None\nd = {'k': [True, -2]}\n# end")
    assert values == {"a": 1, "b": 1.0, "c": None, "d": {"k": [True, -2]}}
    assert [type(value) for value in values.values()] == [int, float, type(None), dict]
