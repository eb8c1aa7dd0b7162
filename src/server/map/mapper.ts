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
  const graph = nearGraph(classifier.labelSpace());
  const { x, y } = await layOut(graph, new Random(1, 'map'), async (done, total) => {
    tell(graphShare + ((1 - graphShare) * done) / total);
  });
  const short = (values: Float32Array) => Array.from(values, (value) => Math.round(1e4 * value) / 1e4);
  const labels = [...vocabulary];
  return {
    ready: true,
    progress: 1,
    ids: labels.map(({ id }) => id),
    names: labels.map(({ id, name = id }) => name),
    samples: labels.map((_, column) => counts[column] ?? 0),
    x: short(x),
    y: short(y),
  };
}

function nearGraph(space: LabelSpace): NearGraph {
  const points = space.labels;
  const neighbours = new Uint32Array(points * width);
  const strengths = new Float32Array(points * width);
  for (let label = 0; label < points; label++) {
    const near = space.neighbours(label, width);
    const best = near[0]?.similarity ?? 1;
    near.forEach(({ label: other, similarity }, i) => {
      neighbours[label * width + i] = other;
      strengths[label * width + i] = similarity / best;
    });
    if (label % 256 === 0) tell((graphShare * label) / points);
  }
  return { points, width, neighbours, strengths };
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
