"""Planted embeddings with known right answers, through the whole way to the cells of the tables."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

from saber.benchmark import build_benchmark
from saber.embedders import ModelUnavailable
from saber.embedders.chance import expected_ap
from saber.evaluation import (
    chance_results,
    compare_models,
    embed_models,
    positives,
    saber_tables,
    score_model,
    score_models,
)
from saber.scoring import PAIRINGS, BenchmarkEmbeddings
from saber.store import EmbeddingStore
from saber.vocabulary import load_vocabulary

N_PER_COUNT = 6


@pytest.fixture(scope="module")
def benchmark():
    return build_benchmark(load_vocabulary("known"), 5, N_PER_COUNT, [2, 3, 4])


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def planted(benchmark, name, vector_of, absent=None):
    """Embeddings in which an item's vector is ``vector_of(item)`` in both modalities."""
    queries = unit([vector_of(i) for i in benchmark.queries])
    candidates = unit([vector_of(i) for i in benchmark.gallery]).reshape(len(queries), 4, -1)
    return BenchmarkEmbeddings(
        name, "f" * 64, {m: (queries, candidates) for m in ("text", "image")}, absent or {}
    )


@pytest.fixture(scope="module")
def binder(benchmark):
    """A model that sees bindings: one dimension a binding."""
    columns = {
        pair: k for k, pair in enumerate(sorted({p for i in benchmark.items.values() for p in i.pairs}))
    }

    def vector(item):
        row = np.zeros(len(columns))
        row[[columns[p] for p in item.pairs]] = 1
        return row

    return planted(benchmark, "binder", vector)


@pytest.fixture(scope="module")
def bag(benchmark):
    """A model that sees words only: one dimension a word."""
    columns = {
        w: k for k, w in enumerate(sorted({w for i in benchmark.items.values() for p in i.pairs for w in p}))
    }

    def vector(item):
        row = np.zeros(len(columns))
        row[[columns[w] for p in item.pairs for w in p]] = 1
        return row

    return planted(benchmark, "bag", vector)


def test_a_model_that_sees_bindings_is_right_everywhere(benchmark, binder):
    results = score_model(binder, benchmark)
    assert len(results) == 4 * len(benchmark.questions)
    assert (results["credit"] == 1).all() and not results["tied"].any()
    assert (results.loc[results["subset"] == "independent", "ap"] == 1).all()


def test_a_bag_of_words_earns_a_quarter_and_a_third_at_two_objects(benchmark, bag):
    credit = score_model(bag, benchmark).groupby("n_objects")["credit"].mean()
    assert credit.to_dict() == pytest.approx({2: 1 / 3, 3: 1 / 4, 4: 1 / 4})


def test_average_precision_is_that_of_the_whole_gallery(benchmark, bag):
    queries, candidates = bag.pairing("T->I")
    scores = queries.astype(np.float64) @ candidates.reshape(-1, candidates.shape[-1]).T.astype(np.float64)
    ours = score_model(bag, benchmark).query("pairing == 'T->I'")["ap"].to_numpy()
    for row, ap, query in zip(scores.round(6), ours, benchmark.queries, strict=True):
        relevant = [set(query.pairs) <= set(item.pairs) for item in benchmark.gallery]
        assert ap == pytest.approx(average_precision_score(relevant, row), abs=1e-9)


def test_later_scenes_of_a_chain_are_positives_of_earlier_queries(benchmark):
    found = dict(zip(benchmark.questions, (len(r) for r in positives(benchmark)), strict=True))
    for question, n in found.items():
        assert n >= (5 - question.n_objects if question.subset == "nested" else 1)


def test_tables_hold_the_means_of_the_questions(benchmark, binder, bag):
    results = pd.concat(
        [score_model(binder, benchmark), score_model(bag, benchmark), chance_results(benchmark)]
    )
    tables = saber_tables(results, reference=["chance"], n_resamples=200)
    cells = {n: t.set_index(["row", "column"]) for n, t in tables.items()}
    assert list(tables) == [2, 17, 18, 19]
    assert cells[2].loc[("bag", "MCQ T->T"), "value"] == pytest.approx(100 * (1 / 3 + 1 / 4 + 1 / 4) / 3)
    assert cells[2].loc[("bag", "MCQ Mean"), "value"] == pytest.approx(
        cells[2].loc[("bag", "MCQ T->T"), "value"]
    )
    assert cells[17].loc[("binder", "I->T 3"), ["value", "n"]].tolist() == [100, N_PER_COUNT]
    assert cells[18].loc[("binder", "T->T 2"), "n"] == N_PER_COUNT / 2
    chosen = results.query("model == 'bag' and subset == 'nested' and n_objects == 3 and pairing == 'I->I'")
    assert cells[19].loc[("bag", "I->I 3"), "value"] == pytest.approx(100 * chosen["ap"].mean())


def test_every_measured_cell_has_n_and_an_interval_and_chance_has_none(benchmark, bag):
    results = pd.concat([score_model(bag, benchmark), chance_results(benchmark)])
    for table in saber_tables(results, reference=["chance"], n_resamples=200).values():
        measured = table[table["row"] == "bag"]
        assert measured["n"].notna().all()
        assert (measured["low"] <= measured["value"] + 1e-9).all() and (
            measured["value"] <= measured["high"] + 1e-9
        ).all()
        assert table.loc[table["row"] == "chance", ["low", "high"]].isna().all(axis=None)


def test_a_missing_modality_gives_empty_cells_not_zeros(benchmark, binder):
    absent = {p: "text only" for p in PAIRINGS if p != "T->T"}
    text_only = BenchmarkEmbeddings("text", "f" * 64, binder.vectors, absent)
    results = pd.concat([score_model(text_only, benchmark), score_model(binder, benchmark)])
    table_2 = saber_tables(results, n_resamples=50)[2].set_index(["row", "column"])["value"]
    assert table_2[("text", "MCQ T->T")] == 100
    assert np.isnan(table_2[("text", "MCQ T->I")]) and np.isnan(table_2[("text", "MCQ Mean")])


def test_chance_is_a_quarter_and_the_expectation_of_a_random_ranking(benchmark):
    results = chance_results(benchmark)
    assert (results["credit"] == 0.25).all()
    n = [len(r) for r in positives(benchmark)]
    assert (
        results.query("pairing == 'I->I'")["ap"].tolist() == expected_ap(len(benchmark.gallery), n).tolist()
    )


def test_unknown_models_are_refused_before_anything_is_embedded(benchmark, tmp_path):
    with pytest.raises(KeyError, match="no-such-model"):
        embed_models(["bag-of-words", "no-such-model"], benchmark, EmbeddingStore(tmp_path))
    assert not any(tmp_path.iterdir())


def test_a_model_without_weights_is_a_reason_and_the_others_run(benchmark, tmp_path, monkeypatch):
    import saber.evaluation as evaluation

    def load(name, device, registry):
        if name == "mini-clip":
            raise ModelUnavailable("weights are not here")
        return original(name, device, registry)

    original = evaluation.load_embedder
    monkeypatch.setattr(evaluation, "load_embedder", load)
    names = ["mini-clip", "bag-of-words", "chance"]
    embeddings, unavailable = embed_models(names, benchmark, EmbeddingStore(tmp_path))
    assert list(embeddings) == ["bag-of-words"] and unavailable == {"mini-clip": "weights are not here"}


@pytest.mark.parametrize("names", [[], "mini-clip", ["bag-of-words", "bag-of-words"]])
def test_a_list_of_models_that_makes_no_sense_is_refused(benchmark, tmp_path, names):
    with pytest.raises(ValueError, match="different names"):
        embed_models(names, benchmark, EmbeddingStore(tmp_path))


def test_chance_alone_is_nothing_to_score(benchmark):
    with pytest.raises(ValueError, match="embeds anything"):
        score_models({}, benchmark, ["chance"])


def test_models_are_compared_on_the_same_questions(benchmark, binder, bag):
    results = score_models({"binder": binder, "bag-of-words": bag}, benchmark, ["bag-of-words", "binder"])
    table = compare_models(results, "I->T", n_resamples=200)
    assert table[["a", "b"]].values.tolist() == [["bag", "binder"]]
    credit = results.query("pairing == 'I->T'").groupby("model")["credit"].mean()
    assert table["difference"][0] == pytest.approx(100 * (credit["bag"] - credit["binder"]))
    assert compare_models(score_model(bag, benchmark), "T->T").empty


def test_a_benchmark_of_independent_questions_has_no_nested_table(benchmark, bag):
    results = score_model(bag, benchmark).query("subset == 'independent'")
    tables = saber_tables(results, n_resamples=50)
    assert list(tables) == [2, 17, 18] and not tables[2]["column"].str.startswith("Nested").any()


def test_a_text_only_benchmark_is_scored_on_its_texts(benchmark, tmp_path):
    items = {i: replace(item, image=None) for i, item in benchmark.items.items()}
    text_only = replace(benchmark, items=items)
    embeddings, _ = embed_models(["bag-of-words"], text_only, EmbeddingStore(tmp_path))
    assert embeddings["bag-of-words"].pairings == ("T->T",)
