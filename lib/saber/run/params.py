"""The one place that reads a profile, ``params/<profile>.yaml``, and checks it against the notebooks."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import yaml

from saber.paths import PARAMS
from saber.run.arguments import profile_files, suggestion
from saber.run.collection import Notebook, ProblemsError

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list"}


def load_profile(name: str, params: Path = PARAMS) -> dict[str, object]:
    """Key -> value of ``params/<name>.yaml``.

    Raises ``ValueError`` for an unknown profile and :class:`ProblemsError` for a file that is no flat
    mapping, has a key twice, or whose ``profile`` is not its file name.
    """
    files = profile_files(params)
    if name not in files:
        raise ValueError(f"unknown profile {name!r}{suggestion(name, files)}")
    text = files[name].read_text(encoding="utf-8")
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ProblemsError([f"params/{name}.yaml is not YAML: {error}"]) from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ProblemsError([f"params/{name}.yaml must be a mapping of parameter names to values"])
    problems = []
    for key, count in Counter(re.findall(r"^(\w+)\s*:", text, re.MULTILINE)).items():
        if count > 1:  # YAML readers silently take the last
            problems.append(f"params/{name}.yaml: {key} stands there {count} times")
    if values.get("profile") != name:
        problems.append(f"params/{name}.yaml: profile must be '{name}', the name of the file")
    if problems:
        raise ProblemsError(problems)
    return values


def check_profile(values: dict[str, object], notebooks: Sequence[Notebook]) -> None:
    """Compare a profile with the notebooks' parameters; raises :class:`ProblemsError` with all differences.

    A key that no notebook declares, a parameter that the profile lacks, and a value of another type than the
    default are errors: papermill would run on with the default, or with nonsense.
    """
    file = f"params/{values['profile']}.yaml"
    problems = []
    declared: dict[str, Notebook] = {}
    for notebook in notebooks:
        for name, default in notebook.parameters.items():
            first = declared.setdefault(name, notebook)
            if not _same_type(first.parameters[name], default):
                problems.append(
                    f"{name} is {first.parameters[name]!r} in {first.name}, {default!r} in {notebook.name}"
                )
    for key, value in values.items():
        if key not in declared:
            problems.append(f"{file}: no notebook has a parameter {key!r}{suggestion(key, declared)}")
        elif not _same_type(declared[key].parameters[key], value):
            default = declared[key].parameters[key]
            kind = _WORDS.get(type(default), type(default).__name__)
            problems.append(
                f"{file}: {key} must be {kind} like {default!r} in {declared[key].name}, not {value!r}"
            )
    for name, notebook in declared.items():
        if name not in values:
            problems.append(f"{file}: {name} is missing, {notebook.name} declares it")
    if problems:
        raise ProblemsError(problems)


def edited_defaults(values: dict[str, object], notebooks: Sequence[Notebook]) -> list[str]:
    """Notes on defaults in notebooks that differ from the profile ``demo``, whose values they must carry."""
    return [
        f"{notebook.path.name} says {name} = {default!r}; used is {values[name]!r} of the profile"
        for notebook in notebooks
        for name, default in notebook.parameters.items()
        if values["profile"] == "demo" and default != values[name]
    ]


def _same_type(default: object, value: object) -> bool:
    """Whether a value can stand where the default stands; ``None`` as default accepts anything."""
    if default is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    if isinstance(default, list):
        return isinstance(value, list) and all(_same_type(default[0], entry) for entry in value if default)
    return type(value) is type(default)
