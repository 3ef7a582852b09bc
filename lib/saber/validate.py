"""Check every structural rule of sections A.2 to A.5 on a SABER folder, ours or anyone's.

``python -m saber.validate DIR`` prints the violations by rule and exits with 1 when there are any.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from saber.benchmark import SUBSETS, Benchmark
from saber.benchmark_files import read_unchecked
from saber.rules import RULES, check_question, looks_of, repeated, show
from saber.scenes import bindings
from saber.vocabulary import Vocabulary, appearances, load_vocabulary

SHOWN = 5
SCORING = (  # without these an answer would be counted as right or wrong that is not
    *("item-missing", "item-place", "object-count", "distinct-objects", "distinct-attributes"),
    *("candidate-1-preserves", "unique-answer", "chain-named", "image-shared"),
)


@dataclass(frozen=True)
class Violation:
    """A broken rule; ``question`` is an id, or "" where the whole benchmark is meant."""

    rule: str
    question: str
    message: str

    def __str__(self) -> str:
        return f"{self.question}: {self.message}" if self.question else self.message


def violations(
    benchmark: Benchmark | Path | str, vocabulary: Vocabulary | None = None, images: bool = True
) -> list[Violation]:
    """All violations of ``RULES``, in the order of the questions; [] for a valid benchmark.

    benchmark: in memory, or the folder of one. vocabulary: check names and appearances against it.
    images: look for the image files (where the benchmark has a folder); False before they are made.
    """
    if not isinstance(benchmark, Benchmark):
        try:
            benchmark = read_unchecked(benchmark)
        except (ValueError, OSError) as error:
            return [Violation("file-format", "", str(error))]
    found = []
    for question in benchmark.questions:
        found += [
            Violation(rule, question.id, text) for rule, text in check_question(question, benchmark.items)
        ]
    if vocabulary is not None:
        found += _vocabulary(benchmark, vocabulary)
    found += _items(benchmark)
    found += _images(benchmark, look=images and benchmark.folder is not None)
    found += _chains(benchmark)
    found += _counts(benchmark)
    return found


def check_benchmark(benchmark: Benchmark, rules: Sequence[str] = tuple(RULES), images: bool = True) -> None:
    """Raise ValueError with the first violations of ``rules``, by default of all; see :func:`violations`."""
    found = [v for v in violations(benchmark, images=images) if v.rule in rules]
    if found:
        shown = "\n".join(f"  {v.rule}: {v}" for v in found[:SHOWN])
        more = f"\n  ... and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise ValueError(
            f"{benchmark.folder or 'the benchmark'} breaks rules of SABER, {len(found)} times "
            f"(python -m saber.validate FOLDER lists all):\n{shown}{more}"
        )


def _vocabulary(benchmark: Benchmark, vocabulary: Vocabulary) -> Iterator[Violation]:
    objects = {o.name for o in vocabulary.objects}
    forms = {a.name: set(appearances(a, vocabulary.palette)) for a in vocabulary.attributes}
    for item in benchmark.items.values():
        for what, names, known in (("attribute", 0, forms), ("object", 1, objects)):
            for name in sorted({p[names] for p in item.pairs} - set(known)):
                yield Violation(f"unknown-{what}", item.question, f"{item.id}: {name!r}")
        for (attribute, _), look in zip(item.pairs, looks_of(item), strict=False):
            if attribute in forms and look not in forms[attribute]:
                yield Violation("unknown-appearance", item.question, f"{item.id}: {look!r} for {attribute!r}")


def _items(benchmark: Benchmark) -> Iterator[Violation]:
    used = {i for q in benchmark.questions for i in (q.query, *q.candidates)}
    for item in benchmark.items.values():
        if item.id not in used:
            yield Violation("item-unused", item.question, f"no question uses item {item.id}")


def _images(benchmark: Benchmark, look: bool) -> Iterator[Violation]:
    if all(item.image is None for item in benchmark.items.values()):
        return
    owner: dict[str, str] = {}
    for item in benchmark.items.values():
        if item.image is None:
            yield Violation("image-missing", item.question, f"{item.id} names no image, others do")
            continue
        if item.image in owner:
            text = f"{item.id} has the image of {owner[item.image]}, {item.image}"
            yield Violation("image-shared", item.question, text)
        owner.setdefault(item.image, item.id)
        path = look and benchmark.image_path(item)
        if path and not (path.is_file() and path.stat().st_size):
            yield Violation("image-missing", item.question, f"{item.id}: {item.image} is missing or empty")


def _chains(benchmark: Benchmark) -> Iterator[Violation]:
    chains = defaultdict(list)
    for question in benchmark.questions:
        if (question.subset == "nested") != (question.chain is not None):
            yield Violation("chain-named", question.id, f"{question.subset}, chain {question.chain!r}")
        elif question.chain is not None:
            chains[question.chain].append(question)
    counts = sorted({q.n_objects for steps in chains.values() for q in steps})
    for chain, steps in chains.items():
        steps.sort(key=lambda q: q.n_objects)
        own = [q.n_objects for q in steps]
        if own != counts:
            text = f"chain {chain} has steps of {_numbers(own)} objects; expected {_numbers(counts)}"
            yield Violation("chain-contiguous", steps[0].id, text)
        for before, after in pairwise(steps):
            scenes = [benchmark.items.get(q.query) for q in (before, after)]
            if None in scenes or any(repeated(x) for s in scenes for x in zip(*s.pairs, strict=True)):
                continue  # reported already
            lost = bindings(scenes[0].pairs) - bindings(scenes[1].pairs)
            if lost:
                yield Violation("chain-adds-one-binding", after.id, f"lost {show(lost)} of {before.id}")


def _counts(benchmark: Benchmark) -> Iterator[Violation]:
    found = Counter((q.n_objects, q.subset) for q in benchmark.questions)
    each = max(found.values(), default=0)
    for n in sorted({q.n_objects for q in benchmark.questions}):
        if any(found[n, subset] != each for subset in SUBSETS):
            has = " and ".join(f"{found[n, subset]} {subset}" for subset in SUBSETS)
            yield Violation("counts", "", f"{has} questions of {n} objects; expected {each} of each")


def _numbers(values) -> str:
    return ", ".join(map(str, values)) or "no"


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code: 0 for a valid benchmark, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m saber.validate", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="holds questions.jsonl and items.jsonl")
    parser.add_argument(
        "--vocabulary", choices=("full", "known", "none"), default="none", help="check names (none)"
    )
    parser.add_argument("--no-images", action="store_true", help="do not look for the image files")
    parser.add_argument("--all", action="store_true", help="print every violation, not three of each rule")
    options = parser.parse_args(argv)
    vocabulary = None if options.vocabulary == "none" else load_vocabulary(options.vocabulary)
    found = violations(options.folder, vocabulary, images=not options.no_images)
    by_rule = defaultdict(list)
    for violation in found:
        by_rule[violation.rule].append(violation)
    for rule in [r for r in RULES if r in by_rule]:
        print(f"{rule}: {len(by_rule[rule])} - {RULES[rule]}")
        shown = by_rule[rule] if options.all else by_rule[rule][:3]
        print("".join(f"  {v}\n" for v in shown), end="")
    print(f"{options.folder}: {len(found) or 'no'} violation{'s' * (len(found) != 1)} of {len(RULES)} rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
