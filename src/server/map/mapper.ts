// The thread that makes the map of a model's labels: who is near whom, then a place for everyone.
import { parentPort, workerData } from 'node:worker_threads';
import { badInput } from '../../errors.ts';
import type { LabelSpace } from '../../learn/label-space.ts';
import { layOut, type NearGraph } from '../../math/layout.ts';
import { Random } from '../../math/random.ts';
import { type Failure, packError } from '../problem.ts';
import type { LabelMap } from '../schemas.ts';
import { loadServed } from '../served.ts';

export type News = { progress: number } | { map: LabelMap } | { failure: Failure };

const width = 12;
const mostLabels = 100_000;
/** The first part of the work is finding neighbours. */
const graphShare = 0.3;

async function makeMap(folder: string): Promise<LabelMap> {
  const { classifier } = await loadServed(folder);
  const { vocabulary, counts } = classifier;
  if (vocabulary.size > mostLabels)
    throw badInput(`a map has at most ${mostLabels} labels`, { value: vocabulary.size });
  const { graph, columns } = nearGraph(classifier.labelSpace());
  const { x, y } = await layOut(graph, new Random(1, 'map'), async (done, total) => {
    tell(graphShare + ((1 - graphShare) * done) / total);
  });
  const short = (values: Float32Array) => Array.from(values, (value) => Math.round(1e4 * value) / 1e4);
  const labels = Array.from(columns, (column) => vocabulary.label(column));
  return {
    ready: true,
    progress: 1,
    ids: labels.map(({ id }) => id),
    names: labels.map(({ id, name = id }) => name),
    samples: Array.from(columns, (column) => counts[column] ?? 0),
    x: short(x),
    y: short(y),
  };
}

/** Labels that are like no other have no place on a map. */
function nearGraph(space: LabelSpace): { graph: NearGraph; columns: number[] } {
  const near: ReturnType<LabelSpace['neighbours']>[] = [];
  for (let label = 0; label < space.labels; label++) {
    near.push(space.neighbours(label, width));
    if (label % 256 === 0) tell((graphShare * label) / space.labels);
  }
  const columns = Array.from(near.keys()).filter((label) => near[label].length > 0);
  const pointOf = new Map(columns.map((label, point) => [label, point]));
  const neighbours = new Uint32Array(columns.length * width);
  const strengths = new Float32Array(columns.length * width);
  columns.forEach((label, point) => {
    near[label].forEach(({ label: other, similarity }, i) => {
      neighbours[point * width + i] = pointOf.get(other) ?? point;
      strengths[point * width + i] = similarity / near[label][0].similarity;
    });
  });
  return { graph: { points: columns.length, width, neighbours, strengths }, columns };
}

const post = (news: News) => parentPort?.postMessage(news);
let told = 0;
function tell(progress: number): void {
  if (progress - told < 0.01) return;
  told = progress;
  post({ progress });
}

makeMap((workerData as { folder: string }).folder).then(
  (map) => post({ map }),
  (error) => post({ failure: packError(error) }),
);
