"""Settings of the whole suite: the same examples at every run, one thread a test process, no network."""

import os
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "agg")
os.environ["HF_HUB_OFFLINE"] = "1"

# No database of examples: a run depends on nothing that an earlier one left in the checkout.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("suite")

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tiny_qwen(
    folder: Path,
    n_layers: int = 2,
    merges: tuple[tuple[str, str], ...] = (),
    spread: float = 0.1,
    default: str | None = None,
) -> Path:
    """Write a sentence-transformers model of the real Qwen3-VL classes with random weights, 32 wide.

    Its tokens are bytes, and what ``merges`` make of them. ``spread``: standard deviation of the weights.
    ``default``: its default instruction.
    """
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

    base = folder / "transformers"
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in merges)]
    tokenizer = Qwen2Tokenizer(vocab={token: i for i, token in enumerate(tokens)}, merges=list(merges))
    names = ["im_start", "im_end", "vision_start", "vision_end", "image_pad", "video_pad"]
    tokenizer.add_special_tokens({"additional_special_tokens": [f"<|{name}|>" for name in names]})
    ids = {name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in names}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
    common = {"hidden_size": 32, "intermediate_size": 48, "initializer_range": spread}
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
    transformer = Transformer(str(base), processing_kwargs={"chat_template": {"add_generation_prompt": True}})
    prompts = {"prompts": {"default": default}, "default_prompt_name": "default"} if default else {}
    modules = [transformer, Pooling(32, pooling_mode="lasttoken"), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu", **prompts)
    model.save_pretrained(str(folder / "model é"), create_model_card=False)
    return folder / "model é"


@pytest.fixture(scope="session")
def tiny_qwen_maker():
    """The function above, for tests that want another one."""
    return make_tiny_qwen


@pytest.fixture(scope="session")
def minilm_folder():
    """The real all-MiniLM-L6-v2."""
    from saber.embedders import load_registry
    from saber.embedders.sources import locate

    return locate(load_registry()["all-MiniLM-L6-v2"])
