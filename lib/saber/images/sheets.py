"""Static contact sheets: one block per question, the query and its four candidates side by side."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont, ImageOps

from saber import files
from saber.images.verdicts import ACCEPT, Verdict, read_verdicts

# Okabe-Ito colours, told apart by colour-blind readers too
INK, GREY, PALE, PAPER = "#222222", "#767676", "#d9d9d9", "#ffffff"
BLUE, GREEN, VERMILLION = "#0072b2", "#009e73", "#d55e00"
VERDICT_LOOK = {"accept": (BLUE, "✓"), "reject": (VERMILLION, "✗")}
SIDE, GAP, MARGIN = 264, 18, 22  # pixels
LINE = 20


@cache
def _font(size: int, style: str = "") -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which matplotlib ships: the same letters, and marks, on every machine."""
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / f"fonts/ttf/DejaVuSans{style}.ttf", size)


def question_sheet(benchmark, question_id: str, verdicts: dict[str, Verdict] | None = None) -> Image.Image:
    """One question as an RGB picture: per item its role, image, id, verdict, and what the image has to show.

    The appearances are listed one thing a line, in the order of the caption (generation form); those that are
    not in the query are set in colour. ``verdicts`` spares reading them again for each of many sheets.

    Raises:
        ValueError: unknown question.
    """
    question = {q.id: q for q in benchmark.questions}.get(question_id)
    if question is None:
        raise ValueError(f"no question {question_id!r}; ids look like {benchmark.questions[0].id!r}")
    verdicts = read_verdicts(benchmark) if verdicts is None else verdicts
    query = benchmark.items[question.query]
    items = [query, *(benchmark.items[c] for c in question.candidates)]
    wanted = set(query.pairs)
    texts = [_lines(item, wanted) for item in items]
    height = 78 + SIDE + 48 + LINE * max(map(len, texts)) + MARGIN
    sheet = Image.new("RGB", (2 * MARGIN + 5 * SIDE + 4 * GAP + GAP, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, 12), question.id, INK, _font(19, "-Bold"))
    chain = f"  ·  chain {question.chain}" if question.chain else ""
    about = f"{question.n_objects} objects  ·  {question.subset}{chain}"
    draw.text((MARGIN + draw.textlength(question.id, _font(19, "-Bold")) + 16, 15), about, GREY, _font(15))
    note = "colour: not bound so in the query"
    draw.text((sheet.width - MARGIN, 15), note, VERMILLION, _font(13), anchor="ra")
    for column, (item, text) in enumerate(zip(items, texts, strict=True)):
        left = MARGIN + column * (SIDE + GAP) + (GAP if column else 0)
        _draw_item(sheet, benchmark, item, left, text, verdicts.get(item.id))
    rule = MARGIN + SIDE + GAP
    draw.line([(rule, 48), (rule, height - MARGIN)], PALE, 2)
    return sheet


def _draw_item(sheet, benchmark, item, left: int, text, verdict: Verdict | None) -> None:
    draw = ImageDraw.Draw(sheet)
    colour = {"query": INK, "preserved": GREEN}.get(item.role, VERMILLION)
    draw.text((left, 44), item.role.replace("_", " "), colour, _font(16, "-Bold"))
    top = 70
    sheet.paste(_thumbnail(benchmark, item), (left, top))
    frame, mark = VERDICT_LOOK[verdict.verdict] if verdict else (PALE, "")
    draw.rectangle(
        [left - 3, top - 3, left + SIDE + 2, top + SIDE + 2], outline=frame, width=4 if mark else 1
    )
    if mark:
        draw.rectangle([left + SIDE - 30, top - 3, left + SIDE + 2, top + 29], fill=frame)
        draw.text((left + SIDE - 14, top + 13), mark, PAPER, _font(22, "-Bold"), anchor="mm")
    draw.text((left, top + SIDE + 8), _shorten(item.id, _font(12)), GREY, _font(12))
    below = top + SIDE + 26
    said = "not judged" if verdict is None else "accepted" if verdict.verdict == ACCEPT else "rejected"
    if verdict and verdict.comment:
        said += f": {verdict.comment}"
    draw.text((left, below), _shorten(said, _font(13)), frame if mark else GREY, _font(13))
    for number, (line, changed) in enumerate(text):
        draw.text((left, below + 24 + number * LINE), line, VERMILLION if changed else INK, _font(15))


def _lines(item, wanted: set) -> list[tuple[str, bool]]:
    """Wrapped text lines of an item, each with whether its pair differs from the query's."""
    lines = []
    for pair, appearance in zip(item.pairs, item.appearances or [a for a, _ in item.pairs], strict=True):
        wrapped = _wrap(f"{appearance} {pair[1]}", _font(15), SIDE)
        lines += [(part if n == 0 else f"   {part}", pair not in wanted) for n, part in enumerate(wrapped)]
    return lines


def _wrap(text: str, font, width: int) -> list[str]:
    """Lines of whole words, at most ``width`` pixels wide (a longer word stands alone)."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength("   " * (len(lines) > 1) + longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _shorten(text: str, font) -> str:
    if font.getlength(text) <= SIDE:
        return text
    while text and font.getlength(text + "…") > SIDE:
        text = text[:-1]
    return text.rstrip() + "…"


def _thumbnail(benchmark, item) -> Image.Image:
    """The item's picture fitted into a square; a plain field that says so where it cannot be read."""
    try:
        with Image.open(benchmark.image_path(item)) as image:
            return ImageOps.pad(image.convert("RGB"), (SIDE, SIDE), Image.Resampling.LANCZOS, color=PALE)
    except (OSError, SyntaxError, ValueError) as error:
        field = Image.new("RGB", (SIDE, SIDE), PALE)
        said = "no image yet" if isinstance(error, FileNotFoundError) else "image cannot be read"
        ImageDraw.Draw(field).text((SIDE // 2, SIDE // 2), said, INK, _font(16), anchor="mm")
        return field


def write_sheets(
    benchmark, folder: Path | str, questions: Sequence[str] | None = None, per_page: int = 4
) -> list[Path]:
    """Write the sheets of ``questions`` (all by default) as pages ``screening_0001.png``, ...; returns the
    paths.

    Pages left from a longer run before are removed, so that the folder shows one state.
    """
    folder = Path(folder)
    ids = [q.id for q in benchmark.questions] if questions is None else list(questions)
    verdicts = read_verdicts(benchmark)
    paths = []
    for start in range(0, len(ids), per_page):
        sheets = [question_sheet(benchmark, i, verdicts) for i in ids[start : start + per_page]]
        page = Image.new("RGB", (sheets[0].width, sum(s.height for s in sheets)), PAPER)
        top = 0
        for sheet in sheets:
            page.paste(sheet, (0, top))
            ImageDraw.Draw(page).line([(0, top), (page.width, top)], PALE, 2)
            top += sheet.height
        path = folder / f"screening_{len(paths) + 1:04d}.png"
        paths.append(files.write_with(path, page.save))
    for old in set(folder.glob("screening_[0-9][0-9][0-9][0-9].png")) - set(paths):
        old.unlink()
    return paths
