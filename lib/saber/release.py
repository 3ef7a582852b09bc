"""Map a released SABER of another file format onto our own types.

The format of the authors' release was not known when this was written. `map_columns` knows our field names
and the likeliest other ones (``NAMES``), in two layouts, and otherwise says what it found and expects:

- a row per question: query and candidates as structs or captions (``query``, ``candidates``), as columns with
  a prefix (``query_text``, ``candidate_1_image``, ``joint_swap_caption``) or as lists (``candidate_texts``);
- a row per item, with the id of its question and its role.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from saber.benchmark_files import store_image
from saber.captions import caption, pairs_of_caption
from saber.items import ROLES, Benchmark, Item, Question
from saber.scenes import CANDIDATE_ROLES, Pairs, bindings

# What a column may be called, in lower case with "_" for "-" and blanks; our own name first.
NAMES = {
    "id": ("id", "item_id"),
    "question": ("question", "question_id", "mcq_id", "example_id", "id"),
    "role": ("role", "candidate_type", "type"),
    "n_objects": ("n_objects", "num_objects", "object_count", "num_bindings", "n"),
    "subset": ("subset", "type", "split", "config"),
    "chain": ("chain", "chain_id"),
    "text": ("text", "caption", "text_form"),
    "generation_text": ("generation_text", "generation_caption", "generation_form"),
    "pairs": ("pairs", "bindings"),
    "appearances": ("appearances",),
    "image": ("image", "image_path", "file_name"),
}
ROLE_NAMES = {r: r for r in ROLES} | {"positive": "preserved", "binding_preserving": "preserved"}
_NUMBERED_ROLES = {f"candidate_{n}": role for n, role in enumerate(CANDIDATE_ROLES, start=1)}  # as A.2 does
ITEM_FIELDS = ("id", "role", "text", "generation_text", "pairs", "appearances", "image")
_FIELD_OF = {name: field for field in ITEM_FIELDS for name in NAMES[field]}
_ITEM_COLUMN = re.compile(
    rf"(?P<who>{'|'.join(ROLE_NAMES)}|(?:candidate|option|choice)s?)"
    rf"(?:_(?P<number>\d+))?(?:_(?P<field>{'|'.join(_FIELD_OF)})s?)?(?:_(?P<place>\d+))?"
)
_CANDIDATE_LIST = re.compile(rf"(candidate|option|choice)s?(_({'|'.join(_FIELD_OF)})s?)?")


def map_columns(rows: Iterable[Mapping], folder: Path | None = None, root: Path | None = None) -> Benchmark:
    """Rows of a dataset, in either layout, as a benchmark.

    rows: plain mappings; images as ``{"bytes", "path"}`` (as the `datasets` library stores them) or as paths.
    folder: where image files go, as ``images/<item id>.<suffix>``; None leaves the images out.
    root: the folder that image paths in the rows are relative to.

    Pairs are read from the caption where no column holds them. Numbered columns or lists of candidates are
    told apart by the rules of A.2, whatever their order. Raises ValueError with the trouble, the columns
    found, a sample row and what is expected.
    """
    questions: dict[str, dict] = {}  # id -> what is known of the question
    scenes: dict[str, dict[str, dict]] = {}  # id -> role -> fields of the item
    for number, original in enumerate(rows):
        row = {_plain(k): v for k, v in original.items()}
        try:
            found = _items_of_row(row)
            key = str(_get(row, "question") if _get(row, "question") is not None else f"q{number:05d}")
            questions.setdefault(key, _about(row))
            for role, fields in found.items():
                if role in scenes.setdefault(key, {}):
                    raise ValueError(f"question {key!r} has two items of role {role!r}")
                fields["id"] = str(fields.get("id") or f"{key}-{role.replace('_', '-')}")
                fields["pairs"] = _pairs(fields)
                fields["image"] = store_image(fields.get("image"), fields["id"], folder, root)
                scenes[key][role] = fields
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(_explain(number, original, error)) from error
    if not questions:
        raise ValueError("the dataset has no rows")
    made, items = [], {}
    for key, about in questions.items():
        missing = [role for role in ROLES if role not in scenes[key]]
        if missing:
            raise ValueError(f"question {key!r} has no item of role {', '.join(missing)}")
        own = [_item(key, role, scenes[key][role]) for role in ROLES]
        twice = [item.id for item in own if item.id in items]
        if twice:
            raise ValueError(f"question {key!r}: item id {twice[0]!r} was used by another question")
        items |= {item.id: item for item in own}
        n_objects = int(about["n_objects"] or len(own[0].pairs))
        ids = tuple(item.id for item in own)
        made.append(Question(key, n_objects, about["subset"], about["chain"], ids[0], ids[1:]))
    return Benchmark(tuple(made), items, folder)


def _plain(name: object) -> str:
    return str(name).strip().lower().replace("-", "_").replace(" ", "_")


def _get(row: Mapping, field: str):
    return next((row[name] for name in NAMES[field] if row.get(name) is not None), None)


def _items_of_row(row: Mapping) -> dict[str, dict]:
    """Role -> item fields: all five of a row that holds a question, the one of a row that holds an item."""
    found: dict[str, dict] = {}
    for name, value in _cells(row):
        match = _ITEM_COLUMN.fullmatch(name)
        if not match or value is None:
            continue
        who = ROLE_NAMES.get(match["who"]) or f"candidate {match['number'] or match['place']}"
        field = _FIELD_OF[match["field"]] if match["field"] else "text" if isinstance(value, str) else "image"
        found.setdefault(who, {})[field] = value
    if not found:
        role = (ROLE_NAMES | _NUMBERED_ROLES).get(_plain(_get(row, "role")))
        if role is None:
            raise ValueError("no columns of a query and candidates, and no role of a single item")
        return {role: {f: _get(row, f) for f in ITEM_FIELDS}}
    named = {role: found[role] for role in ROLES if role in found}
    numbered = [fields for who, fields in found.items() if who not in named]
    if numbered and "query" in named:
        named |= _tell_apart(named["query"], numbered)
    missing = [role for role in ROLES if role not in named]
    if missing:
        raise ValueError(f"no columns for {', '.join(missing)}")
    return named


def _cells(row: Mapping, prefix: str = "") -> Iterator[tuple[str, object]]:
    """(column, value) with structs and lists of candidates taken apart: ``candidates_2_text``."""
    for key, value in row.items():
        name = prefix + _plain(key)
        if isinstance(value, Mapping) and not set(value) <= {"bytes", "path"}:
            yield from _cells(value, f"{name}_")
        elif isinstance(value, list) and _CANDIDATE_LIST.fullmatch(name):
            yield from _cells({f"{name}_{n}": v for n, v in enumerate(value, start=1)})
        else:
            yield name, value


def _tell_apart(query: dict, candidates: list[dict]) -> dict[str, dict]:
    """Roles of the four candidates by the structure that A.2 gives them."""
    if len(candidates) != 4:
        raise ValueError(f"{len(candidates)} candidates instead of four")
    pairs = [_pairs(c) for c in candidates]
    right = [p for p in pairs if bindings(p) == bindings(_pairs(query))]
    if len(right) != 1:
        raise ValueError(f"{len(right)} candidates have the bindings of the query, instead of one")
    attributes, objects = zip(*right[0], strict=True)
    found: dict[str, dict] = {}
    for candidate, scene in zip(candidates, pairs, strict=True):
        own = tuple(zip(*scene, strict=True))
        permuted = sorted(own[0]) == sorted(attributes) and sorted(own[1]) == sorted(objects)
        if scene == right[0]:
            role = "preserved"
        elif permuted and own[1] == objects:
            role = "attribute_swap"
        elif permuted and own[0] == attributes:
            role = "object_swap"
        else:
            role = "joint_swap"
        found[role] = candidate
    if len(found) != 4:
        raise ValueError(f"candidates do not follow A.2: among the four only {', '.join(found)} are found")
    return found


def _about(row: Mapping) -> dict:
    """What a row says of its question: object count, subset and chain."""
    chain = _get(row, "chain") or None
    said = [_plain(row[n]) for n in NAMES["subset"] if row.get(n) is not None]
    subsets = {"nested" for v in said if re.search("nest|chain", v)} | {
        "independent" for v in said if "independent" in v
    }
    if not subsets and any(n in row for n in NAMES["chain"]):
        subsets = {"independent" if chain is None else "nested"}
    if len(subsets) != 1:
        raise ValueError("no column says whether the question is independent or nested")
    return {"n_objects": _get(row, "n_objects"), "subset": subsets.pop(), "chain": chain and str(chain)}


def _pairs(fields: Mapping) -> Pairs:
    value = fields.get("pairs")
    if value is None:
        if not fields.get("text"):
            raise ValueError("an item without pairs and without caption")
        return pairs_of_caption(fields["text"])
    value = json.loads(value) if isinstance(value, str) else value
    both = [(p.get("attribute"), p.get("object")) if isinstance(p, Mapping) else p for p in value]
    pairs = tuple(tuple(p) for p in both)
    if not pairs or any(len(p) != 2 or not all(isinstance(x, str) for x in p) for p in pairs):
        raise ValueError(f"pairs must be a list of [attribute, object], not {value!r}")
    return pairs


def _item(question: str, role: str, fields: Mapping) -> Item:
    return Item(
        id=fields["id"],
        question=question,
        role=role,
        pairs=fields["pairs"],
        text=fields.get("text") or caption(fields["pairs"]),
        generation_text=fields.get("generation_text") or "",
        appearances=tuple(fields.get("appearances") or ()),
        image=fields["image"],
    )


def _explain(number: int, row: Mapping, error: Exception) -> str:
    return (
        f"row {number} of this dataset cannot be mapped to SABER: {error}.\n"
        f"  columns found: {', '.join(map(str, row))}\n"
        f"  the row: { {k: _short(v) for k, v in row.items()} }\n"
        f"  expected either a row per question: question, subset (independent or nested), chain, query and "
        f"four candidates as structs or columns such as query_text, query_image, candidate_1_text;\n"
        f"  or a row per item: question, role ({', '.join(ROLES)}), text or pairs, image, subset, chain.\n"
        f"  Other names of these columns can be added to NAMES in saber/release.py."
    )


def _short(value) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("bytes"), bytes):
        return f"<image of {len(value['bytes'])} bytes, path {value.get('path')!r}>"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    text = repr([_short(v) for v in value] if isinstance(value, list) else value)
    return text if len(text) <= 100 else text[:97] + "..."
