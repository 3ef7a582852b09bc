"""Dual encoders of open_clip: CLIP, Perception Encoder, and the miniature trained for this project.

Source: open_clip 3.3 (https://github.com/mlfoundations/open_clip). Two ways to a model: a folder with
``open_clip_config.json``, weights and tokenizer, or one of open_clip's own architectures with weights fetched
at a pinned revision and the preprocessing that open_clip records for them.
"""

import dataclasses
import json
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from saber.embedders import image_input, sources
from saber.embedders.content import (
    CUT,
    UNKNOWN_WORDS,
    Content,
    ItemError,
    TextWarning,
    check_modalities,
    text_messages,
)
from saber.embedders.device import resolve_device
from saber.embedders.registry import ModelEntry
from saber.embedders.vectors import fingerprint, major_versions, unit_rows

VERSION = 1  # raise it when a change of this module may change a vector
_PREPROCESSING = ("mean", "std", "interpolation", "resize_mode")


class OpenClipEmbedder:
    """Texts and images in one space: unit-norm output of the two towers, evaluation mode, cosine."""

    def __init__(
        self, name: str, spec: "ModelSpec", *, files: dict, entry_identity: dict, dtype: str, device: str
    ):
        self.name, self.spec, self.dtype, self.device = name, spec, dtype, device
        self.modalities = frozenset(("text", "image"))
        self.dim = int(spec.model_cfg["embed_dim"])
        self.identity = {
            **entry_identity,
            "adapter": f"open_clip {VERSION}, image input {image_input.VERSION}",
            "dtype": dtype,
            "pooling": "as in model_cfg, L2",
            "model_cfg": spec.model_cfg,
            "preprocess_cfg": spec.preprocess_cfg,
            "files": files,
            "libraries": major_versions("open_clip_torch", "torch", "torchvision", "transformers", "pillow"),
        }
        self.fingerprint = fingerprint(self.identity)

    @classmethod
    def from_entry(cls, entry: ModelEntry, device: str = "auto") -> "OpenClipEmbedder":
        """Locate (or fetch) the files of a registry entry; nothing is loaded yet."""
        if entry.instruction is not None:
            raise ValueError(f"model {entry.name!r}: open_clip models take no instruction")
        spec = None if entry.architecture is None else builtin_spec(entry)  # checked before any download
        folder = sources.locate(entry)
        if spec is None:
            spec = _folder_spec(folder)
        else:
            weights = str(folder / entry.files[0])
            spec = dataclasses.replace(spec, create={**spec.create, "pretrained": weights})
        identity = {"id": entry.id, "revision": entry.revision, "architecture": entry.architecture}
        files = sources.file_digests(entry, folder)
        return cls(entry.name, spec, files=files, entry_identity=identity, dtype=entry.dtype, device=device)

    @cached_property
    def _loaded(self):
        """(model in evaluation mode, image transform, tokenizer), on the device."""
        import open_clip

        options = {"precision": self.dtype, "device": resolve_device(self.device)}
        model, preprocess = open_clip.create_model_from_pretrained(**self.spec.create, **options)
        model.eval()
        check_activation(model, bool(self.spec.model_cfg.get("quick_gelu")), self.name)
        return model, preprocess, open_clip.get_tokenizer(self.spec.create["model_name"])

    def embed(self, contents: Sequence[Content]) -> np.ndarray:
        """float32 ``(n, dim)``, rows of norm 1; texts longer than the context keep their end token and warn.

        Raises ItemError for unreadable images, items with both text and image, and NaN or zero vectors.
        """
        contents = list(contents)
        check_modalities(self.name, self.modalities, contents)
        both = [(i, c, f"{self.name} takes a text or an image, not both") for i, c in enumerate(contents)]
        if both := [failure for failure in both if len(failure[1].modalities) == 2]:
            raise ItemError(both)
        vectors = np.empty((len(contents), self.dim))
        for modality, encode in (("image", self._encode_images), ("text", self._encode_texts)):
            rows = [i for i, c in enumerate(contents) if modality in c.modalities]
            if not rows:
                continue
            try:
                vectors[rows] = encode([contents[i] for i in rows])
            except ItemError as error:
                raise ItemError([(rows[i], c, reason) for i, c, reason in error.failures]) from error
        return unit_rows(vectors, contents)

    def text_flags(self, contents: Sequence[Content]) -> np.ndarray:
        """uint8 ``(n,)``, see :class:`saber.embedders.Embedder`."""
        tokenizer = self._loaded[2]
        flags = np.zeros(len(contents), np.uint8)
        for i, content in enumerate(contents):
            if content.text is None:
                continue
            if hasattr(tokenizer, "tokenizer"):  # a Hugging Face tokenizer inside
                inner = tokenizer.tokenizer
                ids = inner(tokenizer.clean_fn(content.text), truncation=False, verbose=False)["input_ids"]
                unknown = inner.unk_token_id
                if unknown is not None and unknown != inner.eos_token_id and unknown in ids:
                    flags[i] |= UNKNOWN_WORDS
                n_tokens = len(ids)
            else:
                n_tokens = len(tokenizer.encode(content.text)) + 2  # start and end
            if n_tokens > tokenizer.context_length:
                flags[i] |= CUT
        return flags

    def _encode_texts(self, contents: list[Content]) -> np.ndarray:
        import torch

        model, _, tokenizer = self._loaded
        for message in text_messages(self.name, self.text_flags(contents)):
            warnings.warn(message, TextWarning, stacklevel=3)
        tokens = tokenizer([content.text for content in contents])  # (n, context_length)
        with torch.inference_mode():
            return model.encode_text(tokens.to(_device(model))).double().cpu().numpy()

    def _encode_images(self, contents: list[Content]) -> np.ndarray:
        import open_clip
        import torch

        model, preprocess, _ = self._loaded
        pixels = torch.stack(
            [preprocess(image) for image in image_input.open_images(contents)]
        )  # (n, 3, h, w)
        pixels = pixels.to(_device(model), dtype=open_clip.get_input_dtype(self.dtype))
        # convolutions on recent GPUs would otherwise round their inputs to 10 bits (TF32)
        full = torch.backends.cudnn.flags(enabled=torch.backends.cudnn.enabled, allow_tf32=False)
        with torch.inference_mode(), full:
            return model.encode_image(pixels).double().cpu().numpy()


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """What open_clip needs to make the model (``create``), and what it will be made of."""

    create: dict
    model_cfg: dict
    preprocess_cfg: dict


def check_activation(model, quick_gelu: bool, name: str) -> None:
    """Raise ValueError when a tower of open_clip's own has the other GELU than its weights were trained with.

    OpenAI's weights need QuickGELU; with the plain one they load without complaint and embed worse.
    """
    text = getattr(model, "text", model)
    for tower in (text, model.visual):
        blocks = getattr(getattr(tower, "transformer", None), "resblocks", None)
        if not blocks:
            continue  # not a transformer of open_clip's own (timm, ResNet)
        found = type(blocks[0].mlp.gelu).__name__
        if (found == "QuickGELU") != quick_gelu:
            wanted = "QuickGELU" if quick_gelu else "plain GELU"
            raise ValueError(
                f"model {name!r}: the weights were trained with {wanted} but the architecture uses {found}; "
                "choose the architecture with or without the ending '-quickgelu'"
            )


def _folder_spec(folder: Path) -> ModelSpec:
    path = folder / "open_clip_config.json"
    if not path.is_file():
        raise ValueError(f"{folder} is no open_clip model folder: open_clip_config.json is missing")
    config = json.loads(path.read_text(encoding="utf-8"))
    if "model_cfg" not in config:
        raise ValueError(f"{path}: key 'model_cfg' is missing")
    create = {"model_name": f"local-dir:{folder}"}
    return ModelSpec(create, config["model_cfg"], config.get("preprocess_cfg", {}))


def builtin_spec(entry: ModelEntry) -> ModelSpec:
    """One of open_clip's own architectures, checked to fit the weights; the file itself is still to be named.

    Given a file instead of a tag, open_clip forgets the tag's preprocessing, so it is passed on explicitly.
    Raises ValueError for names that open_clip does not know, and for the wrong activation.
    """
    import open_clip

    model_cfg = open_clip.get_model_config(entry.architecture)
    if model_cfg is None:
        raise ValueError(f"model {entry.name!r}: open_clip has no architecture {entry.architecture!r}")
    tag = open_clip.get_pretrained_cfg(entry.architecture, entry.pretrained)
    if not tag:
        valid = ", ".join(open_clip.list_pretrained_tags_by_model(entry.architecture))
        raise ValueError(
            f"model {entry.name!r}: open_clip has no weights {entry.pretrained!r}; valid: {valid}"
        )
    if bool(tag.get("quick_gelu")) != bool(model_cfg.get("quick_gelu")):
        ending = "with" if tag.get("quick_gelu") else "without"
        raise ValueError(
            f"model {entry.name!r}: the weights {entry.pretrained!r} need an architecture {ending} "
            f"'-quickgelu', not {entry.architecture!r}"
        )
    preprocess_cfg = {key: tag[key] for key in _PREPROCESSING if tag.get(key) is not None}
    create = {
        "model_name": entry.architecture,
        **{f"image_{key}": value for key, value in preprocess_cfg.items()},
    }
    return ModelSpec(create, model_cfg, preprocess_cfg)


def _device(model):
    return next(model.parameters()).device
