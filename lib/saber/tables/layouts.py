"""How each table of the paper is laid out: which columns, under which headings, in which blocks.

The names are the canonical column names of :mod:`saber.published`; a heading only decides how they are shown.
Captions are in our own words and say what the numbers are, not what the paper found.
"""

from dataclasses import dataclass

from saber.published import published


@dataclass(frozen=True)
class Column:
    """One column: its canonical name, its headings from the top down, and the block of rows it belongs to."""

    name: str
    header: tuple[str, ...]
    block: str = ""


@dataclass(frozen=True)
class Layout:
    """A table's form.

    Attributes:
        caption: one or two sentences, plain text.
        columns: in order. With blocks (Tables 17-19), each block repeats the same headings.
        row_header: heading of the row names.
        block_header: heading of the block names, empty without blocks.
        decimals: digits after the point.
        best_within: where best and second best are marked: "column", "row" (models in columns) or ""
        (nowhere).
    """

    caption: str
    columns: tuple[Column, ...]
    row_header: str = "Model"
    block_header: str = ""
    decimals: int = 1
    best_within: str = "column"


GROUPS = {"MCQ": "SABER-MCQ", "Independent": "Retrieval (independent)", "Nested": "Retrieval (nested)"}
GROUPS |= {"MMEB-v3": "MMEB-v3", "COCO": "NegBench COCO", "VOC": "NegBench VOC 2007"}
GROUPS_OF_TABLE_6 = {"I->I": "I->I", "T->I": "T->I"}

CAPTIONS = {
    1: "Attribute-binding benchmarks: modality pairings, protocol and size.",
    2: "SABER: accuracy on four-way questions (%) and mAP in the pooled gallery (%), over all object counts.",
    3: "Existing attribute-binding benchmarks: accuracy (%) by each benchmark's own protocol.",
    4: "MMEB-v3: Hit@1 (image, video, agent) and NDCG@5 (VisDoc, text), in %.",
    5: "NegBench: accuracy on multiple-choice questions (%) by the type of the correct statement.",
    6: "Instance retrieval: mAP (%).",
    7: "SABER's attributes by semantic category.",
    8: "Finetuning examples by construction type.",
    9: "Length in words of the paper's example of each construction type; the sentences stand in the paper.",
    10: "Triplet accuracy (%) on finetuning examples that were held out.",
    11: "Ablation of the finetuning data: SABER-MCQ accuracy (%) and MMEB-v3 (%).",
    12: "Ablation of LiNeS: SABER-MCQ accuracy (%) and MMEB-v3 (%).",
    13: "Ablation of the attention loss: SABER-MCQ accuracy (%) and MMEB-v3 (%).",
    14: "Other backbones before and after finetuning: SABER-MCQ accuracy (%) and MMEB-v3 (%).",
    15: "Finetuning on SABER's texts or on its images: SABER-MCQ accuracy (%) and MMEB-v3 (%).",
    16: "ILIAS within fine-grained classes: image-image mAP (%), mean over the classes of a category.",
    17: "SABER-MCQ accuracy (%) by number of objects.",
    18: "SABER retrieval on independent scenes: mAP (%) by number of objects.",
    19: "SABER retrieval on nested chains: mAP (%) by number of objects.",
    20: "Licences of data sets and models.",
}
ROW_HEADERS = {1: "Dataset", 3: "Dataset", 7: "Attribute category", 8: "Construction type", 9: "Example"}
ROW_HEADERS |= {10: "Dataset", 15: "Finetuning data", 20: "Name"}
UNMARKED = frozenset({1, 7, 8, 9, 20})  # counts and texts have no best


def layout_for(number: int) -> Layout:
    """The layout of one of the paper's tables: its columns, in its order.

    Raises:
        ValueError: the paper has no such table.
    """
    names = list(dict.fromkeys(published(number)["column"]))
    if number in (17, 18, 19):
        columns = [Column(name, (name.split(" ")[1],), block=name.split(" ")[0]) for name in names]
    else:
        groups = GROUPS_OF_TABLE_6 if number == 6 else GROUPS
        columns = [_column(name, groups) for name in names]
    return Layout(
        caption=CAPTIONS[number],
        columns=tuple(columns),
        row_header=ROW_HEADERS.get(number, "Model"),
        block_header="Pairing" if number in (17, 18, 19) else "",
        decimals=0 if number in (1, 7, 8) else 1,
        best_within="" if number in UNMARKED else "row" if number in (3, 10) else "column",
    )


def _column(name: str, groups: dict[str, str]) -> Column:
    group, _, rest = name.partition(" ")
    return Column(name, (groups[group], rest)) if rest and group in groups else Column(name, (name,))


def plain_layout(caption: str, columns: list[str], **options) -> Layout:
    """A layout for a table the paper does not have: one heading a column, named as it is."""
    return Layout(caption, tuple(Column(name, (name,)) for name in columns), **options)
