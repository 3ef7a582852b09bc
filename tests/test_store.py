import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from saber import store as module
from saber.embedders import CUT, Content, ItemError
from saber.embedders.content import TextWarning
from saber.store import EmbeddingStore


class Counting:
    """An embedder that notes what it is asked for; texts that hold "bad" fail, "nan" ones are not numbers."""

    name, dim, modalities = "counting", 8, frozenset(("text", "image"))

    def __init__(self, version="1"):
        self.fingerprint = (version * 64)[:64]
        self.identity = {"version": version}
        self.batches = []

    @property
    def encoded(self):
        return [content for batch in self.batches for content in batch]

    def embed(self, contents):
        bad = [(i, c, "it is bad") for i, c in enumerate(contents) if "bad" in (c.text or "")]
        if bad:
            raise ItemError(bad)
        self.batches.append(list(contents))
        return np.stack([self.vector(content) for content in contents])

    def vector(self, content):
        seed = np.frombuffer(bytes.fromhex(content.digest()), np.uint32)
        vector = np.random.default_rng([*seed, int(self.fingerprint[0])]).normal(size=self.dim)
        vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        return vector * (np.nan if "nan" in (content.text or "") else 1)

    def text_flags(self, contents):
        return np.array([CUT * ("long" in (c.text or "")) for c in contents], np.uint8)


def texts(*numbers):
    return [Content(text=f"text {i}") for i in numbers]


def expected(embedder, contents):
    return np.stack([embedder.vector(content) for content in contents])


@pytest.fixture
def store(tmp_path):
    return EmbeddingStore(tmp_path / "embeddings é")


def test_each_item_is_encoded_once_and_rows_are_in_place(store):
    embedder = Counting()
    contents = texts(3, 1, 3, 2, 1, 3)
    vectors = store.embed(embedder, contents, progress=False)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, expected(embedder, contents))
    assert embedder.encoded == texts(3, 1, 2)
    again = store.embed(embedder, texts(*range(5)), progress=False)
    np.testing.assert_array_equal(again, expected(embedder, texts(*range(5))))
    assert embedder.encoded == texts(3, 1, 2, 0, 4)


def test_another_store_object_and_embedder_object_hit(store):
    first = store.embed(Counting(), texts(*range(10)), progress=False)
    fresh = Counting()
    second = EmbeddingStore(store.root).embed(fresh, texts(*range(10)), progress=False)
    assert fresh.batches == []
    np.testing.assert_array_equal(first, second)


def test_another_fingerprint_is_a_miss(store):
    a, b = Counting("1"), Counting("2")
    va, vb = (store.embed(e, texts(1, 2), progress=False) for e in (a, b))
    assert len(b.encoded) == 2 and not np.allclose(va, vb)
    np.testing.assert_array_equal(store.embed(a, texts(1, 2), progress=False), va)
    assert len(a.encoded) == 2


def test_images_count_by_content(store, tmp_path):
    (tmp_path / "a.png").write_bytes(b"pixels")
    (tmp_path / "b.png").write_bytes(b"pixels")
    a, b = (Content(image=tmp_path / n) for n in ("a.png", "b.png"))
    embedder = Counting()
    vectors = store.embed(embedder, [a, b], progress=False)
    assert embedder.encoded == [a] and (vectors[0] == vectors[1]).all()
    (tmp_path / "b.png").write_bytes(b"others")
    store.embed(embedder, [a, b], progress=False)
    assert embedder.encoded == [a, b]


def test_batches_are_cut_from_the_whole_list(store):
    embedder = Counting()
    store.embed(embedder, texts(*range(10)), batch_size=4, progress=False)
    assert [len(batch) for batch in embedder.batches] == [4, 4, 2]
    store.embed(embedder, texts(*range(12, -1, -1)), batch_size=4, progress=False)
    # 12 11 10 9 | 8 7 6 5 | 4 3 2 1 | 0: only the first holds something new
    assert embedder.batches[3:] == [texts(12, 11, 10)]


def test_manifest_says_what_the_fingerprint_stands_for(store):
    store.embed(Counting("7"), texts(1), progress=False)
    manifest = json.loads((store.root / ("7" * 16) / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == {"fingerprint": "7" * 64, "name": "counting", "identity": {"version": "7"}}


def test_a_failing_item_is_named_and_its_neighbours_are_kept(store, tmp_path):
    embedder = Counting()
    gone = Content(image=tmp_path / "gone.png")
    contents = [*texts(0, 1), Content(text="bad"), gone, *texts(2), Content(text="nan"), Content(text="bad")]
    with pytest.raises(ItemError) as caught:
        store.embed(embedder, contents, batch_size=3, progress=False, label="model text")
    assert [(row, content) for row, content, _ in caught.value.failures] == [
        (2, contents[2]),
        (3, gone),
        (5, contents[5]),
        (6, contents[6]),
    ]
    message = str(caught.value)
    assert "item 2 (text 'bad'): it is bad" in message
    assert "gone.png): cannot read the file: No such file" in message
    assert "item 5 (text 'nan'): the model returned a vector with NaN or Inf" in message
    assert "(model text: the other 3 items are embedded and kept)" in message
    fresh = Counting()
    store.embed(fresh, texts(0, 1, 2), progress=False)
    assert fresh.batches == []


def test_what_was_computed_before_a_crash_is_kept(store):
    class Crashing(Counting):
        def embed(self, contents):
            if Content(text="text 6") in contents:
                raise RuntimeError("out of memory")
            return super().embed(contents)

    with pytest.raises(RuntimeError, match="out of memory"):
        store.embed(Crashing(), texts(*range(9)), batch_size=3, progress=False)
    embedder = Counting()
    store.embed(embedder, texts(*range(9)), batch_size=3, progress=False)
    assert embedder.batches == [texts(6, 7, 8)]


def test_damaged_file_is_told_and_recomputed(store):
    embedder = Counting()
    contents = texts(*range(6))
    vectors = store.embed(embedder, contents, progress=False)
    (shard,) = store.root.glob("*/*.safetensors")
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.warns(UserWarning, match="damaged embedding file"):
        again = store.embed(embedder, contents, progress=False)
    np.testing.assert_array_equal(again, vectors)
    assert len(embedder.encoded) == 12
    store.embed(embedder, contents, progress=False)
    assert len(embedder.encoded) == 12


def test_cut_texts_are_counted_also_when_they_come_from_the_store(store):
    contents = [Content(text="long 1"), *texts(1), Content(text="long 2"), Content(text="long 1")]
    for _ in range(2):
        with pytest.warns(TextWarning, match="counting: 3 of 4 texts are longer"):
            store.embed(Counting(), contents, progress=False)
    store.embed(Counting(), texts(1), progress=False)  # warnings are errors in the tests: none here


def test_the_models_own_warnings_about_texts_are_told_once(store):
    class Warning(Counting):
        def embed(self, contents):
            warnings.warn("batch has long texts", TextWarning, stacklevel=1)
            return super().embed(contents)

    with pytest.warns(TextWarning) as caught:
        store.embed(Warning(), [Content(text=f"long {i}") for i in range(9)], batch_size=2, progress=False)
    assert [str(w.message) for w in caught] == [
        "counting: 9 of 9 texts are longer than the model takes and were cut"
    ]


def test_a_minimal_embedder_will_do(store):
    class Minimal:
        name, fingerprint, dim, modalities = "minimal", "a" * 64, 2, frozenset(("text",))

        def embed(self, contents):
            return np.tile(np.array([0.6, 0.8], np.float32), (len(contents), 1))

    np.testing.assert_array_equal(
        store.embed(Minimal(), texts(1, 2), progress=False)[1], np.float32([0.6, 0.8])
    )


def test_impossible_arguments(store):
    with pytest.raises(ValueError, match="counting: nothing to embed"):
        store.embed(Counting(), [])
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        store.embed(Counting(), texts(1), batch_size=0)

    class Short(Counting):
        def embed(self, contents):
            return super().embed(contents)[:-1]

    with pytest.raises(ValueError, match="2 contents gave an array of shape"):
        store.embed(Short(), texts(1, 2), progress=False)


def test_progress_stays_silent_where_nobody_watches(store, capfd):
    store.embed(Counting(), texts(*range(50)), batch_size=1)
    assert capfd.readouterr() == ("", "")


def test_many_flushes_leave_few_files(store, monkeypatch):
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0)
    contents = texts(*range(120))
    vectors = store.embed(Counting(), contents, batch_size=2, progress=False)
    np.testing.assert_array_equal(vectors, expected(Counting(), contents))
    assert len(list(store.root.glob("*/*.safetensors"))) == 1


RUN = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("helpers", sys.argv[1])
helpers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(helpers)
root, first, n, batch_size, pause = sys.argv[2], *map(int, sys.argv[3:6]), float(sys.argv[6])
class Slow(helpers.Counting):
    def embed(self, contents):
        time.sleep(pause)
        return super().embed(contents)
helpers.module.FLUSH_SECONDS = pause
contents = helpers.texts(*range(first, first + n))
print("ready", flush=True)
vectors = helpers.EmbeddingStore(root).embed(Slow(), contents, batch_size=batch_size, progress=False)
assert (vectors == helpers.expected(helpers.Counting(), contents)).all()
"""


def start(store, first, n, batch_size, pause):
    """A process that embeds ``texts(first, ..., first + n - 1)``, writing a shard every ``pause`` seconds."""
    arguments = [__file__, store.root, *map(str, (first, n, batch_size, pause))]
    run = subprocess.Popen([sys.executable, "-c", RUN, *arguments], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    return run


def test_several_processes_write_at_once(store):
    """Overlapping ranges, a shard per batch, merging in the middle of it all."""
    runs = [start(store, first, 150, 3, 0) for first in (0, 50, 100, 0)]
    for run in runs:
        assert run.wait(120) == 0
        run.stdout.close()
    embedder = Counting()
    contents = texts(*range(250))
    vectors = store.embed(embedder, contents, progress=False)
    assert embedder.batches == []
    np.testing.assert_array_equal(vectors, expected(embedder, contents))
    assert not list(store.root.glob("*/*.damaged"))


def test_killed_at_any_moment_it_resumes_with_the_same_batches(store, tmp_path):
    contents = texts(*range(400))
    undisturbed = Counting()
    reference = EmbeddingStore(tmp_path / "reference").embed(
        undisturbed, contents, batch_size=4, progress=False
    )
    for delay in (0.05, 0.2):
        run = start(store, 0, 400, 4, 0.05)
        n_before = len(list(store.root.glob("*/*.safetensors")))
        deadline = time.monotonic() + 60
        while len(list(store.root.glob("*/*.safetensors"))) <= n_before and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(delay)
        os.kill(run.pid, signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        run.stdout.close()
    embedder = Counting()
    vectors = store.embed(embedder, contents, batch_size=4, progress=False)
    np.testing.assert_array_equal(vectors, reference)
    assert 0 < len(embedder.batches) < 100
    assert all(batch in undisturbed.batches for batch in embedder.batches)


def test_a_read_only_store_still_serves(store, monkeypatch):
    embedder = Counting()
    vectors = store.embed(embedder, texts(1, 2), progress=False)

    def refuse(*args, **kwargs):
        raise PermissionError("read-only")

    monkeypatch.setattr(module, "write_text", refuse)
    monkeypatch.setattr("saber.shards.write_with", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    np.testing.assert_array_equal(store.embed(embedder, texts(2, 1), progress=False), vectors[::-1])
