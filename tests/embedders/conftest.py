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
def tiny_vision_language_model(tmp_path_factory, tiny_qwen_maker) -> Path:
    """Folder of a tiny sentence-transformers model of the Qwen3-VL classes, which takes texts and images."""
    return tiny_qwen_maker(tmp_path_factory.mktemp("vision-language model"))
