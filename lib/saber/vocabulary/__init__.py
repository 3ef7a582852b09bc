"""The building blocks of SABER: 232 objects, 50 attributes and the palette (section A.1, Table 7).

Both lists are data files beside this module, ``objects.yaml`` and ``attributes.yaml``. An attribute has a
text form, its name ("striped"), and a generation form that says how it looks ("white and orange striped").
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from pathlib import Path

import numpy as np
import yaml

FOLDER = Path(__file__).parent
CATEGORIES = {"basic color": 9, "other color": 2, "metallic": 3, "material": 19, "pattern": 15, "effect": 2}
TYPES = {"standalone": 27, "single-color": 4, "two-color": 6, "fixed-variant": 13}
N_OBJECTS, N_KNOWN_OBJECTS, N_KNOWN_ATTRIBUTES, N_COLORS = 232, 64, 24, 9

_BRACES = re.compile(r"\{([^{}]*)\}")
_SLOTS = {"standalone": [], "single-color": ["color"], "two-color": ["color 1", "color 2"]}


@dataclass(frozen=True)
class Object:
    """One everyday object; ``sprite`` is the stem of its picture in ``saber/images/sprites``."""

    name: str
    sprite: str
    category: str
    known: bool


@dataclass(frozen=True)
class Attribute:
    """One visual attribute; ``variants``: the generation forms of a fixed-variant one, otherwise ``()``."""

    name: str
    category: str
    type: str
    generation: str
    variants: tuple[str, ...]
    known: bool


@dataclass(frozen=True)
class Vocabulary:
    """Objects and attributes in the order of their files, and the names of the palette's colors."""

    objects: tuple[Object, ...]
    attributes: tuple[Attribute, ...]
    palette: tuple[str, ...]

    def object(self, name: str) -> Object:
        """The object of that name; KeyError with near names otherwise."""
        return _find(self.objects, name, "object")

    def attribute(self, name: str) -> Attribute:
        """The attribute of that name; KeyError with near names otherwise."""
        return _find(self.attributes, name, "attribute")

    def known(self) -> "Vocabulary":
        """The mini vocabulary: the part that the shipped small models are trained on."""
        keep = [tuple(x for x in group if x.known) for group in (self.objects, self.attributes)]
        return replace(self, objects=keep[0], attributes=keep[1])


def load_vocabulary(which: str = "full", folder: Path = FOLDER) -> Vocabulary:
    """Read and check the vocabulary.

    which: "full" (232 objects, 50 attributes) or "known" (64 and 24, section "mini vocabulary" of the files).
    folder: where ``objects.yaml`` and ``attributes.yaml`` lie.
    Raises ValueError that names file, entry and what is expected.
    """
    if which not in ("full", "known"):
        raise ValueError(f"unknown vocabulary {which!r}; choose 'full' or 'known'")
    attributes, palette = load_attributes(Path(folder) / "attributes.yaml")
    objects = load_objects(Path(folder) / "objects.yaml")
    vocabulary = Vocabulary(objects, attributes, tuple(palette))
    return vocabulary if which == "full" else vocabulary.known()


@lru_cache(maxsize=8)
def load_objects(path: Path = FOLDER / "objects.yaml") -> tuple[Object, ...]:
    """The 232 objects, sorted by name. Raises ValueError on anything that does not fit."""
    entries = [
        Object(**_fields(e, path, i, ("name", "sprite", "category", "known")))
        for i, e in enumerate(_read(path))
    ]
    _check_unique([o.name for o in entries], path, "name")
    _check_unique([o.sprite for o in entries], path, "sprite")
    names = [o.name for o in entries]
    if names != sorted(names):
        first = next(a for a, b in zip(names, sorted(names), strict=True) if a != b)
        raise ValueError(f"{path}: objects must be sorted by name; {first!r} is the first out of place")
    _check_count(path, "objects", len(entries), N_OBJECTS)
    _check_count(path, "objects with known: true", sum(o.known for o in entries), N_KNOWN_OBJECTS)
    return tuple(entries)


@lru_cache(maxsize=8)
def load_attributes(
    path: Path = FOLDER / "attributes.yaml",
) -> tuple[tuple[Attribute, ...], dict[str, tuple[int, int, int]]]:
    """The 50 attributes and the palette as ``{name: (r, g, b)}`` with values 0 to 255.

    Raises ValueError when a count of section A.1 or Table 7, a template or a name does not fit.
    """
    data = _read(path)
    if not isinstance(data, dict) or set(data) != {"palette", "attributes"}:
        raise ValueError(f"{path}: expected the two keys 'palette' and 'attributes'")
    palette = {}
    for name, rgb in data["palette"].items():
        if len(rgb) != 3 or not all(isinstance(v, int) and 0 <= v <= 255 for v in rgb):
            raise ValueError(f"{path}: palette color {name!r} needs three integers 0 to 255, not {rgb}")
        palette[name] = tuple(rgb)
    _check_count(path, "palette colors", len(palette), N_COLORS)
    entries = tuple(_attribute(e, path, i) for i, e in enumerate(data["attributes"]))
    _check_unique([a.name for a in entries], path, "name")
    for field, expected in (("category", CATEGORIES), ("type", TYPES)):
        found = Counter(getattr(a, field) for a in entries)
        for key, n in expected.items():
            _check_count(path, f"attributes of {field} {key!r}", found[key], n)
    _check_count(path, "attributes with known: true", sum(a.known for a in entries), N_KNOWN_ATTRIBUTES)
    _check_unique([x for a in entries for x in appearances(a, tuple(palette))], path, "appearance")
    return entries, palette


def appearances(attribute: Attribute, palette: Sequence[str]) -> tuple[str, ...]:
    """Every generation form the attribute can take, for example 72 for a two-color one and nine colors."""
    return _appearances(attribute, tuple(palette))


@lru_cache(maxsize=512)
def _appearances(attribute: Attribute, palette: tuple[str, ...]) -> tuple[str, ...]:
    if attribute.type == "fixed-variant":
        return attribute.variants
    if attribute.type == "standalone":
        return (attribute.generation,)
    slots = [f"{{{s}}}" for s in _SLOTS[attribute.type]]
    forms = []
    for colors in permutations(palette, len(slots)):
        form = attribute.generation
        for slot, color in zip(slots, colors, strict=True):
            form = form.replace(slot, color)
        forms.append(form)
    return tuple(forms)


def instantiate(attribute: Attribute, palette: Sequence[str], rng: np.random.Generator) -> str:
    """One of the attribute's generation forms, each with equal probability."""
    forms = appearances(attribute, palette)
    return forms[int(rng.integers(len(forms)))]


def _attribute(entry: dict, path: Path, index: int) -> Attribute:
    if not isinstance(entry, dict):
        raise ValueError(f"{path}: attribute {index + 1} must be a mapping; found {entry!r}")
    e = _fields(
        {"generation": entry.get("name"), **entry},
        path,
        index,
        ("name", "category", "type", "generation", "known"),
    )
    where = f"{path}: attribute {e['name']!r}"
    for field, valid in (("category", CATEGORIES), ("type", TYPES)):
        if e[field] not in valid:
            raise ValueError(f"{where}: unknown {field} {e[field]!r}; valid: {', '.join(valid)}")
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", e["name"]):
        raise ValueError(f"{where}: a name is one lower-case word or several joined by hyphens")
    slots = _BRACES.findall(e["generation"])
    variants: tuple[str, ...] = ()
    if e["type"] == "fixed-variant":
        if len(slots) != 1 or "," not in slots[0]:
            raise ValueError(f"{where}: generation {e['generation']!r} needs one '{{variant, variant}}'")
        variants = tuple(_BRACES.sub(v.strip(), e["generation"]) for v in slots[0].split(","))
    elif slots != _SLOTS[e["type"]]:
        expected = " and ".join(f"{{{s}}}" for s in _SLOTS[e["type"]]) or "no slot"
        raise ValueError(f"{where}: generation {e['generation']!r} must hold {expected} for type {e['type']}")
    return Attribute(variants=variants, **e)


def _read(path: Path):
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"vocabulary file missing: {path}; it belongs to the package saber.vocabulary"
        )
    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


def _fields(entry: dict, path: Path, index: int, names: Sequence[str]) -> dict:
    if not isinstance(entry, dict) or set(entry) != set(names):
        raise ValueError(f"{path}: entry {index + 1} must have exactly {', '.join(names)}; found {entry}")
    for name in names:
        kind = bool if name == "known" else str
        if not isinstance(entry[name], kind):
            raise ValueError(
                f"{path}: entry {index + 1}: {name} must be {kind.__name__}, not {entry[name]!r}"
            )
    return entry


def _find(group, name, kind):
    for x in group:
        if x.name == name:
            return x
    from difflib import get_close_matches

    near = get_close_matches(name, [x.name for x in group], n=3) or [x.name for x in group][:5]
    raise KeyError(f"unknown {kind} {name!r}; near names: {', '.join(near)}")


def _check_count(path, what, found, expected):
    if found != expected:
        raise ValueError(f"{path}: {found} {what}, expected {expected}")


def _check_unique(values, path, what):
    twice = sorted(v for v, n in Counter(values).items() if n > 1)
    if twice:
        raise ValueError(f"{path}: {what} given twice: {', '.join(twice)}")
