"""Where a model's files are: a folder, an installed package, or the Hub. The one place that downloads."""

import warnings
from importlib.util import find_spec
from pathlib import Path

from saber.embedders.content import ModelUnavailable
from saber.embedders.registry import ModelEntry
from saber.embedders.vectors import folder_digests
from saber.files import file_digest
from saber.paths import REPO

WEIGHTS = ("open_clip_model.safetensors", "model.safetensors")


def locate(entry: ModelEntry) -> Path:
    """The folder with the model's files, its weights verified against ``entry.sha256`` when that is given.

    Tries the folder, then the package, then the Hub. A folder that is named and wrong is an error; a package
    that is missing or holds other weights is passed over, with a warning in the second case.
    Raises ModelUnavailable saying what is missing and how to get it.
    """
    reasons = []
    if entry.folder:
        folder = Path(entry.folder)
        folder = folder if folder.is_absolute() else REPO / folder
        if (folder / _weights_name(entry, folder)).is_file():
            _verify(entry, folder)
            return folder
        reasons.append(f"no weights in the folder {folder}")
    if entry.made_by:
        reasons.append(f"notebook {entry.made_by} makes it, in the profile's outputs")
    if entry.package:
        folder = _package_folder(entry.package)
        if folder is None:
            reasons.append(f"the Python package {entry.package.split('/')[0]} is not installed")
        else:
            try:
                _verify(entry, folder)
                return folder
            except ModelUnavailable as error:
                reasons.append(str(error))
                warnings.warn(f"{error}; the package is passed over", stacklevel=2)
    if entry.id:
        folder = fetch(entry.name, entry.id, entry.revision, entry.files, reasons)
        _verify(entry, folder)
        return folder
    raise ModelUnavailable(f"model {entry.name!r}: {'; '.join(reasons)}")


def fetch(name: str, repository: str, revision: str, files, reasons=()) -> Path:
    """The named files of a Hub repository at one commit, downloaded unless they are in the local cache.

    Returns the folder that holds them. Raises ModelUnavailable with the command that fetches them elsewhere.
    """
    from huggingface_hub import hf_hub_download

    try:
        paths = [Path(hf_hub_download(repository, file, revision=revision)) for file in files]
    except Exception as error:  # the hub client raises its own, requests', httpx' and the system's
        before = "".join(f"{reason}; " for reason in reasons)
        raise ModelUnavailable(
            f"model {name!r}: {before}it could not be fetched from the Hub ({_first_line(error)}). "
            f"With a connection, run: hf download {repository} {' '.join(files)} --revision {revision}"
        ) from error
    depth = len(Path(files[0]).parts)
    return paths[0].parents[depth - 1]


def file_digests(entry: ModelEntry, folder: Path) -> dict[str, str]:
    """SHA-256 of the files in the model's folder that can change a vector: those listed, else all of them."""
    if not entry.files:
        return folder_digests(folder)
    return {file: file_digest(folder / file) for file in sorted(entry.files) if (folder / file).is_file()}


def _package_folder(package: str) -> Path | None:
    """Folder of ``package/subfolder`` without importing the package; None when it is not installed."""
    top, _, below = package.partition("/")
    spec = find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / below


def _weights_name(entry: ModelEntry, folder: Path) -> str:
    named = [file for file in entry.files if file.endswith(".safetensors")]
    found = [file for file in named or WEIGHTS if (folder / file).is_file()]
    return found[0] if found else (named or WEIGHTS)[0]


def _verify(entry: ModelEntry, folder: Path) -> None:
    weights = folder / _weights_name(entry, folder)
    if not weights.is_file():
        raise ModelUnavailable(f"model {entry.name!r}: no weights file {weights}")
    if entry.sha256 is None:
        return
    found = file_digest(weights)
    if found != entry.sha256:
        raise ModelUnavailable(
            f"model {entry.name!r}: {weights} is not the file the registry names: "
            f"SHA-256 {found}, expected {entry.sha256}"
        )


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
