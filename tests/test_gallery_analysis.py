"""The analyses of section 5.1 on planted embeddings."""

import numpy as np
import pytest

from saber.benchmark import build_benchmark
from saber.gallery_analysis import TOP_FOUR, analyse_gallery
from saber.scoring import BenchmarkEmbeddings
from saber.vocabulary import load_vocabulary


@pytest.fixture(scope="module")
def benchmark():
    return build_benchmark(load_vocabulary("known"), 3, 8, [2, 3, 4, 5])


def embed(benchmark, weight_of):
    """One dimension a binding, and one that ``weight_of(item)`` fills before the vector is normalised."""
    columns = {
        pair: k for k, pair in enumerate(sorted({p for i in benchmark.items.values() for p in i.pairs}))
    }

    def vectors(items):
        rows = np.zeros((len(items), len(columns) + 1))
        for row, item in zip(rows, items, strict=True):
            row[[columns[p] for p in item.pairs]] = 1
            row[-1] = weight_of(item)
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    queries, gallery = vectors(benchmark.queries), vectors(benchmark.gallery)
    both = (queries, gallery.reshape(len(queries), 4, -1))
    return BenchmarkEmbeddings("planted", "0" * 64, {"text": both, "image": both}, {})


def shares(benchmark, weight_of):
    frame = analyse_gallery(embed(benchmark, weight_of), benchmark, n_resamples=100)
    return frame.set_index("column")["value"], frame


def test_with_seen_bindings_the_exact_match_is_first(benchmark):
    value, frame = shares(benchmark, lambda item: 0.0)
    assert value["subset over exact T->T"] == 0 and value["superset over exact I->I"] == 0
    # cosine of a query of n bindings with m of them is sqrt(m/n), with all of them in m' it is sqrt(n/m')
    assert 0 < value["subset over superset T->I"] < 100
    pairings, mean = frame[frame["pairing"] != "Mean"], frame[frame["pairing"] == "Mean"]
    assert frame["n"].gt(0).all() and (pairings["low"] <= pairings["value"]).all()
    assert mean.set_index("analysis")["value"].to_dict() == pytest.approx(
        pairings.groupby("analysis")["value"].mean().to_dict()
    )


def test_a_model_that_prefers_small_scenes_lets_subsets_win(benchmark):
    value, _ = shares(benchmark, lambda item: 0.0 if item.role == "query" else len(item.pairs) ** 2)
    assert value["subset over exact T->T"] == 100 and value["superset over exact T->T"] == 0


def test_own_candidates_fill_the_top_only_when_they_do(benchmark):
    value, frame = shares(benchmark, lambda item: 0.0)
    queries, candidates = embed(benchmark, lambda item: 0.0).pairing("T->T")
    scores = queries @ candidates.reshape(-1, candidates.shape[-1]).T
    filled = []
    for i, question in enumerate(benchmark.questions):
        if question.subset == "independent":
            own = range(4 * i, 4 * i + 4)
            others = np.delete(scores[i], own)
            filled.append(scores[i][list(own)].min() > others.max() + 1e-7)
    assert value[f"{TOP_FOUR} T->T"] == pytest.approx(100 * np.mean(filled))
    assert frame.set_index("column")["n"][f"{TOP_FOUR} T->T"] == len(filled)


def test_an_analysis_without_a_comparison_is_left_out():
    two_steps = build_benchmark(load_vocabulary("known"), 3, 4, [2, 3])
    value, frame = shares(two_steps, lambda item: 0.0)
    assert not any("subset over superset" in column for column in value.index) and frame["n"].gt(0).all()
