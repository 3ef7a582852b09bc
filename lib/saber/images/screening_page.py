"""Screening by mouse in JupyterLab: a page of ipywidgets, or the static sheet where they are missing."""

import html
import io

from PIL import Image

from saber.images.sheets import question_sheet
from saber.images.verdicts import ACCEPT, REJECT, read_verdicts, record_verdict

ROLES = ("query", "preserved", "attribute swap", "object swap", "joint swap")


def screening_page(benchmark, start: str | None = None):
    """A page that shows one question at a time and takes a verdict on each of its five pictures.

    Every click is saved at once (``images/verdicts.csv``). "next to judge" leads to the next question that
    lacks a verdict. Without ipywidgets the static sheet of the first question is returned.

    Args:
        benchmark: with folder and images.
        start: id of the question to begin with; by default the first that lacks a verdict.

    Returns:
        An ``ipywidgets.VBox``, or a PIL image.
    """
    ids = [q.id for q in benchmark.questions]
    if start is not None and start not in ids:
        raise ValueError(f"no question {start!r}; ids look like {ids[0]!r}")
    try:
        import ipywidgets as widgets
    except ImportError:
        print("ipywidgets is not installed: this is the static sheet; give verdicts with record_verdict(...)")
        return question_sheet(benchmark, start or ids[0])
    return _Page(benchmark, widgets, start).box


class _Page:
    """Widgets and what happens on their clicks; ``box`` is the whole."""

    def __init__(self, benchmark, widgets, start: str | None):
        self.benchmark = benchmark
        self.questions = {q.id: q for q in benchmark.questions}
        self.ids = list(self.questions)
        self.verdicts = read_verdicts(benchmark)
        self.note = ""  # what went wrong at the last click
        self.filling = False  # True while the page shows what is saved: no click of the user

        self.chooser = widgets.Dropdown(options=self.ids, description="question")
        self.back = widgets.Button(description="previous", icon="arrow-left")
        self.forth = widgets.Button(description="next", icon="arrow-right")
        self.jump = widgets.Button(description="next to judge", icon="fast-forward")
        self.rest = widgets.Button(description="accept the rest", icon="check", button_style="info")
        self.progress = widgets.HTML()
        self.picture = widgets.Image(format="png", layout=widgets.Layout(width="100%"))
        self.buttons, self.comments, columns = [], [], []
        for k, role in enumerate(ROLES):
            button = widgets.ToggleButtons(
                options=[ACCEPT, REJECT], value=None, tooltips=[f"{role} is right", "wrong"]
            )
            button.style.button_width = "70px"
            comment = widgets.Text(
                placeholder="comment", continuous_update=False, layout=widgets.Layout(width="150px")
            )
            button.observe(lambda change, k=k: self._clicked(k), names="value")
            comment.observe(lambda change, k=k: self._clicked(k), names="value")
            columns.append(
                widgets.VBox([widgets.Label(role), button, comment], layout=widgets.Layout(width="20%"))
            )
            self.buttons.append(button)
            self.comments.append(comment)
        self.chooser.observe(lambda change: self._show(), names="value")
        self.back.on_click(lambda _: self._step(-1))
        self.forth.on_click(lambda _: self._step(1))
        self.jump.on_click(lambda _: self._jump())
        self.rest.on_click(lambda _: self._accept_rest())
        row = widgets.HBox([self.chooser, self.back, self.forth, self.jump, self.rest])
        self.box = widgets.VBox([row, self.progress, self.picture, widgets.HBox(columns)])
        self.chooser.value = start or self._first_open(self.ids) or self.ids[0]
        self._show()

    def _items(self, question_id: str) -> list[str]:
        question = self.questions[question_id]
        return [question.query, *question.candidates]

    def _first_open(self, ids) -> str | None:
        return next((q for q in ids if any(i not in self.verdicts for i in self._items(q))), None)

    def _step(self, by: int) -> None:
        position = self.ids.index(self.chooser.value) + by
        self.chooser.value = self.ids[min(max(position, 0), len(self.ids) - 1)]

    def _jump(self) -> None:
        here = self.ids.index(self.chooser.value) + 1
        self.chooser.value = self._first_open(self.ids[here:] + self.ids[:here]) or self.chooser.value

    def _clicked(self, k: int) -> None:
        if not self.filling and self.buttons[k].value is not None:
            self._record(self._items(self.chooser.value)[k], self.buttons[k].value, self.comments[k].value)
            self._show()

    def _accept_rest(self) -> None:
        for item in self._items(self.chooser.value):
            if item not in self.verdicts:
                self._record(item, ACCEPT, "")
        self._show()

    def _record(self, item: str, verdict: str, comment: str) -> None:
        try:
            self.verdicts[item] = record_verdict(self.benchmark, item, verdict, comment)
        except (ValueError, OSError) as error:
            self.note = f" <b>{html.escape(str(error))}</b>"

    def _show(self) -> None:
        """Bring every widget to what is saved for the chosen question."""
        self.filling = True
        for item, button, comment in zip(
            self._items(self.chooser.value), self.buttons, self.comments, strict=True
        ):
            verdict = self.verdicts.get(item)
            button.value = verdict.verdict if verdict else None
            comment.value = verdict.comment if verdict else ""
        self.filling = False
        self.picture.value = _png(question_sheet(self.benchmark, self.chooser.value, self.verdicts))
        judged, rejected = len(self.verdicts), sum(v.verdict == REJECT for v in self.verdicts.values())
        said = f"{judged} of {len(self.benchmark.items)} pictures judged, {rejected} rejected."
        self.progress.value, self.note = said + self.note, ""


def _png(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, format="PNG", compress_level=1)
    return content.getvalue()
