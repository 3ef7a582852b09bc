"""What this process may use of the machine."""

import os


def cores() -> int:
    """Processor cores this process may use, at least one."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
