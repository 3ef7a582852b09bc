"""Counts of Tables 1 and 7, from what is in the files and not from what was asked for."""

from dataclasses import replace

from saber.benchmark import build_benchmark
from saber.published import lookup, published
from saber.statistics import attribute_counts, benchmark_row
from saber.vocabulary import load_vocabulary


def cells(frame):
    return dict(zip(frame["column"], frame["value"], strict=True))


def test_the_full_benchmark_has_the_papers_row():
    full = build_benchmark(load_vocabulary("full"), 2026, 200)
    paper = published(1)
    assert cells(benchmark_row(full, "ours")) == cells(paper[paper["row"] == "SABER (ours)"])


def test_what_is_not_there_is_not_counted():
    small = build_benchmark(load_vocabulary("known"), 1, 2, [2])
    items = {i: replace(item, image=None) for i, item in small.items.items()}
    row = cells(benchmark_row(replace(small, items=items), "text only"))
    assert row["T->T"] == "yes" and row["T->I"] == row["I->I"] == "no"
    assert row["# Bindings/Sample"] == "2" and row["# Eval. Samples"] == "2"
    assert 4 <= int(row["Object Vocab."]) <= 8


def test_attributes_are_counted_by_category():
    for row, value in attribute_counts(load_vocabulary("full"))[["row", "value"]].itertuples(index=False):
        assert value == lookup(7, row, "#")
    known = attribute_counts(load_vocabulary("known"))
    assert known["value"].iloc[-1] == 24 == known["value"].iloc[:-1].sum()
