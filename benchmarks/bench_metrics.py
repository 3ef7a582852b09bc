"""Time and memory of the retrieval metrics, beside two libraries that compute the same numbers.

``python benchmarks/bench_metrics.py`` runs both parts, with ``compare`` or ``stream`` one; see README.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported: every figure below is for one core
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import numpy as np  # noqa: E402

from saber.metrics import containment_positives, cosine_scores, gallery_average_precision, top_k  # noqa: E402


def unit(rng, n, dim):
    vectors = rng.standard_normal((n, dim), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def timed(function, repeat=3):
    """The result, and the least processor time of several runs: what one undisturbed core needs."""
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        result = function()
        seconds.append(time.process_time() - start)
    return result, min(seconds)


def saber_like(rng, n_queries, n_candidates):
    """Binding sets: half of the queries stand alone, half form chains of 2 to 10; candidate 0 is right."""
    queries, gallery = [], []
    for i in range(n_queries):
        size = 2 + i % 9
        if i >= n_queries // 2 and size > 2:
            queries.append(queries[-1] | {(i, 0)})
        else:
            queries.append(frozenset((i, j) for j in range(size)))
        gallery.append(queries[-1])
        gallery += [
            frozenset((i, -candidate, j) for j in range(size)) for candidate in range(1, n_candidates)
        ]
    return queries, gallery


def with_ranx(scores, positives):
    """Full ranking by ranx, from its fastest input format. None when it is not installed."""
    try:
        import numba
        import ranx
    except ImportError:
        return None
    qrels = numba.typed.List(
        [np.array([[item, 1] for item in sorted(own)], dtype=np.float64) for own in positives]
    )

    def run():
        order = np.argsort(-scores, axis=1)
        ranking = np.stack([order.astype(np.float64), np.take_along_axis(scores, order, axis=1)], axis=2)
        return ranx.evaluate(qrels, ranking, "map", return_mean=False, threads=1)

    return run


def with_pytrec_eval(scores, positives):
    """Full ranking by trec_eval, one query at a time so that its dictionaries fit in memory."""
    try:
        import pytrec_eval
    except ImportError:
        return None
    names = [str(j) for j in range(scores.shape[1])]

    def run():
        results = []
        for own, row in zip(positives, scores, strict=True):
            evaluator = pytrec_eval.RelevanceEvaluator({"q": {names[j]: 1 for j in own}}, {"map"})
            results.append(evaluator.evaluate({"q": dict(zip(names, row.tolist(), strict=True))})["q"]["map"])
        return np.array(results)

    return run


def compare(args):
    """Average precision of all queries, ours and the libraries', from the same embeddings in one process."""
    rng = np.random.default_rng(0)
    query_sets, gallery_sets = saber_like(rng, args.queries, 4)
    positives, seconds = timed(lambda: containment_positives(query_sets, gallery_sets))
    print(f"{args.queries:,} queries x {len(gallery_sets):,} candidates, dimension {args.dim}, one core")
    print(f"containment positives (mean {np.mean([p.size for p in positives]):.2f} a query): {seconds:.3f} s")
    queries, gallery = unit(rng, args.queries, args.dim), unit(rng, len(gallery_sets), args.dim)
    for i, own in enumerate(positives):  # a model of some skill: positives lie nearer
        gallery[own] += 0.08 * queries[i]
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    ours, our_seconds = timed(lambda: gallery_average_precision(queries, gallery, positives))
    print(f"saber, from embeddings to average precision: {our_seconds:.3f} s, mAP {100 * ours.mean():.2f} %")
    _, seconds = timed(lambda: top_k(queries, gallery, 5))
    print(f"saber, top 5: {seconds:.3f} s")
    scores, matrix_seconds = timed(lambda: cosine_scores(queries, gallery))
    print(f"the matrix of cosines alone: {matrix_seconds:.3f} s; the libraries below start from it")
    for name, prepare, repeat in (("ranx", with_ranx, 3), ("pytrec_eval", with_pytrec_eval, 1)):
        run = prepare(scores, positives)
        if run is None:
            print(f"{name}: not installed, left out")
            continue
        if name == "ranx":
            run()  # compiles on first use
        theirs, seconds = timed(run, repeat)
        total = matrix_seconds + seconds
        print(
            f"{name}: {seconds:.3f} s, with the cosines {total:.3f} s = {total / our_seconds:.1f} x saber; "
            f"largest difference of an average precision {np.max(np.abs(theirs - ours)):.1e}"
        )


def stream(args):
    """A large gallery from disk: time, and the highest resident memory of the process."""
    import resource

    rng = np.random.default_rng(1)
    queries = unit(rng, args.stream_queries, args.dim)
    positives = [rng.choice(args.items, 1 + i % 9, replace=False) for i in range(len(queries))]
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "gallery.f32"
        with path.open("wb") as file:
            for first in range(0, args.items, 10_000):
                unit(rng, min(10_000, args.items - first), args.dim).tofile(file)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        gallery = np.memmap(path, np.float32, "r", shape=(args.items, args.dim))
        size = gallery.nbytes / 2**30
        print(f"{len(queries):,} queries x {args.items:,} items on disk ({size:.2f} GiB), one core")
        for name, function in (
            ("average precision", lambda: gallery_average_precision(queries, gallery, positives)),
            ("top 10", lambda: top_k(queries, gallery, 10)),
        ):
            _, seconds = timed(function, repeat=1)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(f"{name}: {seconds:.1f} s, peak resident memory {peak:.2f} GiB (before: {before:.2f} GiB)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["all", "compare", "stream"], default="all")
    parser.add_argument(
        "--queries", type=int, default=1800, help="queries of the comparison, four candidates each"
    )
    parser.add_argument("--dim", type=int, default=512, help="dimension of the embeddings")
    parser.add_argument("--items", type=int, default=1_000_000, help="items of the streamed gallery")
    parser.add_argument("--stream-queries", type=int, default=200, help="queries of the streamed gallery")
    parser.add_argument(
        "--folder", help="where the streamed gallery is written (a temporary folder by default)"
    )
    args = parser.parse_args()
    if args.part == "all":
        # A process of its own, started while this one is small: a child inherits the peak of its parent.
        options = [word for word in sys.argv[1:] if word != "all"]
        subprocess.run([sys.executable, __file__, "stream", *options], check=True)
        print()
    if args.part == "stream":
        stream(args)
    else:
        compare(args)


if __name__ == "__main__":
    main()
