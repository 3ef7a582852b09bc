"""The README.md beside a written benchmark: a dataset card with front matter for the `datasets` library."""

from collections import Counter

import yaml

from saber.items import Benchmark

_BODY = """\
# SABER: attribute-object binding, 4-way questions

{questions:,} questions with {candidates:,} candidates: {items:,} image-caption pairs, built after section 3
and appendix A of *Stuck on Shuffle: On Attribute-Object Binding in Vision-Language Models*. A question has a
query and four candidates; only `preserved` keeps what is bound to what.

{table}

`questions.jsonl`, one question a line:

- `id`; `n_objects`; `subset`, independent or nested; `chain`, null for independent questions
- `query`, an item id; `candidates`, four item ids: preserved, attribute_swap, object_swap, joint_swap

`items.jsonl`, one image-caption pair a line:

- `id`; `question`; `role`, query or one of the four above
- `pairs`, [attribute, object] in caption order; `text`, the caption
- `generation_text`, the caption with full appearances, and `appearances` themselves, one for each pair
- `image`, a path relative to the file; `seed` and `flipped`, with which the image is rendered

Rankings must not depend on the order in which candidates are listed. In gallery retrieval every query meets
all {candidates:,} candidates, and each one that contains all of the query's bindings is a positive.

```python
from datasets import load_dataset

items = load_dataset("json", data_files="items.jsonl", split="train")
```

`python -m saber.validate .` checks every rule of the construction on these files.
"""


def dataset_card(benchmark: Benchmark) -> str:
    """The card as text: what the files hold, their fields, and the counts per object count and subset."""
    counts = Counter((q.n_objects, q.subset) for q in benchmark.questions)
    rows = [
        f"| {n} | {counts[n, 'independent']} | {counts[n, 'nested']} |"
        for n in sorted({n for n, _ in counts})
    ]
    table = "\n".join(["| objects | independent questions | nested questions |", "|---|---|---|", *rows])
    sizes = {
        "questions": len(benchmark.questions),
        "candidates": sum(len(q.candidates) for q in benchmark.questions),
        "items": len(benchmark.items),
    }
    front = {
        "pretty_name": "SABER",
        "language": ["en"],
        "tags": ["attribute binding", "compositionality", "multiple choice", "retrieval"],
        "size_categories": [_size_category(sizes["items"])],
        "configs": [
            {"config_name": name, "data_files": f"{name}.jsonl", "default": name == "items"}
            for name in ("items", "questions")
        ],
        "counts": sizes,
    }
    header = yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
    return f"---\n{header}---\n\n" + _BODY.format(table=table, **sizes)


def _size_category(n: int) -> str:
    """The Hub's name for a number of rows."""
    bounds = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")]
    return next((name for bound, name in bounds if n < bound), "n>1M")
