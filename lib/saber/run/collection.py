"""The notebooks as the engine sees them: parameters, what each needs and writes, what is wrong."""

import ast
import json
from dataclasses import dataclass
from pathlib import Path

from saber.run.arguments import notebook_files, suggestion
from saber.run.imports import syntax_tree


class ProblemsError(ValueError):
    """Everything that is wrong, one line each, found before anything runs."""

    def __init__(self, problems: list[str]):
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Notebook:
    """One notebook of the collection.

    ``parameters``: name -> default, from the cell tagged ``parameters``. ``needs``: numbers of the notebooks
    whose outputs it reads. ``writes``: files it promises, relative to the profile's outputs folder. Both
    stand in the notebook's metadata as ``{"saber": {"needs": ["01"], "writes": ["tables/table_02.csv"]}}``.
    """

    number: str
    name: str
    path: Path
    parameters: dict[str, object]
    needs: tuple[str, ...]
    writes: tuple[str, ...]
    cells: tuple[tuple[str, str], ...]  # (cell type, source)

    @property
    def executed(self) -> str:
        """Where the executed notebook goes, relative to the profile's outputs folder."""
        return f"notebooks/{self.name}.ipynb"

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.executed, *self.writes)


def read_notebook(path: Path) -> Notebook:
    """Read one notebook file; raises :class:`ProblemsError` that lists all that is wrong with it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cells = [(cell["cell_type"], "".join(cell["source"]), cell["metadata"]) for cell in content["cells"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ProblemsError([f"{path.name} is not a notebook that can be read: {error!r}"]) from error

    problems: list[str] = []
    kernel = content.get("metadata", {}).get("kernelspec", {}).get("name")
    if kernel != "python3":
        found = f"the kernel {kernel!r}" if kernel else "no kernel"
        problems.append(f"{path.name} names {found}; it must be 'python3' (choose it in JupyterLab and save)")

    tagged = [
        source for kind, source, meta in cells if kind == "code" and "parameters" in meta.get("tags", [])
    ]
    parameters: dict[str, object] = {}
    if len(tagged) == 1:
        try:
            parameters = literal_assignments(tagged[0])
        except ValueError as error:
            problems.append(f"{path.name}, cell tagged 'parameters': {error}")
    else:
        problems.append(
            f"{path.name} has {len(tagged)} code cells tagged 'parameters'; exactly one is needed"
        )

    for index, (kind, source, _) in enumerate(cells, start=1):
        try:
            syntax_tree(source if kind == "code" else "")
        except SyntaxError as error:
            problems.append(f"{path.name}, cell {index}, line {error.lineno} is not Python: {error.msg}")

    declared = content.get("metadata", {}).get("saber", {})
    needs, writes = declared.get("needs", []), declared.get("writes", [])
    if extra := set(declared) - {"needs", "writes"}:
        word = sorted(extra)[0]
        problems.append(
            f"{path.name}: unknown key {word!r} in metadata.saber{suggestion(word, ['needs', 'writes'])}"
        )
    for file in writes:
        parts = Path(file).parts
        if Path(file).is_absolute() or ".." in parts or parts[0] in {"notebooks", "state", "logs"}:
            problems.append(
                f"{path.name}: metadata.saber.writes: {file!r} must lie in a data folder of the outputs"
            )
    if problems:
        raise ProblemsError(problems)
    sources = tuple((kind, source) for kind, source, _ in cells)
    return Notebook(path.stem[:2], path.stem, path, parameters, tuple(needs), tuple(writes), sources)


def literal_assignments(source: str) -> dict[str, object]:
    """``name: type = literal`` lines -> name -> value; anything else raises ``ValueError`` with its line."""
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} is not Python: {error.msg}") from error
    values: dict[str, object] = {}
    for statement in body:
        targets = (
            statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        )
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or not isinstance(targets[0], ast.Name):
            raise ValueError(f"line {statement.lineno} must be 'name = literal', one a line")
        name = targets[0].id
        try:
            value = ast.literal_eval(statement.value)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"line {statement.lineno}: {name} must be a literal; a computed value would keep its default"
            ) from error
        if name in values or len(targets) > 1:
            raise ValueError(f"line {statement.lineno}: {name} is assigned twice")
        values[name] = value
    return values


def load_collection(folder: Path) -> tuple[Notebook, ...]:
    """All ``NN_name.ipynb`` of a folder, in order; raises :class:`ProblemsError` with all that is wrong."""
    notebooks: list[Notebook] = []
    problems: list[str] = []
    try:
        files = notebook_files(folder)
    except ValueError as error:
        raise ProblemsError([str(error)]) from error
    for path in files.values():
        try:
            notebooks.append(read_notebook(path))
        except ProblemsError as error:
            problems += error.problems
    if not files:
        problems.append(f"no notebooks NN_name.ipynb in {folder}")

    writers: dict[str, str] = {}
    for notebook in notebooks:
        for number in notebook.needs:
            if number not in files:
                problems.append(f"{notebook.path.name} needs notebook {number!r}{suggestion(number, files)}")
            elif number >= notebook.number:
                problems.append(
                    f"{notebook.path.name} needs notebook {number}, which does not come before it"
                )
        for file in notebook.writes:
            if file in writers:
                problems.append(
                    f"{notebook.path.name} and {writers[file]} both declare that they write {file}"
                )
            writers[file] = notebook.path.name
    if problems:
        raise ProblemsError(problems)
    return tuple(notebooks)
