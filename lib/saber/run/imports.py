"""Which files of the library a piece of source code reaches through its imports (read, never executed)."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

IGNORED_DATA = {".py", ".pyc", ".md"}  # notes beside the data do not change a result


@cache
def syntax_tree(source: str) -> ast.Module:
    """Parsed source without docstrings, lines of notebook magic and cells in other languages."""
    if re.match(r"\s*%%(?!time|capture)", source):
        source = ""
    tree = ast.parse(re.sub(r"^[ \t]*[%!].*$", "", source, flags=re.MULTILINE))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if (
                node.body
                and isinstance(node.body[0], ast.Expr)
                and isinstance(node.body[0].value, ast.Constant)
            ):
                node.body = node.body[1:]
    return tree


def imported_names(tree: ast.Module, module: str = "", is_package: bool = False) -> set[str]:
    """Dotted names that may be modules.

    ``from saber.metrics import mcq`` gives both ``saber.metrics`` and ``saber.metrics.mcq``. Relative imports
    are resolved against ``module``. A module that imports by a computed name reaches, for all one can tell,
    everything of its package: ``package.*``.
    """
    package = module if is_package else module.rpartition(".")[0]
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and package:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"}:
                names.add(f"{package}.*")
    return names


def _files_of(name: str, root: Path) -> list[Path]:
    """Files that importing a dotted name executes: each package's ``__init__.py`` and the module."""
    if name.endswith(".*"):
        return sorted((root / name[:-2].replace(".", "/")).glob("*.py"))
    files, folder = [], root
    for part in name.split("."):
        if (folder / part / "__init__.py").is_file():
            folder = folder / part
            files.append(folder / "__init__.py")
        else:
            if (folder / f"{part}.py").is_file():
                files.append(folder / f"{part}.py")
            break
    return files


def closure(sources: Iterable[str], root: Path) -> dict[Path, ast.Module]:
    """All files below ``root`` that the sources import, directly or through others, with their trees."""
    found: dict[Path, ast.Module] = {}
    waiting = [
        file
        for source in sources
        for name in imported_names(syntax_tree(source))
        for file in _files_of(name, root)
    ]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found[file] = tree = syntax_tree(file.read_text(encoding="utf-8"))
        is_package = file.name == "__init__.py"
        module = ".".join((file.parent if is_package else file.with_suffix("")).relative_to(root).parts)
        for name in imported_names(tree, module, is_package):
            waiting += _files_of(name, root)
    return found


@cache
def texts(tree: ast.Module) -> frozenset[str]:
    """All strings in a piece of code."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(node.value for node in nodes if isinstance(node.value, str))


def data_files(modules: dict[Path, ast.Module], root: Path) -> list[Path]:
    """Data in the packages of these modules, in folders that are no packages themselves included.

    Of a package directly below ``root``, through which every import goes, only what its modules name counts.
    """
    found: set[Path] = set()
    waiting: list[Path] = []
    for package in {module.parent for module in modules}:
        entries = [entry for entry in package.iterdir() if _is_data(entry)]
        if package.parent == root:
            named = [texts(tree) for module, tree in modules.items() if module.parent == package]
            entries = [
                entry for entry in entries if any(entry.name in text for found in named for text in found)
            ]
        waiting += entries
    while waiting:
        entry = waiting.pop()
        if entry.is_dir():
            waiting += filter(_is_data, entry.iterdir())
        else:
            found.add(entry)
    return sorted(found)


def _is_data(entry: Path) -> bool:
    if entry.is_dir():
        return entry.name != "__pycache__" and not (entry / "__init__.py").exists()
    return entry.suffix not in IGNORED_DATA and not entry.name.startswith(".")
