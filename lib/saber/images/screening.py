"""Screening by a person (paper appendix A.4): look at every picture, accept or reject, make the rejected ones
anew.

>>> write_sheets(benchmark, "outputs/demo/screening")          # pages to look at   # doctest: +SKIP
>>> record_verdict(benchmark, "q0001-query", "reject", "the kite is not transparent")  # doctest: +SKIP
>>> benchmark = regenerate_rejected(benchmark, backend, size=256)                      # doctest: +SKIP

In JupyterLab :func:`screening_page` does the first two by mouse.
"""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from saber import files
from saber.benchmark_files import write_benchmark
from saber.images.build import build_images
from saber.images.protocol import ImageBackend
from saber.images.screening_page import screening_page
from saber.images.sheets import question_sheet, write_sheets
from saber.images.verdicts import (
    REJECT,
    Verdict,
    read_history,
    read_verdicts,
    record_verdict,
    tie_to_pictures,
)
from saber.items import Benchmark

__all__ = [
    "Verdict",
    "question_sheet",
    "read_history",
    "read_verdicts",
    "record_verdict",
    "regenerate_rejected",
    "screened",
    "screening_page",
    "write_sheets",
]

SEEDS = "images/new_seeds.csv"  # item,rejected_seed,seed: one row per picture that was made anew


def regenerate_rejected(
    benchmark: Benchmark, backend: ImageBackend, size: int, workers: int = 1, progress: bool = True
) -> Benchmark:
    """Give each item whose present picture is rejected a new seed, write the benchmark, and make these
    pictures.

    The new seeds stand in ``items.jsonl`` and, beside the old ones, in ``images/new_seeds.csv``; the verdicts
    on the old pictures stay in the verdicts file. A kill between the steps loses nothing: run it, or
    :func:`saber.images.build_images`, again.

    Returns:
        The benchmark with the new seeds (the given one when nothing is rejected).

    Raises:
        ValueError: the backend takes pictures that exist, so a new seed would change nothing.
        ImagesIncomplete: some could not be made; their new seeds are written already.
    """
    rejected = [v.item for v in read_verdicts(benchmark).values() if v.verdict == REJECT]
    if not rejected:
        return benchmark
    if not backend.seeded:
        raise ValueError(
            f"the {len(rejected)} rejected pictures come from the image backend {backend.name!r}, which "
            f"cannot make others: put better ones in place ({', '.join(rejected[:5])}) and run build_images"
        )
    tie_to_pictures(benchmark)
    items = dict(benchmark.items)
    rows = _read_seeds(benchmark.folder)
    for item_id in rejected:
        old = items[item_id].seed
        rows[item_id, old] = int(np.random.default_rng([old, 1]).integers(2**31))
        items[item_id] = replace(items[item_id], seed=rows[item_id, old])
    _write_seeds(benchmark.folder, rows)
    updated = replace(benchmark, items=items)
    write_benchmark(updated, benchmark.folder)
    build_images(updated, backend, size, workers=workers, progress=progress)
    return updated


def screened(benchmark: Benchmark) -> Benchmark:
    """The benchmark with the seeds that screening gave, for one that is built anew from its own seed."""
    rows = _read_seeds(benchmark.folder)
    items = dict(benchmark.items)
    for item_id, item in benchmark.items.items():
        seed, seen = item.seed, set()
        while (item_id, seed) in rows and seed not in seen:
            seen.add(seed)
            seed = rows[item_id, seed]
        if seed != item.seed:
            items[item_id] = replace(item, seed=seed)
    return replace(benchmark, items=items)


def _read_seeds(folder: Path) -> dict[tuple[str, int], int]:
    path = Path(folder) / SEEDS
    if not path.exists():
        return {}
    with open(path, encoding="utf-8", newline="") as file:
        return {(r["item"], int(r["rejected_seed"])): int(r["seed"]) for r in csv.DictReader(file)}


def _write_seeds(folder: Path, rows: dict[tuple[str, int], int]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item", "rejected_seed", "seed"])
    writer.writerows([item, old, new] for (item, old), new in rows.items())
    files.write_text(Path(folder) / SEEDS, text.getvalue())
