"""scikit-learn's side of tfidf.ts: reads the texts, then times one fit_transform per line of input.

Arguments: the data file, and a folder to which the last result is written when input ends."""
import gzip
import json
import os
import sys
import time

import numpy
import sklearn
from sklearn.feature_extraction.text import TfidfVectorizer

data, out = sys.argv[1:3]
with gzip.open(data, "rt", encoding="utf-8", newline="\n") as file:
    texts = [line.rstrip("\n").split("\t", 1)[1] for line in file]
print(json.dumps({"rows": len(texts), "sklearn": sklearn.__version__, "python": sys.version.split()[0]}), flush=True)

for _ in sys.stdin:
    cpu, start = time.process_time(), time.perf_counter()
    vectoriser = TfidfVectorizer()
    features = vectoriser.fit_transform(texts)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu": cpu}), flush=True)

with open(os.path.join(out, "names.txt"), "w", encoding="utf-8") as file:
    file.write("\n".join(vectoriser.get_feature_names_out()))
features.indptr.astype(numpy.uint32).tofile(os.path.join(out, "indptr"))
features.indices.astype(numpy.uint32).tofile(os.path.join(out, "indices"))
features.data.astype(numpy.float32).tofile(os.path.join(out, "values"))
