"""The one call that every scoring notebook begins with."""

from dataclasses import replace

import pytest

from saber.benchmark import write_benchmark
from saber.images import make_backend
from saber.images.screening import record_verdict, regenerate_rejected
from saber.prepare import prepare_saber
from saber.validate import violations

PARAMETERS = {
    "saber_source": "build",
    "saber_path": "",
    "saber_seed": 1,
    "saber_vocabulary": "known",
    "saber_questions_per_count": 2,
    "saber_object_counts": [2, 3],
    "image_backend": "sprites",
    "image_size": 96,
    "image_options": {},
}


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_OUTPUTS", str(tmp_path))
    return tmp_path / "toy"


def test_builds_what_is_missing_and_loads_what_is_there(outputs):
    benchmark = prepare_saber("toy", **PARAMETERS)
    assert violations(benchmark.folder) == [] and benchmark.folder.is_relative_to(outputs)
    before = {p: p.stat().st_mtime_ns for p in benchmark.folder.rglob("*.png")}
    assert len(before) == len(benchmark.items) == 20
    assert prepare_saber("toy", **PARAMETERS) == benchmark
    assert {p: p.stat().st_mtime_ns for p in benchmark.folder.rglob("*.png")} == before


def test_another_seed_makes_other_images(outputs):
    first = prepare_saber("toy", **PARAMETERS)
    pixels = {item.id: first.image_path(item).read_bytes() for item in first.items.values()}
    second = prepare_saber("toy", **{**PARAMETERS, "saber_seed": 2})
    assert any(second.image_path(i).read_bytes() != pixels.get(i.id) for i in second.items.values())
    assert violations(second.folder) == []


def test_a_folder_comes_with_its_images(outputs, tmp_path):
    built = prepare_saber("toy", **PARAMETERS)
    again = prepare_saber(
        "other", **{**PARAMETERS, "saber_source": "folder", "saber_path": str(built.folder)}
    )
    assert again == built and all(again.image_path(i).is_file() for i in again.items.values())


def test_pictures_rejected_in_screening_keep_their_new_seed(outputs):
    built = prepare_saber("toy", **PARAMETERS)
    rejected = built.queries[0].id
    record_verdict(built, rejected, "reject", "too small")
    regenerate_rejected(built, make_backend("sprites"), PARAMETERS["image_size"])
    again = prepare_saber("toy", **PARAMETERS)
    assert again.items[rejected].seed != built.items[rejected].seed
    assert {i for i in built.items if again.items[i] != built.items[i]} == {rejected}


def test_unknown_words_name_the_valid_ones(outputs):
    with pytest.raises(ValueError, match="build"):
        prepare_saber("toy", **{**PARAMETERS, "saber_source": "internet"})
    with pytest.raises(ValueError, match="sprites"):
        prepare_saber("toy", **{**PARAMETERS, "image_backend": "paint"})


def test_a_benchmark_with_a_wrong_key_is_not_scored(outputs, tmp_path):
    built = prepare_saber("toy", **PARAMETERS)
    questions = [replace(q, candidates=q.candidates[::-1]) for q in built.questions]
    wrong = write_benchmark(replace(built, questions=tuple(questions)), tmp_path / "wrong")
    with pytest.raises(ValueError, match=r"preserved"):
        prepare_saber("other", **{**PARAMETERS, "saber_source": "folder", "saber_path": str(wrong.folder)})


@pytest.mark.parametrize("change", [{"image_size": 50}, {"saber_object_counts": [2, 11]}])
def test_what_sprites_cannot_draw_is_said_before_anything_is_written(outputs, change):
    with pytest.raises(ValueError, match="at least 96 and at most 10 objects"):
        prepare_saber("toy", **{**PARAMETERS, **change})
    assert not outputs.exists()


def test_options_reach_the_image_backend(outputs):
    with pytest.raises(ValueError, match="max_price"):
        prepare_saber("toy", **{**PARAMETERS, "image_options": {"max_price": 3}})
