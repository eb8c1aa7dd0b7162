// Why an input got a label: the path through the tree, in plain TypeScript. The same arithmetic as the search kernel,
// slow and obvious, so it is also what the kernel is tested against.
import { type Csr, rowIndices, rowValues } from '../../math/csr.ts';
import { topK } from '../../math/topk.ts';
import type { Explanation, ExplanationStep } from '../learner.ts';
import type { Level } from './level.ts';

export interface Scoring {
  bias: number;
  beam: number;
  power: number;
}

/**
 * One step per level on the way to the label. With several trees the steps of all that reach the label follow each
 * other, and the score is the sum of their products divided by the number of trees. Undefined where no beam gets there.
 */
export function explainLabel(x: Csr, label: number, trees: Level[][], o: Scoring): Explanation | undefined {
  if (x.indptr[1] === 0) return undefined;
  const paths = trees.map((levels, tree) => {
    const path = pathTo(levels, label);
    const leaf = path?.at(-1)?.chunk;
    if (!path || leaf === undefined || !searchChunks(x, levels, o).has(leaf)) return undefined;
    return path.map(({ level, chunk, child }, depth) => {
      const last = depth === levels.length - 1;
      const node = last ? 'label' : `level ${depth + 1}, node ${level.shape.indices[child]}`;
      const step = stepAt(x, level, chunk, child - level.shape.indptr[chunk], o, last);
      return { what: trees.length > 1 ? `tree ${tree + 1}, ${node}` : node, ...step };
    });
  });
  const found = paths.filter((path) => path !== undefined);
  if (found.length === 0) return undefined;
  const products = found.map((steps) => steps.reduce((product, { factor }) => product * factor, 1));
  return { score: products.reduce((sum, product) => sum + product, 0) / trees.length, steps: found.flat() };
}

/** The chunks of the last level that the beam reaches, each with the log score of its node. */
export function searchChunks(x: Csr, levels: Level[], { bias, beam, power }: Scoring): Map<number, number> {
  let kept = new Map([[0, 0]]);
  for (const level of levels.slice(0, -1)) {
    const scores = new Float64Array(level.shape.cols).fill(Number.NEGATIVE_INFINITY);
    for (const [chunk, score] of kept) {
      const { indptr, indices } = level.shape;
      chunkMargins(x, level, chunk, bias).forEach((margin, child) => {
        scores[indices[indptr[chunk] + child]] = combine(score, margin, power);
      });
    }
    const best = topK(scores, beam).filter((node) => scores[node] > Number.NEGATIVE_INFINITY);
    kept = new Map(Array.from(best, (node) => [node, scores[node]]));
  }
  return kept;
}

/** Margins of all children of a chunk. */
export function chunkMargins(x: Csr, level: Level, chunk: number, bias: number): Float64Array {
  const { shape, chunkStart, features, rowStart, children, values } = level;
  const input = new Map(Array.from(rowIndices(x, 0), (feature, p) => [feature, rowValues(x, 0)[p]]));
  input.set(x.cols, bias);
  const margins = new Float64Array(shape.indptr[chunk + 1] - shape.indptr[chunk]);
  for (let row = chunkStart[chunk]; row < chunkStart[chunk + 1]; row++) {
    const value = input.get(features[row]);
    if (value === undefined) continue;
    for (let e = rowStart[row]; e < rowStart[row + 1]; e++) margins[children[e]] += value * values[e];
  }
  return margins;
}

/** The log score of a child: its parent's plus the log of its own factor; or its own margin alone. */
export const combine = (parent: number, margin: number, power: number): number =>
  power < 0 ? margin : parent + Math.log(factorOf(margin, power, true));

interface PathStep {
  level: Level;
  chunk: number;
  /** Position in the level's list of children. */
  child: number;
}

function pathTo(levels: Level[], label: number): PathStep[] | undefined {
  const steps: PathStep[] = [];
  let node = label;
  for (const level of levels.toReversed()) {
    const { indptr, indices } = level.shape;
    const child = indices.indexOf(node);
    if (child < 0) return undefined;
    const chunk = indptr.findIndex((_, c) => indptr[c + 1] > child);
    steps.unshift({ level, chunk, child });
    node = chunk;
  }
  return steps;
}

function stepAt(
  x: Csr,
  { chunkStart, features, rowStart, children, values }: Level,
  chunk: number,
  child: number,
  { bias, power }: Scoring,
  last: boolean,
): Omit<ExplanationStep, 'what'> {
  const rows = features.subarray(chunkStart[chunk], chunkStart[chunk + 1]);
  const weightOf = new Map<number, number>();
  rows.forEach((feature, i) => {
    const row = chunkStart[chunk] + i;
    const entry = children.subarray(rowStart[row], rowStart[row + 1]).indexOf(child);
    if (entry >= 0) weightOf.set(feature, values[rowStart[row] + entry]);
  });
  const inputs = rowValues(x, 0);
  const contributions = Array.from(rowIndices(x, 0), (feature, p) => ({
    feature,
    value: (weightOf.get(feature) ?? 0) * inputs[p],
  }))
    .filter(({ value }) => value !== 0)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const biasTerm = (weightOf.get(x.cols) ?? 0) * bias;
  const margin = contributions.reduce((sum, { value }) => sum + value, biasTerm);
  return { margin, bias: biasTerm, factor: factorOf(margin, power, last), contributions };
}

/** What the search kernel makes of a margin. */
function factorOf(margin: number, power: number, last: boolean): number {
  if (power > 0) return Math.exp(-(Math.max(0, 1 - margin) ** power));
  return power === 0 || last ? 1 / (1 + Math.exp(-margin)) : 1;
}
