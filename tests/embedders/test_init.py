import subprocess
import sys

import pytest

from saber.embedders import load_embedder, load_registry
from saber.embedders.registry import ModelEntry


def test_names_that_do_not_load():
    with pytest.raises(KeyError, match="no model 'clip' in the registry; there are: mini-qwen3-vl, "):
        load_embedder("clip")
    with pytest.raises(ValueError, match=r"'chance' is a reference row.*saber\.embedders\.chance"):
        load_embedder("chance")
    with pytest.raises(ValueError, match="unknown device 'gpu'"):
        load_embedder("bag-of-words", device="gpu")


def test_registry_as_file_or_mapping(tmp_path, tiny_clip):
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"own: {{loader: open_clip, modalities: [text, image], licence: MIT, folder: '{tiny_clip}'}}\n"
    )
    from_file = load_embedder("own", device="cpu", registry=path)
    from_mapping = load_embedder("own", registry=load_registry(path))
    assert from_file.name == "own" and from_file.dim == 24
    assert from_file.fingerprint == from_mapping.fingerprint
    bag = ModelEntry("words", "bag_of_words", ("text",), "MIT")
    assert load_embedder("words", registry={"words": bag}).name == "words"


def test_loading_is_cheap():
    """Name, fingerprint and modalities need none of the model libraries: cached tables start in a second."""
    code = (
        "import sys; from saber.embedders import load_embedder; e = load_embedder('all-MiniLM-L6-v2');"
        "assert len(e.fingerprint) == 64 and e.modalities == {'text'};"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'open_clip'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
