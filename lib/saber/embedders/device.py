"""The device a model runs on."""

import re


def resolve_device(device: str) -> str:
    """ "auto" becomes "cuda" where there is a GPU and "cpu" elsewhere; anything else is taken at its word.

    Raises ValueError for names torch does not know and for a GPU that is not there.
    """
    check_device(device)
    import torch

    has_cuda = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if has_cuda else "cpu"
    if device.startswith("cuda") and not has_cuda:
        raise ValueError(f"device {device!r}: torch sees no GPU here; use 'auto' or 'cpu'")
    if device == "mps" and not torch.backends.mps.is_available():
        raise ValueError("device 'mps': torch sees no Apple GPU here; use 'auto' or 'cpu'")
    return device


def check_device(device: str) -> None:
    """Raise ValueError unless the name is one of auto, cpu, cuda, cuda:N, mps."""
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", device):
        raise ValueError(
            f"unknown device {device!r}; valid: auto, cpu, cuda, cuda:0 (or another number), mps"
        )
