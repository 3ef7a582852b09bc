"""Figures 1 to 3: what SABER's questions look like, and what text-only finetuning is.

Pictures come from the benchmark's folder; with ``backend`` (for example the sprites) they are rendered anew
for print, at 300 dots per inch of the place that they take. All figures are as wide as a page of two columns.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from saber.figures.canvas import GREY, INK, PALE, RIGHT, WRONG, Canvas, fit, load_picture, wrap
from saber.figures.overview import figure_1, shuffled
from saber.figures.style import DOUBLE_COLUMN

__all__ = ["ALT", "figure_1", "figure_2", "figure_3", "shuffled"]

ROLE_WORDS = {
    "preserved": "bindings preserved",
    "attribute_swap": "attributes permuted",
    "object_swap": "objects permuted",
    "joint_swap": "both permuted",
}
ALT = {
    1: "Top: a query with image and caption, and four candidates, one of which keeps the query's bindings. "
    "Bottom: text triplets train an embedder that texts and images share; images move alike.",
    2: "Multiple-choice questions with growing numbers of objects: a query image and four candidate images "
    "each, the one that preserves the bindings marked with a tick, the others with a cross.",
    3: "Nine query images of one nested chain, from two to ten objects; each adds one binding.",
}


def figure_2(benchmark, question_ids: Sequence[str], backend=None, seed: int = 0) -> Figure:
    """Multiple-choice questions, one a row: the query, then its candidates in shuffled order.

    Args:
        benchmark: with folder and images.
        question_ids: one to six questions, best at several object counts.
        backend: renders the pictures anew for print; by default they are read from the folder.
        seed: of the display order.

    Raises:
        ValueError: no or too many questions, or an unknown one.
    """
    questions = [_question(benchmark, i) for i in question_ids]
    if not 1 <= len(questions) <= 6:
        raise ValueError(f"figure_2 shows one to six questions, not {len(questions)}")
    left, gap, split, head = 0.06, 0.07, 0.2, 0.19  # split: between query and candidates
    side = (DOUBLE_COLUMN - 2 * left - split - 3 * gap) / 5
    size, leading, label = 6.4, 1.3, 0.5
    width = DOUBLE_COLUMN - 2 * left - label
    captions = [[(w, {}) for w in benchmark.items[q.query].text.split()] for q in questions]
    lines = [len(wrap(words, width, size)) for words in captions]
    heights = [head + side + 0.11 + n * size * leading / 72 + 0.05 for n in lines]
    canvas = Canvas(DOUBLE_COLUMN, sum(heights))
    top = canvas.height
    for question, words, height in zip(questions, captions, heights, strict=True):
        low = top - head - side
        query = benchmark.items[question.query]
        canvas.text(f"query, N = {question.n_objects}", left, top - 0.13, 7.2, weight="bold")
        canvas.picture(load_picture(benchmark, query, side, backend), left, low, side, INK, 1.1)
        for k, item_id in enumerate(shuffled(question, seed)):
            item = benchmark.items[item_id]
            x = left + side + split + k * (side + gap)
            right = item.role == "preserved"
            color = RIGHT if right else WRONG
            canvas.picture(load_picture(benchmark, item, side, backend), x, low, side, color, 1.1)
            canvas.mark(right, x + 0.07, top - 0.1, 0.07)
            canvas.text(_role(item, question), x + 0.18, top - 0.13, 6.6, color=color)
        rule = left + side + split / 2
        canvas.axes.plot([rule, rule], [low, low + side + 0.1], color=PALE, lw=0.8, marker="")
        canvas.text("caption", left, low - 0.14, size, color=GREY)
        canvas.paragraph(words, left + label, low - 0.14, width, size, leading)
        top -= height
    return canvas.figure


def figure_3(benchmark, chain: str, backend=None) -> Figure:
    """The queries of one nested chain, read left to right and top to bottom; the binding that each adds is
    named.

    Raises:
        ValueError: no such chain.
    """
    steps = sorted((q for q in benchmark.questions if q.chain == chain), key=lambda q: q.n_objects)
    if not steps:
        chains = sorted({q.chain for q in benchmark.questions if q.chain})
        raise ValueError(f"no nested chain {chain!r}; there are {', '.join(chains[:9]) or 'none'}")
    columns = 3
    rows = -(-len(steps) // columns)
    gap, left, head = 0.27, 0.06, 0.3
    side = (DOUBLE_COLUMN - 2 * left - (columns - 1) * gap) / columns
    canvas = Canvas(DOUBLE_COLUMN, rows * (side + head) + 0.06 + (rows - 1) * 0.06)
    known: set = set()
    for n, step in enumerate(steps):
        item = benchmark.items[step.query]
        x = left + n % columns * (side + gap)
        low = canvas.height - 0.02 - (n // columns + 1) * (side + head) - n // columns * 0.06
        new = [p for p in item.pairs if p not in known]
        known |= set(item.pairs)
        canvas.picture(load_picture(benchmark, item, side, backend), x, low, side, INK, 0.8)
        canvas.text(f"N = {step.n_objects}", x, low + side + 0.18, 7.5, weight="bold")
        added = " and ".join(f"{a} {o}" for a, o in new)
        sign = "" if n == 0 else "+ "
        canvas.text(sign + added, x, low + side + 0.06, fit(sign + added, 7, side), color=RIGHT)
        if n % columns < columns - 1 and n < len(steps) - 1:
            middle = low + side / 2
            canvas.arrow((x + side + 0.05, middle), (x + side + gap - 0.05, middle), line=1.4)
    return canvas.figure


def _role(item, question) -> str:
    """What a candidate changed; with two objects the fourth candidate replaces a word instead."""
    if item.role == "joint_swap" and question.n_objects == 2:
        return "one word replaced"
    return ROLE_WORDS[item.role]


def _question(benchmark, question_id: str):
    for question in benchmark.questions:
        if question.id == question_id:
            return question
    raise ValueError(f"no question {question_id!r}; ids look like {benchmark.questions[0].id!r}")
