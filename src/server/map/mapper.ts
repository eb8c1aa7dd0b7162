// The thread that makes the map of a model's labels: who is near whom, then a place for everyone.
import { parentPort, workerData } from 'node:worker_threads';
import type { Classifier } from '../../learn/classifier.ts';
import { selectRows } from '../../math/csr.ts';
import { layOut, type NearGraph } from '../../math/layout.ts';
import { nearGraph } from '../../math/near-graph.ts';
import { Random } from '../../math/random.ts';
import { type Failure, packError } from '../problem.ts';
import type { LabelMap } from '../schemas.ts';
import { loadServed } from '../served.ts';

/** `map` is a LabelMap in JSON. */
export type News = { progress: number } | { map: string } | { failure: Failure };

const width = 12;
const mostLabels = 100_000;
/** What is done of all when the model is loaded, and when neighbours are found. */
const [loadedShare, graphShare] = [0.1, 0.5];

async function makeMap(folder: string): Promise<LabelMap> {
  const { classifier } = await loadServed(folder);
  const { vocabulary, counts } = classifier;
  const vectors = classifier.labelSpace().vectors;
  const candidates = labelsToShow(classifier);
  tell(loadedShare);
  const { graph, points } = connected(
    nearGraph(selectRows(vectors, candidates), width, 1, (done, total) => {
      tell(loadedShare + ((graphShare - loadedShare) * done) / total);
    }),
  );
  const { x, y } = layOut(graph, new Random(1, 'map'), (done, total) => {
    tell(graphShare + ((1 - graphShare) * done) / total);
  });
  const short = (values: Float32Array) => Array.from(values, (value) => Math.round(1e4 * value) / 1e4);
  const columns = points.map((point) => candidates[point]);
  return {
    ready: true,
    progress: 1,
    leftOut: vocabulary.size - columns.length,
    ids: Array.from(columns, (column) => vocabulary.label(column).id),
    names: Array.from(columns, (column) => vocabulary.name(column)),
    samples: Array.from(columns, (column) => counts[column] ?? 0),
    x: short(x),
    y: short(y),
  };
}

/** The most frequent ones. Of a label that no sample carries only a model that knows labels by name knows anything. */
function labelsToShow({ vocabulary, counts, takesLabels }: Classifier): Uint32Array {
  return Uint32Array.from({ length: vocabulary.size }, (_, column) => column)
    .filter((column) => takesLabels || counts[column] > 0)
    .sort((a, b) => counts[b] - counts[a] || a - b)
    .subarray(0, mostLabels)
    .sort();
}

/** Without those that are like no other: they have no place on a map. */
function connected(all: NearGraph): { graph: NearGraph; points: Uint32Array } {
  const points = Uint32Array.from({ length: all.points }, (_, point) => point).filter(
    (point) => all.strengths[point * width] > 0,
  );
  const numbers = new Uint32Array(all.points);
  points.forEach((point, number) => {
    numbers[point] = number;
  });
  const neighbours = new Uint32Array(points.length * width);
  const strengths = new Float32Array(points.length * width);
  points.forEach((point, number) => {
    const [from, to] = [point * width, (point + 1) * width];
    strengths.set(all.strengths.subarray(from, to), number * width);
    neighbours.set(
      all.neighbours.subarray(from, to).map((other) => numbers[other]),
      number * width,
    );
  });
  return { graph: { points: points.length, width, neighbours, strengths }, points };
}

const post = (news: News) => parentPort?.postMessage(news);
let told = 0;
function tell(progress: number): void {
  if (progress - told < 0.01) return;
  told = progress;
  post({ progress });
}

makeMap((workerData as { folder: string }).folder).then(
  (map) => post({ map: JSON.stringify(map) }),
  (error) => post({ failure: packError(error) }),
);
