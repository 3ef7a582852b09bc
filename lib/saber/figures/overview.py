"""Figure 1: a SABER question above, text-only finetuning below."""

import numpy as np
from matplotlib.figure import Figure

from saber.captions import article
from saber.figures.canvas import GREY, INK, PALE, RIGHT, WRONG, Canvas, fit, load_picture, wrap
from saber.figures.style import DOUBLE_COLUMN

LEFT, TINT = 0.06, {INK: "#f3f3f3", RIGHT: "#e6f1f8", WRONG: "#fbece2"}
PAIRINGS = ("T → T", "T → I", "I → T", "I → I")


def shuffled(question, seed: int = 0) -> list[str]:
    """The question's candidates in the order in which figures show them; the seed fixes it."""
    number = int.from_bytes(question.id.encode(), "big") % 2**63
    return [question.candidates[k] for k in np.random.default_rng([seed, number]).permutation(4)]


def figure_1(benchmark, question_id: str | None = None, backend=None, seed: int = 0) -> Figure:
    """Overview: one question with images and captions, and the way of text triplets into the shared space.

    Args:
        benchmark: with folder and images.
        question_id: a question of three or more objects, best of three; by default the first of the fewest.
        backend: renders the pictures anew for print; by default they are read from the folder.
        seed: of the display order of the candidates.

    Raises:
        ValueError: unknown question, or none of three or more objects.
    """
    questions = sorted((q for q in benchmark.questions if q.n_objects >= 3), key=lambda q: q.n_objects)
    if question_id is not None:
        questions = [q for q in questions if q.id == question_id]
    if not questions:
        raise ValueError(f"figure_1 needs a question of three or more objects, not {question_id or 'none'}")
    question = questions[0]
    canvas = Canvas(DOUBLE_COLUMN, 4.54 + 0.118 * (question.n_objects - 3))
    _question_panel(canvas, benchmark, question, backend, seed)
    _training_panel(canvas, benchmark, question, backend)
    return canvas.figure


def _question_panel(canvas: Canvas, benchmark, question, backend, seed: int) -> None:
    top = canvas.height - 0.16
    _title(canvas, "a", "SABER: which candidate keeps the bindings of the query?", top)
    side, gap = 1.15, 0.07
    low = top - 0.28 - side
    query = benchmark.items[question.query]
    start = DOUBLE_COLUMN - LEFT - 4 * side - 3 * gap
    canvas.text("query", LEFT, low + side + 0.07, 7, weight="bold")
    _card(canvas, benchmark, query, query, LEFT, low, side, INK, backend)
    for k, item_id in enumerate(shuffled(question, seed)):
        item = benchmark.items[item_id]
        x = start + k * (side + gap)
        right = item.role == "preserved"
        color = RIGHT if right else WRONG
        canvas.mark(right, x + 0.07, low + side + 0.1, 0.07)
        label = "same bindings" if right else "other bindings"
        canvas.text(label, x + 0.18, low + side + 0.07, 7, color=color)
        _card(canvas, benchmark, item, query, x, low, side, color, backend)
    middle = (LEFT + side + start) / 2
    canvas.text("pairings", middle, low + side + 0.07, 6.6, ha="center", color=GREY)
    for k, pairing in enumerate(PAIRINGS):
        canvas.text(pairing, middle, low + side - 0.16 - 0.19 * k, 6.8, ha="center")
    y = low + side - 0.16 - 0.19 * 4
    canvas.arrow((LEFT + side + 0.08, y), (start - 0.08, y), line=1.4)
    canvas.text("T text\nI image", middle, y - 0.1, 6.2, ha="center", va="top", color=GREY, linespacing=1.2)


def _card(canvas: Canvas, benchmark, item, query, x, low, side, color, backend) -> None:
    """A picture with its caption below, both in one frame."""
    below = 0.07 + 0.118 * len(item.pairs)
    canvas.box(x, low - below, side, below, edge=color, line=1.0, fill="white", round_=0, z=1)
    canvas.picture(load_picture(benchmark, item, side, backend), x, low, side, color, 1.0)
    wanted = set(query.pairs)
    for n, pair in enumerate(item.pairs):
        text = f"{article(pair[0])} {' '.join(pair)}"
        size = fit(text, 6, side - 0.08)
        canvas.text(text, x + 0.05, low - 0.13 - 0.118 * n, size, color=INK if pair in wanted else WRONG)


def _training_panel(canvas: Canvas, benchmark, question, backend) -> None:
    top = 2.26
    _title(canvas, "b", "Finetuning on text alone: the images, never trained on, move alike", top)
    roles = (("query", INK), ("positive", RIGHT), ("negative", WRONG))
    # what goes in: three sentences, and at test time images
    width, size, label = 2.45, 6.0, 0.56
    y = top - 0.13
    for k, ((name, color), text) in enumerate(zip(roles, _triplet(question, benchmark), strict=True)):
        words = [(w, {}) for w in text.split()]
        high = 0.12 + 0.1 * len(wrap(words, width - label - 0.06, size))
        y -= high + 0.05
        canvas.box(LEFT, y, width, high, edge=color, fill=TINT[color], line=0.9)
        canvas.text(name, LEFT + 0.06, y + high - 0.14, size, color=color, weight="bold")
        canvas.paragraph(words, LEFT + label, y + high - 0.14, width - label - 0.06, size, 1.2)
        canvas.arrow((LEFT + width + 0.04, y + high / 2), (2.98, 1.51 - 0.13 * k), line=1.0)
    side = 0.56
    images = [benchmark.items[i] for i in (question.query, question.candidates[0], question.candidates[1])]
    for k, (item, (_, color)) in enumerate(zip(images, roles, strict=True)):
        x = LEFT + 0.54 + k * (side + 0.1)
        canvas.picture(load_picture(benchmark, item, side, backend), x, 0.1, side, color, 1.0)
    canvas.text("images,\nat test\ntime only", LEFT, 0.1 + side / 2, 6.2, va="center", color=GREY)
    canvas.arrow((LEFT + width + 0.04, 0.1 + side / 2), (2.98, 0.62), style=(0, (3, 2)), line=1.0)
    # one embedder
    canvas.box(3.02, 0.36, 0.94, 1.46, edge=INK, fill="white", line=1.2, round_=0.1)
    canvas.text("shared\nembedder", 3.49, 1.32, 7.5, ha="center", weight="bold", linespacing=1.2)
    canvas.text(r"$f_\theta$", 3.49, 1.12, 10, ha="center")
    canvas.text("LoRA, trained\non text only", 3.49, 0.78, 6.2, ha="center", color=GREY, linespacing=1.2)
    canvas.arrow((4.0, 1.38), (4.3, 1.38), line=1.4)
    canvas.arrow((4.0, 0.62), (4.3, 0.62), style=(0, (3, 2)), line=1.4)
    _space(canvas, benchmark, images, backend)


def _space(canvas: Canvas, benchmark, images, backend) -> None:
    """The embedding space: texts pulled and pushed by the loss above, images that follow below."""
    x, y, w, h = 4.36, 0.1, DOUBLE_COLUMN - LEFT - 4.36, 1.98
    canvas.box(x, y, w, h, edge=PALE, fill="#fafafa", line=0.8, round_=0.1, z=1)
    canvas.axes.plot([x + 0.1, x + w - 0.1], [y + 0.93] * 2, color=PALE, lw=0.7, ls=(0, (2, 2)), marker="")
    for centre, pictures, label in ((y + 1.34, None, "texts"), (y + 0.44, images, "images")):
        style = "-" if pictures is None else (0, (3, 2))
        canvas.text(label, x + 0.08, centre + 0.36, 6.2, color=GREY, style="italic")
        places = ((x + 0.98, centre), (x + 0.32, centre), (x + 1.62, centre))  # query, positive, negative
        for k, ((px, py), color) in enumerate(zip(places, (INK, RIGHT, WRONG), strict=True)):
            if pictures is None:
                canvas.box(
                    px - 0.13, py - 0.09, 0.26, 0.18, edge=color, fill=TINT[color], line=1.0, round_=0.03
                )
                canvas.text(
                    "q+−"[k], px, py, 9, ha="center", va="center_baseline", color=color, weight="bold"
                )
            else:
                picture = load_picture(benchmark, pictures[k], 0.42, backend)
                canvas.picture(picture, px - 0.21, py - 0.21, 0.42, color, 1.0)
        reach = 0.17 if pictures is None else 0.25
        (qx, qy), (px, _), (nx, _) = places
        canvas.arrow((px + reach, qy), (qx - reach, qy), RIGHT, 1.3, style)
        canvas.arrow((nx + reach, qy), (x + w - 0.1, qy), WRONG, 1.3, style)
        if pictures is None:
            canvas.text("closer", (px + qx) / 2, qy - 0.25, 6.2, ha="center", color=RIGHT)
            canvas.text("farther", (nx + reach + x + w - 0.1) / 2, qy - 0.25, 6.2, ha="center", color=WRONG)
    canvas.text(r"$[\,D(q,-)-D(q,+)+\gamma\,]_+$", x + w - 0.08, y + 1.7, 7, ha="right")


def _triplet(question, benchmark) -> tuple[str, str, str]:
    """Query, positive and negative sentences on the first two bindings of the question's query."""
    (a, x), (b, y) = benchmark.items[question.query].pairs[:2]

    def a_(attribute, thing):
        return f"{article(attribute)} {attribute} {thing}"

    scene = "In the window, {} lies beside {}."
    return (
        f"{a_(a, x)} and {a_(b, y)}",
        scene.format(a_(b, y), a_(a, x)),
        scene.format(a_(a, y), a_(b, x)),
    )


def _title(canvas: Canvas, letter: str, text: str, y: float) -> None:
    canvas.text(letter, LEFT, y, 9, weight="bold")
    canvas.text(text, LEFT + 0.17, y, 8)
