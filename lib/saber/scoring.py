"""Embed a benchmark with one model; the metrics on the arrays are in :mod:`saber.metrics`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saber.embedders import Content, Embedder
from saber.items import PAIRINGS
from saber.store import EmbeddingStore

MODALITIES = ("text", "image")


@dataclass(frozen=True)
class BenchmarkEmbeddings:
    """Vectors of one model on one benchmark, in the order of its questions.

    vectors: per modality the queries float32 (q, d) and the candidates float32 (q, 4, d), the candidates in
    the order preserved, attribute_swap, object_swap, joint_swap.
    absent: per pairing that cannot be scored, the reason in words.
    """

    model: str
    fingerprint: str
    vectors: dict[str, tuple[np.ndarray, np.ndarray]]
    absent: dict[str, str]

    @property
    def pairings(self) -> tuple[str, ...]:
        """The pairings that can be scored, in the paper's order."""
        return tuple(p for p in PAIRINGS if p not in self.absent)

    def pairing(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Queries (q, d) and candidates (q, 4, d) of a pairing such as "T->I".

        Raises KeyError for an unknown pairing, and with the reason for an absent one.
        """
        if name not in PAIRINGS:
            raise KeyError(f"unknown pairing {name!r}; valid: {', '.join(PAIRINGS)}")
        if name in self.absent:
            raise KeyError(f"{self.model} has no {name}: {self.absent[name]}")
        query, candidate = PAIRINGS[name]
        return self.vectors[query][0], self.vectors[candidate][1]


def embed_benchmark(
    embedder: Embedder,
    benchmark,
    store: EmbeddingStore,
    *,
    batch_size: int = 64,
    progress: bool = True,
    modalities: Sequence[str] = MODALITIES,
) -> BenchmarkEmbeddings:
    """Embed queries and candidates of a :class:`saber.benchmark.Benchmark`, in every modality of the model.

    Equal captions and equal image files are encoded once. A modality that the model lacks, or that is not
    asked for, makes its pairings absent with a reason. Raises ValueError for a benchmark without questions
    and ItemError for items that cannot be embedded.
    """
    if not benchmark.questions:
        raise ValueError("the benchmark has no questions")
    unknown = [m for m in modalities if m not in MODALITIES]
    if unknown:
        raise ValueError(f"unknown modality {', '.join(unknown)}; valid: {', '.join(MODALITIES)}")
    queries, gallery = benchmark.queries, benchmark.gallery
    vectors, reasons = {}, {}
    for modality in MODALITIES:
        if modality not in embedder.modalities:
            reasons[modality] = f"the model embeds {' and '.join(sorted(embedder.modalities))} only"
            continue
        if modality not in modalities:
            reasons[modality] = f"{modality} was not asked for"
            continue
        if modality == "image" and any(item.image is None for item in (*queries, *gallery)):
            reasons[modality] = "the benchmark has no images"
            continue
        items = [_content(benchmark, item, modality) for item in (*queries, *gallery)]
        rows = store.embed(
            embedder, items, batch_size=batch_size, progress=progress, label=f"{embedder.name} {modality}"
        )
        n = len(queries)
        vectors[modality] = rows[:n], rows[n:].reshape(n, -1, rows.shape[1])
    absent = {
        pairing: next(reasons[m] for m in both if m in reasons)
        for pairing, both in PAIRINGS.items()
        if any(m in reasons for m in both)
    }
    return BenchmarkEmbeddings(embedder.name, embedder.fingerprint, vectors, absent)


def _content(benchmark, item, modality: str) -> Content:
    if modality == "text":
        return Content(text=item.text)
    return Content(image=benchmark.image_path(item))
