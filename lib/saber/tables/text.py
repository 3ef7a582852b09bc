"""A table as CSV, Markdown and LaTeX text."""

import csv
import io
import itertools

import pandas as pd

from saber.tables.build import Cell, Line, Table

MISSING = "--"


def number_text(value: float | str | None, decimals: int) -> str:
    """``53.6``, ``1,800``, text as it is, or ``--``."""
    if value is None:
        return MISSING
    return value if isinstance(value, str) else f"{round(value, decimals) + 0.0:,.{decimals}f}"  # no "-0.0"


def interval_text(cell: Cell, decimals: int) -> str:
    """``[22.4, 28.4]``, or nothing."""
    if cell.low is None or cell.high is None:
        return ""
    return f"[{cell.low:.{decimals}f}, {cell.high:.{decimals}f}]"


def to_csv(table: Table) -> str:
    """Flat CSV: block (if any), row, source (measured, reference, paper), and value, low, high by column."""
    decimals = table.layout.decimals
    first = [table.layout.block_header] if table.layout.block_header else []
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [*first, "row", "source", *(n + end for n in table.names for end in ("", " low", " high"))]
    )
    for line in table.lines:
        numbers = [v for c in line.cells for v in (c.value, c.low, c.high)]
        texts = [
            "" if v is None else v if isinstance(v, str) else number_text(v, decimals).replace(",", "")
            for v in numbers
        ]
        writer.writerow([*([line.block] if first else []), line.row, line.kind, *texts])
    return out.getvalue()


def to_markdown(table: Table) -> str:
    """GitHub Markdown: caption, table, notes. Intervals are small text, the paper's rows are in italics."""
    blocks = bool(table.layout.block_header)
    head = [table.layout.block_header] if blocks else []
    head += [table.layout.row_header, *(" ".join(header) for header in table.headers)]
    rules = ["---"] * (1 + blocks) + ["---:"] * len(table.headers)
    rows = [[_md(h) for h in head], rules]
    for line in table.lines:
        start = [_md(line.block)] if blocks else []
        label = f"*{_md(line.label)}*" if line.kind == "paper" else _md(line.label)
        rows.append([*start, label, *(_md_cell(cell, line, table.layout.decimals) for cell in line.cells)])
    grid = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    notes = "".join(f"\n{_md(note)}  " for note in table.notes)
    return f"**{table.title}.** {_md(table.caption)}\n\n{grid}\n" + (f"{notes}\n" if notes else "")


def _md_cell(cell: Cell, line: Line, decimals: int) -> str:
    text = _md(number_text(cell.value, decimals))
    if line.kind == "paper":
        return text if cell.value is None else f"*{text}*"
    text = {"best": f"**{text}**", "second": f"<ins>{text}</ins>"}.get(cell.mark, text)
    interval = interval_text(cell, decimals)
    return f"{text} <small>{interval}</small>" if interval else text


def _md(text: str) -> str:
    text = text.replace("->", "→").replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")
    for character in "\\`*_|[]":
        text = text.replace(character, "\\" + character)
    return text


def to_latex(table: Table) -> str:
    """A booktabs table; needs the packages booktabs and, for wide tables, graphicx. Any engine takes it."""
    blocks = bool(table.layout.block_header)
    levels = max((len(header) for header in table.headers), default=1)
    head = [("",) * (levels - 1) + (tex(table.layout.row_header),)]
    if blocks:
        head.insert(0, ("",) * (levels - 1) + (tex(table.layout.block_header),))
    columns = head + [("",) * (levels - len(h)) + tuple(tex(part) for part in h) for h in table.headers]
    cells, marks = [], []
    for i, line in enumerate(table.lines):
        first = i == 0 or table.lines[i - 1].block != line.block
        start = [tex(line.block) if first else ""] if blocks else []
        texts = [tex(number_text(cell.value, table.layout.decimals)) for cell in line.cells]
        cells.append([*start, tex(line.label), *texts])
        italic = "textit:--rwrap;" if line.kind == "paper" else ""
        style = {"best": "textbf:--rwrap;", "second": "underline:--rwrap;", "": italic}
        marks.append([*[""] * len(start), italic, *(style[cell.mark] for cell in line.cells)])
    index = pd.MultiIndex.from_tuples(columns) if levels > 1 else pd.Index([c[0] for c in columns])
    frame = pd.DataFrame(cells, columns=index)
    styler = frame.style.apply(lambda _: pd.DataFrame(marks, columns=index), axis=None).hide(axis="index")
    aligned = "l" * len(head) + ("r" if table.layout.best_within else "l") * len(table.headers)
    tabular = styler.to_latex(hrules=True, column_format=aligned, multicol_align="c")
    return _float(table, _rules(tabular, columns, table, levels), wide=len(columns) > 8)


def _rules(tabular: str, columns: list[tuple[str, ...]], table: Table, levels: int) -> str:
    """Rules that Styler does not draw: below grouped headings and between blocks."""
    lines = tabular.splitlines()
    body = lines.index("\\midrule") + 1
    for i in range(len(table.lines) - 1, 0, -1):  # from the end, so that earlier positions stay valid
        if table.lines[i].block != table.lines[i - 1].block:
            lines.insert(body + i, "\\midrule")
    if levels > 1:
        spans, at = [], 1
        for title, group in itertools.groupby(column[0] for column in columns):
            width = len(list(group))
            if title:
                spans.append(f"\\cmidrule(lr){{{at}-{at + width - 1}}}")
            at += width
        lines.insert(lines.index("\\toprule") + 2, " ".join(spans))
    return "\n".join(lines)


def _float(table: Table, tabular: str, wide: bool) -> str:
    name = "table*" if wide else "table"
    label = f"{table.number:02d}" if isinstance(table.number, int) else str(table.number).replace(" ", "-")
    if wide:  # shrunk to the page only if it is too wide for it
        width = "\\ifdim\\width>\\textwidth\\textwidth\\else\\width\\fi"
        tabular = f"\\setlength{{\\tabcolsep}}{{3pt}}%\n\\resizebox{{{width}}}{{!}}{{%\n{tabular}%\n}}"
    notes = "".join(f"\n\\par\\smallskip{{\\footnotesize {tex(note)}\\par}}" for note in table.notes)
    return (
        f"% needs \\usepackage{{booktabs,graphicx}}\n\\begin{{{name}}}[t]\n\\centering\n"
        f"\\caption{{{tex(table.caption)}}}\n\\label{{tab:saber-{label}}}\n{tabular}{notes}\n\\end{{{name}}}\n"
    )


SPECIAL = {c: "\\" + c for c in "&%$#_{}"}
SPECIAL |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "$<$"}
SPECIAL |= {">": "$>$", "|": "$|$", '"': "''", "→": "$\\to$", "×": "$\\times$", "−": "$-$", "±": "$\\pm$"}
SPECIAL |= {"–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''", "…": "\\dots{}", "\n": " "}
SPECIAL |= {
    "Δ": "$\\Delta$",
    "ρ": "$\\rho$",
    "τ": "$\\tau$",
    "γ": "$\\gamma$",
    "≥": "$\\geq$",
    "≤": "$\\leq$",
}
ACCENTED = frozenset(map(chr, range(0xC0, 0x100))) - set("ÐðÞþ×÷")


def tex(text: str) -> str:
    """Escape text for LaTeX. What no default font has (other scripts, emoji) becomes ``[U+1F600]``."""
    out = []
    for character in text.replace("->", "→"):
        if character in SPECIAL:
            out.append(SPECIAL[character])
        elif " " <= character < "\x7f" or character in ACCENTED:
            out.append(character)
        else:
            out.append(f"{{[}}U+{ord(character):04X}{{]}}")
    return "".join(out)
