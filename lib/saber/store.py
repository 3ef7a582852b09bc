"""Embedding store: each item is encoded once, ever, by a given model.

Layout: ``<root>/<first 16 digits of the fingerprint>/`` with ``manifest.json`` (what the fingerprint stands
for, readable) and shards of vectors (:mod:`saber.shards`). The key of an item is the SHA-256 of its content.
Safe with several processes writing, resumable after a kill at any moment; editing unrelated code, a README or
the names of files re-encodes nothing.
"""

import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from saber.embedders import Content, Embedder, ItemError
from saber.embedders.content import TextWarning, text_messages
from saber.embedders.vectors import unit_rows
from saber.files import write_text
from saber.progress import progress_bar
from saber.shards import ShardFolder

FLUSH_SECONDS = 5.0  # at most so much work is lost by a kill


class EmbeddingStore:
    """Vectors on disk below ``root``, by model and content."""

    def __init__(self, root: Path):
        self.root = Path(root)

    def embed(
        self,
        embedder: Embedder,
        contents: Sequence[Content],
        batch_size: int = 64,
        progress: bool = True,
        label: str | None = None,
    ) -> np.ndarray:
        """float32 ``(len(contents), dim)``, unit norm, row i for content i; only what is missing is encoded.

        Batches are cut from the whole list of distinct items and not from the missing ones, so that after a
        kill the rest is encoded in the same company, with the same last bits, as in an undisturbed run.

        progress: one line that names ``label`` (the model by default), on a terminal or in a live notebook.
        Raises ItemError for the items that cannot be read or embedded, after everything else is encoded and
        kept; ValueError for an empty list. Warns with counts when texts were cut.
        """
        contents = list(contents)
        if not contents:
            raise ValueError(f"{embedder.name}: nothing to embed, the list of contents is empty")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        label = label or embedder.name
        keys, reasons = _keys(contents)
        distinct: dict[bytes, Content] = {}
        for key, content in zip(keys, contents, strict=True):
            if key not in reasons:
                distinct.setdefault(key, content)
        shards = ShardFolder(self._folder(embedder))
        reasons |= _encode_missing(shards, embedder, distinct, batch_size, progress, label)
        shards.compact()
        failures = [(i, contents[i], reasons[key]) for i, key in enumerate(keys) if key in reasons]
        if failures:
            n_kept = len(contents) - len(failures)
            raise ItemError(failures, hint=f"({label}: the other {n_kept} items are embedded and kept)")
        vectors, flags = _read(shards, keys)
        for message in text_messages(label, flags):
            warnings.warn(message, TextWarning, stacklevel=2)
        return vectors

    def _folder(self, embedder: Embedder) -> Path:
        folder = self.root / embedder.fingerprint[:16]
        manifest = folder / "manifest.json"
        if not manifest.is_file():
            facts = {
                "fingerprint": embedder.fingerprint,
                "name": embedder.name,
                "identity": getattr(embedder, "identity", {}),
            }
            write_text(manifest, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
        return folder


def _keys(contents: Sequence[Content]) -> tuple[list, dict]:
    """Key of each content, and the reasons for those whose file cannot be read (their key is the content)."""
    known, reasons = {}, {}
    for content in dict.fromkeys(contents):
        try:
            known[content] = bytes.fromhex(content.digest())
        except OSError as error:
            known[content] = content
            reasons[content] = f"cannot read the file: {error.strerror or error}"
    return [known[content] for content in contents], reasons


def _encode_missing(shards, embedder, distinct: dict, batch_size: int, progress: bool, label: str) -> dict:
    """Encode and write the items (by key) that ``shards`` lacks; returns the reasons of those that fail."""
    order = list(distinct)
    batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    n_missing = sum(key not in shards for key in order)
    reasons: dict[bytes, str] = {}
    if not n_missing:
        return reasons
    pending: list[tuple[list[bytes], np.ndarray, np.ndarray]] = []  # whole batches not yet on disk

    def flush():
        if pending:
            keys, vectors, flags = zip(*pending, strict=True)
            shards.write([k for part in keys for k in part], np.concatenate(vectors), np.concatenate(flags))
            pending.clear()

    last_flush = time.monotonic()
    # disable=None: no bar where the output is not a terminal (a live notebook gets its own kind)
    bar = progress_bar(n_missing, label, "item", progress)
    try:
        for batch in batches:
            missing = [key for key in batch if key not in shards]
            if not missing:
                continue
            failed = _encode(embedder, {key: distinct[key] for key in missing}, pending)
            reasons |= failed
            bar.update(len(missing))
            if time.monotonic() - last_flush >= FLUSH_SECONDS:
                flush()
                shards.refresh()  # another process may have done the next batches meanwhile
                last_flush = time.monotonic()
    finally:  # also when interrupted or when the model fails: what is computed is kept
        flush()
        bar.close()
    return reasons


def _encode(embedder: Embedder, items: dict[bytes, Content], pending: list) -> dict[bytes, str]:
    """Encode the items in one call and append (keys, vectors, flags) to ``pending``.

    Items that fail are taken out, the rest is tried again; returns their reasons.
    """
    reasons: dict[bytes, str] = {}
    flags_of = getattr(embedder, "text_flags", lambda batch: np.zeros(len(batch), np.uint8))
    while items:
        keys, batch = list(items), list(items.values())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TextWarning)  # told once at the end, with the whole count
                vectors = np.asarray(embedder.embed(batch), np.float32)
            unit_rows(vectors, batch)  # whoever's model: NaN and zero vectors never reach the disk
        except ItemError as error:
            failed = {keys[row]: reason for row, _, reason in error.failures}
            if not failed:
                raise
            reasons |= failed
            items = {key: content for key, content in items.items() if key not in failed}
            continue
        pending.append((keys, vectors, flags_of(batch)))
        break
    return reasons


def _read(shards: ShardFolder, keys: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    for attempt in range(10):
        try:
            return shards.read(keys)
        except (FileNotFoundError, KeyError):  # another process merged shards between index and reading
            time.sleep(0.05 * attempt)
            shards.refresh()
    return shards.read(keys)
