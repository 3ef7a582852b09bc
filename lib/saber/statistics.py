"""What a benchmark holds, counted from its questions and items: the SABER row of Table 1, and Table 7."""

from collections import Counter

import pandas as pd

from saber.items import PAIRINGS, Benchmark
from saber.vocabulary import CATEGORIES, Vocabulary

TOTAL = "Total"


def benchmark_row(benchmark: Benchmark, row: str) -> pd.DataFrame:
    """The cells of Table 1 for one benchmark, counted from the files: columns row, column, value (text).

    A pairing is there when queries and candidates exist in its two modalities; vocabularies are the objects
    and attributes that occur in some item.
    """
    items = list(benchmark.items.values())
    has_image = all(item.image is not None for item in items)
    sizes = sorted({question.n_objects for question in benchmark.questions})
    cells = {pairing: "yes" if has_image or "I" not in pairing else "no" for pairing in PAIRINGS}
    cells |= {
        "MCQ": "yes" if benchmark.questions else "no",
        "Retrieval": "yes" if benchmark.gallery else "no",
        "# Eval. Samples": str(len(benchmark.questions)),
        "Object Vocab.": str(len({o for item in items for _, o in item.pairs})),
        "Attribute Vocab.": str(len({a for item in items for a, _ in item.pairs})),
        "# Bindings/Sample": str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]}-{sizes[-1]}",
    }
    return pd.DataFrame({"row": row, "column": list(cells), "value": list(cells.values())})


def attribute_counts(vocabulary: Vocabulary) -> pd.DataFrame:
    """Table 7: number of attributes per semantic category and in total; columns row, column, value."""
    counts = Counter(attribute.category for attribute in vocabulary.attributes)
    rows = {category.capitalize(): counts[category] for category in CATEGORIES}
    rows[TOTAL] = sum(counts.values())
    return pd.DataFrame({"row": list(rows), "column": "#", "value": list(rows.values())})
