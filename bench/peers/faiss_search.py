"""Searches beside bench/search.ts: reads vectors and queries from files of float32, then answers each line of input.

Arguments: vectors, queries, dimensions, threads. A line `exact N` times IndexFlatIP over the first N queries; `build N`
makes an HNSW graph of the first N vectors on one thread, as umbel does; `graph EF` searches it with that much in view. Answers are JSON: seconds, CPU seconds, found numbers.
"""
import json
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = sys.argv[4]
import faiss
import numpy

dimensions, threads = int(sys.argv[3]), int(sys.argv[4])
vectors, queries = (numpy.fromfile(path, numpy.float32).reshape(-1, dimensions) for path in sys.argv[1:3])
faiss.omp_set_num_threads(threads)
flat = faiss.IndexFlatIP(dimensions)
flat.add(vectors)
graph = None


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "found": found}


def build(count):
    global graph
    graph = faiss.IndexHNSWFlat(dimensions, 16, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 128
    faiss.omp_set_num_threads(1)
    graph.add(vectors[:count])
    faiss.omp_set_num_threads(threads)
    return []


def answer(order, *numbers):
    if order == "build":
        return timed(lambda: build(int(numbers[0])))
    if order == "graph":
        graph.hnsw.efSearch = int(numbers[0])
        return timed(lambda: graph.search(queries, 10)[1].tolist())
    return timed(lambda: flat.search(queries[: int(numbers[0])], 10)[1].tolist())


print(json.dumps({"faiss": faiss.__version__}), flush=True)
for line in sys.stdin:
    print(json.dumps(answer(*line.split())), flush=True)
