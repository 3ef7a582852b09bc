"""A tiny sentence-transformers model of the real Qwen3-VL classes, with random weights, made offline."""

import numpy as np
import pytest
from PIL import Image

from saber.finetune import Example

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def make_tiny_qwen(tmp_path_factory, n_layers):
    """Folder of the model with so many decoder layers."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from tokenizers import pre_tokenizers
    from transformers import (
        Qwen2Tokenizer,
        Qwen2VLImageProcessor,
        Qwen3VLConfig,
        Qwen3VLModel,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    base, folder = tmp_path_factory.mktemp("qwen"), tmp_path_factory.mktemp("tiny qwen é")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Qwen2Tokenizer(vocab={c: i for i, c in enumerate(alphabet)}, merges=[])
    names = ["im_start", "im_end", "vision_start", "vision_end", "image_pad", "video_pad"]
    tokenizer.add_special_tokens({"additional_special_tokens": [f"<|{name}|>" for name in names]})
    ids = {name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in names}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
    common = {"hidden_size": 32, "intermediate_size": 48, "initializer_range": 0.1}
    config = Qwen3VLConfig(
        text_config=common
        | {"vocab_size": len(tokenizer), "num_hidden_layers": n_layers, "num_attention_heads": 4}
        | {"num_key_value_heads": 2, "head_dim": 8, "rope_parameters": rope},
        vision_config=common
        | {"depth": 2, "num_heads": 2, "out_hidden_size": 32, "patch_size": 16}
        | {"num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Qwen3VLModel(config).save_pretrained(base)
    Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(
            patch_size=16, merge_size=2, size={"shortest_edge": 1024, "longest_edge": 4096}
        ),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(patch_size=16, merge_size=2),
        chat_template=TEMPLATE,
    ).save_pretrained(base)
    modules = [Transformer(str(base)), Pooling(32, pooling_mode="lasttoken"), Normalize()]
    prompts = {"default": "Embed."}
    model = SentenceTransformer(modules=modules, prompts=prompts, default_prompt_name="default", device="cpu")
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session")
def tiny_qwen_folder(tmp_path_factory):
    return make_tiny_qwen(tmp_path_factory, n_layers=3)


@pytest.fixture(scope="session")
def deep_qwen_folder(tmp_path_factory):
    """With one layer number of two digits."""
    return make_tiny_qwen(tmp_path_factory, n_layers=11)


@pytest.fixture
def load():
    """Function folder -> SentenceTransformer on the CPU in float32."""
    from sentence_transformers import SentenceTransformer

    def load_model(folder):
        return SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": "float32"})

    return load_model


@pytest.fixture
def tiny_qwen(tiny_qwen_folder, load):
    return load(tiny_qwen_folder)


@pytest.fixture(scope="session")
def minilm_folder():
    from saber.embedders import load_registry
    from saber.embedders.sources import locate

    return locate(load_registry()["all-MiniLM-L6-v2"])


@pytest.fixture(scope="session")
def text_examples():
    """Eight examples with the paper's structure: two bindings, attributes or objects exchanged."""
    words = [("red", "cup", "wet", "dog"), ("old", "tree", "blue", "boat"), ("torn", "flag", "pink", "kite")]
    words += [
        ("flat", "stone", "gold", "ring"),
        ("tall", "man", "thin", "wall"),
        ("raw", "egg", "hot", "pan"),
    ]
    words += [("long", "rope", "dark", "room"), ("soft", "bed", "green", "lamp")]
    text = "A {} {} and a {} {}."
    return [
        Example(
            f"{c} {d} and {a} {b}", text.format(a, b, c, d), text.format(c, b, a, d), text.format(a, d, c, b)
        )
        for a, b, c, d in words
    ]


@pytest.fixture(scope="session")
def image_examples():
    rng = np.random.default_rng(0)

    def image():
        return {"image": Image.fromarray(rng.integers(0, 256, (32, 64, 3), dtype=np.uint8))}

    return [Example(image(), image(), image(), image()) for _ in range(4)]
