// What speaks for each label of a tree: its own weights and, counting less, those on its ways from the root. Its own
// alone only tell a label from the others of its cluster.
import { type Csr, CsrBuilder } from '../../math/csr.ts';
import { topK } from '../../math/topk.ts';
import type { Level } from './level.ts';

/** Features kept for every node: the rest hardly matters, and a node near the root has thousands. */
const mostFeatures = 48;
/** Of those a child takes over so many, and so much of them. */
const [inherited, inheritedShare] = [16, 0.5];

/** Features and what they weigh, the strongest first. */
interface Weights {
  features: ArrayLike<number>;
  values: ArrayLike<number>;
}

/** labels x features, without the bias. */
export function labelWeights(trees: Level[][], labels: number, features: number): Csr {
  const places: Weights[][] = Array.from({ length: labels }, () => []);
  for (const levels of trees) {
    let above: Weights[] = [{ features: [], values: [] }];
    for (const [depth, level] of levels.entries()) {
      const isLast = depth === levels.length - 1;
      const below: Weights[] = [];
      for (let parent = 0; parent < level.shape.rows; parent++) {
        const { indptr, indices } = level.shape;
        childWeights(level, parent, above[parent], features).forEach((weights, child) => {
          const node = indices[indptr[parent] + child];
          if (isLast) places[node].push(weights);
          else below[node] = weights;
        });
      }
      above = below;
    }
  }
  // A label that lies in several places is all of them.
  const rows = new CsrBuilder('values');
  for (const weights of places) {
    const sums = sumOf(weights);
    const columns = Uint32Array.from(sums.keys()).sort();
    rows.add(
      columns,
      Float32Array.from(columns, (column) => sums.get(column) ?? 0),
    );
  }
  return rows.csr(features);
}

/** What speaks for each child of a node: its own weights, and some of what speaks for the node. */
function childWeights(level: Level, parent: number, above: Weights, features: number): Weights[] {
  const taken = strongest(above, inherited, inheritedShare);
  return ownWeights(level, parent, features).map((own) => {
    const against = new Set(Array.from(own.features).filter((_, i) => own.values[i] < 0));
    const kept = Array.from(taken.features.keys()).filter((i) => !against.has(taken.features[i]));
    const sums = sumOf([
      strongest(own, mostFeatures, 1),
      { features: kept.map((i) => taken.features[i]), values: kept.map((i) => taken.values[i]) },
    ]);
    return { features: Uint32Array.from(sums.keys()), values: Float32Array.from(sums.values()) };
  });
}

/** The weights of each child of a node, taken out of its chunk, where they lie by feature. */
function ownWeights(level: Level, parent: number, features: number): Weights[] {
  const { shape, chunkStart, rowStart, children, values } = level;
  const size = shape.indptr[parent + 1] - shape.indptr[parent];
  // The bias is the feature after the last, so the last row.
  let end = chunkStart[parent + 1];
  if (end > chunkStart[parent] && level.features[end - 1] >= features) end--;
  const counts = new Uint32Array(size);
  const [from, to] = [rowStart[chunkStart[parent]], rowStart[end]];
  for (let e = from; e < to; e++) counts[children[e]]++;
  const own = Array.from(counts, (count) => ({
    features: new Uint32Array(count),
    values: new Float32Array(count),
  }));
  counts.fill(0);
  for (let row = chunkStart[parent]; row < end; row++) {
    for (let e = rowStart[row]; e < rowStart[row + 1]; e++) {
      const at = counts[children[e]]++;
      own[children[e]].features[at] = level.features[row];
      own[children[e]].values[at] = values[e];
    }
  }
  return own;
}

/** The largest weights above zero, made a vector of the given length. */
function strongest({ features, values }: Weights, most: number, length: number) {
  const best = topK(values, most).filter((i) => values[i] > 0);
  const now = Math.sqrt(best.reduce((sum, i) => sum + values[i] ** 2, 0));
  return {
    features: best.map((i) => features[i]),
    values: Float32Array.from(best, (i) => (length * values[i]) / now),
  };
}

function sumOf(parts: Weights[]): Map<number, number> {
  const sums = new Map<number, number>();
  for (const { features, values } of parts)
    for (let i = 0; i < features.length; i++) sums.set(features[i], (sums.get(features[i]) ?? 0) + values[i]);
  return sums;
}
