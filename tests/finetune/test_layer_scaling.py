"""Factors of LiNeS, and their effect beside dense weight differences scaled by hand."""

import numpy as np
import pytest
import torch

from saber.finetune import Settings, add_lora, count_layers, layer_factors, save_merged, scale_layers
from saber.finetune.lora import layer_of, lora_layers

SETTINGS = Settings(rank=2, alpha=6)


@pytest.fixture
def base(deep_qwen_folder, load):
    return load(deep_qwen_folder)


@pytest.fixture
def adapted(deep_qwen_folder, load):
    """The model with a large random update, as after training."""
    model = load(deep_qwen_folder)
    add_lora(model, SETTINGS)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for layer in lora_layers(model).values():
            layer.lora_B["default"].weight.normal_(std=0.05, generator=generator)
    return model


def encode(model, examples):
    return model.encode([{"text": e.positive} for e in examples])


def scaled_by_hand(model, adapted, factors):
    """The base model with factor * alpha / rank * B A added to its dense weights."""
    base = dict(model[0].model.named_modules())
    with torch.no_grad():
        for name, layer in lora_layers(adapted).items():
            number = int(name.split(".")[2])  # language_model.layers.10.self_attn.q_proj
            update = layer.lora_B["default"].weight @ layer.lora_A["default"].weight
            base[name].weight += float(factors[number]) * SETTINGS.alpha / SETTINGS.rank * update
    return model


def test_factors():
    np.testing.assert_allclose(layer_factors(5), [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(layer_factors(3, alpha=0.2, beta=0.8), [0.2, 0.6, 1])
    with pytest.raises(ValueError, match="at least 2"):
        layer_factors(1)


@pytest.mark.parametrize("kind", ["lines", "random", "only layer 10"])
def test_scaling_equals_scaled_weight_differences_merged_or_not(
    kind, adapted, base, load, text_examples, tmp_path
):
    n = count_layers(adapted)
    factors = {
        "lines": layer_factors(n),
        "random": np.random.default_rng(1).uniform(-1, 2, n),
        "only layer 10": np.eye(n)[10],
    }[kind]
    unscaled = encode(adapted, text_examples)
    scale_layers(adapted, factors)
    found = encode(adapted, text_examples)
    assert np.abs(found - unscaled).max() > 1e-3
    expected = encode(scaled_by_hand(base, adapted, factors), text_examples)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    if kind in ("lines", "random"):
        merged = load(save_merged(adapted, tmp_path / "merged", dtype="float32"))
        np.testing.assert_allclose(encode(merged, text_examples), expected, atol=1e-6)


def test_factors_are_absolute(adapted, base, text_examples):
    trained, untrained = encode(adapted, text_examples), encode(base, text_examples)
    for _ in range(2):
        scale_layers(adapted, np.full(11, 0.5))
    half = encode(adapted, text_examples)
    expected = encode(scaled_by_hand(base, adapted, np.full(11, 0.5)), text_examples)
    np.testing.assert_allclose(half, expected, atol=1e-6)
    scale_layers(adapted, np.zeros(11))
    np.testing.assert_array_equal(encode(adapted, text_examples), untrained)
    scale_layers(adapted, np.ones(11))
    np.testing.assert_array_equal(encode(adapted, text_examples), trained)


def test_layers_count_in_the_order_of_their_numbers(adapted):
    scale_layers(adapted, np.arange(11))
    for name, layer in lora_layers(adapted).items():
        assert layer.scaling["default"] == 3 * layer_of(name)[1]
    assert [layer_of(name)[1] for name in lora_layers(adapted)][-8:] == [9] * 4 + [10] * 4


def test_layers_without_lora_keep_their_place(base):
    """As in hybrid decoders, of which only some layers have these projections."""
    layers = base[0].model.language_model.layers
    for number in (0, 1, 2, 4, 5, 6, 8, 9, 10):
        del layers[number].self_attn
    add_lora(base, Settings())
    assert count_layers(base) == 11
    scale_layers(base, layer_factors(11))
    scales = {layer_of(n)[1]: layer.scaling["default"] for n, layer in lora_layers(base).items()}
    assert scales == pytest.approx({3: 0.3, 7: 0.7})


def test_encoders_too(minilm_folder, load):
    model = load(minilm_folder)
    add_lora(model, Settings())
    scale_layers(model, layer_factors(count_layers(model)))
    assert lora_layers(model)["encoder.layer.5.attention.self.value"].scaling["default"] == 1
    assert lora_layers(model)["encoder.layer.0.attention.self.value"].scaling["default"] == 0


def test_wrong_factors_and_states_raise(adapted, base):
    for factors in (np.ones(10), np.ones((11, 1)), [*np.ones(10), np.nan]):
        with pytest.raises(ValueError, match="11 finite factors"):
            scale_layers(adapted, factors)
    with pytest.raises(ValueError, match="add_lora"):
        scale_layers(base, np.ones(11))
    adapted[0].model.merge_adapter()
    with pytest.raises(ValueError, match="unmerge"):
        scale_layers(adapted, np.ones(11))
