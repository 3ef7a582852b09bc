"""Where SABER comes from: built here, a folder on disk, or the authors' release on the Hugging Face Hub."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from saber.benchmark import Benchmark, build_benchmark, read_benchmark, write_benchmark
from saber.benchmark_files import ITEMS, QUESTIONS, has_benchmark, write_if_changed
from saber.files import file_digest
from saber.images.screening import screened
from saber.release import map_columns
from saber.vocabulary import Vocabulary, load_vocabulary

SOURCES = ("build", "folder", "hub")
HUB_DATASET = "NetanelTamir/Stuck-On-Shuffle-SABER"
ORIGIN = "origin.json"  # in a folder mapped from the Hub: from which revision, so that it is mapped once


def open_saber(
    source: str = "build",
    *,
    folder: Path | str,
    path: Path | str | None = None,
    vocabulary: Vocabulary | str = "full",
    seed: int = 0,
    questions_per_count: int = 200,
    object_counts: Iterable[int] = range(2, 11),
    revision: str | None = None,
) -> Benchmark:
    """SABER from one of three sources; the result has a folder, with the files of `saber.benchmark_files`.

    build: made from ``vocabulary`` (or "full" / "known"), ``seed``, ``questions_per_count`` and
        ``object_counts`` and written to ``folder``; files that hold the same already are left untouched, and
        pictures that were rejected in screening keep their new seeds.
    folder: read from ``path``. A folder in our format is used where it lies; a dataset in another format is
    mapped
        by `saber.release.map_columns` and written to ``folder``, images included.
    hub: the release at ``revision`` (a full commit hash), which is then treated like ``path`` of "folder".
        ``path`` may name another dataset or carry the revision: "owner/name@<commit>".

    Raises ValueError or FileNotFoundError that say what is missing, and ConnectionError when a download
    fails.
    """
    folder = Path(folder)
    if source == "build":
        if isinstance(vocabulary, str):
            vocabulary = load_vocabulary(vocabulary)
        built = build_benchmark(vocabulary, seed, questions_per_count, object_counts)
        return write_benchmark(screened(replace(built, folder=folder)), folder)
    if source == "folder":
        if path is None:
            raise ValueError(
                "source 'folder' needs a path (parameter saber_path): the folder that holds SABER"
            )
        if not Path(path).is_dir():
            raise FileNotFoundError(f"source 'folder': {path} is not a folder")
        return _open_folder(Path(path), folder)
    if source == "hub":
        return _open_hub(path, revision, folder)
    raise ValueError(
        f"unknown source {source!r} (parameter saber_source); choose one of {', '.join(SOURCES)}"
    )


def _open_folder(path: Path, folder: Path) -> Benchmark:
    if has_benchmark(path):
        return read_benchmark(path)
    return write_benchmark(map_columns(read_rows(path), folder, path), folder)


def _open_hub(path: Path | str | None, revision: str | None, folder: Path) -> Benchmark:
    dataset, _, pinned = str(path or HUB_DATASET).partition("@")
    origin = {"dataset": dataset or HUB_DATASET, "revision": revision or pinned}
    marker = folder / ORIGIN
    if has_benchmark(folder) and marker.is_file():
        if json.loads(marker.read_text(encoding="utf-8")) == origin | _digests(folder):
            return read_benchmark(folder)  # mapped before: no download, no network
    benchmark = _open_folder(_download(**origin), folder)
    if benchmark.folder == folder:
        write_if_changed(marker, json.dumps(origin | _digests(folder), indent=1).encode())
    return benchmark


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of the two files: a folder that was written anew since is not taken for the mapped one."""
    return {name: file_digest(folder / name) for name in (QUESTIONS, ITEMS)}


def _download(dataset: str, revision: str) -> Path:
    """A dataset repository at a commit, from the local cache if it is there. All network access is here."""
    import huggingface_hub

    page = f"https://huggingface.co/datasets/{dataset}/commits/main"
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        try:
            newest = f"the newest is {huggingface_hub.HfApi().dataset_info(dataset, timeout=10).sha}"
        except Exception:  # its client has errors of several families; this is only a help
            newest = "the Hub cannot be reached from here to name the newest"
        raise ValueError(
            f"source 'hub' needs a pinned revision of {dataset}, a commit hash of 40 digits, not "
            f"{revision!r}: the release may change, the numbers must not. Choose one from {page} ({newest}) "
            f"and set saber_path: {dataset}@<commit>, or pass revision=."
        )
    try:
        return Path(huggingface_hub.snapshot_download(dataset, repo_type="dataset", revision=revision))
    except Exception as error:  # of the Hub's client, of its HTTP library, of the disk
        raise ConnectionError(
            f"{dataset} at {revision} could not be downloaded: {error}\nWhere there is network, run\n"
            f"  hf download {dataset} --repo-type dataset --revision {revision} --local-dir DIR\n"
            f"bring DIR here, and set saber_source: folder, saber_path: DIR."
        ) from error


def read_rows(path: Path | str) -> Iterator[dict]:
    """Rows of all configurations and splits of a local dataset folder, in any format `datasets` reads.

    Each row also gets ``config`` and ``split``. Images stay as they are stored, ``{"bytes", "path"}``. Raises
    ValueError when there is nothing the library can read.
    """
    import datasets

    try:
        for config in datasets.get_dataset_config_names(str(path)):
            for split, data in datasets.load_dataset(str(path), config, streaming=True).items():
                for batch in data.with_format("arrow").iter(batch_size=16):
                    yield from ({"config": config, "split": str(split), **row} for row in batch.to_pylist())
    except (OSError, datasets.exceptions.DatasetsError) as error:
        raise ValueError(f"{path} holds no dataset that the `datasets` library can read: {error}") from error
