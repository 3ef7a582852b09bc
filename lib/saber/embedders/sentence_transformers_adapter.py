"""Models of sentence-transformers: text embedders, and multimodal ones where the model itself takes images.

Source: sentence-transformers 6.2 (https://sbert.net). The instruction is always passed explicitly, also when
there is none, so that no default prompt of a model's configuration slips in.
"""

import warnings
from collections.abc import Sequence
from functools import cached_property
from logging import getLogger
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
from saber.progress import quiet_transformers

VERSION = 2  # raise it when a change of this module may change a vector
_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def open_model(folder: Path, device: str = "auto", dtype: str = "fp32"):
    """The SentenceTransformer of a local folder, in evaluation mode, for those who need the model itself.

    device: auto, cpu, cuda, mps; dtype: fp32, bf16, fp16. Nothing is fetched.
    """
    from sentence_transformers import SentenceTransformer

    from saber.embedders.vision_attention import batch_vision_attention

    library = getLogger("sentence_transformers")
    level = library.level
    library.setLevel("ERROR")  # its word on the default prompt would be saved in every notebook
    try:
        with quiet_transformers():
            model = SentenceTransformer(
                str(folder),
                device=resolve_device(device),
                local_files_only=True,
                model_kwargs={"dtype": _DTYPES[dtype]},
            )
    finally:
        library.setLevel(level)
    batch_vision_attention(model)
    return model.eval()


class SentenceTransformersEmbedder:
    """A sentence-transformers model folder behind the protocol; pooling is the model's own, then norm 1."""

    def __init__(self, entry: ModelEntry, folder: Path, device: str = "auto"):
        self.name, self.folder, self.device = entry.name, Path(folder), device
        self.dtype, self.instruction = entry.dtype, entry.instruction
        self.modalities = frozenset(entry.modalities)
        self.identity = {
            "id": entry.id,
            "revision": entry.revision,
            "adapter": f"sentence-transformers {VERSION}, image input {image_input.VERSION}",
            "dtype": self.dtype,
            "instruction": self.instruction,
            "pooling": "as in the model's modules, L2",
            "files": sources.file_digests(entry, folder),
            "libraries": major_versions("sentence-transformers", "transformers", "torch", "pillow"),
        }
        self.fingerprint = fingerprint(self.identity)

    @classmethod
    def from_entry(cls, entry: ModelEntry, device: str = "auto") -> "SentenceTransformersEmbedder":
        """Locate (or fetch) the files of a registry entry; nothing is loaded yet."""
        return cls(entry, sources.locate(entry), device)

    @cached_property
    def _model(self):
        model = open_model(self.folder, self.device, self.dtype)
        missing = [m for m in sorted(self.modalities) if not model.supports(m)]
        if missing:
            raise ValueError(
                f"model {self.name!r} does not take {' and '.join(missing)}; it takes {model.modalities}: "
                "correct 'modalities' in its registry entry"
            )
        return model

    @cached_property
    def dim(self) -> int:
        """Length of the vectors."""
        return int(self._model.get_embedding_dimension())

    def embed(self, contents: Sequence[Content]) -> np.ndarray:
        """float32 ``(n, dim)``, rows of norm 1; texts longer than the model takes are cut and warn.

        Raises ItemError for unreadable images, modalities that the model lacks, and NaN or zero vectors.
        """
        contents = list(contents)
        check_modalities(self.name, self.modalities, contents)
        if not contents:
            return np.empty((0, self.dim), np.float32)
        model = self._model
        for message in text_messages(self.name, self.text_flags(contents)):
            warnings.warn(message, TextWarning, stacklevel=2)
        vectors = model.encode(
            self._inputs(contents),
            prompt=self.instruction or "",
            batch_size=len(contents),
            show_progress_bar=False,
            normalize_embeddings=False,
        )
        return unit_rows(vectors, contents)

    def text_flags(self, contents: Sequence[Content]) -> np.ndarray:
        """uint8 ``(n,)``, see :class:`saber.embedders.Embedder`."""
        flags = np.zeros(len(contents), np.uint8)
        tokenizer, limit = self._model.tokenizer, self._model.max_seq_length
        for i, content in enumerate(contents):
            if content.text is None:
                continue
            text = (self.instruction or "") + content.text
            ids = tokenizer(text, truncation=False, verbose=False)["input_ids"]
            if limit and len(ids) > limit:
                flags[i] |= CUT
            unknown = tokenizer.unk_token_id
            if unknown is not None and unknown != tokenizer.eos_token_id and unknown in ids:
                flags[i] |= UNKNOWN_WORDS
        return flags

    def _inputs(self, contents: list[Content]) -> list:
        """Inputs of ``encode``, as dicts: a caption that happens to be the path of an image file would
        otherwise be read as that image. The image comes before the text; the order counts."""
        rows = [i for i, c in enumerate(contents) if c.image is not None]
        try:
            images = dict(zip(rows, image_input.open_images([contents[i] for i in rows]), strict=True))
        except ItemError as error:
            raise ItemError([(rows[i], c, reason) for i, c, reason in error.failures]) from error
        inputs = []
        for i, content in enumerate(contents):
            one = {"image": images[i]} if i in images else {}
            inputs.append(one | ({"text": content.text} if content.text is not None else {}))
        return inputs
