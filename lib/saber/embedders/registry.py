"""The registry of models, ``params/models.yaml``: one entry per model, checked when it is read."""

import re
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path

import yaml

from saber.paths import PARAMS, models_dir
from saber.published import published

LOADERS = ("open_clip", "sentence_transformers", "bag_of_words", "chance")
DTYPES = ("fp32", "bf16", "fp16")
MODALITIES = ("text", "image")


@dataclass(frozen=True)
class ModelEntry:
    """One model: where its weights are, how it is loaded, and which row of the paper it belongs to.

    name: key in the registry.  loader: one of ``LOADERS``.
    modalities: what it embeds, a part of ("text", "image").
    licence: of the weights, as their owners name it.
    id, revision: Hub repository and the 40-digit commit that is pinned; files: what is fetched from it.
    folder: local model folder, relative to the repository root or absolute; tried before the Hub.
    made_by: the notebook that makes the model, in ``outputs/<profile>/models/<name>``.
    package: ``package/subfolder`` of an installed Python package with the weights; tried before the Hub.
    architecture, pretrained: open_clip's own names, for weights without a config of their own.
    sha256: of the weights file, verified at each load when given.
    dtype: one of ``DTYPES``.  instruction: text put before each item, or none.
    batch_size: hint per modality.
    published_row: this model's row in the paper's tables.  stands_for: the row a miniature stands beside.
    note: a sentence for the reader.
    """

    name: str
    loader: str
    modalities: tuple[str, ...]
    licence: str
    id: str | None = None
    revision: str | None = None
    files: tuple[str, ...] = ()
    folder: str | None = None
    made_by: str | None = None
    package: str | None = None
    architecture: str | None = None
    pretrained: str | None = None
    sha256: str | None = None
    dtype: str = "fp32"
    instruction: str | None = None
    batch_size: dict[str, int] = field(default_factory=dict)
    published_row: str | None = None
    stands_for: str | None = None
    note: str = ""

    @property
    def paper_row(self) -> str | None:
        """The row of the paper's tables to show beside this model, if any."""
        return self.published_row or self.stands_for


KEYS = tuple(f.name for f in fields(ModelEntry) if f.name != "name")
_LISTS = ("modalities", "files")


def load_registry(path: Path = PARAMS / "models.yaml", profile: str | None = None) -> dict[str, ModelEntry]:
    """Read and check a registry; entries by name, in the order of the file.

    profile: where to look for the models that notebooks make; without it those have no folder.

    Raises ValueError naming file, entry, key and the valid values, and FileNotFoundError.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no registry of models at {path}; the shipped one is params/models.yaml")
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(data, dict) or not data:
        raise ValueError(f"{path}: expected a mapping 'model name: {{loader: ..., ...}}'")
    entries = {str(name): _entry(str(name), given, f"{path}, entry {name!r}") for name, given in data.items()}
    if profile is None:
        return entries
    return {
        name: replace(entry, folder=str(models_dir(profile) / name)) if entry.made_by else entry
        for name, entry in entries.items()
    }


def find_entry(name: str, registry: dict[str, ModelEntry]) -> ModelEntry:
    """The entry of that name; KeyError that lists the names there are."""
    if name not in registry:
        raise KeyError(f"no model {name!r} in the registry; there are: {', '.join(registry)}")
    return registry[name]


class _UniqueKeys(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, of which YAML would silently keep the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {str(k) for k in keys if keys.count(k) > 1}
        if twice:
            line = node.start_mark.line + 1
            raise yaml.YAMLError(f"key given twice in the mapping at line {line}: {', '.join(sorted(twice))}")
        return super().construct_mapping(node, deep)


@cache
def paper_models() -> tuple[str, ...]:
    """Rows of the paper's tables that are models (Tables 2, 5, 6 and 11 to 14)."""
    return tuple(dict.fromkeys(row for table in (2, 5, 6, *range(11, 15)) for row in published(table)["row"]))


def _entry(name: str, given, where: str) -> ModelEntry:
    if not isinstance(given, dict):
        raise ValueError(f"{where}: expected 'key: value' lines; valid keys: {', '.join(KEYS)}")
    unknown = [str(k) for k in given if k not in KEYS]
    if unknown:
        raise ValueError(f"{where}: unknown key {', '.join(unknown)}; valid keys: {', '.join(KEYS)}")
    missing = [k for k in ("loader", "modalities", "licence") if given.get(k) in (None, "", [])]
    if missing:
        raise ValueError(f"{where}: missing {', '.join(missing)}")
    for key, value in given.items():
        wanted = list if key in _LISTS else dict if key == "batch_size" else str
        if value is not None and not isinstance(value, wanted):
            raise ValueError(f"{where}: {key} must be a {wanted.__name__}, not {value!r}")
    values = {k: tuple(map(str, v)) if k in _LISTS else v for k, v in given.items() if v is not None}
    entry = ModelEntry(name=name, **values)
    _one_of(where, "loader", [entry.loader], LOADERS)
    _one_of(where, "modalities", entry.modalities, MODALITIES)
    _one_of(where, "dtype", [entry.dtype], DTYPES)
    _one_of(where, "batch_size", entry.batch_size, MODALITIES)
    for modality, size in entry.batch_size.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{where}: batch_size of {modality} must be a whole number >= 1, not {size!r}")
    for key, digits in (("revision", 40), ("sha256", 64)):
        value = getattr(entry, key)
        if value is not None and not re.fullmatch(rf"[0-9a-f]{{{digits}}}", value):
            raise ValueError(f"{where}: {key} must be {digits} lower-case hex digits, not {value!r}")
    if entry.published_row and entry.stands_for:
        raise ValueError(
            f"{where}: give published_row (the model itself) or stands_for (a miniature), not both"
        )
    for key in ("published_row", "stands_for"):
        if getattr(entry, key):
            _one_of(where, key, [getattr(entry, key)], paper_models())
    _check_source(entry, where)
    return entry


def _check_source(entry: ModelEntry, where: str) -> None:
    """Weights come from somewhere, and from the Hub only at a pinned revision with named files."""
    if entry.loader in ("bag_of_words", "chance"):
        return
    if entry.id and not (entry.revision and entry.files):
        raise ValueError(f"{where}: a Hub id needs the pinned revision and the list of files to fetch")
    if entry.made_by and (entry.id or entry.folder or entry.package):
        raise ValueError(f"{where}: made_by names the notebook that makes the model; give no other source")
    if not (entry.id or entry.folder or entry.package or entry.made_by):
        raise ValueError(f"{where}: give a folder, a package, made_by, or id + revision + files")
    if bool(entry.architecture) != bool(entry.pretrained):
        raise ValueError(f"{where}: architecture and pretrained (open_clip's names) belong together")
    if entry.architecture and not entry.files:
        raise ValueError(f"{where}: an architecture of open_clip needs files: [the weights file]")


def _one_of(where: str, key: str, values, valid) -> None:
    wrong = [str(v) for v in values if v not in valid]
    if wrong:
        raise ValueError(f"{where}: unknown {key} {', '.join(wrong)}; valid: {', '.join(valid)}")
