"""Finetuning examples, their loss and their accuracy (paper, section 4 and appendix B.5).

An example is a query, a positive with the same bindings, and two hard negatives in which the attributes or
the objects of the positive are permuted. That makes two triplets: query and positive with either negative.
"""

from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

Item = str | dict  # a text, or {"image": PIL image}


@dataclass(frozen=True)
class Example:
    """Two triplets that share query and positive. Each item is a text or ``{"image": PIL image}``."""

    query: Item
    positive: Item
    attribute_negative: Item
    object_negative: Item

    def __post_init__(self):
        for field in fields(self):
            item = getattr(self, field.name)
            if not isinstance(item, str) and not (isinstance(item, dict) and set(item) == {"image"}):
                raise TypeError(
                    f'{field.name} of an example must be a text or {{"image": PIL image}}, got {item!r:.80}'
                )


def hinge_loss(
    query: Tensor, positive: Tensor, attribute_negative: Tensor, object_negative: Tensor, margin: float
) -> Tensor:
    """Mean over the 2n triplets of relu(cos(q, n) - cos(q, p) + margin): a float32 scalar (section 4).

    All embeddings are ``(n, d)``, of any norm; cosines are taken in float32. NaN goes through.
    """
    return F.relu(margin - _gaps(query, positive, attribute_negative, object_negative)).mean()


def triplet_accuracy(query, positive, attribute_negative, object_negative) -> float:
    """Share of the 2n triplets with cos(q, p) > cos(q, n), in [0, 1]; chance is 0.5 (appendix B.5).

    All embeddings are ``(n, d)``, tensors or arrays, of any norm. A tie counts as wrong: the positive is not
    closer. Raises ValueError for NaN, Inf and zero vectors, whose cosine means nothing.
    """
    names = [field.name for field in fields(Example)]
    embeddings = [torch.as_tensor(e).detach() for e in (query, positive, attribute_negative, object_negative)]
    gaps = _gaps(*embeddings)
    for name, rows in zip(names, embeddings, strict=True):
        norms = rows.float().norm(dim=1)
        bad = torch.nonzero(~(norms.isfinite() & (norms > 0))).flatten().tolist()
        if bad:
            raise ValueError(
                f"{name}: row {bad[0]} is a zero vector or holds NaN or Inf ({len(bad)} such rows)"
            )
    return float((gaps > 0).double().mean())


def _gaps(query: Tensor, positive: Tensor, attribute_negative: Tensor, object_negative: Tensor) -> Tensor:
    """cos(q, p) - cos(q, n), float32 ``(2n,)``: the triplets with the first negative, then the second."""
    shapes = [tuple(e.shape) for e in (query, positive, attribute_negative, object_negative)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2 or 0 in shapes[0]:
        raise ValueError(f"the four embeddings must have one shape (n, d) with n, d > 0, got {shapes}")
    right, *wrong = (
        F.cosine_similarity(query.float(), other.float(), dim=1)
        for other in (positive, attribute_negative, object_negative)
    )
    return right.repeat(2) - torch.cat(wrong)
