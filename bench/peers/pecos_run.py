"""Trains and measures PECOS XR-Linear on npz matrices and prints one JSON object. Needs an installed `pecos`
(PYTHONPATH decides which); contains nothing of it. Training and predicting each run in a fresh process, so that the
peak memory of one does not hide in the other. Times are in seconds and microseconds, memory and disk in MB."""

import argparse
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="folder with X.trn.npz, Y.trn.npz, X.tst.npz, Y.tst.npz")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--unit", action="store_true", help="give rows Euclidean length one first")
    parser.add_argument("--branching", type=int, default=16)
    parser.add_argument("--leaf-size", type=int, default=100, help="labels per leaf at most")
    parser.add_argument("--negatives", default="tfn", help="tfn, man or tfn+man")
    parser.add_argument("--cost-positive", type=float, default=1.0)
    parser.add_argument("--cost-negative", type=float, default=1.0)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--threshold", type=float, default=0.1)
    parser.add_argument("--bias", type=float, default=1.0)
    parser.add_argument("--post-processor", default="l3-hinge")
    parser.add_argument("--beam", type=int, default=10)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--lookup", default="BINARY_SEARCH_CHUNKED", help="or HASH_CHUNKED, CSC")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batches", type=int, default=7, help="how often the whole test set is predicted")
    parser.add_argument("--singles", type=int, default=1000, help="how many one-row calls at most")
    return parser.parse_args()


class Stopwatch:
    """Seconds of named steps, and the processor time of all of them."""

    def __init__(self):
        self.seconds = {}
        self.started = time.process_time()

    def step(self, name, work):
        start = time.perf_counter()
        result = work()
        self.seconds[name] = time.perf_counter() - start
        return result

    def total(self):
        return {**self.seconds, "total": sum(self.seconds.values()), "cpu": time.process_time() - self.started}


def read(args, part):
    import numpy
    import scipy.sparse
    from sklearn.preprocessing import normalize

    x = scipy.sparse.load_npz(f"{args.data}/X.{part}.npz").tocsr().astype(numpy.float32)
    y = scipy.sparse.load_npz(f"{args.data}/Y.{part}.npz").tocsr().astype(numpy.float32)
    x.sort_indices()
    return (normalize(x).astype(numpy.float32) if args.unit else x), y


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def disk_mb(folder):
    sizes = (os.path.getsize(os.path.join(path, f)) for path, _, files in os.walk(folder) for f in files)
    return sum(sizes) / 2**20


def train(args, folder):
    import logging

    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear import XLinearModel

    logging.disable(logging.CRITICAL)
    x, y = read(args, "trn")
    watch = Stopwatch()
    label_features = watch.step(
        "labelFeatures",
        lambda: LabelEmbeddingFactory.create(y, x, method="pifa", threads=args.threads),
    )
    clusters = watch.step(
        "clustering",
        lambda: Indexer.gen(
            label_features,
            nr_splits=args.branching,
            max_leaf_size=args.leaf_size,
            seed=args.seed,
            threads=args.threads,
        ),
    )
    model = watch.step(
        "solving",
        lambda: XLinearModel.train(
            x,
            y.tocsc(),
            C=clusters,
            nr_splits=args.branching,
            negative_sampling_scheme=args.negatives,
            Cp=args.cost_positive,
            Cn=args.cost_negative,
            eps=args.epsilon,
            max_iter=args.iterations,
            threshold=args.threshold,
            bias=args.bias,
            threads=args.threads,
            pred_kwargs={
                "beam_size": args.beam,
                "only_topk": args.top,
                "post_processor": args.post_processor,
            },
        ),
    )
    watch.step("saving", lambda: model.save(folder))
    return {"train": watch.total(), "trainPeakMB": peak_mb(), "modelMB": disk_mb(folder)}


def predict(args, folder):
    from pecos.xmc.xlinear import XLinearModel

    x, y = read(args, "tst")
    model = XLinearModel.load(folder, is_predict_only=True, weight_matrix_type=args.lookup)
    settings = {"beam_size": args.beam, "only_topk": args.top, "post_processor": args.post_processor}

    def timed(rows, threads):
        start = time.perf_counter()
        ranking = model.predict(rows, threads=threads, **settings)
        return time.perf_counter() - start, ranking

    timed(x[:100], args.threads)
    batches = [timed(x, args.threads) for _ in range(args.batches)]
    rows = [x[row] for row in range(min(args.singles, x.shape[0]))]
    singles = [timed(row, 1)[0] for row in rows]
    return {
        "batchMicroseconds": statistics.median(seconds for seconds, _ in batches) / x.shape[0] * 1e6,
        "singleMicroseconds": statistics.median(singles) * 1e6,
        "predictPeakMB": peak_mb(),
        "precision": precision(batches[0][1], y),
    }


def precision(ranking, truth):
    """P@1, P@3, P@5; ties go to the lowest column, missing predictions count as wrong."""
    import numpy

    rows = numpy.repeat(numpy.arange(ranking.shape[0]), numpy.diff(ranking.indptr))
    order = numpy.lexsort((ranking.indices, -ranking.data, rows))
    rank = numpy.arange(len(rows)) - ranking.indptr[rows]
    hit = numpy.asarray(truth[rows, ranking.indices[order]]).ravel() > 0
    return {k: float(hit[rank < k].sum() / (k * ranking.shape[0])) for k in (1, 3, 5)}


def in_fresh_process(work, *arguments):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def version():
    try:
        return importlib.metadata.version("libpecos")
    except importlib.metadata.PackageNotFoundError:
        import pecos

        return pecos.__version__


def installed():
    try:
        return importlib.util.find_spec("pecos.xmc.xlinear") is not None
    except ModuleNotFoundError:
        return False


def main():
    args = parse_arguments()
    if not installed():
        sys.exit("pecos is not installed for this Python: install it, or set PYTHONPATH to where it is")
    # PECOS leaves a few steps to OpenMP's own choice of threads.
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        trained = in_fresh_process(train, args, folder)
        predicted = in_fresh_process(predict, args, folder)
    settings = {name: value for name, value in vars(args).items() if name != "data"}
    about = {"tool": "pecos xr-linear", "version": version(), "settings": settings}
    print(json.dumps({**about, **trained, **predicted}))


if __name__ == "__main__":
    main()
