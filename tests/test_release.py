"""saber.release: other layouts and names of the same data give the same benchmark, the rest a clear error."""

import json

import pytest

from saber.benchmark import ROLES, build_benchmark
from saber.release import map_columns
from saber.vocabulary import load_vocabulary

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc00000030101"
    "00c9fe92ef0000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def benchmark():
    return build_benchmark(load_vocabulary("known"), seed=4, questions_per_count=4, object_counts=[2, 3, 5])


def _items(benchmark, question):
    return [benchmark.items[i] for i in (question.query, *question.candidates)]


def _about(question):
    return {"subset": question.subset, "chain": question.chain}


def _flat(benchmark):
    """A row per item, with our own field names."""
    for question in benchmark.questions:
        for item in _items(benchmark, question):
            yield {
                "id": item.id,
                "question": question.id,
                "role": item.role,
                **_about(question),
                "pairs": [list(p) for p in item.pairs],
                "text": item.text,
                "generation_text": item.generation_text,
                "appearances": list(item.appearances),
            }


def _structs(benchmark):
    """A row per question, candidates as a list of structs, in an order that says nothing."""
    for number, question in enumerate(benchmark.questions):
        query, *candidates = [{"caption": i.text, "id": i.id} for i in _items(benchmark, question)]
        turned = candidates[number % 4 :] + candidates[: number % 4]
        yield {"id": question.id, **_about(question), "query": query, "candidates": turned}


def _columns(benchmark):
    """A row per question, a column for each caption, under names of the paper."""
    names = ("Query Caption", "binding-preserving_caption", *(f"{r}_text" for r in ROLES[2:]))
    for question in benchmark.questions:
        texts = [i.text + "." for i in _items(benchmark, question)]
        yield {"mcq_id": question.id, **_about(question), **dict(zip(names, texts, strict=True))}


def _numbered(benchmark):
    for question in benchmark.questions:
        query, *candidates = _items(benchmark, question)
        columns = {f"candidate_{n}_text": c.text for n, c in enumerate(reversed(candidates))}
        yield {"id": question.id, **_about(question), "query_text": query.text, **columns, "label": 3}


def _lists(benchmark):
    """Parallel lists of captions and pairs, and no chain of independent questions, only their subset."""
    for question in benchmark.questions:
        query, *candidates = _items(benchmark, question)
        yield {
            "id": question.id,
            "split": f"{question.subset}_test",
            "chain_id": question.chain or "",
            "num_objects": question.n_objects,
            "query": query.text,
            "candidate_texts": [c.text for c in candidates],
            "candidate_pairs": [[{"attribute": a, "object": o} for a, o in c.pairs] for c in candidates],
        }


def _core(benchmark):
    """What every layout must give back."""
    return [
        (q.id, q.n_objects, q.subset, q.chain, [(i.role, i.pairs) for i in _items(benchmark, q)])
        for q in benchmark.questions
    ]


@pytest.mark.parametrize("layout", [_flat, _structs, _columns, _numbered, _lists])
def test_layouts_give_the_same_questions(benchmark, layout):
    found = map_columns(layout(benchmark))
    assert _core(found) == _core(benchmark)
    assert all(item.image is None for item in found.items.values())
    assert found.folder is None


def test_all_fields_of_our_own_names_survive(benchmark):
    found = map_columns(_flat(benchmark))
    for item in benchmark.items.values():
        other = found.items[item.id]
        assert (other.text, other.generation_text) == (item.text, item.generation_text)
        assert other.appearances == item.appearances
    assert found.questions == benchmark.questions


def test_pairs_alone_or_as_json_and_numbered_roles(benchmark):
    rows = []
    for row in _flat(benchmark):
        number = ROLES.index(row["role"])
        row |= {"pairs": json.dumps(row["pairs"]), "role": f"Candidate {number}" if number else "query"}
        rows.append({k: v for k, v in row.items() if k != "text"})
    found = map_columns(rows)
    assert _core(found) == _core(benchmark)
    assert [i.text for i in found.queries] == [i.text for i in benchmark.queries]


def test_images_are_written_under_the_item_id(benchmark, tmp_path):
    rows = [row | {"image": {"bytes": PNG, "path": "x.png"}} for row in _flat(benchmark)]
    found = map_columns(iter(rows), tmp_path)
    assert found.folder == tmp_path
    for item in found.items.values():
        assert found.image_path(item).read_bytes() == PNG
    assert len(list((tmp_path / "images").iterdir())) == len(benchmark.items)


def test_candidate_images_in_lists_stay_with_their_captions(benchmark, tmp_path):
    from PIL import Image

    rows = []
    for question in benchmark.questions:
        query, *candidates = _items(benchmark, question)
        for item in (query, *candidates):
            Image.new("RGB", (2, 2), (ROLES.index(item.role), 0, 0)).save(tmp_path / f"{item.id}.png")
        rows.append(
            {
                "id": question.id,
                **_about(question),
                "query": query.text,
                "query_image": f"{query.id}.png",
                "candidates": [c.text for c in candidates][::-1],
                "candidate_images": [f"{c.id}.png" for c in candidates][::-1],
            }
        )
    found = map_columns(rows, tmp_path / "out", tmp_path)
    for item in found.items.values():
        with Image.open(found.image_path(item)) as image:
            assert image.getpixel((0, 0)) == (ROLES.index(item.role), 0, 0)


def _rows(benchmark, **changes):
    row = next(_numbered(benchmark))
    return [{k: v for k, v in (row | changes).items() if v is not ...}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_text": ...}, "no columns for query, preserved, attribute_swap"),
        ({"candidate_3_text": ...}, "3 candidates instead of four"),
        ({"candidate_3_text": "A red cube"}, "0 candidates have the bindings of the query"),
        ({"candidate_0_text": "What is this?"}, "not a caption of the form"),
        ({"subset": "hard", "chain": ...}, "independent or nested"),
        ({"candidate_4_text": "A red cube"}, "5 candidates instead of four"),
    ],
)
def test_errors_show_columns_row_and_what_is_expected(benchmark, changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        map_columns(_rows(benchmark, **changes))
    text = str(caught.value)
    assert text.startswith("row 0 of this dataset cannot be mapped to SABER")
    assert "columns found: id, " in text
    assert "'label': '3'" in text
    assert "expected either a row per question" in text and "saber/release.py" in text


def test_unknown_columns_with_an_image_are_shown_without_their_bytes():
    row = {"anchor": {"bytes": PNG, "path": "a.png"}, "blob": PNG, "words": ["red"] * 80}
    with pytest.raises(ValueError, match="no columns of a query and candidates") as caught:
        map_columns([row])
    text = str(caught.value)
    assert f"<image of {len(PNG)} bytes, path 'a.png'>" in text and f"<{len(PNG)} bytes>" in text
    assert len(text) < 1200


def test_candidates_that_break_the_rules_cannot_be_told_apart(benchmark):
    row = next(_numbered(benchmark))
    row["candidate_1_text"] = row["candidate_2_text"]
    with pytest.raises(ValueError, match=r"do not follow A\.2: among the four only"):
        map_columns([row])


def test_incomplete_and_repeated_questions(benchmark):
    rows = list(_flat(benchmark))
    with pytest.raises(ValueError, match=r"'ind-n02-0000' has no item of role object_swap$"):
        map_columns(rows[:3] + rows[4:])
    with pytest.raises(ValueError, match=r"row 5 .* two items of role 'query'"):
        map_columns(rows[:5] + rows[:1])
    rows[5]["id"] = rows[0]["id"]
    with pytest.raises(ValueError, match="item id 'ind-n02-0000-query' was used by another question"):
        map_columns(rows)
    with pytest.raises(ValueError, match="no rows"):
        map_columns([])


def test_pairs_of_another_form(benchmark):
    rows = list(_flat(benchmark))
    rows[0]["pairs"] = [["red", "cube", "left"], ["blue", "kite", "right"]]
    with pytest.raises(ValueError, match=r"pairs must be a list of \[attribute, object\]"):
        map_columns(rows)
