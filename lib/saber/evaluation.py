"""From embeddings to results per question, and from those to the rows of Tables 2, 17, 18 and 19.

Scores are cosines (section 5.1). A question earns credit in the four-way choice, and its query an average
precision over the whole gallery, where every candidate that holds all of the query's bindings is a positive.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from saber.embedders import ModelUnavailable, load_embedder, load_registry
from saber.embedders.chance import expected_ap, expected_mcq_credit
from saber.items import PAIRINGS, Benchmark
from saber.machine import all_cores
from saber.metrics.compare import compare_all
from saber.metrics.containment import containment_positives
from saber.metrics.mcq import mcq_credit, question_scores, tied_questions
from saber.metrics.retrieval import gallery_average_precision
from saber.metrics.summary import MEAN, accuracy_by_count, map_by_count
from saber.scoring import BenchmarkEmbeddings, embed_benchmark
from saber.store import EmbeddingStore

SUBSETS = {"Independent": "independent", "Nested": "nested"}  # column name of Table 2 -> subset
TABLES = {17: ("credit", None), 18: ("ap", "independent"), 19: ("ap", "nested")}  # what, in which subset
RESULT_COLUMNS = ["question", "n_objects", "subset", "chain", "model", "pairing", "credit", "tied", "ap"]


def embed_models(
    names: Sequence[str],
    benchmark: Benchmark,
    store: EmbeddingStore,
    *,
    device: str = "auto",
    batch_size: int = 64,
    profile: str | None = None,
) -> tuple[dict[str, BenchmarkEmbeddings], dict[str, str]]:
    """Embed the benchmark with every model of the list that embeds.

    profile: whose notebooks made the models that are made by notebooks.

    Returns the embeddings by model, in the order of ``names``, and for models whose weights cannot be had the
    reason in words: the others are scored all the same. An unknown name raises KeyError, a list with nothing
    in it or a name given twice ValueError, before anything runs.
    """
    registry = load_registry(profile=profile)
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise ValueError(f"models must be a list of one or more different names, not {names!r}")
    unknown = [name for name in names if name not in registry]
    if unknown:
        raise KeyError(f"params/models.yaml has no model {unknown[0]!r}; it has {', '.join(registry)}")
    embeddings, unavailable = {}, {}
    for name in names:
        if registry[name].loader == "chance":
            continue
        try:
            embedder = load_embedder(name, device, registry)
            sizes = min([batch_size, *registry[name].batch_size.values()])
            with all_cores():
                embeddings[name] = embed_benchmark(embedder, benchmark, store, batch_size=sizes)
        except ModelUnavailable as error:
            unavailable[name] = str(error)
    return embeddings, unavailable


def score_models(
    embeddings: Mapping[str, BenchmarkEmbeddings], benchmark: Benchmark, names: Sequence[str]
) -> pd.DataFrame:
    """Rows of :func:`score_model` for all models of ``names`` that were embedded, and of the chance row.

    Raises ValueError when none was: there is nothing to score.
    """
    registry = load_registry()
    frames = [score_model(embeddings[name], benchmark) for name in names if name in embeddings]
    if not frames:
        raise ValueError(
            f"no model of {list(names)} embeds anything here: name one whose weights are at hand"
        )
    chance = [name for name in names if name in registry and registry[name].loader == "chance"]
    frames += [chance_results(benchmark, name) for name in chance]
    return pd.concat(frames, ignore_index=True)


def positives(benchmark: Benchmark) -> list[np.ndarray]:
    """Per query the gallery rows that hold all of its bindings, over the whole gallery (section 3)."""
    return containment_positives([i.pairs for i in benchmark.queries], [i.pairs for i in benchmark.gallery])


def score_model(embeddings: BenchmarkEmbeddings, benchmark: Benchmark) -> pd.DataFrame:
    """Results of one model, one row per pairing and question.

    Columns: model, pairing, question, n_objects, subset, chain (None for independent questions), credit in
    [0, 1] of the four-way choice (ties share it), tied (did a tie decide), ap in (0, 1] over the gallery.
    """
    relevant = positives(benchmark)
    frames = []
    for pairing in embeddings.pairings:
        queries, candidates = embeddings.pairing(pairing)  # (q, d), (q, 4, d)
        scores = question_scores(queries, candidates)
        gallery = candidates.reshape(-1, candidates.shape[-1])
        frames.append(
            _questions(benchmark).assign(
                model=embeddings.model,
                pairing=pairing,
                credit=mcq_credit(scores),
                tied=tied_questions(scores),
                ap=gallery_average_precision(queries, gallery, relevant),
            )
        )
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=RESULT_COLUMNS)


def chance_results(benchmark: Benchmark, name: str = "chance") -> pd.DataFrame:
    """What a random ranking is expected to earn, in the form of :func:`score_model`, for all pairings."""
    counts = np.array([len(rows) for rows in positives(benchmark)])
    ap = expected_ap(len(benchmark.gallery), counts)
    frames = [
        _questions(benchmark).assign(
            model=name, pairing=pairing, credit=expected_mcq_credit(), tied=False, ap=ap
        )
        for pairing in PAIRINGS
    ]
    return pd.concat(frames, ignore_index=True)


def saber_tables(
    results: pd.DataFrame, *, reference: Sequence[str] = (), n_resamples: int = 10_000, seed: int = 0
) -> dict[int, pd.DataFrame]:
    """The measured cells of Tables 2, 17, 18 and 19: columns row, column, value (percent), n, low, high.

    ``results`` are rows of :func:`score_model`, of any number of models. A pairing that a model lacks gives
    cells without a value. Rows of ``reference`` models are expectations and carry no interval. A table of
    which no question exists (a benchmark without nested chains) is left out.
    """
    tables = {}
    for table, (kind, subset) in TABLES.items():
        chosen = results if subset is None else results[results["subset"] == subset]
        if len(chosen):
            tables[table] = _by_count(chosen, kind, n_resamples, seed)
    parts = [_by_pairing(results, "MCQ", "credit", n_resamples, seed)]
    for group, subset in SUBSETS.items():
        chosen = results[results["subset"] == subset]
        if len(chosen):
            parts.append(_by_pairing(chosen, group, "ap", n_resamples, seed))
    tables[2] = pd.concat(parts, ignore_index=True)
    for frame in tables.values():
        frame.loc[frame["row"].isin(reference), ["low", "high"]] = np.nan
    return dict(sorted(tables.items()))


def compare_models(
    results: pd.DataFrame, pairing: str, n_resamples: int = 9_999, seed: int = 0
) -> pd.DataFrame:
    """All pairs of models that have the pairing, on the same questions, differences in percentage points.

    Columns as in :func:`saber.metrics.compare.compare_all`; no rows when fewer than two models have it.
    """
    chosen = results[results["pairing"] == pairing]
    names = list(dict.fromkeys(chosen["model"]))
    if len(names) < 2:
        return pd.DataFrame(columns=["a", "b", "difference", "low", "high", "p_value", "p_holm"])
    wide = chosen.pivot(index="question", columns="model", values="credit")
    chains = chosen.drop_duplicates("question").set_index("question").loc[wide.index, "chain"]
    clusters = [None if pd.isna(chain) else chain for chain in chains]
    credits = {name: wide[name].to_numpy() for name in names}
    table = compare_all(credits, "accuracy", clusters, n_resamples=n_resamples, seed=seed)
    return table.assign(**{name: 100 * table[name] for name in ("difference", "low", "high")})


def _questions(benchmark: Benchmark) -> pd.DataFrame:
    columns = ("id", "n_objects", "subset", "chain")
    frame = pd.DataFrame([[getattr(q, c) for c in columns] for q in benchmark.questions], columns=columns)
    return frame.rename(columns={"id": "question"})


def _summary(values: pd.DataFrame, kind: str, n_resamples: int, seed: int) -> pd.DataFrame:
    """Summary by object count of one pairing, or of several averaged question by question."""
    wide = values.pivot(index="question", columns="pairing", values=kind)
    facts = values.drop_duplicates("question").set_index("question").loc[wide.index]
    array = wide.to_numpy()
    array = array[:, 0] if array.shape[1] == 1 else array
    clusters = [None if pd.isna(chain) else chain for chain in facts["chain"]]
    counts = facts["n_objects"].to_numpy()
    if kind == "credit":
        return accuracy_by_count(array, counts, clusters)
    return map_by_count(array, counts, clusters, n_resamples, seed)


def _by_count(results: pd.DataFrame, kind: str, n_resamples: int, seed: int) -> pd.DataFrame:
    counts = [str(n) for n in sorted(results["n_objects"].unique())]
    frames = []
    for model, own in results.groupby("model", sort=False):
        for pairing in PAIRINGS:
            chosen = own[own["pairing"] == pairing]
            if len(chosen):
                part = _summary(chosen, kind, n_resamples, seed)
            else:
                part = pd.DataFrame({"n_objects": [*counts, MEAN]})
            frames.append(part.assign(row=model, column=pairing + " " + part["n_objects"]))
    return _frame(frames)


def _by_pairing(results: pd.DataFrame, group: str, kind: str, n_resamples: int, seed: int) -> pd.DataFrame:
    frames = []
    for model, own in results.groupby("model", sort=False):
        for pairing in (*PAIRINGS, MEAN):
            chosen = own if pairing == MEAN else own[own["pairing"] == pairing]
            # the mean over pairings is that of all four, or none
            if len(chosen) and (pairing != MEAN or own["pairing"].nunique() == len(PAIRINGS)):
                part = _summary(chosen, kind, n_resamples, seed)
                part = part[part["n_objects"] == MEAN]
            else:
                part = pd.DataFrame({"n_objects": [MEAN]})
            frames.append(part.assign(row=model, column=f"{group} {pairing}"))
    return _frame(frames)


def _frame(frames: list[pd.DataFrame]) -> pd.DataFrame:
    columns = ["row", "column", "value", "n", "low", "high"]
    frames = [
        f.reindex(columns=columns).astype({"value": float, "low": float, "high": float}) for f in frames
    ]
    return pd.concat([f.astype({"n": "Int64"}) for f in frames], ignore_index=True)
