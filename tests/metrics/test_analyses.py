import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber.metrics.analyses import containment_comparisons, outranking, top_four_share
from saber.metrics.cosine import cosine_scores
from saber.metrics.retrieval import pair_scores, top_k


def few_directions(rng, n):
    """Unit vectors with few distinct values, so that ties occur."""
    vectors = rng.choice([-1.0, 0.0, 1.0, 2.0], size=(n, 3))
    vectors[:, 2] += 4
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_top_four_by_hand():
    own = np.array([[0, 1, 2, 3]] * 4)
    own_scores = [[0.9, 0.8, 0.7, 0.6], [0.9, 0.8, 0.7, 0.5], [0.9, 0.8, 0.7, 0.1], [0.5, 0.5, 0.5, 0.5]]
    top_rows = [[0, 1, 2, 3, 9], [0, 1, 2, 3, 9], [0, 9, 1, 2, 8], [0, 1, 2, 3, 4]]
    top_scores = [[0.9, 0.8, 0.7, 0.6, 0.5], [0.9, 0.8, 0.7, 0.5, 0.5], [0.9, 0.85, 0.8, 0.7, 0.2], [0.5] * 5]
    result = top_four_share(own, own_scores, top_rows, top_scores)
    assert result.filled.tolist() == [True, False, False, False]
    assert result.tied.tolist() == [False, True, False, True]
    assert (result.share, result.n, result.ties) == (0.25, 4, 2)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_top_four_equals_the_slow_version(seed):
    rng = np.random.default_rng(seed)
    queries, gallery = few_directions(rng, 8), few_directions(rng, 24)
    own = np.array([rng.choice(24, 4, replace=False) for _ in range(8)])
    near = rng.random(8) < 0.6  # make success frequent: four copies of the query in the gallery
    for i in np.flatnonzero(near):
        gallery[own[i]] = queries[i]
    scores = cosine_scores(queries, gallery)
    filled, tied = [], []
    for i in range(8):
        others = np.delete(scores[i], own[i])
        filled.append(all(scores[i, j] > others.max() for j in own[i]))
        tied.append(scores[i, own[i]].min() == others.max())
    result = top_four_share(
        own, np.array(pair_scores(queries, gallery, list(own))), *top_k(queries, gallery, 5)
    )
    assert result.filled.tolist() == filled
    assert result.tied.tolist() == tied


def test_top_four_rejects_what_it_cannot_judge():
    own, own_scores = np.array([[0, 1, 2, 3]]), np.array([[0.4, 0.3, 0.2, 0.1]])
    with pytest.raises(ValueError, match="top 4 given; the top 5 or more is needed"):
        top_four_share(own, own_scores, [[0, 1, 2, 3]], own_scores)
    with pytest.raises(ValueError, match="own_scores: NaN"):
        top_four_share(own, own_scores * np.nan, [[0, 1, 2, 3, 4]], np.zeros((1, 5)))
    with pytest.raises(ValueError, match="query 0 names a gallery row twice"):
        top_four_share([[0, 1, 2, 2]], own_scores, [[0, 1, 2, 3, 4]], np.zeros((1, 5)))
    with pytest.raises(ValueError, match="one shape"):
        top_four_share(own, own_scores[:, :3], [[0, 1, 2, 3, 4]], np.zeros((1, 5)))
    with pytest.raises(ValueError, match=r"expected \(1, k\)"):
        top_four_share(own, own_scores, np.zeros((2, 5), int), np.zeros((2, 5)))
    with pytest.raises(ValueError, match="one shape"):
        top_four_share(np.zeros((0, 4), int), np.zeros((0, 4)), np.zeros((0, 5), int), np.zeros((0, 5)))


def test_outranking_by_hand():
    result = outranking([[0.9, 0.5, 0.1], [], [0.3]], [[0.5, 0.4], [0.7], [0.3]])
    # query 0: 0.9 beats both; 0.5 ties with 0.5 and beats 0.4; 0.1 beats none
    assert result.wins.tolist() == [3.5, 0, 0.5]
    assert result.counts.tolist() == [6, 0, 1]
    assert (result.n, result.ties) == (7, 2)
    assert result.share == pytest.approx(4 / 7)
    assert np.isnan(outranking([[]], [[0.1]]).share)


few_scores = st.lists(st.integers(0, 3).map(float), max_size=5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(pairs=st.lists(st.tuples(few_scores, few_scores), min_size=1, max_size=5))
def test_outranking_equals_the_slow_version_and_is_complementary(pairs):
    upper, lower = zip(*pairs, strict=True)
    forth, back = outranking(upper, lower), outranking(lower, upper)
    wins = [sum(1.0 * (u > v) + 0.5 * (u == v) for u in a for v in b) for a, b in pairs]
    assert forth.wins.tolist() == wins
    assert (forth.wins + back.wins).tolist() == forth.counts.tolist() == back.counts.tolist()
    assert forth.ties == back.ties


def test_containment_comparisons_name_the_three_questions():
    result = containment_comparisons(exact=[[0.8]], subsets=[[0.9, 0.1]], supersets=[[0.5, 0.85, 0.05]])
    shares = {name: comparisons.share for name, comparisons in result.items()}
    assert shares == pytest.approx(
        {"subset over exact": 1 / 2, "subset over superset": 4 / 6, "superset over exact": 1 / 3}
    )
    with pytest.raises(ValueError, match=r"query 1 has no exact match in the gallery \(1 such"):
        containment_comparisons([[0.8], []], [[], []], [[], []])
    with pytest.raises(ValueError, match="scores of query 0: NaN or Inf"):
        containment_comparisons([[np.nan]], [[0.1]], [[]])
    with pytest.raises(ValueError, match="challengers of 2 queries, defenders of 1"):
        outranking([[1.0], [2.0]], [[1.0]])
    with pytest.raises(ValueError, match="no query"):
        outranking([], [])
