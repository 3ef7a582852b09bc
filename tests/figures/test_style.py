"""Figures: TrueType fonts, the size asked for, the same bytes twice, an alternative text inside."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from saber import paths
from saber.figures import style

ALT = 'Accuracy → "falls" & <rises> é'


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_OUTPUTS", str(tmp_path / "with space é"))
    with mpl.rc_context():
        yield


def draw():
    style.use_style()
    fig = Figure(figsize=style.figure_size("single", 0.4))
    left, right = fig.subplots(1, 2)
    for name, look in style.line_styles(["CLIP ViT-B/32", "mini_clip 50% é"]).items():
        left.plot([2, 3, 4], [1, 2, 3], label=name, **look)
    left.axhline(1.5, **style.REFERENCE)
    left.legend()
    right.imshow(np.random.default_rng(0).integers(0, 256, (192, 192, 3), dtype=np.uint8))
    return fig


def test_both_files_with_embedded_truetype_fonts():
    pdf, png = style.save_figure("demo", 3, draw(), alt=ALT)
    assert (pdf.name, png.name) == ("figure_03.pdf", "figure_03.png")
    content = pdf.read_bytes()
    assert b"/Type3" not in content and b"/FontFile2" in content
    assert b"CreationDate" not in content
    assert sorted(p.name for p in paths.figures_dir("demo").iterdir()) == ["figure_03.pdf", "figure_03.png"]
    with Image.open(png) as image:
        assert image.size == (3.25 * 300, 3.25 * 0.4 * 300)
        assert image.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert image.info["Description"] == ALT


def test_images_keep_print_resolution_in_the_pdf():
    fig = Figure(figsize=(2, 2))
    axes = fig.add_axes((0, 0, 1, 1))
    axes.imshow(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    pdf, _ = style.save_figure("demo", 1, fig)
    assert b"/Width 600" in pdf.read_bytes()  # 2 inches at 300 dpi, not at the screen's


def test_the_same_figure_gives_the_same_bytes_and_a_failing_one_leaves_them(monkeypatch):
    pdf, png = style.save_figure("demo", 3, draw(), alt=ALT)
    before = pdf.read_bytes(), png.read_bytes()
    style.save_figure("demo", 3, draw(), alt=ALT)
    assert (pdf.read_bytes(), png.read_bytes()) == before

    def fail(path, **_):
        path.write_bytes(b"half")
        raise RuntimeError("killed")

    fig = Figure()
    monkeypatch.setattr(fig, "savefig", fail)
    with pytest.raises(RuntimeError, match="killed"):
        style.save_figure("demo", 3, fig)
    assert (pdf.read_bytes(), png.read_bytes()) == before
    assert len(list(paths.figures_dir("demo").iterdir())) == 2


def test_sizes():
    assert style.figure_size() == (3.25, pytest.approx(2.21))
    assert style.figure_size("double", 0.5) == (6.75, 3.375)
    with pytest.raises(ValueError, match="single, double"):
        style.figure_size("triple")


def test_styles_tell_32_names_apart_and_no_more():
    styles = style.line_styles([f"m{i}" for i in range(32)])
    assert len({(s["color"], s["linestyle"]) for s in styles.values()}) == 32
    assert len({s["marker"] for s in list(styles.values())[:8]}) == 8
    with pytest.raises(ValueError, match="at most 32"):
        style.line_styles([str(i) for i in range(33)])


def test_palette_differs_for_readers_without_red_green_vision():
    """Pairs stay apart when red and green are seen as one (their mean), and the markers differ anyway."""
    colours = [np.array(to_rgb(c)) for c in style.PALETTE]
    merged = [np.array([(c[0] + c[1]) / 2, c[2]]) for c in colours]
    assert min(np.abs(a - b).max() for a, b in itertools.combinations(merged, 2)) > 0.05
    assert len(style.MARKERS) == len(style.PALETTE)


def test_style_is_what_matplotlib_knows():
    style.use_style()
    assert mpl.rcParams["pdf.fonttype"] == 42 and mpl.rcParams["savefig.dpi"] == style.DPI
