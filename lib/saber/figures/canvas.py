"""A figure measured in inches: pictures, framed boxes and wrapped text of several styles, placed by hand."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from matplotlib.textpath import text_to_path
from PIL import Image

from saber.figures.style import DPI, PALETTE

INK, GREY, PALE = "#1a1a1a", "#6b6b6b", "#c8c8c8"
RIGHT, WRONG = PALETTE[0], PALETTE[1]  # blue and vermillion, always with a ✓ or a ✗
FONT = "DejaVu Sans"
Word = tuple[str, dict]  # text, and matplotlib text properties


class Canvas:
    """``width`` x ``height`` inches; x to the right and y upwards from the lower left corner, in inches."""

    def __init__(self, width: float, height: float):
        self.width, self.height = width, height
        self.figure: Figure = plt.figure(figsize=(width, height), layout="constrained")
        # not created with "none": after a first savefig matplotlib would fall back to the style's own layout
        self.figure.set_layout_engine("none")
        self.axes = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
        self.axes.set_axis_off()
        self.axes.set_autoscale_on(False)

    def picture(self, image: np.ndarray, x, y, side, frame=PALE, line=0.6):
        """An image (h, w, 3), its lower left corner at (x, y), fitted into a square, with a frame."""
        high, wide = image.shape[:2]
        w, h = side * min(1, wide / high), side * min(1, high / wide)
        left, low = x + (side - w) / 2, y + (side - h) / 2
        self.axes.imshow(image, extent=(left, left + w, low, low + h), aspect="auto", zorder=1.5)
        self.axes.set(xlim=(0, self.width), ylim=(0, self.height))
        self.box(x, y, side, side, edge=frame, line=line, round_=0)

    def box(self, x, y, w, h, edge=PALE, fill="none", line=0.8, round_=0.05, style="-", z=2.0):
        """A rectangle with rounded corners of radius ``round_`` inches."""
        shape = f"round,pad=0,rounding_size={round_}" if round_ else "square,pad=0"
        patch = FancyBboxPatch((x, y), w, h, shape, ec=edge, fc=fill, lw=line, ls=style, zorder=z)
        self.axes.add_patch(patch)

    def arrow(self, start, end, color=GREY, line=1.0, style="-", head=5.0):
        """A straight arrow between two points; ``head`` is the length of its head in points."""
        (x0, y0), (x1, y1) = start, end
        share = max(0.0, 1 - 0.8 * head / 72 / np.hypot(x1 - x0, y1 - y0))  # where the head begins
        neck = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        self.axes.plot(
            [x0, neck[0]],
            [y0, neck[1]],
            color=color,
            lw=line,
            ls=style,
            marker="",
            solid_capstyle="butt",
            zorder=3,
        )
        look = f"-|>,head_length={head / 10},head_width={head / 20}"
        patch = FancyArrowPatch(neck, end, arrowstyle=look, mutation_scale=10, shrinkA=0, shrinkB=0)
        patch.set(color=color, lw=0, zorder=3)
        self.axes.add_patch(patch)

    def mark(self, right: bool, x: float, y: float, radius: float = 0.095):
        """A white ✓ on blue or ✗ on vermillion, centred at (x, y)."""
        color = RIGHT if right else WRONG
        self.axes.add_patch(Circle((x, y), radius, fc=color, ec="white", lw=0.8, zorder=5))
        style = {"color": "white", "weight": "bold", "ha": "center", "va": "center_baseline"}
        self.text("✓" if right else "✗", x, y - 0.002, 72 * radius, z=6, **style)

    def text(self, text: str, x: float, y: float, size: float, z: float = 4.0, **style):
        """Text without wrapping, by its left end and baseline unless ``style`` says else."""
        style = {"ha": "left", "va": "baseline", "color": INK, "family": FONT} | style
        self.axes.text(x, y, text, fontsize=size, zorder=z, **style)

    def paragraph(self, words: Sequence[Word], x, y, width, size, leading=1.25, align="left") -> float:
        """Words of several styles, wrapped to ``width`` inches; the first baseline is at ``y``.

        Returns:
            The baseline of the last line.
        """
        space = text_width(" ", size)
        for line in wrap(words, width, size):
            left = x
            if align == "center":
                used = sum(text_width(t, size, **s) for t, s in line) + space * (len(line) - 1)
                left = x + (width - used) / 2
            for text, style in line:
                self.text(text, left, y, size, **style)
                left += text_width(text, size, **style) + space
            y -= size * leading / 72
        return y + size * leading / 72


def wrap(words: Sequence[Word], width: float, size: float) -> list[list[Word]]:
    """Greedy line breaking of single words to ``width`` inches; a wider word stands alone."""
    lines, used, space = [[]], 0.0, text_width(" ", size)
    for text, style in words:
        wide = text_width(text, size, **style)
        if lines[-1] and used + space + wide > width:
            lines.append([])
        used = used + space + wide if lines[-1] else wide
        lines[-1].append((text, style))
    return lines


def text_width(text: str, size: float, weight="normal", style="normal", **_) -> float:
    """Inches that a text takes at ``size`` points."""
    font = FontProperties(family=FONT, weight=weight, style=style, size=size)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


def fit(text: str, size: float, width: float) -> float:
    """The font size, at most ``size`` points, at which the text is no wider than ``width`` inches."""
    return min(size, size * width / text_width(text, size))


def load_picture(benchmark, item, inches: float, backend=None) -> np.ndarray:
    """The item's image as uint8 (h, w, 3): from its file, or rendered by ``backend`` for print at this size.

    Raises:
        FileNotFoundError: the file is missing, and no backend is given.
    """
    if backend is not None:
        return np.asarray(backend.render(item, round(inches * DPI)).convert("RGB"))
    path = Path(benchmark.image_path(item))
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: make the images first with saber.images.build_images")
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))
