import pytest

from saber.paths import PARAMS
from saber.run.arguments import profile_files
from saber.run.collection import ProblemsError, load_collection
from saber.run.params import check_profile, edited_defaults, load_profile

DEFAULTS = "profile = 'demo'\nsize = 192\nrate = 0.5\nflag = True\nmodels = ['a']\nfree = None"
GOOD = {"size": 96, "rate": 1, "flag": False, "models": ["b", "c"], "free": 3}


@pytest.fixture
def notebooks(toys):
    toys.notebook("01_build", DEFAULTS)
    toys.notebook("04_main", "profile = 'demo'\nseed = 1")
    return load_collection(toys.root / "notebooks")


def test_a_good_profile_passes(toys, notebooks):
    toys.profile(**GOOD, seed=2)
    values = load_profile("demo", toys.root / "params")
    check_profile(values, notebooks)
    assert values == {"profile": "demo", **GOOD, "seed": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modles": ["a"]}, "no notebook has a parameter 'modles' (did you mean 'models'?)"),
        ({"size": "96"}, "size must be a whole number like 192 in 01_build, not '96'"),
        ({"size": 96.0}, "size must be a whole number"),
        ({"size": True}, "size must be a whole number"),
        ({"size": None}, "size must be a whole number"),
        ({"rate": "0.5"}, "rate must be a number"),
        ({"flag": 1}, "flag must be true or false"),
        ({"models": "[a, b]"}, "models must be a list"),
        ({"models": [1]}, "models must be a list"),
    ],
)
def test_wrong_values_are_named(toys, notebooks, change, message):
    toys.profile(**{**GOOD, "seed": 2, **change})
    with pytest.raises(ProblemsError) as raised:
        check_profile(load_profile("demo", toys.root / "params"), notebooks)
    assert raised.value.problems == [
        problem for problem in raised.value.problems if "params/demo.yaml" in problem
    ]
    assert message in str(raised.value)


def test_a_missing_parameter_would_silently_keep_its_default(toys, notebooks):
    toys.profile(**GOOD)
    with pytest.raises(ProblemsError, match="seed is missing, 04_main declares it"):
        check_profile(load_profile("demo", toys.root / "params"), notebooks)


def test_notebooks_must_agree_on_a_type(toys):
    toys.notebook("01_a", "profile = 'demo'\nsize = 1")
    toys.notebook("02_b", "profile = 'demo'\nsize = 'big'")
    toys.profile(size=2)
    with pytest.raises(ProblemsError, match="size is 1 in 01_a, 'big' in 02_b"):
        check_profile(load_profile("demo", toys.root / "params"), load_collection(toys.root / "notebooks"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile: demo\nsize: 1\nsize: 2\n", "size stands there 2 times"),
        ("profile: dome\n", "profile must be 'demo'"),
        ("profile: [demo\n", "is not YAML"),
        ("profile: demo\n1: 2\n", "must be a mapping"),
    ],
)
def test_files_that_are_wrong_in_themselves(tmp_path, text, message):
    (tmp_path / "demo.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ProblemsError, match="params/demo") as raised:
        load_profile("demo", tmp_path)
    assert message in str(raised.value)


def test_an_unknown_profile_names_the_valid_ones(toys):
    toys.profile("demo")
    with pytest.raises(ValueError, match=r"unknown profile 'dem' \(did you mean 'demo'\?\); valid: demo"):
        load_profile("dem", toys.root / "params")


def test_an_edited_default_is_noted_for_demo_only(toys, notebooks):
    values = {"profile": "demo", **GOOD, "seed": 1}
    notes = edited_defaults(values, notebooks)
    assert "01_build.ipynb says size = 192; used is 96 of the profile" in notes and len(notes) == 5
    assert edited_defaults({**values, "profile": "smoke"}, notebooks) == []


def test_the_shipped_profiles_have_the_same_keys_and_types():
    profiles = {name: load_profile(name) for name in profile_files(PARAMS)}
    assert {"demo", "smoke", "laptop", "paper"} <= set(profiles)
    demo = profiles["demo"]
    for values in profiles.values():
        assert list(values) == list(demo)
        assert [type(value) for value in values.values()] == [type(value) for value in demo.values()]
