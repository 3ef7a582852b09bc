import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from saber.metrics.average_precision import average_precision


def slow_average_precision(scores, relevant):
    """Recall step times precision at each distinct threshold, from the highest down."""
    total, ap, recall_before = sum(relevant), 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        kept = [r for s, r in zip(scores, relevant, strict=True) if s >= threshold]
        recall = sum(kept) / total
        ap += (recall - recall_before) * sum(kept) / len(kept)
        recall_before = recall
    return ap


@st.composite
def rankings(draw):
    size = draw(st.integers(1, 25))
    scores = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    relevant = draw(st.lists(st.booleans(), min_size=size, max_size=size).filter(any))
    return np.array(scores, dtype=float), np.array(relevant)


def test_hand_computed():
    # the positives stand at ranks 1 and 5: (1/1 + 2/5) / 2
    assert average_precision([0.5, 0.2, 0.3, 0.4, 0.1], np.array([1, 0, 0, 0, 1], bool)) == pytest.approx(0.7)
    # a positive tied with one other item at the top, another one below: (1/2 + 2/3) / 2
    assert average_precision([0.9, 0.9, 0.5, 0.1], np.array([1, 0, 1, 0], bool)) == pytest.approx(7 / 12)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(ranking=rankings(), data=st.data())
def test_equals_the_slow_version_and_scikit_learn_in_any_order(ranking, data):
    scores, relevant = ranking
    ap = average_precision(scores, relevant)
    assert ap == pytest.approx(slow_average_precision(scores, relevant), abs=1e-12)
    assert ap == pytest.approx(average_precision_score(relevant, scores), abs=1e-12)
    order = np.array(data.draw(st.permutations(range(scores.size))))
    assert average_precision(scores[order], relevant[order]) == ap
    assert average_precision(np.exp(scores) * 1e-3, relevant) == ap
    assert 0 < ap <= 1


def test_extremes():
    one_of_ten = np.arange(10) == 3
    assert average_precision(np.zeros(10), one_of_ten) == 0.1
    assert average_precision(one_of_ten.astype(float), one_of_ten) == 1
    assert average_precision(-one_of_ten.astype(float), one_of_ten) == 0.1
    assert average_precision([-3.0], np.array([True])) == 1


def test_unusable_arguments():
    with pytest.raises(ValueError, match="no relevant item"):
        average_precision([0.1, 0.2], np.array([False, False]))
    with pytest.raises(ValueError, match="item 1 is NaN or Inf"):
        average_precision([0.1, np.nan], np.array([True, False]))
    with pytest.raises(ValueError, match="item 0 is NaN or Inf"):
        average_precision([np.inf, 0.0], np.array([True, False]))
    with pytest.raises(ValueError, match="empty"):
        average_precision([], np.array([], dtype=bool))
    with pytest.raises(ValueError, match="one shape"):
        average_precision([0.1, 0.2], np.array([True]))
    with pytest.raises(ValueError, match="must be boolean"):
        average_precision([0.1, 0.2], np.array([1, 0]))
