"""The environment is written down once and means the same everywhere."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from saber.run.collection import load_collection
from saber.run.conda import conda_environment
from saber.run.imports import imported_names, syntax_tree
from saber.run.provenance import pins

REPO = Path(__file__).resolve().parents[1]
LOCKED = {
    canonicalize_name(Requirement(pin).name): Requirement(pin) for pin in pins(REPO / "requirements.lock")
}
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
DIRECT = [Requirement(text) for text in PROJECT["project"]["dependencies"]]


def test_every_pin_is_exact_and_names_no_host():
    for pin in LOCKED.values():
        assert [specifier.operator for specifier in pin.specifier] == ["=="] and pin.url is None
    assert not re.search(
        r"https?:|--(index|extra|find)|file:", (REPO / "requirements.lock").read_text(encoding="utf-8")
    )


def test_conda_installs_the_same_pins():
    text = (REPO / "environment.yml").read_text(encoding="utf-8")
    *conda, pip = yaml.safe_load(text)["dependencies"]
    assert pip["pip"] == pins(REPO / "requirements.lock"), "run: python -m saber.run.conda"
    assert conda == ["python=3.11", "pip"]
    assert text == conda_environment(pip["pip"])


def test_the_lock_holds_every_direct_dependency_within_its_range():
    groups = PROJECT["dependency-groups"]
    for requirement in [*DIRECT, *map(Requirement, [*groups["test"], *groups["build"]])]:
        pinned = next(iter(LOCKED[canonicalize_name(requirement.name)].specifier)).version
        assert requirement.specifier.contains(pinned, prereleases=True), requirement


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("platform", [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")])
def test_every_platform_gets_the_direct_dependencies(version, platform):
    place = {"python_version": version, "python_full_version": f"{version}.5", "os_name": "posix"}
    place |= {"sys_platform": platform[0], "platform_machine": platform[1]}
    installed = {name for name, pin in LOCKED.items() if not pin.marker or pin.marker.evaluate(place)}
    assert {canonicalize_name(requirement.name) for requirement in DIRECT} <= installed
    assert ("nvidia-cublas" in installed) == (platform[0] == "linux")
    assert "pywinpty" not in installed


def test_what_is_imported_is_declared():
    """Imports of the library and the notebooks are direct dependencies, not somebody else's."""
    sources = [path.read_text(encoding="utf-8") for path in (REPO / "lib").rglob("*.py")]
    for notebook in load_collection(REPO / "notebooks"):
        sources += [source for kind, source in notebook.cells if kind == "code"]
    names = {name.partition(".")[0] for source in sources for name in imported_names(syntax_tree(source))}
    foreign = names - set(sys.stdlib_module_names) - {"saber", "", "__future__", "pip"}
    distributions = packages_distributions()
    declared = {canonicalize_name(requirement.name) for requirement in DIRECT}
    undeclared = {
        name
        for name in foreign
        if not declared & set(map(canonicalize_name, distributions.get(name, [name])))
    }
    assert undeclared == set()


def test_the_version_is_the_same_everywhere():
    version = PROJECT["project"]["version"]
    tree = ast.parse((REPO / "lib" / "saber" / "__init__.py").read_text(encoding="utf-8"))
    assert f"__version__ = '{version}'" in ast.unparse(tree)
    citation = yaml.safe_load((REPO / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == version
    assert citation["preferred-citation"]["identifiers"][0]["value"] == "arXiv:2610.22602"
