import numpy as np
import pytest

from saber.benchmark import build_benchmark
from saber.embedders import Content
from saber.embedders.bag_of_words import BagOfWords
from saber.items import Benchmark, Item, Question
from saber.metrics.mcq import mcq_credit, question_scores
from saber.scoring import PAIRINGS, embed_benchmark
from saber.store import EmbeddingStore
from saber.vocabulary import load_vocabulary


class Both:
    """Embeds texts and images; the vector tells which content it was."""

    name, fingerprint, dim, modalities = "both", "b" * 64, 16, frozenset(("text", "image"))

    def __init__(self):
        self.encoded = []

    def embed(self, contents):
        self.encoded += contents
        return np.stack([self.vector(content) for content in contents])

    def vector(self, content):
        vector = np.random.default_rng(list(bytes.fromhex(content.digest()))).normal(size=self.dim)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


@pytest.fixture
def benchmark(tmp_path):
    """Two questions; the caption of one candidate occurs twice."""
    (tmp_path / "images").mkdir()
    items = {}
    for question in ("q1", "q2"):
        for role in ("query", "preserved", "attribute_swap", "object_swap", "joint_swap"):
            name = f"{question}-{role}"
            (tmp_path / "images" / f"{name}.png").write_bytes(name.encode())
            text = "the same" if role == "joint_swap" else f"caption of {name}"
            items[name] = Item(name, question, role, (("red", "cube"),), text, image=f"images/{name}.png")
    questions = tuple(
        Question(q, 2, "independent", None, f"{q}-query", tuple(i for i in items if i.startswith(q))[1:])
        for q in ("q2", "q1")
    )
    return Benchmark(questions, items, tmp_path)


@pytest.fixture
def store(tmp_path):
    return EmbeddingStore(tmp_path / "store")


def test_rows_follow_questions_and_candidates(benchmark, store):
    embedder = Both()
    result = embed_benchmark(embedder, benchmark, store, progress=False)
    assert result.pairings == ("T->T", "T->I", "I->T", "I->I") and result.absent == {}
    assert (result.model, result.fingerprint) == ("both", "b" * 64)
    for pairing, (query_modality, candidate_modality) in PAIRINGS.items():
        queries, candidates = result.pairing(pairing)
        assert queries.shape == (2, 16) and candidates.shape == (2, 4, 16)
        for i, question in enumerate(benchmark.questions):
            ids = (question.query, *question.candidates)
            for vector, item_id, modality in zip(
                (queries[i], *candidates[i]), ids, (query_modality, *[candidate_modality] * 4), strict=True
            ):
                item = benchmark.items[item_id]
                content = (
                    Content(text=item.text)
                    if modality == "text"
                    else Content(image=benchmark.image_path(item))
                )
                np.testing.assert_array_equal(vector, embedder.vector(content))
    assert len(embedder.encoded) == 9 + 10  # the caption that occurs twice is encoded once


def test_a_text_model_has_one_pairing_and_says_why(benchmark, store):
    result = embed_benchmark(BagOfWords(), benchmark, store, progress=False)
    assert result.pairings == ("T->T",)
    assert result.absent == dict.fromkeys(("T->I", "I->T", "I->I"), "the model embeds text only")
    with pytest.raises(KeyError, match="bag-of-words has no T->I: the model embeds text only"):
        result.pairing("T->I")
    with pytest.raises(KeyError, match="unknown pairing 'TT'; valid: T->T"):
        result.pairing("TT")


def test_only_what_is_asked_for(benchmark, store):
    embedder = Both()
    result = embed_benchmark(embedder, benchmark, store, progress=False, modalities=["text"])
    assert result.pairings == ("T->T",) and result.absent["I->I"] == "image was not asked for"
    assert all(content.image is None for content in embedder.encoded)
    with pytest.raises(ValueError, match="unknown modality sound; valid: text, image"):
        embed_benchmark(embedder, benchmark, store, modalities=["sound"])


def test_benchmarks_that_cannot_be_scored(benchmark, store):
    with pytest.raises(ValueError, match="no questions"):
        embed_benchmark(Both(), Benchmark((), {}), store)
    with pytest.raises(ValueError, match="has no folder"):
        embed_benchmark(Both(), Benchmark(benchmark.questions, benchmark.items), store, progress=False)


def test_bag_of_words_is_at_chance_on_a_real_benchmark(store):
    """All four candidates tie, save for the fourth with two objects, which must bring in a new word."""
    benchmark = build_benchmark(
        load_vocabulary("known"), seed=1, questions_per_count=6, object_counts=[2, 3, 6]
    )
    result = embed_benchmark(BagOfWords(), benchmark, store, progress=False)
    credit = mcq_credit(question_scores(*result.pairing("T->T")))
    counts = np.array([question.n_objects for question in benchmark.questions])
    assert set(credit[counts > 2]) == {1 / 4}
    assert set(credit[counts == 2]) <= {1 / 3, 1 / 4}
