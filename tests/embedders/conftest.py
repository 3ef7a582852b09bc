"""Tiny models of the real classes with random weights, made here and offline."""

import json
from pathlib import Path

import pytest

WORDS = "a an and , red blue green wooden teapot kayak cube".split()


def word_tokenizer():
    """Word-level tokenizer with start and end tokens; the end token has the largest id."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: i for i, word in enumerate(["<pad>", "<unk>", "<start>", *sorted(WORDS), "<end>"])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<start> $A <end>", special_tokens=[(t, ids[t]) for t in ("<start>", "<end>")]
    )
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<start>", "eos_token": "<end>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


@pytest.fixture(scope="session")
def make_tiny_clip():
    """Function (folder, seed=0, quick_gelu=False) -> folder: an open_clip model folder with fp16 weights."""

    def make(folder: Path, seed: int = 0, quick_gelu: bool = False) -> Path:
        import open_clip
        import torch
        from safetensors.torch import save_file

        tokenizer = word_tokenizer()
        folder.mkdir(parents=True)
        tokenizer.save_pretrained(folder)
        text = {"context_length": 16, "vocab_size": len(tokenizer), "width": 32, "heads": 2, "layers": 2}
        text |= {"hf_tokenizer_name": "own", "pool_type": "eos", "eos_id": tokenizer.eos_token_id}
        vision = {"image_size": 32, "patch_size": 16, "width": 32, "layers": 2, "head_width": 16}
        model_cfg = {"embed_dim": 24, "quick_gelu": quick_gelu, "vision_cfg": vision, "text_cfg": text}
        preprocess_cfg = {"mean": [0.5] * 3, "std": [0.5] * 3, "resize_mode": "squash"}
        config = {"model_cfg": model_cfg, "preprocess_cfg": preprocess_cfg}
        (folder / "open_clip_config.json").write_text(json.dumps(config), encoding="utf-8")
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = open_clip.CLIP(**json.loads(json.dumps(model_cfg)))
        half = {k: v.half().contiguous() for k, v in model.state_dict().items()}
        save_file(half, folder / "open_clip_model.safetensors")
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_clip(make_tiny_clip, tmp_path_factory) -> Path:
    """Folder of a tiny open_clip model, in a path with a space and an accent."""
    return make_tiny_clip(tmp_path_factory.mktemp("tiny clip é") / "model")


@pytest.fixture(scope="session")
def tiny_sentence_model(tmp_path_factory) -> Path:
    """Folder of a tiny sentence-transformers text model: BERT, mean pooling, a tempting default prompt."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel

    base, folder = tmp_path_factory.mktemp("bert"), tmp_path_factory.mktemp("sentence model")
    tokenizer = word_tokenizer()
    tokenizer.model_max_length = 24
    tokenizer.save_pretrained(base)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(base)
    modules = [Transformer(str(base), max_seq_length=24), Pooling(32, pooling_mode="mean")]
    model = SentenceTransformer(
        modules=modules, prompts={"p": "green cube "}, default_prompt_name="p", device="cpu"
    )
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_vision_language_model(tmp_path_factory) -> Path:
    """Folder of a tiny sentence-transformers model of the Qwen3-VL classes, which takes texts and images."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
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

    base, folder = tmp_path_factory.mktemp("qwen"), tmp_path_factory.mktemp("vision-language model")
    template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
        "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
        "{% for c in m['content'] %}{% if c['type'] == 'image' %}"
        "<|vision_start|><|image_pad|><|vision_end|>{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}"
        "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Qwen2Tokenizer(vocab={c: i for i, c in enumerate(alphabet)}, merges=[])
    names = ["im_start", "im_end", "vision_start", "vision_end", "image_pad", "video_pad"]
    tokenizer.add_special_tokens({"additional_special_tokens": [f"<|{name}|>" for name in names]})
    ids = {name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in names}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    common = {"hidden_size": 32, "intermediate_size": 64}
    config = Qwen3VLConfig(
        text_config=common
        | {"vocab_size": len(tokenizer), "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16}
        | {"num_key_value_heads": 1, "rope_parameters": rope},
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
        chat_template=template,
    ).save_pretrained(base)
    modules = [Transformer(str(base)), Pooling(32, pooling_mode="lasttoken")]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(folder))
    return folder
