"""The fast forward pass equals the model's own, in values and in gradients."""

import numpy as np
import pytest
import torch
from PIL import Image

from saber.miniature import architecture as arch
from saber.miniature.network import Network, pad, patches

TEXTS = [
    "A red teapot",
    "the cube is red. the kite is golden. the ice cream cone is striped.",
    "at noon, we met an orange kite, a furry cube and a golden key in the morning.",
    "red cube",
]


def own_states(network, ids, extra):
    """Hidden states of one row by `Qwen3VLModel.forward`, positions found by itself."""
    ids = torch.tensor([ids])
    kinds = (ids == arch.IMAGE).int()
    return network.model(
        input_ids=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=kinds, use_cache=False, **extra
    ).last_hidden_state[0]


def pixels_of(given):
    return {key: given[key] for key in ("pixel_values", "image_grid_thw")}


@torch.no_grad()
def test_texts_equal_sentence_transformers(network, embedder):
    fast = network.embed_texts(TEXTS).numpy()
    assert fast == pytest.approx(embedder.encode(TEXTS, show_progress_bar=False), abs=1e-6)
    assert np.abs(fast @ fast.T - np.eye(4)).max() < 0.99  # vectors that differ
    alone = np.concatenate([network.embed_texts([text]).numpy() for text in TEXTS])
    assert fast == pytest.approx(alone, abs=1e-6)


@torch.no_grad()
def test_images_equal_sentence_transformers(network, embedder, noise_images):
    given = [Image.fromarray(x) for x in noise_images]
    fast = network.embed_images(noise_images).numpy()
    assert fast == pytest.approx(embedder.encode(given, show_progress_bar=False), abs=1e-6)
    assert np.abs(fast[0] - fast[1]).max() > 1e-3


@torch.no_grad()
def test_images_equal_the_models_own_forward(network, processed, noise_images):
    for fast, image in zip(network.embed_images(noise_images), noise_images, strict=True):
        given = processed(arch.DEFAULT_INSTRUCTION, image)
        state = network.model(**given, use_cache=False).last_hidden_state[0, -1]
        assert torch.allclose(fast, state / state.norm(), atol=1e-6)


@torch.no_grad()
def test_image_states_with_continuations_equal_the_models_own(network, processed, noise_images):
    texts = ["a red cube", "the kite is golden. the cube is red.", "a furry ice cream cone and a red kite"]
    more = [[*e, arch.IM_END] for e in network.tokenizer(texts, add_special_tokens=False).input_ids]
    states, ids = network.image_states(network.visual(patches(noise_images)), network.describe, more)
    assert states.shape[:2] == ids.shape and len(states) == 3
    for i, image in enumerate(noise_images):
        given = processed(arch.DESCRIBE, image)
        row = [*given["input_ids"][0].tolist(), *more[i]]
        assert ids[i, : len(row)].tolist() == row and (ids[i, len(row) :] == arch.PAD).all()
        own = own_states(network, row, pixels_of(given))
        assert torch.allclose(states[i, : len(row)], own, atol=1e-5)
    plain, _ = network.image_states(network.visual(patches(noise_images)), network.describe)
    assert torch.allclose(plain, states[:, : plain.shape[1]], atol=1e-5)


@torch.no_grad()
def test_text_states_equal_the_models_own(network):
    more = [[*e, arch.IM_END] for e in network.tokenizer(TEXTS[::-1], add_special_tokens=False).input_ids]
    rows = network.text_ids(TEXTS, network.describe, more)
    ids, lengths = pad(rows)
    states = network.text_states(ids)
    for state, row, length in zip(states, rows, lengths, strict=True):
        assert length == len(row)
        assert torch.allclose(state[:length], own_states(network, row, {}), atol=1e-5)


@torch.no_grad()
def test_the_vision_tower_and_its_deepstack_equal_the_class(network, processed, noise_images):
    tokens, deep = network.visual(patches(noise_images))
    assert tokens.shape == (3, 36, 192) and [d.shape for d in deep] == [(3, 36, 192)] * 2
    for i, image in enumerate(noise_images):
        own = network.model.get_image_features(**pixels_of(processed(arch.DESCRIBE, image)))
        assert torch.allclose(tokens[i], own.pooler_output[0], atol=1e-5)
        for level, other in zip(deep, own.deepstack_features, strict=True):
            assert torch.allclose(level[i], other[0], atol=1e-5)


@pytest.fixture
def copy(tokenizer, network):
    """A network of its own, in float64 so that gradients can be compared closely."""
    model = arch.make_model(tokenizer, seed=0)
    model.load_state_dict(network.model.state_dict())
    return Network(model.double(), tokenizer)


def test_gradients_of_the_vision_tower_equal_the_class(copy, processed, noise_images):
    images = noise_images[:2]
    weights = [torch.randn(2, 36, 192, generator=torch.Generator().manual_seed(k)).double() for k in range(3)]

    def gradients(outputs):
        tower = copy.model.visual
        tower.zero_grad()
        sum((w * out).sum() for w, out in zip(weights, outputs, strict=True)).backward()
        return {name: p.grad.clone() for name, p in tower.named_parameters()}

    tokens, deep = copy.visual(patches(images).double())
    fast = gradients([tokens, *deep])
    given = [pixels_of(processed(arch.DESCRIBE, image)) for image in images]
    own = [
        copy.model.get_image_features(g["pixel_values"].double(), image_grid_thw=g["image_grid_thw"])
        for g in given
    ]
    slow = gradients(
        [
            torch.stack([o.pooler_output[0] for o in own]),
            *(torch.stack([o.deepstack_features[level][0] for o in own]) for level in (0, 1)),
        ]
    )
    assert fast.keys() == slow.keys() and len(fast) > 40
    for name, gradient in slow.items():
        scale = gradient.abs().max()
        assert scale > 0 and (fast[name] - gradient).abs().max() <= 1e-6 * scale, name


def test_a_frozen_tower_gets_no_gradient_but_its_mergers_do(copy, noise_images):
    copy.model.float()
    free = copy.embed_images(noise_images[:1])
    vectors = copy.embed_images(noise_images[:1], frozen=True)
    assert torch.equal(free, vectors)
    vectors.sum().backward()
    tower = copy.model.visual
    for part in (tower.blocks, tower.patch_embed, tower.pos_embed):
        assert all(p.grad is None for p in part.parameters())
    for part in (tower.merger, tower.deepstack_merger_list, copy.model.language_model.layers):
        assert all(p.grad is not None and p.grad.abs().max() > 0 for p in part.parameters())
    free.sum().backward()
    assert all(p.grad is not None for p in tower.parameters())


@torch.no_grad()
def test_an_image_token_is_what_lies_in_its_cell(noise_images):
    before = patches(noise_images[:1])[0].view(36, 4 * 768)
    for cell in (0, 1, 7, 35):
        image = noise_images[:1].copy()
        y, x = divmod(cell, 6)
        image[0, 32 * y : 32 * y + 32, 32 * x : 32 * x + 32] ^= 255
        after = patches(image)[0].view(36, 4 * 768)
        assert (after != before).any(1).nonzero().flatten().tolist() == [cell]
    assert -1 <= before.min() and before.max() <= 1


def test_pad_fills_on_the_right():
    ids, lengths = pad([[5], [6, 7, 8], [9, 10]])
    assert ids.tolist() == [[5, arch.PAD, arch.PAD], [6, 7, 8], [9, 10, arch.PAD]]
    assert lengths.tolist() == [1, 3, 2]
