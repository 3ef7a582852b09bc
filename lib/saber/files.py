"""Files: written so that a reader never sees half of one, and named by their content.

The content goes to a temporary file in the same folder, which then takes the final name in one step. A run
that is killed leaves the previous file, or none.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_text(path: Path, text: str) -> Path:
    """Write ``text`` atomically as UTF-8 with ``\\n`` line ends, making the folder if needed."""
    return write_with(path, lambda temporary: temporary.write_bytes(text.encode("utf-8")))


def write_with(path: Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file with the suffix of ``path``, then move it there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o644)  # mkstemp makes files that only their owner reads
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def file_digest(path: Path) -> str:
    """SHA-256 (64 hex digits) of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
