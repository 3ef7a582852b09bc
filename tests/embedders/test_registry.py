import pytest

from saber.embedders import load_registry
from saber.embedders.registry import KEYS, find_entry

GOOD = "{loader: bag_of_words, modalities: [text], licence: MIT"


def write(tmp_path, text):
    path = tmp_path / "models é.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_shipped_registry():
    registry = load_registry()
    assert {
        "mini-clip",
        "all-MiniLM-L6-v2",
        "bag-of-words",
        "chance",
        "clip-vit-b-32",
        "pe-core-bigg-14-448",
    } <= (set(registry))
    for entry in registry.values():
        assert entry.licence and entry.modalities
        somewhere = entry.folder or entry.made_by or (entry.id and entry.revision)
        assert entry.loader in ("bag_of_words", "chance") or somewhere
    assert registry["all-MiniLM-L6-v2"].modalities == ("text",)
    assert registry["mini-clip"].paper_row == registry["clip-vit-b-32"].paper_row == "CLIP ViT-B/32"
    assert registry["mini-clip"].published_row is None
    assert registry["bag-of-words"].paper_row is None


def test_rows_of_the_paper_exist_in_its_tables():
    from saber.published import lookup

    for entry in load_registry().values():
        if entry.paper_row:
            assert 0 < lookup(2, entry.paper_row, "MCQ Mean") < 100


def test_models_that_notebooks_make_lie_in_the_profiles_outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_OUTPUTS", str(tmp_path / "out"))
    text = "own: {loader: open_clip, modalities: [text], licence: MIT, made_by: 03_finetuning}"
    path = write(tmp_path, text)
    assert load_registry(path)["own"].folder is None
    assert load_registry(path, "smoke")["own"].folder == str(tmp_path / "out" / "smoke" / "models" / "own")
    with pytest.raises(ValueError, match=r"made_by names the notebook.*give no other source"):
        load_registry(write(tmp_path, text.replace("}", ", folder: m}")))


def test_defaults_and_order(tmp_path):
    registry = load_registry(write(tmp_path, f"b: {GOOD}}}\na: {GOOD}, note: hello}}\n"))
    assert list(registry) == ["b", "a"]
    assert registry["a"].note == "hello"
    assert registry["a"].dtype == "fp32" and registry["a"].batch_size == {} and registry["a"].sha256 is None


@pytest.mark.parametrize(
    "entry, message",
    [
        (GOOD + ", dim: 3}", r"unknown key dim; valid keys: loader, modalities, licence, .*stands_for, note"),
        ("{loader: bag_of_words, licence: MIT}", "missing modalities"),
        ("{}", "missing loader, modalities, licence"),
        ("[a]", "valid keys: loader"),
        ("{loader: clip, modalities: [text], licence: MIT}", "unknown loader clip; valid: open_clip, "),
        (
            "{loader: chance, modalities: [text, sound], licence: MIT}",
            "unknown modalities sound; valid: text",
        ),
        ("{loader: chance, modalities: text, licence: MIT}", "modalities must be a list"),
        (GOOD + ", dtype: half}", "unknown dtype half; valid: fp32, bf16, fp16"),
        (GOOD + ", batch_size: {texts: 3}}", "unknown batch_size texts; valid: text, image"),
        (GOOD + ", batch_size: {text: 0}}", "batch_size of text must be a whole number >= 1"),
        (GOOD + ", revision: main}", "revision must be 40 lower-case hex digits, not 'main'"),
        (GOOD + ", sha256: abc}", "sha256 must be 64"),
        (GOOD + ", published_row: A, stands_for: B}", "not both"),
        (GOOD + ", published_row: CLIP B32}", "unknown published_row CLIP B32; valid: CLIP ViT-B/32"),
        (GOOD + ", note: 3}", "note must be a str, not 3"),
        ("{loader: open_clip, modalities: [text], licence: MIT}", "give a folder, a package, made_by, or id"),
        ("{loader: open_clip, modalities: [text], licence: MIT, id: o/m}", "needs the pinned revision"),
        (
            "{loader: open_clip, modalities: [text], licence: MIT, folder: f, architecture: A}",
            "belong together",
        ),
        (
            GOOD.replace("bag_of_words", "open_clip") + ", folder: f, architecture: A, pretrained: p}",
            "needs files",
        ),
    ],
)
def test_errors_name_file_entry_and_what_is_valid(tmp_path, entry, message):
    path = write(tmp_path, f"fine: {GOOD}}}\nmine: {entry}\n")
    with pytest.raises(ValueError, match=message) as caught:
        load_registry(path)
    assert str(caught.value).startswith(f"{path}, entry 'mine': ")


def test_files_that_are_no_registry(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"params/models\.yaml"):
        load_registry(tmp_path / "none.yaml")
    for text, message in [
        ("", "expected a mapping"),
        ("a: [", "not valid YAML"),
        ("- a", "expected a mapping"),
    ]:
        with pytest.raises(ValueError, match=message):
            load_registry(write(tmp_path, text))


def test_a_name_or_key_given_twice(tmp_path):
    with pytest.raises(ValueError, match=r"given twice .* line 1: a"):
        load_registry(write(tmp_path, f"a: {GOOD}}}\na: {GOOD}}}\n"))
    with pytest.raises(ValueError, match=r"given twice.*: note"):
        load_registry(write(tmp_path, f"a: {GOOD}, note: x, note: y}}\n"))


def test_unknown_name_lists_the_names(tmp_path):
    registry = load_registry(write(tmp_path, f"one: {GOOD}}}\ntwo: {GOOD}}}\n"))
    assert find_entry("two", registry).name == "two"
    with pytest.raises(KeyError, match="no model 'three' in the registry; there are: one, two"):
        find_entry("three", registry)


def test_keys_are_those_of_the_entry():
    assert "name" not in KEYS and KEYS[:3] == ("loader", "modalities", "licence")
