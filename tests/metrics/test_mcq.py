from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from saber.metrics.mcq import mcq_credit, mcq_ties, question_scores, tied_questions

few_levels = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.integers(-2, 2))


def unit(rng, *shape):
    vectors = rng.standard_normal(shape)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def slow_credit(row, correct):
    winners = [j for j, score in enumerate(row) if score == max(row)]
    return 1 / len(winners) if correct in winners else 0.0


def test_hand_computed():
    scores = [[0.9, 0.1, 0.2, 0.3], [0.5, 0.5, 0.1, 0.5], [0.1, 0.7, 0.7, 0.2], [0.4, 0.3, 0.3, 0.3]]
    assert mcq_credit(scores).tolist() == [1, 1 / 3, 0, 1]
    assert tied_questions(scores).tolist() == [False, True, False, False]
    assert mcq_ties(scores) == 1
    assert mcq_credit(scores, correct=[0, 3, 2, 1]).tolist() == [1, 1 / 3, 1 / 2, 0]
    assert mcq_ties(scores, correct=[0, 3, 2, 1]) == 2


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scores=few_levels, data=st.data())
def test_equals_the_slow_version_in_any_order_of_candidates(scores, data):
    n, k = scores.shape
    correct = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    credit = mcq_credit(scores, correct)
    assert credit.tolist() == [slow_credit(row, c) for row, c in zip(scores, correct, strict=True)]
    order = np.array(data.draw(st.permutations(range(k))))
    place = np.argsort(order)[correct]  # where the right candidate went
    assert mcq_credit(scores[:, order], place).tolist() == credit.tolist()
    assert mcq_ties(scores[:, order], place) == mcq_ties(scores, correct)
    assert mcq_credit(np.exp(3 * scores), correct).tolist() == credit.tolist()
    # whoever is right, one point is given per question
    shares = sum(mcq_credit(scores, j) for j in range(k))
    np.testing.assert_allclose(shares, 1)


def test_constant_scores_earn_chance():
    assert mcq_credit(np.zeros((7, 4))).tolist() == [0.25] * 7
    assert mcq_ties(np.zeros((7, 4))) == 7


def test_accuracy_is_that_of_scikit_learn_without_ties():
    from sklearn.metrics import accuracy_score

    rng = np.random.default_rng(0)
    scores, correct = rng.random((500, 4)), rng.integers(0, 4, 500)
    assert mcq_credit(scores, correct).mean() == accuracy_score(correct, scores.argmax(axis=1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_raise(bad):
    scores = np.zeros((5, 4))
    scores[3, 2] = bad
    with pytest.raises(ValueError, match="question 3 has NaN or Inf"):
        mcq_credit(scores)
    with pytest.raises(ValueError, match=r"question 0 has NaN or Inf \(5 in all\)"):
        mcq_ties(np.full((5, 4), bad))


def test_unusable_arguments():
    for shape in [(0, 4), (3, 0), (4,)]:
        with pytest.raises(ValueError, match="non-empty array"):
            mcq_credit(np.zeros(shape))
    with pytest.raises(ValueError, match="question 1 names column 4, valid are 0 to 3"):
        mcq_credit(np.zeros((2, 4)), [0, 4])
    with pytest.raises(ValueError, match="question 0 names column -1"):
        mcq_credit(np.zeros((2, 4)), -1)
    with pytest.raises(ValueError, match=r"integer array of shape \(2,\)"):
        mcq_credit(np.zeros((2, 4)), [0, 1, 2])
    with pytest.raises(ValueError, match="integer array"):
        mcq_credit(np.zeros((2, 4)), [True, False])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_question_scores_equal_the_slow_version(dtype):
    rng = np.random.default_rng(1)
    queries, candidates = unit(rng, 6, 33).astype(dtype), unit(rng, 6, 4, 33).astype(dtype)
    scores = question_scores(queries, candidates)
    assert scores.shape == (6, 4) and scores.dtype == np.float64
    for i in range(6):
        for j in range(4):
            a, b = queries[i].astype(np.float64), candidates[i, j].astype(np.float64)
            assert scores[i, j] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-7)
    reordered = question_scores(queries, candidates[:, [2, 0, 3, 1]])
    assert reordered.tolist() == scores[:, [2, 0, 3, 1]].tolist()


def bag(caption, words):
    counts = Counter(caption.split())
    vector = np.array([counts[word] for word in words], dtype=np.float32)
    return vector / np.linalg.norm(vector)


def test_a_bag_of_words_ties_exactly():
    captions = [
        "a red cube and a blue kite",
        "a blue cube and a red kite",
        "a kite red and blue a cube",
        "a red cube",
    ]
    words = sorted({word for caption in captions for word in caption.split()})
    vectors = np.array([bag(caption, words) for caption in captions])
    scores = question_scores(vectors[:1], vectors[None])
    assert scores[0, 0] == scores[0, 1] == scores[0, 2] > scores[0, 3]
    assert mcq_credit(scores)[0] == 1 / 3
    # so do different vectors whose cosines are equal by arithmetic, whichever word they share
    singles = np.eye(len(words), dtype=np.float32)[:4]
    assert len(set(question_scores(np.full((1, 4), 0.5), singles[None, :, :4])[0])) == 1


def test_bad_vectors_are_named():
    rng = np.random.default_rng(2)
    queries, candidates = unit(rng, 5, 8), unit(rng, 5, 4, 8)
    broken = candidates.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="candidates of question 3: row 1 contains NaN"):
        question_scores(queries, broken)
    broken[3, 1] = 0
    with pytest.raises(ValueError, match="candidates of question 3: row 1 is the zero vector"):
        question_scores(queries, broken)
    with pytest.raises(ValueError, match="queries: row 0 has norm 2"):
        question_scores(2 * queries, candidates)
    with pytest.raises(ValueError, match="4 queries but candidates for 5"):
        question_scores(queries[:4], candidates)
    with pytest.raises(ValueError, match="dimension 8, candidates 4"):
        question_scores(queries, unit(rng, 5, 4, 4))
    with pytest.raises(ValueError, match="expected shape"):
        question_scores(queries, candidates[:, 0])
    with pytest.raises(ValueError, match="no candidate"):
        question_scores(queries, candidates[:, :0])
    with pytest.raises(ValueError, match="queries: empty"):
        question_scores(queries[:0], candidates[:0])
