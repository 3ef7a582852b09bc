import hashlib
from dataclasses import dataclass
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from saber.benchmark import build_benchmark, write_benchmark
from saber.figures.canvas import Canvas, fit, text_width, wrap
from saber.figures.examples import ALT, figure_1, figure_2, figure_3, shuffled
from saber.figures.style import DOUBLE_COLUMN, DPI
from saber.images import build_images
from saber.vocabulary import Object, Vocabulary, load_attributes

LONG = ("fire extinguisher", "playground slide", "traffic light", "alarm clock", "teapot")


def colour(item) -> tuple[int, int, int]:
    return tuple(hashlib.sha256(item.id.encode()).digest()[:3])


@dataclass
class Plain:
    """One colour an item, by which a test finds it in the figure."""

    name: str = "plain"
    fingerprint: str = "1"
    pool: str = "threads"
    concurrency: int | None = None
    seeded: bool = True

    def start(self, items, size, folder):
        pass

    def original(self, item):
        return None

    def render(self, item, size):
        return Image.new("RGB", (size, size), colour(item))


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    attributes, palette = load_attributes()
    objects = tuple(
        Object(n, n, "toy", True) for n in (*LONG, "kite", "cube", "cherry", "apple", "bus", "drum")
    )
    vocabulary = Vocabulary(objects, attributes, tuple(palette))
    made = build_benchmark(vocabulary, seed=4, questions_per_count=4, object_counts=range(2, 11))
    benchmark = write_benchmark(made, tmp_path_factory.mktemp("saber"))
    build_images(benchmark, Plain(), 16, progress=False)
    return benchmark


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def shown(figure):
    """Colours of the pictures in reading order: rows from top to bottom, each from left to right."""
    images = [(*im.get_extent(), im) for im in figure.axes[0].images]
    images.sort(key=lambda e: (-round(e[2], 1), e[0]))
    return [tuple(int(c) for c in np.asarray(im.get_array())[0, 0, :3]) for *_, im in images]


def ids(benchmark, n):
    return next(q.id for q in benchmark.questions if q.n_objects == n)


def check_inside(figure):
    """All text and pictures lie on the page, no text runs into a text of its line, and none is tiny."""
    figure.canvas.draw()
    page = figure.bbox
    boxes = []
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0 - 1 and box.y1 <= page.y1, text
        assert text.get_fontsize() >= 4, text
        boxes.append((box, text))
    for k, (a, first) in enumerate(boxes):
        for b, second in boxes[k + 1 :]:
            width = min(a.x1, b.x1) - max(a.x0, b.x0)
            height = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert width < 2 or height < 2.5, (first, second)
    for image in figure.axes[0].images:
        left, right, low, top = image.get_extent()
        assert 0 <= left < right <= figure.get_figwidth() and 0 <= low < top <= figure.get_figheight()


def marks(figure):
    return [t.get_text() for t in figure.axes[0].texts if t.get_text() in ("✓", "✗")]


def test_shuffled_is_fixed_and_a_permutation(benchmark):
    orders = [shuffled(q) for q in benchmark.questions]
    for question, order in zip(benchmark.questions, orders, strict=True):
        assert sorted(order) == sorted(question.candidates) and shuffled(question) == order
    places = [order.index(q.candidates[0]) for q, order in zip(benchmark.questions, orders, strict=True)]
    assert set(places) == {0, 1, 2, 3}
    assert orders != [shuffled(q, seed=1) for q in benchmark.questions]


@pytest.mark.parametrize("n", [3, 5])
def test_figure_1(benchmark, n):
    figure = figure_1(benchmark, ids(benchmark, n))
    assert figure.get_figwidth() == DOUBLE_COLUMN
    check_inside(figure)
    question = next(q for q in benchmark.questions if q.n_objects == n)
    order = [question.query, *shuffled(question)]
    assert shown(figure)[:5] == [colour(benchmark.items[i]) for i in order]
    assert len(figure.axes[0].images) == 5 + 3 + 3
    assert sorted(marks(figure)) == ["✓", "✗", "✗", "✗"]
    texts = [t.get_text() for t in figure.axes[0].texts]
    for attribute, thing in benchmark.items[question.query].pairs:
        assert sum(t.endswith(f" {attribute} {thing}") for t in texts) >= 2  # query and right candidate


def test_figure_1_chooses_by_itself_and_names_what_is_wrong(benchmark):
    assert shown(figure_1(benchmark)) == shown(figure_1(benchmark, ids(benchmark, 3)))
    for wrong in ("nothing", ids(benchmark, 2)):
        with pytest.raises(ValueError, match=wrong):
            figure_1(benchmark, wrong)


def test_figure_2(benchmark):
    chosen = [ids(benchmark, n) for n in (2, 3, 6, 10)]
    figure = figure_2(benchmark, chosen)
    assert figure.get_figwidth() == DOUBLE_COLUMN
    check_inside(figure)
    questions = [next(q for q in benchmark.questions if q.id == i) for i in chosen]
    order = [i for q in questions for i in (q.query, *shuffled(q))]
    assert shown(figure) == [colour(benchmark.items[i]) for i in order]
    # the tick stands at the candidate that preserves the bindings
    expected = ["✓" if i == q.candidates[0] else "✗" for q in questions for i in shuffled(q)]
    assert marks(figure) == expected
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert texts.count("one word replaced") == 1 and texts.count("both permuted") == 3
    with pytest.raises(ValueError, match="nothing"):
        figure_2(benchmark, ["nothing"])
    with pytest.raises(ValueError, match="one to six"):
        figure_2(benchmark, [])


def test_figure_3(benchmark):
    figure = figure_3(benchmark, "c001")
    assert figure.get_figwidth() == DOUBLE_COLUMN
    check_inside(figure)
    steps = sorted((q for q in benchmark.questions if q.chain == "c001"), key=lambda q: q.n_objects)
    assert shown(figure) == [colour(benchmark.items[q.query]) for q in steps] and len(steps) == 9
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert [t for t in texts if t.startswith("N = ")] == [f"N = {n}" for n in range(2, 11)]
    for before, after in pairwise(steps):
        ((attribute, thing),) = set(benchmark.items[after.query].pairs) - set(
            benchmark.items[before.query].pairs
        )
        assert f"+ {attribute} {thing}" in texts
    with pytest.raises(ValueError, match="c000, c001"):
        figure_3(benchmark, "nothing")


def test_backend_renders_for_print(benchmark):
    figure = figure_3(benchmark, "c000", backend=Plain())
    image = figure.axes[0].images[0]
    left, right, *_ = image.get_extent()
    assert np.asarray(image.get_array()).shape[1] == pytest.approx((right - left) * DPI, abs=1)
    assert shown(figure) == shown(figure_3(benchmark, "c000"))


def test_missing_image_says_what_to_do(benchmark, tmp_path):
    bare = write_benchmark(benchmark, tmp_path)
    with pytest.raises(FileNotFoundError, match="build_images"):
        figure_3(bare, "c000")


def test_figures_are_saved_with_real_fonts(benchmark, tmp_path):
    with plt.rc_context({"pdf.fonttype": 42, "pdf.compression": 0}):
        figure_1(benchmark).savefig(tmp_path / "f.pdf")
    content = (tmp_path / "f.pdf").read_bytes()
    assert b"/Type3" not in content and b"DejaVuSans" in content
    assert set(ALT) == {1, 2, 3}


def test_wrap_keeps_words_and_width():
    words = [
        (w, {"weight": "bold"} if k % 2 else {})
        for k, w in enumerate("a wooden kite and an iridescent cube".split())
    ]
    lines = wrap(words, 0.9, 6)
    assert [w for line in lines for w in line] == words and len(lines) > 1
    for line in lines:
        width = sum(text_width(t, 6, **s) for t, s in line) + text_width(" ", 6) * (len(line) - 1)
        assert width <= 0.9 or len(line) == 1
    assert wrap([("immeasurable", {})], 0.1, 6) == [[("immeasurable", {})]]


def test_text_width_agrees_with_what_is_drawn():
    canvas = Canvas(5, 1)
    canvas.text("a zebra-print stethoscope", 0.5, 0.5, 7)
    canvas.figure.set_dpi(600)  # fine enough for the rasteriser's rounding
    drawn = canvas.axes.texts[0].get_window_extent(canvas.figure.canvas.get_renderer()).width / 600
    assert text_width("a zebra-print stethoscope", 7) == pytest.approx(drawn, rel=0.03)
    size = fit("a zebra-print stethoscope", 7, 0.5)
    assert text_width("a zebra-print stethoscope", size) == pytest.approx(0.5, rel=0.02)
    assert fit("a", 7, 0.5) == 7
