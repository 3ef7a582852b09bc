"""The model: a ViT and a causal text transformer of open_clip, with a word-level tokenizer.

The saved folder is a standard open_clip one: ``open_clip.create_model_and_transforms("local-dir:FOLDER")``
loads it with nothing of this project installed.
"""

import json
from pathlib import Path

import open_clip
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from saber.files import file_digest
from saber.vocabulary import Vocabulary

SPECIAL = ("<pad>", "<unk>", "<start>", "<end>")
CONTEXT = 56  # 10 pairs: article, attribute, object of one or two words, comma
IMAGE_SIZE = 128
PATCH = 16
MODEL_CFG = {
    "embed_dim": 256,
    "vision_cfg": {
        "image_size": IMAGE_SIZE,
        "patch_size": PATCH,
        "width": 160,
        "head_width": 32,
        "layers": 4,
        "pool_type": "avg",
    },
    "text_cfg": {
        "context_length": CONTEXT,
        "width": 160,
        "heads": 5,
        "layers": 3,
        "pool_type": "eos",
        "pad_id": SPECIAL.index("<pad>"),
        "eos_id": SPECIAL.index("<end>"),
        "hf_tokenizer_name": "mini-clip",  # a local-dir model takes the tokenizer of its own folder
    },
}
PREPROCESS_CFG = {
    "size": [IMAGE_SIZE, IMAGE_SIZE],
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
    "interpolation": "bicubic",
    "resize_mode": "squash",
}


def word_tokenizer(vocabulary: Vocabulary) -> PreTrainedTokenizerFast:
    """Word-level tokenizer of the caption template: articles, "and", the comma, the vocabulary's words."""
    words = {"a", "an", "and", ","}
    for entry in (*vocabulary.objects, *vocabulary.attributes):
        words.update(entry.name.lower().split())
    ids = {word: i for i, word in enumerate((*SPECIAL, *sorted(words)))}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(",", "isolated")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<start> $A <end>", special_tokens=[("<start>", 2), ("<end>", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<start>",
        eos_token="<end>",
    )


def model_config(vocab_size: int) -> dict:
    """open_clip's ``model_cfg`` with the vocabulary size filled in."""
    return {**MODEL_CFG, "text_cfg": {**MODEL_CFG["text_cfg"], "vocab_size": vocab_size}}


def make_model(vocab_size: int) -> open_clip.CLIP:
    """A freshly initialised model; seed torch before."""
    cfg = model_config(vocab_size)
    return open_clip.CLIP(
        embed_dim=cfg["embed_dim"],
        vision_cfg=open_clip.CLIPVisionCfg(**cfg["vision_cfg"]),
        text_cfg=open_clip.CLIPTextCfg(**cfg["text_cfg"]),
    )


def save_model(model: open_clip.CLIP, tokenizer: PreTrainedTokenizerFast, folder: Path) -> str:
    """Write a standard open_clip folder with fp16 weights; returns the SHA-256 of the weights file."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_cfg": model_config(len(tokenizer)), "preprocess_cfg": PREPROCESS_CFG}
    (folder / "open_clip_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    tokenizer.save_pretrained(folder)
    weights = folder / "open_clip_model.safetensors"
    state = {k: v.detach().to(torch.float16).contiguous() for k, v in model.state_dict().items()}
    save_file(state, weights, metadata={"format": "pt"})
    return file_digest(weights)
