import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from saber.metrics.average_precision import average_precision
from saber.metrics.cosine import cosine_scores
from saber.metrics.retrieval import FEW, gallery_average_precision, pair_scores, top_k

CHUNKS = [(3, 5), (7, 3), (64, 1000), (10_000, 10_000)]


def unit(rng, *shape):
    vectors = rng.standard_normal(shape)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def bags(rng, n, words=9, length=4):
    """Word counts of unit length: few distinct vectors, so most of the gallery ties."""
    counts = np.array([np.bincount(rng.integers(0, words, length), minlength=words) for _ in range(n)])
    return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def some_positives(rng, n_queries, n_items, most=6):
    return [rng.choice(n_items, rng.integers(1, most + 1), replace=False) for _ in range(n_queries)]


def slow_average_precision(queries, gallery, positives):
    scores = cosine_scores(queries, gallery)
    return [
        average_precision(s, np.isin(np.arange(len(gallery)), p))
        for s, p in zip(scores, positives, strict=True)
    ]


def slow_top_k(queries, gallery, k):
    scores = cosine_scores(queries, gallery)
    rows = [sorted(range(len(gallery)), key=lambda j: (-row[j], j))[:k] for row in scores]
    return rows, [[row[j] for j in own] for row, own in zip(scores, rows, strict=True)]


def test_hand_computed():
    gallery = [[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0], [0.6, 0.8]]
    queries = [[1.0, 0.0], [0.0, 1.0]]
    # query 0 ranks 0, 1, {2, 4}, 3: its positives 1 and 2 are among 2 and 4 items; query 1 finds row 3 first
    ap, ties = gallery_average_precision(queries, gallery_array(gallery), [[1, 2], [3]], return_ties=True)
    np.testing.assert_allclose(ap, [(1 / 2 + 2 / 4) / 2, 1])
    assert ties.tolist() == [1, 0]
    rows, scores = top_k(queries, gallery_array(gallery), 3)
    assert rows.tolist() == [[0, 1, 2], [3, 2, 4]]
    np.testing.assert_allclose(scores, [[1, 0.8, 0.6], [1, 0.8, 0.8]], atol=1e-7)


def gallery_array(rows):
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(("make", "dim"), [(unit, (48,)), (bags, ())])
def test_average_precision_equals_scikit_learn_whatever_the_chunks(make, dim):
    rng = np.random.default_rng(5)
    queries, gallery = make(rng, 40, *dim), make(rng, 300, *dim)
    positives = some_positives(rng, 40, 300, most=2 * FEW)
    assert min(map(len, positives)) <= FEW < max(map(len, positives))  # both ways of counting are used
    scores = cosine_scores(queries, gallery)
    expected = [
        average_precision_score(np.isin(np.arange(300), p), s) for s, p in zip(scores, positives, strict=True)
    ]
    results = [
        gallery_average_precision(queries, gallery, positives, chunk, part, return_ties=True)
        for chunk, part in CHUNKS
    ]
    np.testing.assert_allclose(results[0][0], expected, rtol=1e-12)
    for ap, ties in results[1:]:
        assert ap.tolist() == results[0][0].tolist()
        assert ties.tolist() == results[0][1].tolist()
    slow_ties = [np.isin(np.delete(s, p), s[p]).sum() for s, p in zip(scores, positives, strict=True)]
    assert results[0][1].tolist() == slow_ties
    assert (sum(slow_ties) > 1000) == (make is bags)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), chunk=st.integers(1, 40), part=st.integers(1, 8))
def test_order_of_the_gallery_and_repeated_scenes_change_nothing(seed, chunk, part):
    rng = np.random.default_rng(seed)
    queries, gallery = bags(rng, 5), bags(rng, 30)
    positives = some_positives(rng, 5, 30)
    ap = gallery_average_precision(queries, gallery, positives, chunk, part)
    np.testing.assert_allclose(ap, slow_average_precision(queries, gallery, positives), rtol=1e-12)
    order = rng.permutation(30)
    moved = [np.argsort(order)[p] for p in positives]
    assert gallery_average_precision(queries, gallery[order], moved, chunk, part).tolist() == ap.tolist()
    backwards = [p[::-1] for p in positives]
    assert gallery_average_precision(queries, gallery, backwards, chunk, part).tolist() == ap.tolist()


def test_a_constant_model_gets_the_prevalence():
    same = np.tile(np.float32([0.6, 0.8]), (50, 1))
    ap, ties = gallery_average_precision(same[:2], same, [[3], [4, 40]], chunk_size=8, return_ties=True)
    assert ap.tolist() == [1 / 50, 2 / 50]
    assert ties.tolist() == [49, 48]


@pytest.mark.parametrize(("make", "dim"), [(unit, (24,)), (bags, ())])
@pytest.mark.parametrize("k", [1, 5, 90])
def test_top_k_equals_the_slow_version_whatever_the_chunks(make, dim, k):
    rng = np.random.default_rng(6)
    queries, gallery = make(rng, 11, *dim), make(rng, 90, *dim)
    expected_rows, expected_scores = slow_top_k(queries, gallery, k)
    for chunk, part in CHUNKS:
        rows, scores = top_k(queries, gallery, k, chunk, part)
        assert rows.tolist() == expected_rows
        assert scores.tolist() == expected_scores


def test_pair_scores_are_those_of_the_ranking():
    rng = np.random.default_rng(7)
    queries, gallery = unit(rng, 6, 100), unit(rng, 50, 100)
    items = [[4, 4, 0], [], [49], [1, 2, 3], [], [10, 5]]
    scores = pair_scores(queries, gallery, items, chunk_size=7)
    whole = cosine_scores(queries, gallery)
    assert [s.tolist() for s in scores] == [
        whole[i, np.array(own, int)].tolist() for i, own in enumerate(items)
    ]
    assert [s.size for s in pair_scores(queries, gallery, [[]] * 6)] == [0] * 6


def test_streams_a_memory_map_and_lists_of_arrays(tmp_path):
    rng = np.random.default_rng(8)
    queries, gallery = unit(rng, 9, 16), unit(rng, 100, 16)
    positives = some_positives(rng, 9, 100)
    np.save(tmp_path / "gallery.npy", gallery)
    mapped = np.load(tmp_path / "gallery.npy", mmap_mode="r")
    expected = gallery_average_precision(queries, gallery, positives).tolist()
    for kind in (mapped, [gallery[:30], gallery[30:]]):
        assert gallery_average_precision(queries, kind, positives, chunk_size=13).tolist() == expected
        assert top_k(queries, kind, 4, chunk_size=13)[0].tolist() == top_k(queries, gallery, 4)[0].tolist()


def test_unusable_arguments():
    rng = np.random.default_rng(9)
    queries, gallery = unit(rng, 2, 4), unit(rng, 10, 4)
    cases = [
        ([[1], []], "query 1 has none"),
        ([[1], [2, 2]], "query 1 names a gallery row twice"),
        ([[1], [10]], "query 1 names gallery row 10, which the gallery does not have"),
        ([[-1], [2]], "query 0 names gallery row -1"),
        ([[1]], "lists for 1 queries, but there are 2"),
        ([[1], [0.5]], "query 1 needs a list of gallery row numbers"),
        (np.eye(2, 10, dtype=bool), "query 0 needs a list of gallery row numbers, got bool"),
    ]
    for positives, message in cases:
        with pytest.raises(ValueError, match=message):
            gallery_average_precision(queries, gallery, positives)
    for bad, message in [(np.nan, "contains NaN"), (0, "is the zero vector"), (3, "has norm 6")]:
        broken = gallery.copy()
        broken[6] = bad
        for call in (
            lambda g: gallery_average_precision(queries, g, [[0], [1]], chunk_size=4),
            lambda g: top_k(queries, g, 2, chunk_size=4),
            lambda g: pair_scores(queries, g, [[0], [6, 1]], chunk_size=4),
        ):
            with pytest.raises(ValueError, match=f"gallery: row 6 {message}"):
                call(broken)
    with pytest.raises(ValueError, match="queries: row 1 contains NaN"):
        top_k(np.array([[1, 0, 0, 0], [np.nan] * 4]), gallery, 1)
    with pytest.raises(ValueError, match="top 11 asked of a gallery of 10"):
        top_k(queries, gallery, 11)
    with pytest.raises(ValueError, match="k must be at least 1"):
        top_k(queries, gallery, 0)
    with pytest.raises(ValueError, match="query_chunk must be at least 1"):
        top_k(queries, gallery, 1, query_chunk=0)
    with pytest.raises(ValueError, match="queries have dimension 4, gallery items 3"):
        top_k(queries, unit(rng, 5, 3), 1)
    with pytest.raises(ValueError, match="gallery: empty"):
        gallery_average_precision(queries, gallery[:0], [[0], [1]])
    with pytest.raises(ValueError, match="queries: empty"):
        gallery_average_precision(queries[:0], gallery, [])
