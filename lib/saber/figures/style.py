"""One look for all figures, and the one way to save them.

Sizes are column widths of the usual two-column page. Colours are those of Okabe and Ito, which readers with
any kind of colour vision can tell apart (https://jfly.uni-koeln.de/color/); each comes with a marker and a
line style, so that colour is never the only cue. Text in PDFs is embedded as TrueType, as publishers ask.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from saber import files, paths

SINGLE_COLUMN, DOUBLE_COLUMN = 3.25, 6.75  # inches
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")
REFERENCE = {"color": "0.45", "linestyle": (0, (1, 1)), "linewidth": 0.8}  # chance and other reference lines
DPI = 300

RC = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "grid.linewidth": 0.4,
    "axes.prop_cycle": mpl.cycler(color=PALETTE, marker=MARKERS),
    "figure.figsize": (SINGLE_COLUMN, 2.2),
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,  # on the screen
    "savefig.dpi": DPI,
}


def use_style() -> None:
    """Set the style for the figures that follow (``with mpl.rc_context(RC):`` does it for one)."""
    mpl.rcParams.update(RC)


def figure_size(width: str = "single", height: float = 0.68) -> tuple[float, float]:
    """Inches: ``width`` "single" (3.25) or "double" (6.75) column, ``height`` as a share of it."""
    widths = {"single": SINGLE_COLUMN, "double": DOUBLE_COLUMN}
    if width not in widths:
        raise ValueError(f"width must be one of {', '.join(widths)}, not {width!r}")
    return widths[width], widths[width] * height


def line_styles(names: Sequence[str]) -> dict[str, dict]:
    """Colour, marker and line style for each name, in order: ``ax.plot(x, y, **styles[name])``.

    Up to 8 names differ in colour and marker; up to 32 in colour and line style together. For seaborn:
    ``palette={n: s["color"] for n, s in styles.items()}``.
    """
    if len(names) > len(PALETTE) * len(LINES):
        raise ValueError(f"{len(names)} lines in one figure cannot be told apart; at most 32")
    return {
        name: {
            "color": PALETTE[i % len(PALETTE)],
            "marker": MARKERS[i % len(MARKERS)],
            "linestyle": LINES[(i + i // len(PALETTE)) % len(LINES)],
        }
        for i, name in enumerate(names)
    }


def save_figure(profile: str, number: int, fig: Figure, *, alt: str = "") -> tuple[Path, Path]:
    """Write ``figures/figure_NN.pdf`` and ``.png`` (300 dpi) and return their paths.

    The size on paper is the figure's own (:func:`figure_size`). Images in it, such as sprite scenes, are
    resampled to 300 dpi at their size on paper. Both files are written atomically, without dates: the same
    figure gives the same bytes.

    Args:
        profile: name of the profile.
        number: number of the paper's figure.
        fig: the figure (``grid.figure`` for seaborn's grids).
        alt: what the figure shows, in a sentence or two, for readers who do not see it. It travels inside
            both files and into the report.
    """
    pdf = paths.figures_dir(profile) / f"figure_{number:02d}.pdf"
    png = pdf.with_suffix(".png")
    title = f"Figure {number} ({profile})"
    with mpl.rc_context({"pdf.fonttype": 42, "savefig.bbox": None}):
        metadata = {"CreationDate": None, "Title": title, "Subject": alt or None}
        files.write_with(pdf, lambda path: fig.savefig(path, dpi=DPI, metadata=metadata))
        metadata = {"Software": None, "Title": title} | ({"Description": alt} if alt else {})
        files.write_with(png, lambda path: fig.savefig(path, dpi=DPI, metadata=metadata))
    return pdf, png
