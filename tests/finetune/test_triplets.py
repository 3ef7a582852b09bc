"""Loss and accuracy of triplets, beside sentence-transformers' own loss and an explicit loop."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saber.finetune import Example, hinge_loss, triplet_accuracy


def embeddings(seed, n, dim=5):
    rng = np.random.default_rng([seed, n])
    return [torch.tensor(rng.normal(size=(n, dim)), requires_grad=True) for _ in range(4)]


def cosine(a, b):
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def loop(four):
    """(cos(q, p), cos(q, n)) of all triplets, one by one."""
    q, p, *negatives = (e.detach().numpy() for e in four)
    return [(cosine(q[i], p[i]), cosine(q[i], n[i])) for n in negatives for i in range(len(q))]


@given(st.integers(0, 10**6), st.integers(1, 9), st.floats(0, 1.5))
def test_loss_and_accuracy_equal_a_loop_over_the_triplets(seed, n, margin):
    four = embeddings(seed, n)
    pairs = loop(four)
    expected = np.mean([max(wrong - right + margin, 0) for right, wrong in pairs])
    assert hinge_loss(*four, margin).item() == pytest.approx(expected, abs=1e-6)
    assert triplet_accuracy(*four) == np.mean([right > wrong for right, wrong in pairs])


@pytest.mark.parametrize("margin", [0.05, 0.7])
def test_loss_and_gradient_equal_those_of_sentence_transformers(margin):
    from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss

    q, p, a, o = four = embeddings(3, 16)
    theirs = TripletLoss(None, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=margin)
    columns = [torch.cat([q, q]), torch.cat([p, p]), torch.cat([a, o])]
    expected = theirs.compute_loss_from_embeddings(columns, labels=None)
    loss = hinge_loss(*four, margin)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    for ours, reference in zip(
        torch.autograd.grad(loss, four), torch.autograd.grad(expected, four), strict=True
    ):
        torch.testing.assert_close(ours, reference, atol=1e-6, rtol=1e-5)


def test_by_hand():
    query = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    positive = torch.tensor([[3.0, 4.0], [0.0, 1.0]])  # cosines 0.6 and 1
    attribute_negative = torch.tensor([[4.0, 3.0], [3.0, 4.0]])  # 0.8 and 0.8
    object_negative = torch.tensor([[3.0, 4.0], [5.0, 0.0]])  # 0.6, a tie, and 0
    four = (query, positive, attribute_negative, object_negative)
    assert hinge_loss(*four, 0.3).item() == pytest.approx((0.5 + 0.1 + 0.3 + 0.0) / 4)
    assert triplet_accuracy(*four) == 0.5  # the tie counts as wrong
    assert triplet_accuracy(*(e.numpy() for e in four)) == 0.5


def test_norms_do_not_matter():
    four = embeddings(1, 6)
    scaled = [e * torch.arange(1, 7)[:, None] for e in four]
    assert hinge_loss(*four, 0.2).item() == pytest.approx(hinge_loss(*scaled, 0.2).item(), abs=1e-6)
    assert triplet_accuracy(*four) == triplet_accuracy(*scaled)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_vectors_without_a_cosine_raise(value):
    four = [e.detach() for e in embeddings(2, 3)]
    four[2][1] = value
    with pytest.raises(ValueError, match="attribute_negative: row 1"):
        triplet_accuracy(*four)


def test_nothing_and_unequal_shapes_raise():
    with pytest.raises(ValueError, match="one shape"):
        triplet_accuracy(*(torch.empty(0, 4) for _ in range(4)))
    with pytest.raises(ValueError, match="one shape"):
        hinge_loss(*embeddings(0, 3)[:3], embeddings(0, 4)[3], 0.05)


def test_an_item_is_a_text_or_an_image():
    with pytest.raises(TypeError, match="positive of an example"):
        Example("a red cup", 3, "b", "c")
    with pytest.raises(TypeError, match="object_negative"):
        Example("a red cup", "a", "b", {"text": "c"})
