import numpy as np
import pytest

from saber.metrics.groups import check_values, make_design


def test_without_labels_each_value_counts_alike_and_stands_alone():
    design = make_design(4)
    assert design.weights.tolist() == [0.25] * 4
    assert design.cluster.tolist() == [0, 1, 2, 3]
    assert design.group.tolist() == [0, 0, 0, 0]
    assert design.mean(np.array([1.0, 2.0, 3.0, 6.0])) == 3
    assert design.effective_size() == pytest.approx(4)
    assert design.independent() and design.resamplable()


def test_chains_and_independent_questions():
    # two chains over the counts 2 and 3, and three independent questions
    clusters = ["a", None, "b", "a", float("nan"), "b", None]
    strata = [2, 2, 2, 3, 3, 3, 3]
    design = make_design(7, clusters, strata)
    np.testing.assert_allclose(design.weights, [1 / 6] * 3 + [1 / 8] * 4)  # each count weighs one half
    assert design.cluster.tolist() == [0, 1, 2, 0, 3, 2, 4]
    # chains are exchangeable with chains, an independent question with those of its count
    assert design.group[0] == design.group[2]
    assert design.group[3] == design.group[4]
    assert len({design.group[0], design.group[1], design.group[3]}) == 3
    assert not design.independent()
    assert not design.resamplable()  # the question of count 2 stands alone in its group
    values = np.array([1.0, 0, 1, 1, 1, 0, 0])
    assert design.mean(values) == pytest.approx((2 / 3 + 2 / 4) / 2)
    np.testing.assert_allclose(design.totals(values), [1 / 6 + 1 / 8, 0, 1 / 6, 1 / 8, 0])


def test_chains_that_cover_other_counts_are_other_groups():
    design = make_design(6, ["a", "a", "b", "b", "c", "c"], [2, 3, 3, 2, 3, 3])
    assert design.group.tolist() == [0, 0, 1]
    assert make_design(4, [1, 1, 2, 2]).resamplable()


def test_unusable_arguments():
    with pytest.raises(ValueError, match="no values"):
        make_design(0)
    with pytest.raises(ValueError, match="clusters: 2 labels for 3 values"):
        make_design(3, clusters=["a", "b"])
    with pytest.raises(ValueError, match="strata: 4 labels for 3 values"):
        make_design(3, strata=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="strata: no label for value 1"):
        make_design(3, strata=[1, None, 3])
    with pytest.raises(ValueError, match="credit: row 2 is NaN or Inf"):
        check_values([0.0, 1.0, np.nan], "credit")
    for empty in ([], [[1.0]]):
        with pytest.raises(ValueError, match="non-empty array"):
            check_values(empty)
