"""The backend against a server of the test's own that misbehaves in every way it is known to."""

import base64
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import saber
from saber.benchmark import build_benchmark, write_benchmark
from saber.images import BackendUnusable, ImagesIncomplete, build_images
from saber.images.openai_backend import REFUSALS, REQUESTS, OpenAIBackend, cost_estimate
from saber.images.prompt import prompt
from saber.vocabulary import Object, Vocabulary, load_attributes

SIDE = 64


def picture(width=SIDE, height=SIDE) -> bytes:
    """PNG, left half red, right half blue."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2, 0] = pixels[:, width // 2 :, 2] = 255
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, format="PNG")
    return content.getvalue()


class Server(ThreadingHTTPServer):
    """Answers each item by its list of behaviours, one a request, then with a right picture."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.captions = {}  # generation text -> item id
        self.behaviours = defaultdict(list)
        self.requests, self.times = [], []
        self.now = self.most = 0
        self.delay = 0.0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that hangs up (timeout, kill) is part of the test."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def count(self, item_id):
        return sum(r["item"] == item_id for r in self.requests)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send(200, picture(), "image/png")

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        caption = body["prompt"].split("The scene shows: ")[1].split("\n")[0]
        item = server.captions[caption]
        with server.lock:
            server.requests.append(body | {"item": item, "path": self.path})
            server.times.append((item, time.monotonic()))
            behaviour = server.behaviours[item].pop(0) if server.behaviours[item] else "ok"
            server.now += 1
            server.most = max(server.most, server.now)
        try:
            time.sleep(server.delay)
            getattr(self, "answer_" + behaviour.split()[0])(*behaviour.split()[1:])
        finally:
            with server.lock:
                server.now -= 1

    def send(self, status, content, kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def send_picture(self, content):
        answer = {"created": 1, "data": [{"b64_json": base64.b64encode(content).decode()}]}
        details = {"image_tokens": 0, "text_tokens": 7}
        usage = {"input_tokens": 7, "output_tokens": 9, "total_tokens": 16, "input_tokens_details": details}
        self.send(200, json.dumps(answer | {"usage": usage}).encode())

    def send_error_body(self, status, code, message, param=None, **headers):
        error = {"error": {"code": code, "message": message, "param": param, "type": "x"}}
        self.send(status, json.dumps(error).encode(), **headers)

    def answer_ok(self):
        self.send_picture(picture())

    def answer_url(self):
        address = f"http://127.0.0.1:{self.server.server_port}/picture.png"
        self.send(200, json.dumps({"created": 1, "data": [{"url": address}]}).encode())

    def answer_size(self, width, height):
        self.send_picture(picture(int(width), int(height)))

    def answer_truncated(self):
        self.send_picture(picture()[:-40])

    def answer_notbase64(self):
        self.send(200, json.dumps({"created": 1, "data": [{"b64_json": "!!!"}]}).encode())

    def answer_nodata(self):
        self.send(200, json.dumps({"created": 1, "data": []}).encode())

    def answer_malformed(self):
        self.send(200, b'{"created": 1, "data": [')

    def answer_html(self):
        self.send(200, b"<html>busy</html>", "text/html")

    def answer_busy(self, seconds):
        self.send_error_body(429, "rate_limit_exceeded", "slow down", Retry_After=seconds)

    def answer_broken(self):
        self.send_error_body(500, None, "oops")

    def answer_slow(self, seconds):
        time.sleep(float(seconds))
        self.answer_ok()

    def answer_drop(self):
        self.close_connection = True

    def answer_refuse(self):
        self.send_error_body(400, "moderation_blocked", "rejected by the safety system")

    def answer_badrequest(self):
        self.send_error_body(400, None, "prompt is odd", param="prompt")

    def answer_wrongmodel(self):
        self.send_error_body(400, "invalid_value", "no such quality", param="quality")

    def answer_unauthorized(self):
        self.send_error_body(401, "invalid_api_key", "Incorrect API key")

    def answer_nomoney(self):
        self.send_error_body(429, "insufficient_quota", "You exceeded your current quota")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def benchmark(tmp_path, server):
    attributes, palette = load_attributes()
    objects = tuple(Object(n, n, "toy", True) for n in ("kite", "teapot", "cube", "cherry", "apple"))
    vocabulary = Vocabulary(objects, attributes[:12], tuple(palette))
    made = build_benchmark(vocabulary, seed=3, questions_per_count=2, object_counts=[2, 3])
    # one caption an item, so that the server knows which is asked for
    items = {
        i.id: replace(i, generation_text=f"{i.generation_text} {n}")
        for n, i in enumerate(made.items.values())
    }
    server.captions = {i.generation_text: i.id for i in items.values()}
    return write_benchmark(replace(made, items=items), tmp_path / "saber")


def backend(server, **options):
    fast = dict(request_size=SIDE, first_wait=0.01, longest_wait=0.3, timeout=2.0, concurrency=4)
    return OpenAIBackend(base_url=server.url, api_key="secret", **fast | options)


def build(benchmark, backend, **options):
    return build_images(benchmark, backend, SIDE, progress=False, **options)


def test_trouble_of_the_network_ends_well(benchmark, server):
    """Each item has other troubles; all pictures arrive, after no more requests than the troubles explain."""
    troubles = [
        ["busy 0.2"],
        ["broken", "broken"],
        ["slow 1.5"],
        ["malformed"],
        ["truncated"],
        ["notbase64"],
        ["nodata"],
        ["html"],
        ["drop"],
        ["url"],
        ["busy 0", "broken", "truncated", "drop"],
    ]
    ids = list(benchmark.items)
    for item, behaviours in zip(ids, troubles, strict=False):
        server.behaviours[item] = list(behaviours)
    report = build(benchmark, backend(server, timeout=0.5))
    assert report.made == 20
    for item, behaviours in zip(ids, troubles, strict=False):
        assert server.count(item) == len(behaviours) + (behaviours != ["url"]), behaviours
    assert all(server.count(i) == 1 for i in ids[len(troubles) :])
    first, second = [t for i, t in server.times if i == ids[0]]
    assert second - first >= 0.2  # Retry-After was honoured, though the backoff is a few hundredths
    for item in benchmark.items.values():
        with Image.open(benchmark.image_path(item)) as image:
            left, right = image.getpixel((5, 5)), image.getpixel((SIDE - 5, 5))
        assert (left, right) == (((0, 0, 255), (255, 0, 0)) if item.flipped else ((255, 0, 0), (0, 0, 255)))


def test_request_and_log(benchmark, server):
    build(benchmark, backend(server, model="some-model", quality="low"))
    request = server.requests[0]
    assert request["path"] == "/v1/images/generations"
    assert {k: request[k] for k in ("model", "quality", "size", "n")} == {
        "model": "some-model",
        "quality": "low",
        "size": "64x64",
        "n": 1,
    }
    assert "response_format" not in request  # not accepted for GPT image models
    lines = (benchmark.folder / REQUESTS).read_text(encoding="utf-8").splitlines()
    rows = {r["item"]: r for r in map(json.loads, lines)}
    assert rows.keys() == benchmark.items.keys()
    for item in benchmark.items.values():
        assert rows[item.id]["prompt"] == prompt(item) and rows[item.id]["usage"]["total_tokens"] == 16
    everything = b"".join(p.read_bytes() for p in benchmark.folder.rglob("*") if p.is_file())
    assert b"secret" not in everything and "secret" not in repr(backend(server))


def test_requests_overlap_up_to_the_limit(benchmark, server):
    server.delay = 0.1
    began = time.monotonic()
    build(benchmark, backend(server, concurrency=5))
    assert 2 <= server.most <= 5
    assert time.monotonic() - began < 20 * 0.1 * 0.8


def test_tries_are_bounded_and_others_go_on(benchmark, server):
    ids = list(benchmark.items)
    server.behaviours[ids[3]] = ["broken"] * 50
    server.behaviours[ids[4]] = ["truncated"] * 50
    server.behaviours[ids[5]] = ["badrequest"] * 50
    with pytest.raises(ImagesIncomplete) as caught:
        build(benchmark, backend(server, attempts=3))
    failed = caught.value.report.failed
    assert list(failed) == ids[3:6] and caught.value.report.made == 17
    assert "given up after 3 tries" in failed[ids[3]] and "cannot be read" in failed[ids[4]]
    assert "prompt is odd" in failed[ids[5]]
    assert [server.count(i) for i in ids[3:6]] == [3, 3, 1]


def test_refusals_are_recorded_and_not_asked_again(benchmark, server):
    ids = list(benchmark.items)
    server.behaviours[ids[2]] = ["refuse"] * 9
    for run in range(2):
        with pytest.raises(ImagesIncomplete) as caught:
            build(benchmark, backend(server))
        assert caught.value.report.refused.keys() == {ids[2]}
        assert "safety system" in caught.value.report.refused[ids[2]]
        assert server.count(ids[2]) == 1, run
    rows = [json.loads(x) for x in (benchmark.folder / REFUSALS).read_text(encoding="utf-8").splitlines()]
    assert [r["item"] for r in rows] == [ids[2]] and rows[0]["prompt"] == prompt(benchmark.items[ids[2]])
    with pytest.raises(ImagesIncomplete):
        build(benchmark, backend(server, retry_refused=True))
    assert server.count(ids[2]) == 2
    server.behaviours.clear()
    reseeded = replace(benchmark, items=benchmark.items | {ids[2]: replace(benchmark.items[ids[2]], seed=1)})
    assert build(reseeded, backend(server)).made == 1  # another seed is another request


@pytest.mark.parametrize("behaviour", ["unauthorized", "nomoney", "wrongmodel", "size 64 32"])
def test_trouble_that_concerns_all_stops_early(benchmark, server, behaviour):
    for item in benchmark.items:
        server.behaviours[item] = [behaviour] * 9
    with pytest.raises(BackendUnusable) as caught:
        build(benchmark, backend(server, concurrency=2))
    assert len(server.requests) <= 4
    assert "secret" not in str(caught.value)


def test_size_of_the_answer(benchmark, server):
    ids = list(benchmark.items)
    server.behaviours[ids[0]] = ["ok"]
    server.behaviours[ids[1]] = ["size 128 128"]
    server.behaviours[ids[2]] = ["size 128 64"]
    server.behaviours[ids[3]] = ["size 32 32"]
    report = build(benchmark, backend(server, concurrency=1), strict=False)
    assert report.failed.keys() == set(ids[2:4]) and "128 x 64" in report.failed[ids[2]]
    with Image.open(benchmark.image_path(benchmark.items[ids[1]])) as image:
        assert image.size == (SIDE, SIDE)


def test_cost_is_told_and_limited(benchmark, server, capsys):
    assert cost_estimate(9000, 0.05) == pytest.approx(450)
    with pytest.raises(BackendUnusable, match=r"20 images x \$0\.5 = about \$10\.00, above max_cost \$9\.00"):
        build(benchmark, backend(server, price_per_image=0.5, max_cost=9))
    assert server.requests == []
    build(benchmark, backend(server, price_per_image=0.5, max_cost=10))
    assert "20 images x $0.5 = about $10.00 (limit $10.00)" in capsys.readouterr().out
    build(benchmark, backend(server, price_per_image=0.5, max_cost=0))  # nothing to make costs nothing


def test_key_is_asked_for(benchmark, server, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BackendUnusable, match="OPENAI_API_KEY"):
        build(benchmark, OpenAIBackend(base_url=server.url))
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    from_environment = OpenAIBackend(request_size=SIDE)
    assert build(benchmark, from_environment).made == 20
    assert from_environment.fingerprint == backend(server).fingerprint


def test_fingerprint():
    base = OpenAIBackend(base_url="http://a/v1").fingerprint
    for change in ({"model": "m"}, {"quality": "high"}, {"request_size": 512}, {"base_url": "http://b/v1"}):
        assert OpenAIBackend(**{"base_url": "http://a/v1"} | change).fingerprint != base
    for same in ({"api_key": "k"}, {"concurrency": 2}, {"timeout": 3.0}, {"base_url": "http://a/v1/"}):
        assert OpenAIBackend(**{"base_url": "http://a/v1"} | same).fingerprint == base


def test_prompt_says_each_thing_once_with_its_look(benchmark):
    for item in benchmark.items.values():
        text = prompt(item)
        assert item.generation_text in text
        for (_, thing), look in zip(item.pairs, item.appearances, strict=True):
            assert text.count(f". {thing}: {look}\n") == 1
        assert f"only {len(item.pairs)} things" in text
        assert all(
            w in text for w in ("CLEVR", "neutral grey", "exactly once", "row", "bleeds", "text of any kind")
        )
    with pytest.raises(ValueError, match="folder"):
        prompt(replace(item, appearances=()))


def test_killed_half_way_and_resumed_without_paying_twice(benchmark, server):
    """kill -9 while requests are in flight: only these may be asked for again."""
    server.delay = 0.15
    script = f"""
import sys
from saber.benchmark_files import read_benchmark
from saber.images import build_images
from saber.images.openai_backend import OpenAIBackend
backend = OpenAIBackend(base_url={server.url!r}, api_key='secret', request_size={SIDE}, concurrency=2)
build_images(read_benchmark(sys.argv[1]), backend, {SIDE}, progress=False)
"""
    lib = str(Path(saber.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(benchmark.folder)],
        env=os.environ | {"PYTHONPATH": lib},
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(server.requests) < 8 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    asked = len(server.requests)
    assert 8 <= asked < 20
    server.delay = 0
    report = build(benchmark, backend(server))
    assert report.present >= asked - 2 and report.made + report.present == 20
    assert len(server.requests) <= 20 + 2
