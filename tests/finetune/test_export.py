"""The merged folder is a model on its own, whole or absent, and the model in memory is not touched."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from saber.finetune import Settings, add_lora, finetune, save_merged
from saber.finetune.lora import lora_layers

QUICK = Settings(learning_rate=5e-3, batch_size=4)


def content(examples):
    return [i if isinstance(i, dict) else {"text": i} for e in examples for i in (e.query, e.positive)]


@pytest.fixture
def finetuned(tiny_qwen, text_examples):
    add_lora(tiny_qwen, QUICK)
    finetune(tiny_qwen, text_examples, QUICK, progress=False)
    return tiny_qwen


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float16", 2e-3), ("bfloat16", 0.02)])
def test_the_folder_is_the_finetuned_model(
    dtype, tolerance, finetuned, load, tiny_qwen_folder, text_examples, image_examples, tmp_path
):
    inputs = content([*text_examples, *image_examples])
    expected = finetuned.encode(inputs)
    before = {name: p.clone() for name, p in finetuned.named_parameters()}
    folder = save_merged(finetuned, tmp_path / "new" / "tuned é", dtype)

    np.testing.assert_array_equal(finetuned.encode(inputs), expected)
    after = dict(finetuned.named_parameters())
    assert list(after) == list(before) and all(torch.equal(p, before[n]) for n, p in after.items())
    assert {n for n, p in after.items() if p.requires_grad} == {n for n in after if "lora_" in n}
    assert [p.name for p in folder.parent.iterdir()] == ["tuned é"]

    saved = load_file(folder / "model.safetensors")
    assert {str(w.dtype) for w in saved.values()} == {f"torch.{dtype}"}
    assert saved.keys() == load_file(tiny_qwen_folder / "model.safetensors").keys()
    assert not list(folder.rglob("adapter*"))
    loaded = load(folder)
    assert (loaded.prompts, loaded.default_prompt_name) == (finetuned.prompts, "default")
    np.testing.assert_allclose(loaded.encode(inputs), expected, atol=tolerance)
    assert np.abs(load(tiny_qwen_folder).encode(inputs) - expected).max() > 0.1


def test_a_model_in_bfloat16_is_trained_and_rounded_once(tiny_qwen_folder, text_examples, tmp_path):
    model = SentenceTransformer(str(tiny_qwen_folder), device="cpu", model_kwargs={"dtype": "bfloat16"})
    add_lora(model, QUICK)
    log = finetune(model, text_examples, QUICK, progress=False)
    assert np.isfinite(log.loss).all()
    saved = load_file(save_merged(model, tmp_path / "model") / "model.safetensors")
    for name, layer in lora_layers(model).items():
        weight, update = layer.base_layer.weight, layer.get_delta_weight("default")
        assert (weight.dtype, update.dtype) == (torch.bfloat16, torch.float32)
        assert torch.equal(saved[f"{name}.weight"], (weight.float() + update).half())
        assert not torch.equal(saved[f"{name}.weight"], (weight + update.bfloat16()).half())


def test_sentence_transformers_alone_loads_it(minilm_folder, load, text_examples, tmp_path):
    model = load(minilm_folder)
    settings = Settings(learning_rate=2e-3, batch_size=8)
    add_lora(model, settings)
    finetune(model, text_examples[:4], settings, progress=False)
    folder = save_merged(model, tmp_path / "minilm")
    loaded = SentenceTransformer(str(folder), device="cpu")
    assert loaded.dtype == torch.float16
    np.testing.assert_allclose(
        loaded.encode(content(text_examples)), model.encode(content(text_examples)), atol=0.01
    )
    for file in folder.rglob("*.json"):
        assert str(minilm_folder.parent) not in file.read_text(encoding="utf-8")
    assert "architectures" in json.loads((folder / "config.json").read_text(encoding="utf-8"))


def test_an_earlier_model_is_replaced_and_anything_else_is_kept(finetuned, load, text_examples, tmp_path):
    folder = save_merged(finetuned, tmp_path / "model", "float32")
    (folder / "stray.txt").write_text("of the earlier model", encoding="utf-8")
    finetune(finetuned, text_examples, QUICK, progress=False)
    save_merged(finetuned, folder, "float32")
    assert not (folder / "stray.txt").exists()
    inputs = content(text_examples)
    np.testing.assert_allclose(load(folder).encode(inputs), finetuned.encode(inputs), atol=1e-6)

    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(FileExistsError, match="thesis exists and is no model folder"):
        save_merged(finetuned, other)
    assert [p.name for p in other.iterdir()] == ["chapter.txt"]


def test_a_save_that_fails_leaves_what_was_there(finetuned, tmp_path, monkeypatch):
    folder = save_merged(finetuned, tmp_path / "model")
    before = (folder / "model.safetensors").read_bytes()

    def fail(self, path, **options):
        raise OSError("disk full")

    monkeypatch.setattr(type(finetuned), "save_pretrained", fail)
    with pytest.raises(OSError, match="disk full"):
        save_merged(finetuned, folder, "float32")
    assert (folder / "model.safetensors").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_what_cannot_be_written_raises(finetuned, load, tiny_qwen_folder, tmp_path):
    with pytest.raises(ValueError, match="valid: float16, bfloat16, float32"):
        save_merged(finetuned, tmp_path / "a", "int8")
    with pytest.raises(ValueError, match="add_lora"):
        save_merged(load(tiny_qwen_folder), tmp_path / "a")
    with torch.no_grad():
        finetuned[0].model.get_base_model().language_model.norm.weight[0] = 1e6  # beyond float16
    with pytest.raises(ValueError, match=r"NaN or Inf in float16: .*norm\.weight"):
        save_merged(finetuned, tmp_path / "a")
    assert not (tmp_path / "a").exists()
