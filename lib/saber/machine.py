"""What this process may use of the machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def cores() -> int:
    """Processor cores this process may use, at least one."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def all_cores() -> Iterator[None]:
    """Let torch use all of them within the block; in a batch run it has one thread otherwise."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)
