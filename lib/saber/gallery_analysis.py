"""Section 5.1 beyond the tables: what fills the top of the ranking, and is containment understood?"""

import numpy as np
import pandas as pd

from saber.items import Benchmark
from saber.metrics.analyses import containment_comparisons, top_four_share
from saber.metrics.containment import exact_matches, proper_subsets, proper_supersets
from saber.metrics.intervals import bootstrap_ratio_interval, wilson_interval
from saber.metrics.retrieval import pair_scores, top_k
from saber.metrics.summary import MEAN
from saber.scoring import BenchmarkEmbeddings

TOP_FOUR = "own four fill the top four"


def analyse_gallery(
    embeddings: BenchmarkEmbeddings, benchmark: Benchmark, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """The analyses of section 5.1 for one model: columns row, column, value (percent), n, low, high, ties.

    Column names join analysis and pairing, such as "subset over exact T->I". "own four fill the top four" is
    over the independent queries, with Wilson intervals; the containment shares are over the comparisons of
    the nested queries (see :func:`saber.metrics.analyses.containment_comparisons`), with bootstrap intervals
    over chains. ``n`` counts queries and comparisons; an analysis without any is left out. A last row per
    analysis, pairing "Mean", averages over the pairings, as the paper reports it, without an interval.
    """
    questions = benchmark.questions
    independent = np.array([q.subset == "independent" for q in questions])
    nested = np.flatnonzero(~independent)
    query_sets = [benchmark.items[questions[i].query].pairs for i in nested]
    gallery_sets = [item.pairs for item in benchmark.gallery]
    finders = (exact_matches, proper_subsets, proper_supersets)
    related = [find(query_sets, gallery_sets) for find in finders] if len(nested) else []
    chains = [questions[i].chain for i in nested]
    rows = []
    for pairing in embeddings.pairings:
        queries, candidates = embeddings.pairing(pairing)
        gallery = candidates.reshape(-1, candidates.shape[-1])
        own = np.arange(len(gallery)).reshape(len(queries), -1)[independent]
        if independent.any():
            rows.append((TOP_FOUR, pairing, *_top_four(queries[independent], gallery, own)))
        if not len(nested):
            continue
        scores = [pair_scores(queries[nested], gallery, items) for items in related]
        for name, compared in containment_comparisons(*scores).items():
            if not compared.n:  # a chain of two steps has no query with both a subset and a superset
                continue
            low, high = bootstrap_ratio_interval(compared.wins, compared.counts, chains, n_resamples, seed)
            rows.append((name, pairing, compared.share, compared.n, low, high, compared.ties))
    frame = pd.DataFrame(rows, columns=["analysis", "pairing", "value", "n", "low", "high", "ties"])
    frame[["value", "low", "high"]] *= 100
    if len(embeddings.pairings) > 1:
        sums = {"value": "mean", "n": "sum", "ties": "sum"}
        mean = frame.groupby("analysis", sort=False).agg(sums).reset_index()
        frame = pd.concat([frame, mean.assign(pairing=MEAN)], ignore_index=True)
    return frame.assign(row=embeddings.model, column=frame["analysis"] + " " + frame["pairing"])


def _top_four(queries: np.ndarray, gallery: np.ndarray, own: np.ndarray) -> tuple:
    top_rows, top_scores = top_k(queries, gallery, own.shape[1] + 1)
    own_scores = np.stack(pair_scores(queries, gallery, list(own)))
    share = top_four_share(own, own_scores, top_rows, top_scores)
    low, high = wilson_interval(int(share.filled.sum()), share.n)
    return share.share, share.n, float(low), float(high), share.ties
