"""Immutable files of vectors: the embedding store's disk format for one model.

A shard holds up to a few hundred megabytes of items: ``keys`` uint8 (n, 32), ``vectors`` float32 (n, dim)
and ``flags`` uint8 (n,), in the safetensors format. Its file name is the SHA-256 of its bytes, so damage of
any kind shows, and two processes that write the same items write the same file. Shards appear under their
final name whole (temporary file, then rename) and are never changed; small ones are merged into one and then
removed.
"""

import hashlib
import os
import re
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout
from safetensors import safe_open
from safetensors.numpy import load, save

from saber.files import write_with

SMALL_BYTES, MERGED_BYTES, MAX_SMALL = 2**25, 2**28, 16
_NAME = re.compile(r"[0-9a-f]{64}\.safetensors")
_STALE_SECONDS = 24 * 3600


class ShardFolder:
    """The shards of one model in ``folder``; several processes may read and write it at the same time."""

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        self._index: dict[bytes, tuple[str, int]] = {}  # key -> (file name, row)
        self._verified: dict[str, list[bytes]] = {}  # file name -> its keys
        self.refresh()

    def __contains__(self, key: bytes) -> bool:
        return key in self._index

    def __len__(self) -> int:
        return len(self._index)

    def refresh(self) -> None:
        """Take in the shards that have appeared since, and forget those that are gone.

        A damaged one is set aside as ``NAME.damaged`` with a warning; what it held counts as missing.
        """
        names = sorted(name for name in os.listdir(self.folder) if _NAME.fullmatch(name))
        if set(self._verified) - set(names):
            # an item of a shard that is gone may be in another one too: index what is left anew
            self._verified = {name: keys for name, keys in self._verified.items() if name in names}
            self._index = {}
            for name, keys in self._verified.items():
                self._add(name, keys)
        for name in names:
            if name in self._verified:
                continue
            try:
                data = (self.folder / name).read_bytes()
            except FileNotFoundError:  # merged away by another process a moment ago
                continue
            if f"{hashlib.sha256(data).hexdigest()}.safetensors" != name:
                self._set_aside(name)
                continue
            self._add(name, [key.tobytes() for key in load(data)["keys"]])

    def read(self, keys: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Vectors float32 (n, dim) and flags uint8 (n,) of the keys, in their order.

        Raises KeyError when a key is not here, FileNotFoundError when a shard was merged away meanwhile
        (refresh and read again).
        """
        places: dict[str, list[tuple[int, int]]] = {}
        for i, key in enumerate(keys):
            name, row = self._index[key]
            places.setdefault(name, []).append((i, row))
        vectors, flags = None, np.empty(len(keys), np.uint8)
        for name, rows in places.items():
            at, source = np.array(rows).T
            with safe_open(self.folder / name, framework="numpy") as shard:
                block = shard.get_tensor("vectors")
                if vectors is None:
                    vectors = np.empty((len(keys), block.shape[1]), np.float32)
                vectors[at] = block[source]
                flags[at] = shard.get_tensor("flags")[source]
        return vectors, flags

    def write(self, keys: Sequence[bytes], vectors: np.ndarray, flags: np.ndarray) -> None:
        """Add one shard; atomic."""
        name = self._write_file(
            np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), 32),
            np.ascontiguousarray(vectors, np.float32),
            np.ascontiguousarray(flags, np.uint8),
        )
        self._add(name, list(keys))

    def compact(self) -> None:
        """Merge small shards when there are more than a few, so that their number stays bounded.

        One process at a time; when another is at it, or the folder cannot be written, nothing happens.
        Killed in between, the merged shard and its parts exist side by side, which is harmless.
        """
        if len(self._small()) <= MAX_SMALL:
            return
        try:
            with FileLock(self.folder / ".compact.lock", timeout=0):
                self._remove_stale_files()
                self.refresh()
                for group in _groups(self._small()):
                    self._merge(group)
                self.refresh()
        except (Timeout, OSError):  # merging is tidiness: what is stored is complete without it
            return

    def _add(self, name: str, keys: list[bytes]) -> None:
        self._verified[name] = keys
        for row, key in enumerate(keys):
            self._index.setdefault(key, (name, row))

    def _merge(self, names: Sequence[str]) -> None:
        parts = [load((self.folder / name).read_bytes()) for name in names]
        whole = {
            name: np.concatenate([part[name] for part in parts]) for name in ("keys", "vectors", "flags")
        }
        first = np.sort(np.unique(whole["keys"], axis=0, return_index=True)[1])  # one row per item
        merged = self._write_file(**{name: array[first] for name, array in whole.items()})
        for name in names:
            if name != merged:
                (self.folder / name).unlink(missing_ok=True)

    def _write_file(self, keys: np.ndarray, vectors: np.ndarray, flags: np.ndarray) -> str:
        data = save({"keys": keys, "vectors": vectors, "flags": flags})
        name = f"{hashlib.sha256(data).hexdigest()}.safetensors"
        # no fsync: a file that a power failure leaves incomplete is noticed by its checksum
        write_with(self.folder / name, lambda temporary: temporary.write_bytes(data))
        return name

    def _small(self) -> dict[str, int]:
        """Sizes in bytes of the shards below ``SMALL_BYTES``."""
        sizes = {}
        for name in self._verified:
            try:
                sizes[name] = (self.folder / name).stat().st_size
            except FileNotFoundError:
                continue
        return {name: size for name, size in sizes.items() if size < SMALL_BYTES}

    def _set_aside(self, name: str) -> None:
        aside = self.folder / f"{name}.damaged"
        try:
            os.replace(self.folder / name, aside)
            what = f"set aside as {aside.name}"
        except OSError:
            what = "left where it is (the folder cannot be written)"
        warnings.warn(
            f"damaged embedding file {self.folder / name}: its checksum does not fit; {what}, "
            "and its items are computed again",
            stacklevel=2,
        )

    def _remove_stale_files(self) -> None:
        """Temporary files of processes that were killed."""
        for path in self.folder.iterdir():
            temporary = path.name.startswith(".") and path.suffix == ".safetensors"
            if temporary and time.time() - path.stat().st_mtime > _STALE_SECONDS:
                path.unlink(missing_ok=True)


def _groups(sizes: dict[str, int]) -> list[list[str]]:
    """Shards to merge: in order, each group about ``MERGED_BYTES`` at most."""
    groups, total = [[]], 0
    for name, size in sizes.items():
        if groups[-1] and total + size > MERGED_BYTES:
            groups.append([])
            total = 0
        groups[-1].append(name)
        total += size
    return [group for group in groups if len(group) > 1]
