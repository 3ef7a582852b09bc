import copy
import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import BertConfig, BertModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import (
    Qwen2_5_VisionTransformerPretrainedModel,
    Qwen2_5_VLVisionConfig,
)
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5VisionConfig, Qwen3_5VisionModel
from transformers.models.qwen3_vl.modeling_qwen3_vl import (
    Qwen3VLVisionAttention,
    Qwen3VLVisionConfig,
    Qwen3VLVisionModel,
)

from saber.embedders.content import Content
from saber.embedders.registry import ModelEntry
from saber.embedders.sentence_transformers_adapter import SentenceTransformersEmbedder
from saber.embedders.vision_attention import batch_vision_attention

DEPTH, PATCH = 3, 4
# (frames, rows, columns) in patches of each image or video -> images in each call of the attention, per layer
GRIDS = {
    "equal": ([(1, 4, 6)] * 5, [5]),
    "same length, other shape": ([(1, 4, 6), (1, 6, 4), (1, 2, 12)], [3]),
    "mixed": ([(1, 4, 6), (1, 2, 2), (1, 4, 4), (1, 6, 4), (1, 2, 2), (1, 4, 4), (1, 2, 2)], [3, 2, 2]),
    "some alone": ([(1, 4, 4), (1, 2, 2), (1, 4, 4)], [1, 2]),
    "one image": ([(1, 4, 6)], [1]),
    "all different": ([(1, 4, 6), (1, 2, 2), (1, 4, 4)], [1, 1, 1]),
    "video": ([(3, 4, 4)], [3]),
    "video and images": ([(1, 2, 4), (3, 4, 4), (1, 4, 4), (2, 2, 4)], [3, 4]),
}


def make_tower(family="qwen3_vl", implementation="sdpa"):
    """A vision tower of the real class with random weights, so large that attention is far from uniform."""
    common = {"depth": DEPTH, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2}
    common |= {"out_hidden_size": 24, "patch_size": PATCH, "attn_implementation": implementation}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if family == "qwen3_vl":
            extra = {"num_position_embeddings": 16, "deepstack_visual_indexes": [1]}
            tower = Qwen3VLVisionModel(Qwen3VLVisionConfig(**common, **extra))
        elif family == "qwen3_5":
            tower = Qwen3_5VisionModel(Qwen3_5VisionConfig(**common, num_position_embeddings=16))
        else:
            extra = {"window_size": 4 * PATCH, "fullatt_block_indexes": [1]}
            tower = Qwen2_5_VisionTransformerPretrainedModel(Qwen2_5_VLVisionConfig(**common, **extra))
        for block in tower.blocks:
            torch.nn.init.normal_(block.attn.qkv.weight, std=0.3)
    assert tower.config._attn_implementation == implementation
    return tower.eval()


def patches_of(grids, seed=0):
    """Random patches ``(n, 3 channels * 2 frames * PATCH * PATCH)`` of images with these grids; the grids."""
    grids = torch.tensor(grids)
    values = np.random.default_rng(seed).standard_normal((int(grids.prod(1).sum()), 3 * 2 * PATCH**2))
    return torch.tensor(values, dtype=torch.float32), grids


@pytest.fixture
def calls(monkeypatch):
    """List that receives the number of images in each call of an attention function, whichever it is."""
    counts, get = [], ALL_ATTENTION_FUNCTIONS.get_interface

    def get_counted(name, default):
        def counted(module, query, *args, **kwargs):
            counts.append(len(query))
            return get(name, default)(module, query, *args, **kwargs)

        return counted

    monkeypatch.setattr(ALL_ATTENTION_FUNCTIONS, "get_interface", get_counted)
    return counts


def assert_close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", GRIDS)
def test_same_as_the_library_in_fewer_calls(name, implementation, calls):
    grids, images_per_call = GRIDS[name]
    library = make_tower(implementation=implementation)
    batched = copy.deepcopy(library)
    assert batch_vision_attention(batched) == DEPTH
    patches, grid_thw = patches_of(grids)
    with torch.no_grad():
        theirs = library(patches, grid_thw)
        assert calls == [1] * sum(frames for frames, _, _ in grids) * DEPTH  # the loop this module replaces
        calls.clear()
        ours = batched(patches, grid_thw)
    assert calls == images_per_call * DEPTH
    assert_close(ours.last_hidden_state, theirs.last_hidden_state)
    assert_close(ours.pooler_output, theirs.pooler_output)
    assert_close(ours.deepstack_features, theirs.deepstack_features)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["equal", "mixed", "video and images"])
def test_gradients_are_the_library_s(name, implementation):
    library = make_tower(implementation=implementation).train()
    batched = copy.deepcopy(library)
    batch_vision_attention(batched)
    inputs, grid_thw = patches_of(GRIDS[name][0])
    gradients = []
    for tower in (library, batched):
        patches = inputs.clone().requires_grad_()
        features = tower(patches, grid_thw).pooler_output
        weights = torch.linspace(-1, 1, features.numel()).view_as(features)  # tells images and places apart
        (features * weights).mean().backward()
        named = {n: p.grad for n, p in tower.named_parameters() if p.grad is not None}
        gradients.append(named | {"patches": patches.grad})
    theirs, ours = gradients
    assert ours.keys() == theirs.keys() and "blocks.0.attn.qkv.weight" in ours
    for key, gradient in theirs.items():
        assert_close(ours[key], gradient)
    assert theirs["blocks.0.attn.qkv.weight"].abs().max() > 1e-4


@pytest.mark.parametrize("family", ["qwen3_5", "qwen2_5_vl"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_towers_of_the_same_build(family, implementation, calls):
    library = make_tower(family, implementation)
    batched = copy.deepcopy(library)
    assert batch_vision_attention(batched) == DEPTH
    patches, grid_thw = patches_of([(1, 4, 8), (1, 8, 4), (1, 4, 4), (2, 6, 6)])
    with torch.no_grad():
        theirs = library(patches, grid_thw).pooler_output
        looped = sum(calls)
        calls.clear()
        ours = batched(patches, grid_thw).pooler_output
    assert_close(ours, theirs)
    assert sum(calls) == looped  # as many images (or windows)
    assert len(calls) < 0.7 * looped


def test_an_image_does_not_see_the_others():
    tower = make_tower()
    batch_vision_attention(tower)
    patches, grid_thw = patches_of(GRIDS["equal"][0])
    changed = patches.clone()
    changed[24:48] += 1  # the second image
    with torch.no_grad():
        before, after = (tower(p, grid_thw).last_hidden_state for p in (patches, changed))
    moved = (before - after).abs().amax(1)
    assert moved[24:48].min() > 0.01
    assert moved[:24].max() < 1e-6 and moved[48:].max() < 1e-6


def test_flash_attention_is_left_to_the_library(calls, monkeypatch):
    tower = make_tower()
    batch_vision_attention(tower)
    received = []

    def library(self, hidden_states, **kwargs):
        received.append(kwargs["cu_seqlens"].tolist())
        return hidden_states

    monkeypatch.setattr(Qwen3VLVisionAttention, "forward", library)
    tower.config._attn_implementation = "flash_attention_2"
    attention = tower.blocks[0].attn
    attention.config = tower.config
    bounds = torch.tensor([0, 4, 8])
    angles = (torch.zeros(8, 16),) * 2
    attention(torch.zeros(8, 32), cu_seqlens=bounds, position_embeddings=angles, max_seqlen=4)
    assert received == [[0, 4, 8]] and calls == []


def test_half_precision():
    library = make_tower().bfloat16()
    batched = copy.deepcopy(library)
    batch_vision_attention(batched)
    patches, grid_thw = patches_of(GRIDS["mixed"][0])
    with torch.no_grad():
        theirs, ours = (t(patches.bfloat16(), grid_thw).pooler_output for t in (library, batched))
    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.02)


def test_other_models_are_not_changed():
    config = BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    assert batch_vision_attention(BertModel(config)) == 0
    assert batch_vision_attention(torch.nn.Linear(2, 2)) == 0


def test_applied_twice_changes_nothing_more(calls):
    tower = make_tower()
    names = list(tower.state_dict())
    assert batch_vision_attention(tower) == DEPTH
    classes = [type(m) for m in tower.modules()]
    assert batch_vision_attention(tower) == 0
    assert [type(m) for m in tower.modules()] == classes
    assert list(tower.state_dict()) == names
    with torch.no_grad():
        tower(*patches_of(GRIDS["equal"][0]))
    assert calls == [5] * DEPTH


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda tower: pickle.loads(pickle.dumps(tower))])
def test_copies_are_batched_and_independent(duplicate, calls):
    tower = make_tower()
    batch_vision_attention(tower)
    twin = duplicate(tower)
    assert batch_vision_attention(twin) == 0
    patches, grid_thw = patches_of(GRIDS["equal"][0])
    with torch.no_grad():
        before = tower(patches, grid_thw).pooler_output
        assert_close(twin(patches, grid_thw).pooler_output, before)
        for p in twin.blocks[0].attn.parameters():
            p.zero_()
        assert_close(tower(patches, grid_thw).pooler_output, before)
        assert (twin(patches, grid_thw).pooler_output - before).abs().max() > 0.01
    assert calls == [5] * DEPTH * 4


def test_only_this_model_is_changed(calls):
    batch_vision_attention(make_tower())
    with torch.no_grad():
        make_tower()(*patches_of(GRIDS["equal"][0]))
    assert calls == [1] * 5 * DEPTH


def test_inside_peft():
    peft = pytest.importorskip("peft")
    library = make_tower()
    wrapped = peft.get_peft_model(copy.deepcopy(library), peft.LoraConfig(target_modules=["qkv"], r=2))
    assert batch_vision_attention(wrapped) == DEPTH
    patches, grid_thw = patches_of(GRIDS["mixed"][0])
    with torch.no_grad():
        theirs = library(patches, grid_thw).pooler_output
        assert_close(wrapped(patches, grid_thw).pooler_output, theirs)  # LoRA starts at zero
        for name, p in wrapped.named_parameters():
            if "lora_B" in name:
                p.fill_(0.1)
        assert (wrapped(patches, grid_thw).pooler_output - theirs).abs().max() > 0.01


def test_the_adapter_batches(tiny_vision_language_model, tmp_path, calls):
    contents = []
    for i in range(4):
        noise = np.random.default_rng(i).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / f"{i}.png")
        contents.append(Content(image=tmp_path / f"{i}.png"))
    entry = ModelEntry(
        name="tiny",
        loader="sentence-transformers",
        modalities=("text", "image"),
        licence="MIT",
        folder=str(tiny_vision_language_model),
    )
    embedder = SentenceTransformersEmbedder.from_entry(entry, "cpu")
    together = embedder.embed(contents)
    assert calls == [4] * 4  # two layers of the vision tower, two of the decoder
    alone = np.concatenate([embedder.embed([content]) for content in contents])
    np.testing.assert_allclose(together, alone, atol=1e-5)
