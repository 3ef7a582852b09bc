"""One progress bar for whatever takes long."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm.auto import tqdm


def progress_bar(total: int, label: str, unit: str, show: bool = True) -> tqdm:
    """A bar of ``total`` steps on a terminal or in a live notebook, which leaves nothing behind.

    None is drawn when ``show`` is False, where the output is no terminal, and where TQDM_DISABLE is set, as
    in batch runs: a saved notebook would keep its first line for ever.
    """
    hidden = not show or bool(os.environ.get("TQDM_DISABLE"))
    return tqdm(total=total, desc=label, unit=unit, leave=False, disable=True if hidden else None)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without the bars of transformers, which a saved notebook would keep ("Loading weights" and others)."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
