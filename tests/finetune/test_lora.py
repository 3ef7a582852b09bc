"""LoRA training of a real text model and of a tiny model of the Qwen3-VL classes."""

import numpy as np
import pandas as pd
import pytest
import torch

from saber.finetune import Example, Settings, add_lora, finetune
from saber.finetune.lora import embed, find_targets, layer_of, lora_layers

QUICK = Settings(learning_rate=1e-2, batch_size=4)


def weights(model):
    """Copies of all weights by name, LoRA and base."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def items(example):
    return [example.query, example.positive, example.attribute_negative, example.object_negative]


def test_the_defaults_are_those_of_the_paper():
    s = Settings()
    assert (s.rank, s.alpha, s.learning_rate, s.weight_decay, s.margin) == (4, 4, 5e-5, 0.01, 0.05)
    with pytest.raises(ValueError, match="batch_size"):
        Settings(batch_size=0)


def test_the_8b_model_has_the_trainable_weights_that_the_paper_counts(tiny_qwen):
    """3.8 M (appendix B.5); the model without memory for its weights."""
    from transformers import Qwen3VLConfig, Qwen3VLModel

    heads = {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
    config = Qwen3VLConfig(
        text_config={"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36} | heads,
        vision_config={"hidden_size": 1152, "depth": 27, "out_hidden_size": 4096},
    )
    with torch.device("meta"):
        tiny_qwen[0].model = Qwen3VLModel(config)
    assert add_lora(tiny_qwen, Settings()) == 4 * 36 * 2 * (4096 + 4096 + 4096 + 1024) == 3_833_856


def test_qwen_gets_lora_in_every_decoder_layer_and_nowhere_else(tiny_qwen):
    n = add_lora(tiny_qwen, Settings())
    names = list(lora_layers(tiny_qwen))
    assert [layer_of(name)[1] for name in names] == [i for i in range(3) for _ in range(4)]
    assert {name.rpartition(".")[2] for name in names} == {"q_proj", "k_proj", "v_proj", "o_proj"}
    assert all(name.startswith("language_model.layers.") for name in names)
    trainable = {name: p for name, p in tiny_qwen.named_parameters() if p.requires_grad}
    assert all("lora_" in name and "visual" not in name for name in trainable)
    assert n == sum(p.numel() for p in trainable.values()) == 3 * 4 * 2 * (32 + 32 + 32 + 16)


def test_minilm_gets_lora_in_every_encoder_layer(minilm_folder, load):
    model = load(minilm_folder)
    assert add_lora(model, Settings()) == 73_728
    assert len(lora_layers(model)) == 6 * 4
    assert "encoder.layer.3.attention.output.dense" in lora_layers(model)


def test_targets_can_be_named(tiny_qwen):
    add_lora(tiny_qwen, Settings(targets=("q_proj", "mlp.up_proj")))
    assert {name.rpartition(".")[2] for name in lora_layers(tiny_qwen)} == {"q_proj", "up_proj"}


def test_a_model_without_such_layers_is_refused(tiny_qwen):
    with pytest.raises(ValueError, match=r"named c_attn.*there are: .*'k_proj'"):
        add_lora(tiny_qwen, Settings(targets=("c_attn",)))
    visual = tiny_qwen[0].model.visual
    with pytest.raises(ValueError, match="no layers to adapt in Qwen3VLVisionModel"):
        find_targets(visual)
    with pytest.raises(ValueError, match=r"call add_lora\(model, settings\) first"):
        finetune(tiny_qwen, [], Settings())
    add_lora(tiny_qwen, Settings())
    with pytest.raises(ValueError, match="already has LoRA"):
        add_lora(tiny_qwen, Settings())


def test_a_model_without_a_transformer_is_refused():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models

    tokenizer = Tokenizer(models.WordLevel({"cup": 0, "<unk>": 1}, unk_token="<unk>"))
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=4)], device="cpu")
    with pytest.raises(ValueError, match="StaticEmbedding"):
        add_lora(model, Settings())


def test_vision_towers_with_the_same_names_are_left_out():
    def layer():
        return torch.nn.ModuleDict(
            {n: torch.nn.Linear(2, 2) for n in ("q_proj", "k_proj", "v_proj", "o_proj")}
        )

    stack = torch.nn.ModuleDict({"layers": torch.nn.ModuleList([layer()])})
    for text in ("language_model", "text_model"):
        both = torch.nn.ModuleDict({text: stack, "vision_tower": stack, "audio_tower": stack})
        names = [n for n in find_targets(both)]
        assert names == [f"{text}.layers.0.{n}" for n in ("k_proj", "o_proj", "q_proj", "v_proj")]


@pytest.mark.parametrize(
    "name, expected",
    [
        ("layers.2.self_attn.q_proj", ("layers", 2)),
        ("language_model.layers.10.self_attn.q_proj", ("language_model.layers", 10)),
        ("encoder.layer.3.attention.output.dense", ("encoder.layer", 3)),
        ("a.0.b.layers.7.mixer.layers.1.q_proj", ("a.0.b.layers", 7)),
        ("transformer.h.5.attn.q_proj", ("transformer.h", 5)),
        ("pooler.dense", None),
        ("heads.4.q_proj", None),
    ],
)
def test_layer_numbers(name, expected):
    assert layer_of(name) == expected


def test_embedding_is_that_of_encode(tiny_qwen, text_examples, image_examples):
    mixed = [*items(text_examples[0]), *items(image_examples[0])]
    for prompt in ("", "Find the scene."):
        expected = np.stack([tiny_qwen.encode(i, prompt=prompt) for i in mixed])
        np.testing.assert_allclose(embed(tiny_qwen, mixed, prompt).detach(), expected, atol=1e-6)
    tiny_qwen.truncate_dim = 8
    assert embed(tiny_qwen, mixed, "").shape == (8, 8)


def test_a_fresh_update_changes_nothing(tiny_qwen, minilm_folder, load, text_examples, image_examples):
    for model, some in (
        (tiny_qwen, [text_examples[0], image_examples[0]]),
        (load(minilm_folder), text_examples),
    ):
        inputs = [i if isinstance(i, dict) else {"text": i} for e in some for i in items(e)]
        before = model.encode(inputs)
        add_lora(model, Settings())
        np.testing.assert_array_equal(model.encode(inputs), before)


def test_training_lowers_the_loss_and_changes_lora_alone(tiny_qwen, text_examples):
    add_lora(tiny_qwen, QUICK)
    before = weights(tiny_qwen)
    log = finetune(tiny_qwen, text_examples * 6, QUICK, progress=False)
    assert list(log.columns) == ["step", "examples", "loss", "triplet_accuracy", "seconds"]
    assert log.step.tolist() == list(range(1, 13)) and log.examples.tolist() == list(range(4, 49, 4))
    assert log.loss[-2:].mean() < 0.5 * log.loss[:2].mean()
    assert log.triplet_accuracy[-2:].mean() > log.triplet_accuracy[:2].mean() and (log.seconds > 0).all()
    changed = {n for n, p in weights(tiny_qwen).items() if not torch.equal(p, before[n])}
    assert changed == {n for n in before if "lora_" in n}
    assert not tiny_qwen.training and all(p.grad is None for p in tiny_qwen.parameters())


def test_a_real_text_model_learns(minilm_folder, load, text_examples):
    model = load(minilm_folder)
    settings = Settings(learning_rate=5e-3, batch_size=8)
    add_lora(model, settings)
    log = finetune(model, text_examples * 6, settings, progress=False)
    assert log.loss.iloc[-1] < 0.5 * log.loss.iloc[0]
    assert log.triplet_accuracy.iloc[-1] > log.triplet_accuracy.iloc[0]


def test_images_train_the_decoder_and_not_the_vision_tower(tiny_qwen, image_examples, text_examples):
    add_lora(tiny_qwen, QUICK)
    mixed = Example(text_examples[0].query, *items(image_examples[0])[1:])
    loss = embed(tiny_qwen, items(mixed) + items(image_examples[1]), "").sum()
    loss.backward()
    assert all(p.grad is None for n, p in tiny_qwen.named_parameters() if "lora_" not in n)
    assert all(p.grad is not None for n, p in tiny_qwen.named_parameters() if "lora_" in n)
    assert sum("visual" in n for n, _ in tiny_qwen.named_parameters()) > 10
    before = weights(tiny_qwen)
    log = finetune(tiny_qwen, [*image_examples, mixed] * 6, QUICK, progress=False)
    assert log.loss[-2:].mean() < 0.5 * log.loss[:2].mean()
    after = weights(tiny_qwen)
    assert all(torch.equal(after[n], before[n]) == ("lora_" not in n) for n in before)


def test_the_seed_alone_decides(tiny_qwen_folder, load, text_examples):
    def run(seed, disturbance, **options):
        torch.manual_seed(disturbance)
        model = load(tiny_qwen_folder)
        settings = Settings(seed=seed, learning_rate=1e-3, batch_size=3)
        state = torch.get_rng_state()
        add_lora(model, settings)
        assert torch.equal(torch.get_rng_state(), state)  # nobody else's numbers are moved
        log = finetune(model, options.get("examples", text_examples), settings, progress=False)
        return weights(model), log.drop(columns="seconds")

    first, log = run(0, 1)
    again, same_log = run(0, 2, examples=iter(text_examples))
    other, _ = run(1, 1)
    assert all(torch.equal(first[n], again[n]) for n in first)
    pd.testing.assert_frame_equal(log, same_log)
    assert log.examples.tolist() == [3, 6, 8]  # the last batch is smaller
    assert all(torch.equal(first[n], other[n]) for n in first if "lora_" not in n)
    assert not any(torch.equal(first[n], other[n]) for n in first if "lora_A" in n)


def test_dropout_of_the_base_model_is_off(minilm_folder, load, text_examples):
    model = load(minilm_folder)
    assert any(m.p > 0 for m in model.modules() if isinstance(m, torch.nn.Dropout))
    add_lora(model, Settings())
    q, p, a, o = (torch.tensor(model.encode([items(e)[i] for e in text_examples[:2]])) for i in range(4))
    gaps = torch.cat([(q * n).sum(1) - (q * p).sum(1) for n in (a, o)])
    model.train()
    log = finetune(model, text_examples[:2], Settings(), progress=False)
    assert log.loss[0] == pytest.approx(torch.relu(gaps + 0.05).mean().item(), abs=1e-6)


def test_the_prompt_is_the_models_default_unless_given(tiny_qwen, text_examples):
    add_lora(tiny_qwen, Settings())
    one = Settings(learning_rate=1e-12, batch_size=8)

    def loss(prompt):
        return finetune(tiny_qwen, text_examples, one, progress=False, prompt=prompt).loss[0]

    default = tiny_qwen.prompts["default"]
    assert loss(None) == pytest.approx(loss(default), abs=1e-6)
    assert abs(loss("") - loss(default)) > 1e-5 and abs(loss("Other words.") - loss(default)) > 1e-5


def test_a_loss_that_is_not_finite_keeps_the_weights_of_the_step_before(tiny_qwen, text_examples):
    settings = Settings(learning_rate=1e-3, batch_size=4)
    add_lora(tiny_qwen, settings)
    kept = []

    def examples():
        yield from text_examples[:4]
        kept.append(None)
        kept[0] = weights(tiny_qwen)  # asked for the second batch: the first step is done
        token = tiny_qwen.tokenizer("~").input_ids[0]
        with torch.no_grad():
            tiny_qwen[0].model.get_input_embeddings().weight[token] = torch.nan
        yield from [*text_examples[4:7], Example("~", "a", "b", "c")]

    with pytest.raises(ValueError, match=r"step 2: the loss is nan.*weights of step 1"):
        finetune(tiny_qwen, examples(), settings, progress=False)
    assert all(torch.equal(p, kept[0][n]) for n, p in weights(tiny_qwen).items() if "lora_" in n)
    assert any(p.abs().max() > 0 for n, p in kept[0].items() if "lora_B" in n)


def test_what_cannot_be_trained_on_raises(minilm_folder, load, image_examples):
    model = load(minilm_folder)
    add_lora(model, Settings())
    with pytest.raises(ValueError, match="no examples"):
        finetune(model, [], Settings(), progress=False)
    with pytest.raises(ValueError, match="image"):
        finetune(model, image_examples, Settings(), progress=False)
