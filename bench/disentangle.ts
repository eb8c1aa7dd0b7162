// How well the two copies of a label fused from two parts tell the parts apart: each of its rows goes to the
// copy whose cluster the matcher likes better; that split is held against the true one and against random ones.

import type { Model, TrainingSet } from '../src/learn/learner.ts';
import type * as levels from '../src/learn/tree/level.ts';
import type * as models from '../src/learn/tree/model.ts';
import type * as search from '../src/learn/tree/search.ts';
import type * as csr from '../src/math/csr.ts';
import type * as random from '../src/math/random.ts';
import type { Tensors } from '../src/parts.ts';
import { built } from './built.ts';
import { variationOfInformation } from './fuse.ts';

const [
  { joinFound, rowIndices, rowValues, selectRows, transpose, unitRows },
  { Random },
  { levelFrom },
  { searchAll },
  { openForest, plantForest },
] = await Promise.all([
  built<typeof csr>('math/csr.js'),
  built<typeof random>('math/random.js'),
  built<typeof levels>('learn/tree/level.js'),
  built<typeof models>('learn/tree/model.js'),
  built<typeof search>('learn/tree/search.js'),
]);

const minPositives = 10;
const randomSplits = 100;
const batchRows = 4096;

/** The first tree of a model as it would be saved. */
async function firstTree(model: Model) {
  const parts = new Map<string, Tensors>();
  const config = await model.save({
    write: async (name, tensors) => void parts.set(name, tensors),
    writeProgram: async () => {},
  });
  const names = [...parts.keys()].filter((name) => name.startsWith('tree-1-level-'));
  return {
    config: config as unknown as { bias: number; power: number },
    tree: names.map((name) => levelFrom(parts.get(name) ?? {})),
  };
}

/** Mean over labels of the variation of information of random splits minus that of the found one: above zero is good. */
export async function disentanglement(
  model: Model,
  original: TrainingSet,
  fused: TrainingSet,
  partOf: Int32Array,
  { seed, threads }: { seed: number; threads: number },
): Promise<{ disentanglement: number; 'labels judged': number }> {
  const { config, tree } = await firstTree(model);
  const clustersOf = transpose(tree[tree.length - 1].shape);
  const judged = judgedLabels(original, partOf, fused.labels.cols, clustersOf);
  const rows = [...new Set([...judged.values()].flatMap((parts) => [...parts.keys()]))].sort((a, b) => a - b);
  const copyOf = await routedCopies(fused, rows, clustersOf, judged, tree.slice(0, -1), config, threads);
  let sum = 0;
  for (const [label, parts] of judged) {
    const truth = [...parts.values()];
    const found = [...parts.keys()].map((row) => copyOf.get(`${row} ${label}`) ?? 0);
    const shuffled = Array.from({ length: randomSplits }, (_, i) => {
      const order = new Random(seed, 'split', label, i).permutation(found.length);
      return variationOfInformation(
        Array.from(order, (p) => found[p]),
        truth,
      );
    });
    const chance = shuffled.reduce((total, value) => total + value, 0) / randomSplits;
    sum += chance - variationOfInformation(found, truth);
  }
  return { disentanglement: sum / Math.max(1, judged.size), 'labels judged': judged.size };
}

/** Fused labels of two parts with enough rows each and two copies; for each the rows of one part and which it is. */
function judgedLabels(
  { labels }: TrainingSet,
  partOf: Int32Array,
  fused: number,
  clustersOf: csr.Pattern,
): Map<number, Map<number, number>> {
  const byLabel = transpose(labels);
  const members = Array.from({ length: fused }, () => [] as number[]);
  partOf.forEach((label, part) => {
    if (label >= 0) members[label].push(part);
  });
  const judged = new Map<number, Map<number, number>>();
  members.forEach((parts, label) => {
    const copies = clustersOf.indptr[label + 1] - clustersOf.indptr[label];
    if (parts.length !== 2 || copies !== 2) return;
    const [first, second] = parts.map((part) => rowIndices(byLabel, part));
    if (first.length <= minPositives || second.length <= minPositives) return;
    const rows = new Map(Array.from(first, (row) => [row, 0]));
    // Rows with both parts belong to neither side.
    for (const row of second) if (!rows.delete(row)) rows.set(row, 1);
    judged.set(label, rows);
  });
  return judged;
}

/** For every judged row and label, which of the label's copies lies in the cluster with the higher matcher score. */
async function routedCopies(
  { features, labels }: TrainingSet,
  rows: number[],
  clustersOf: csr.Pattern,
  judged: Map<number, unknown>,
  matcher: levels.Level[],
  { bias, power }: { bias: number; power: number },
  threads: number,
): Promise<Map<string, number>> {
  const x = features.sparse && unitRows(features.sparse);
  if (!x) throw new Error('sparse features are needed');
  const clusters = clustersOf.cols;
  const { forest } = plantForest(
    [matcher],
    { features: x.cols, labels: clusters, bias, beam: clusters, power },
    true,
  );
  const searcher = await openForest(forest);
  const copyOf = new Map<string, number>();
  for (let start = 0; start < rows.length; start += batchRows) {
    const some = rows.slice(start, start + batchRows);
    const found = await searchAll(forest, searcher, selectRows(x, some), { top: clusters, threads });
    const ranking = joinFound(found, clusters);
    some.forEach((row, i) => {
      const scores = new Map(Array.from(rowIndices(ranking, i), (c, p) => [c, rowValues(ranking, i)[p]]));
      for (const label of rowIndices(labels, row)) {
        if (!judged.has(label)) continue;
        const [a, b] = Array.from(rowIndices(clustersOf, label), (cluster) => scores.get(cluster) ?? 0);
        copyOf.set(`${row} ${label}`, b > a ? 1 : 0);
      }
    });
  }
  return copyOf;
}
