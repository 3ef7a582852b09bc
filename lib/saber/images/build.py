"""Render the images of a benchmark into its folder: resumable, atomic, and no item spoils another."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from joblib import Parallel, delayed

from saber.images.manifest import (
    ImageRecord,
    adopt_image,
    append_manifest,
    find_intact,
    origin,
    read_manifest,
    request_digest,
    save_image,
    write_manifest,
)
from saber.images.protocol import BackendUnusable, ImageBackend, Refused
from saber.progress import progress_bar

LISTED = 20  # items named in an error message; the report holds them all
HOUR = 3600  # seconds


@dataclass(frozen=True)
class BuildReport:
    """What :func:`build_images` did.

    Attributes:
        made, present: numbers of images rendered now, and kept because nothing of their request had changed.
        refused: item id -> reason, where the service declined the content.
        failed: item id -> reason, for all other trouble with single items.
        seconds: wall time.
    """

    made: int
    present: int
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """True when every item has its image."""
        return not (self.refused or self.failed)

    def __str__(self) -> str:
        lines = [f"images: {self.made} made, {self.present} present ({self.seconds:.1f} s)"]
        for label, reasons in (("refused", self.refused), ("failed", self.failed)):
            if reasons:
                lines[0] += f", {len(reasons)} {label}"
                lines += [f"  {label}: {item}: {reason}" for item, reason in list(reasons.items())[:LISTED]]
                lines += [f"  ... and {len(reasons) - LISTED} more {label}"] * (len(reasons) > LISTED)
        return "\n".join(lines)


class ImagesIncomplete(RuntimeError):
    """Some items have no image; ``.report`` (:class:`BuildReport`) tells which, and why."""

    def __init__(self, report: BuildReport):
        super().__init__(f"{report}\nEverything else is saved; run the same again to try only these.")
        self.report = report


def build_images(
    benchmark,
    backend: ImageBackend,
    size: int,
    workers: int = 1,
    progress: bool = True,
    strict: bool = True,
    overwrite: bool = False,
) -> BuildReport:
    """Give every item of ``benchmark`` its image ``benchmark.folder / item.image``.

    An image is kept when it is intact and was made from the same request (backend fingerprint, objects,
    appearances, caption, seed, flip, size); otherwise it is made, atomically, and recorded in
    ``images/manifest.jsonl``. The result does not depend on ``workers`` or on what was there before.

    Args:
        benchmark: a :class:`saber.benchmark.Benchmark` with a folder.
        backend: see :func:`saber.images.make_backend`.
        size: side of the images in pixels.
        workers: processes or threads (the backend says which, and may ask for another number).
        progress: show a bar (in a terminal or notebook; a log file stays clean).
        strict: raise when an image is missing at the end; False only reports it.
        overwrite: allow replacing pictures that another backend made and that cannot be remade for nothing
            (anything but ``sprites``).

    Raises:
        ImagesIncomplete: after all items were tried, when ``strict`` and some have no image.
        BackendUnusable: the backend cannot make any (more) image; finished ones are kept.
        FileExistsError: see ``overwrite``; nothing was touched.
    """
    began = time.monotonic()
    if size < 1 or workers < 1:
        raise ValueError(f"size and workers must be at least 1, not {size} and {workers}")
    paths = image_paths(benchmark)
    records = read_manifest(benchmark.folder)
    failed, todo = {}, []  # todo: (item, path, request)
    for item in benchmark.items.values():
        try:
            request = request_digest(backend, item, size)
        except (OSError, LookupError) as error:
            failed[item.id] = _reason(error)
            continue
        found = find_intact(paths[item.id], item.id, request, records.get(item.id))
        if found is None:
            todo.append((item, paths[item.id], request))
        else:
            records[item.id] = found
    present = len(paths) - len(todo) - len(failed)
    if not overwrite:
        _check_replaced(todo, records, backend)

    refused: dict[str, str] = {}
    made = 0
    _sweep({path.parent for _, path, _ in todo})
    write_manifest(benchmark.folder, records)  # whole lines again, should a kill have torn the last one
    if todo:
        backend.start([item for item, _, _ in todo], size, benchmark.folder)
    results = _make_all(backend, todo, size, workers)
    bar = progress_bar(len(todo), "images", "image", progress)
    try:
        for item_id, outcome in results:
            bar.update()
            if isinstance(outcome, ImageRecord):
                records[item_id] = outcome
                append_manifest(benchmark.folder, [outcome])
                made += 1
            elif isinstance(outcome, BackendUnusable):
                raise outcome
            else:
                (refused if isinstance(outcome, Refused) else failed)[item_id] = _reason(outcome)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib counts what was cancelled
            results.close()
        bar.close()
        write_manifest(benchmark.folder, records)
    order = {item_id: n for n, item_id in enumerate(paths)}
    refused, failed = ({i: d[i] for i in sorted(d, key=order.get)} for d in (refused, failed))
    report = BuildReport(made, present, refused, failed, time.monotonic() - began)
    if strict and not report.complete:
        raise ImagesIncomplete(report)
    return report


def image_paths(benchmark) -> dict[str, Path]:
    """Absolute path of each item's image, in the order of ``benchmark.items``.

    Raises:
        ValueError: no folder, an item without image, a path that leaves the folder, or one path twice.
    """
    if benchmark.folder is None:
        raise ValueError(
            "this benchmark has no folder yet: write it with saber.benchmark.write_benchmark first"
        )
    paths, owner = {}, {}
    for item in benchmark.items.values():
        if not item.image:
            raise ValueError(
                f"item {item.id}: its field 'image' is empty; give it a path such as images/{item.id}.png"
            )
        relative = PurePosixPath(item.image)
        if relative.is_absolute() or ".." in relative.parts or "\\" in item.image:
            raise ValueError(
                f"item {item.id}: image {item.image!r} must be a relative path inside the folder"
            )
        if relative in owner:
            raise ValueError(f"items {owner[relative]} and {item.id} share the image {item.image!r}")
        owner[relative] = item.id
        paths[item.id] = Path(benchmark.folder) / relative
    return paths


def _sweep(folders) -> None:
    """Remove temporary files that a kill left; a younger one may belong to another process."""
    for old in (t for folder in folders for t in folder.glob(".*.png")):
        if time.time() - old.stat().st_mtime > HOUR:
            old.unlink(missing_ok=True)


def _check_replaced(todo, records, backend) -> None:
    """Refuse to replace pictures that cost money or work: only sprites can be remade for nothing."""
    there = [(i, p) for i, p, _ in todo if p.exists() and not _in_place(backend, i, p)]
    makers = {i.id: origin(p, records.get(i.id)) for i, p in there}
    lost = {i: maker for i, maker in makers.items() if maker not in (None, "sprites", backend.name)}
    if lost:
        names = ", ".join(f"{i} ({maker})" for i, maker in list(lost.items())[:5])
        raise FileExistsError(
            f"{len(lost)} images here were not made by the backend {backend.name!r} and would be replaced: "
            f"{names}{', ...' * (len(lost) > 5)}. Choose another output folder, or pass overwrite=True."
        )


def _make_all(backend, todo, size: int, workers: int) -> Iterator[tuple[str, ImageRecord | Exception]]:
    """(item id, record or exception) as they come; closing the iterator drops what has not begun."""
    workers = min(backend.concurrency or workers, len(todo))
    if workers <= 1:
        yield from (_make(backend, item, path, request, size) for item, path, request in todo)
        return
    kind = "threading" if backend.pool == "threads" else "loky"
    pool = Parallel(n_jobs=workers, backend=kind, return_as="generator_unordered")
    yield from pool(delayed(_make)(backend, item, path, request, size) for item, path, request in todo)


def _make(backend, item, path: Path, request: str, size: int) -> tuple[str, ImageRecord | Exception]:
    """Render and save one item; whatever goes wrong is returned, so that the others go on."""
    try:
        keep = adopt_image if _in_place(backend, item, path) else save_image
        return item.id, keep(backend.render(item, size), path, item.id, backend.name, request)
    except Exception as error:  # told by item in the report
        return item.id, error


def _in_place(backend, item, path: Path) -> bool:
    original = backend.original(item)
    return original is not None and path.exists() and original.samefile(path)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or repr(error)
    known = isinstance(error, (Refused, OSError, ValueError, LookupError))
    return text if known else f"{type(error).__name__}: {text}"
