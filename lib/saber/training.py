"""What both shipped models are trained with: AdamW and one schedule."""

import math
from collections.abc import Sequence

import torch


def schedule(step: int, n_steps: int, warmup: int = 60) -> float:
    """Share of the learning rate: short warm-up, constant for 30 %, cosine down to 3 %."""
    progress = step / n_steps
    decay = 1.0 if progress < 0.3 else 0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * (progress - 0.3) / 0.7))
    return min(1.0, (step + 1) / warmup) * decay


def make_optimizer(parameters: Sequence[torch.nn.Parameter]) -> torch.optim.AdamW:
    """AdamW (0.9, 0.98) with weight decay on matrices only; the learning rate is set at every step."""
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.02},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of all groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate
