"""Models that embed texts and images, all behind one small protocol (see :class:`Embedder`).

    embedder = load_embedder("mini-clip")
    vectors = embedder.embed([Content(text="A red teapot and a blue kite"), Content(image="scene.png")])

Loading is cheap: files are located and hashed for the fingerprint, the weights are read when something is
embedded for the first time. A model of one's own is an entry in ``params/models.yaml`` (or a registry file of
one's own, passed as ``registry``).
"""

from pathlib import Path

from saber.embedders.content import CUT, UNKNOWN_WORDS, Content, Embedder, ItemError, ModelUnavailable
from saber.embedders.device import check_device
from saber.embedders.registry import ModelEntry, find_entry, load_registry

__all__ = [
    "CUT",
    "UNKNOWN_WORDS",
    "Content",
    "Embedder",
    "ItemError",
    "ModelEntry",
    "ModelUnavailable",
    "load_embedder",
    "load_registry",
]


def load_embedder(name: str, device: str = "auto", registry: Path | dict | None = None) -> Embedder:
    """The embedder of a registry entry, on ``device`` (auto, cpu, cuda, cuda:N, mps).

    registry: a file or the result of ``load_registry``; the shipped ``params/models.yaml`` by default.
    Raises KeyError for an unknown name, ModelUnavailable when the weights cannot be had, and ValueError for
    "chance", which embeds nothing: its row comes from ``saber.embedders.chance``.
    """
    check_device(device)
    if not isinstance(registry, dict):
        registry = load_registry() if registry is None else load_registry(registry)
    entry = find_entry(name, registry)
    # each adapter imports its library late: a table of cached vectors needs none of them
    if entry.loader == "open_clip":
        from saber.embedders.open_clip_adapter import OpenClipEmbedder

        return OpenClipEmbedder.from_entry(entry, device)
    if entry.loader == "sentence_transformers":
        from saber.embedders.sentence_transformers_adapter import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder.from_entry(entry, device)
    if entry.loader == "bag_of_words":
        from saber.embedders.bag_of_words import BagOfWords

        return BagOfWords(entry.name)
    raise ValueError(
        f"{name!r} is a reference row, not an embedder: use the formulas of saber.embedders.chance"
    )
