"""The model and its folder: real Qwen3-VL classes, a word-level tokenizer, a standard Hugging Face folder.

``SentenceTransformer(folder)`` loads it with nothing of this project installed: chat template, default
instruction, last-token pooling and unit norm are saved with it, as in Qwen3-VL-Embedding
(https://github.com/QwenLM/Qwen3-VL-Embedding).
"""

import shutil
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLModel,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

from saber.files import file_digest
from saber.miniature import language

IMAGE_SIZE, PATCH, MERGE = 192, 16, 2
CELL = PATCH * MERGE  # side of what one image token sees
N_IMAGE_TOKENS = (IMAGE_SIZE // CELL) ** 2
MAX_LENGTH = 256
SPECIAL = (
    "<|endoftext|>",
    "<|unknown|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
PAD, UNKNOWN, IM_START, IM_END, VISION_START, VISION_END, IMAGE, VIDEO = range(len(SPECIAL))
DEFAULT_INSTRUCTION = "Represent the user's input."
DESCRIBE = "Describe the user's input."  # instruction of the generative stage
CHAT_TEMPLATE = (
    "{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\\n' -}}"
    "{%- if message.content is string -%}{{- message.content -}}"
    "{%- else -%}{%- for part in message.content -%}"
    "{%- if part.type == 'image' or 'image' in part -%}<|vision_start|><|image_pad|><|vision_end|>"
    "{%- elif part.type == 'video' or 'video' in part -%}<|vision_start|><|video_pad|><|vision_end|>"
    "{%- elif 'text' in part -%}{{- part.text -}}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}{{- '<|im_end|>\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)


def word_tokenizer() -> PreTrainedTokenizerFast:
    """Word-level tokenizer of lower-case words; an object's name of two words is one token."""
    known = language.words() | set("system user assistant represent describe user's input".split())
    single = sorted(word for word in known if " " not in word)
    ids = {word: i for i, word in enumerate((*SPECIAL, ",", ".", *single))}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=SPECIAL[UNKNOWN]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(",", "isolated"),
            pre_tokenizers.Split(".", "isolated"),
        ]
    )
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens(
        [AddedToken(word, single_word=True, normalized=True) for word in sorted(known - set(single))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[PAD],
        unk_token=SPECIAL[UNKNOWN],
        eos_token=SPECIAL[IM_END],
        extra_special_tokens={
            "image_token": SPECIAL[IMAGE],
            "video_token": SPECIAL[VIDEO],
            "vision_start_token": SPECIAL[VISION_START],
            "vision_end_token": SPECIAL[VISION_END],
        },
        padding_side="right",
        model_max_length=MAX_LENGTH,
    )


def make_config(vocab_size: int) -> Qwen3VLConfig:
    """About 4.4 million parameters, the parts in proportions like those of Qwen3-VL-2B."""
    return Qwen3VLConfig(
        text_config={
            "vocab_size": vocab_size,
            "hidden_size": 192,
            "intermediate_size": 512,
            "num_hidden_layers": 6,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "max_position_embeddings": 1024,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [6, 5, 5],
                "mrope_interleaved": True,
            },
            "tie_word_embeddings": True,
            "pad_token_id": PAD,
            "initializer_range": 0.04,
        },
        vision_config={
            "depth": 4,
            "hidden_size": 128,
            "intermediate_size": 384,
            "num_heads": 4,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 2,
            "out_hidden_size": 192,
            "num_position_embeddings": (IMAGE_SIZE // PATCH) ** 2,
            "deepstack_visual_indexes": [1, 3],
            "initializer_range": 0.04,
        },
        image_token_id=IMAGE,
        video_token_id=VIDEO,
        vision_start_token_id=VISION_START,
        vision_end_token_id=VISION_END,
        tie_word_embeddings=True,
    )


def make_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen3VLModel:
    """A freshly initialised model."""
    torch.manual_seed(seed)
    model = Qwen3VLModel(make_config(-(-len(tokenizer) // 16) * 16))
    with torch.no_grad():
        model.language_model.embed_tokens.weight.normal_(0, 0.07)
    return model


def make_processor(tokenizer: PreTrainedTokenizerFast) -> Qwen3VLProcessor:
    """Images keep their shape and are resized to about 36 tokens at most, as a scene of 192 x 192 has."""
    size = {"shortest_edge": (2 * CELL) ** 2, "longest_edge": IMAGE_SIZE**2}
    norm = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    patches = {"patch_size": PATCH, "merge_size": MERGE, "temporal_patch_size": 2}
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(**patches, **norm, size=size),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(**patches, **norm, size=size),
        chat_template=CHAT_TEMPLATE,
    )


def save_model(model: Qwen3VLModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> str:
    """Write the folder with fp16 weights; returns the SHA-256 of the weights file. Other files stay."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    folder = Path(folder)
    # what transformers saves; sentence-transformers adds to it, and takes the weights as fp16
    plain = folder.with_name(folder.name + "-plain")
    model.save_pretrained(plain)
    make_processor(tokenizer).save_pretrained(plain)
    transformer = Transformer(
        str(plain),
        model_kwargs={"dtype": "float16"},
        processing_kwargs={"chat_template": {"add_generation_prompt": True}},
    )
    dim = model.config.text_config.hidden_size
    modules = [transformer, Pooling(dim, pooling_mode="lasttoken"), Normalize()]
    whole = SentenceTransformer(
        modules=modules,
        device="cpu",
        prompts={"default": DEFAULT_INSTRUCTION},
        default_prompt_name="default",
        similarity_fn_name="cosine",
    )
    whole.save_pretrained(str(folder), create_model_card=False)
    shutil.rmtree(plain)
    (folder / "model.safetensors").chmod(0o644)
    return file_digest(folder / "model.safetensors")
