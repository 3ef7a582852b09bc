"""saber.source: three sources give a benchmark with a folder, and the Hub is asked no more than needed."""

import io
import json

import pytest
from PIL import Image

from saber.benchmark import build_benchmark, read_benchmark, write_benchmark
from saber.source import HUB_DATASET, ORIGIN, open_saber, read_rows
from saber.validate import violations
from saber.vocabulary import load_vocabulary

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SIZE = {"questions_per_count": 2, "object_counts": [2, 3]}


@pytest.fixture(scope="module")
def benchmark():
    return build_benchmark(load_vocabulary("known"), seed=8, **SIZE)


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """Keep the caches of `datasets` inside the test's folder."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)


def _png(color):
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), color).save(buffer, "PNG")
    return buffer.getvalue()


def _parquet(benchmark, folder):
    """The benchmark as a parquet dataset, a row per question, images inside."""
    import datasets

    item = {"caption": datasets.Value("string"), "image": datasets.Image()}
    features = datasets.Features(
        {
            "question_id": datasets.Value("string"),
            "subset": datasets.Value("string"),
            "chain_id": datasets.Value("string"),
            "query": item,
            "candidates": datasets.List(item),
        }
    )
    rows = []
    for q in benchmark.questions:
        query, *candidates = [
            {
                "caption": benchmark.items[i].text,
                "image": {"bytes": _png((n, 0, len(q.id))), "path": "anything.png"},
            }
            for n, i in enumerate((q.query, *q.candidates))
        ]
        about = {"question_id": q.id, "subset": q.subset, "chain_id": q.chain}
        rows.append(about | {"query": query, "candidates": candidates[::-1]})
    (folder / "data").mkdir(parents=True)
    table = datasets.Dataset.from_list(rows, features=features)
    table.to_parquet(folder / "data" / "test-00000-of-00001.parquet")
    return folder


def _core(benchmark):
    return [
        (q.id, q.subset, q.chain, [benchmark.items[i].pairs for i in (q.query, *q.candidates)])
        for q in benchmark.questions
    ]


def test_build_writes_once(benchmark, tmp_path):
    found = open_saber("build", folder=tmp_path, vocabulary="known", seed=8, **SIZE)
    assert found == benchmark and found.folder == tmp_path
    times = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    again = open_saber(folder=tmp_path, vocabulary=load_vocabulary("known"), seed=8, **SIZE)
    assert again == benchmark
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == times
    other = open_saber(folder=tmp_path, vocabulary="known", seed=9, **SIZE)
    assert read_benchmark(tmp_path) == other != benchmark


def test_folder_is_read_where_it_lies(benchmark, tmp_path):
    write_benchmark(benchmark, tmp_path / "there")
    found = open_saber("folder", folder=tmp_path / "here", path=str(tmp_path / "there"))
    assert found == benchmark and found.folder == tmp_path / "there"
    assert not (tmp_path / "here").exists()


def test_folder_of_parquet_files_is_mapped_with_its_images(benchmark, tmp_path):
    path = _parquet(benchmark, tmp_path / "release")
    found = open_saber("folder", folder=tmp_path / "here", path=path)
    assert _core(found) == _core(benchmark)
    assert found == read_benchmark(tmp_path / "here")
    assert violations(found.folder, load_vocabulary("known")) == []
    for q in found.questions:
        for n, item_id in enumerate((q.query, *q.candidates)):
            with Image.open(found.image_path(found.items[item_id])) as image:
                assert image.getpixel((0, 0)) == (n, 0, len(q.id))


def test_folder_of_json_lines_with_image_paths(benchmark, tmp_path):
    path = tmp_path / "release"
    path.mkdir()
    lines = []
    for q in benchmark.questions:
        for item_id in (q.query, *q.candidates):
            item = benchmark.items[item_id]
            (path / f"{item_id}.png").write_bytes(_png("red"))
            about = {"question": q.id, "role": item.role, "subset": q.subset, "chain": q.chain}
            lines.append(json.dumps(about | {"text": item.text, "image": f"{item_id}.png"}))
    (path / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (path / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files: test.jsonl\n---\n", encoding="utf-8"
    )
    found = open_saber("folder", folder=tmp_path / "here", path=path)
    assert _core(found) == _core(benchmark)
    assert violations(tmp_path / "here") == []


def test_rows_carry_configuration_and_split(benchmark, tmp_path):
    rows = list(read_rows(_parquet(benchmark, tmp_path / "release")))
    assert len(rows) == len(benchmark.questions)
    assert (rows[0]["config"], rows[0]["split"]) == ("default", "test")
    assert rows[0]["query"]["image"]["bytes"] == _png((0, 0, len(rows[0]["question_id"])))


def test_a_folder_without_a_dataset(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty holds no dataset"):
        open_saber("folder", folder=tmp_path, path=tmp_path / "empty")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"source": "web"}, ValueError, "unknown source 'web'.*build, folder, hub"),
        ({"source": "folder"}, ValueError, "needs a path"),
        ({"source": "folder", "path": "no such place"}, FileNotFoundError, "no such place is not a folder"),
        ({"vocabulary": "huge"}, ValueError, "huge"),
        ({"questions_per_count": 3}, ValueError, "positive even number"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, error, message):
    with pytest.raises(error, match=message):
        open_saber(folder=tmp_path, **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for the Hub: `hub.folder` is what a snapshot holds; calls are recorded."""
    huggingface_hub = pytest.importorskip("huggingface_hub")

    class Hub:
        folder = None
        calls = ()

    def snapshot_download(repo_id, *, repo_type, revision):
        Hub.calls += ((repo_id, repo_type, revision),)
        if Hub.folder is None:
            raise huggingface_hub.errors.OfflineModeIsEnabled("no network here")
        return str(Hub.folder)

    def dataset_info(self, repo_id, timeout):
        if Hub.folder is None:
            raise huggingface_hub.errors.OfflineModeIsEnabled("no network here")
        return huggingface_hub.hf_api.DatasetInfo(id=repo_id, sha="f" * 40)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)
    return Hub


@pytest.mark.parametrize("arguments", [{}, {"revision": "main"}, {"path": f"{HUB_DATASET}@v1"}])
def test_hub_wants_a_pinned_revision(hub, tmp_path, arguments):
    with pytest.raises(ValueError, match=f"pinned revision of {HUB_DATASET}.*cannot be reached"):
        open_saber("hub", folder=tmp_path, **arguments)
    hub.folder = tmp_path
    with pytest.raises(ValueError, match=f"the newest is {'f' * 40}.*saber_path: {HUB_DATASET}@<commit>"):
        open_saber("hub", folder=tmp_path, **arguments)
    assert hub.calls == ()


def test_hub_that_refuses_the_connection(monkeypatch, tmp_path):
    # the real client, on a port where nobody listens
    huggingface_hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    here = huggingface_hub.HfApi(endpoint="http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: here)
    with pytest.raises(ValueError, match=r"pinned revision.*cannot be reached"):
        open_saber("hub", folder=tmp_path)


def test_hub_without_network_says_how_to_bring_it(hub, tmp_path):
    with pytest.raises(
        ConnectionError, match=f"hf download {HUB_DATASET} --repo-type dataset --revision {COMMIT}"
    ):
        open_saber("hub", folder=tmp_path, revision=COMMIT)


def test_hub_snapshot_in_our_format_is_used_where_it_lies(hub, benchmark, tmp_path):
    hub.folder = write_benchmark(benchmark, tmp_path / "snapshot").folder
    found = open_saber("hub", folder=tmp_path / "here", path=f"someone/saber@{COMMIT}")
    assert found == benchmark and found.folder == hub.folder
    assert hub.calls == (("someone/saber", "dataset", COMMIT),)


def test_hub_snapshot_is_mapped_once(hub, benchmark, tmp_path):
    hub.folder = _parquet(benchmark, tmp_path / "snapshot")
    here = tmp_path / "here"
    found = open_saber("hub", folder=here, revision=COMMIT)
    assert _core(found) == _core(benchmark)
    assert violations(here) == []
    assert hub.calls == ((HUB_DATASET, "dataset", COMMIT),)
    hub.folder = None  # from now on without network
    assert open_saber("hub", folder=here, path=f"@{COMMIT}") == found
    assert len(hub.calls) == 1
    # another revision, or files that something else wrote since, are not taken for it
    with pytest.raises(ConnectionError):
        open_saber("hub", folder=here, revision="a" * 40)
    open_saber("build", folder=here, vocabulary="known", **SIZE)
    assert (here / ORIGIN).exists()
    with pytest.raises(ConnectionError):
        open_saber("hub", folder=here, revision=COMMIT)
