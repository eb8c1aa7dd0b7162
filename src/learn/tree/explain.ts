// Why an input got a label: the path through the tree, in plain TypeScript. The same arithmetic as the search kernel,
// slow and obvious, so it is also what the kernel is tested against.
import { type Csr, rowIndices, rowValues } from '../../math/csr.ts';
import { topK } from '../../math/topk.ts';
import type { Explanation, ExplanationStep } from '../learner.ts';
import type { Level } from './level.ts';
import type { Merge } from './search.ts';

export interface Scoring {
  bias: number;
  beam: number;
  power: number;
  merge?: Merge;
}

/**
 * One step per level on the way to the label. Where the beam reaches several copies of it in one tree, the steps to
 * each of them follow each other and the products of all count equally, or only the best way is told, as the model
 * merges copies. With several trees the steps of all that reach the label follow each other, and the score is the sum
 * of what they give divided by the number of trees. Undefined where no beam gets there.
 */
export function explainLabel(x: Csr, label: number, trees: Level[][], o: Scoring): Explanation | undefined {
  if (x.indptr[1] === 0) return undefined;
  const found = trees.flatMap((levels, tree) => {
    const merged = mergeWays(waysTo(x, label, levels, o), o.merge);
    if (!merged) return [];
    const named = (what: string) => (trees.length > 1 ? `tree ${tree + 1}, ${what}` : what);
    return [{ ...merged, steps: merged.steps.map((step) => ({ ...step, what: named(step.what) })) }];
  });
  if (found.length === 0) return undefined;
  const sum = found.reduce((total, { score }) => total + score, 0);
  return { score: sum / trees.length, steps: found.flatMap(({ steps }) => steps) };
}

/** One explanation for each copy of the label that the beam reaches. */
function waysTo(x: Csr, label: number, levels: Level[], o: Scoring): Explanation[] {
  const paths = pathsTo(levels, label);
  if (paths.length === 0) return [];
  const reached = searchChunks(x, levels, o);
  return paths
    .filter((path) => reached.has(path[path.length - 1].chunk))
    .map((path) => {
      const steps = path.map(({ level, chunk, child }, depth) => {
        const last = depth === levels.length - 1;
        const node = last ? 'label' : `level ${depth + 1}, node ${level.shape.indices[child]}`;
        return { what: node, ...stepAt(x, level, chunk, child - level.shape.indptr[chunk], o, last) };
      });
      return { score: steps.reduce((product, { factor }) => product * factor, 1), steps };
    });
}

function mergeWays(ways: Explanation[], merge: Merge = 'mean'): Explanation | undefined {
  if (ways.length < 2) return ways[0];
  if (merge === 'max') return ways.reduce((best, way) => (way.score > best.score ? way : best));
  const score = ways.reduce((sum, way) => sum + way.score, 0) / ways.length;
  const steps = ways.flatMap((way, copy) =>
    way.steps.map((step) => ({ ...step, what: `copy ${copy + 1} of ${ways.length}, ${step.what}` })),
  );
  return { score, steps };
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
export function combine(parent: number, margin: number, power: number): number {
  if (power < 0) return margin;
  if (power > 0) return parent - Math.max(0, 1 - margin) ** power;
  return parent - Math.max(0, -margin) - Math.log1p(Math.exp(-Math.abs(margin)));
}

interface PathStep {
  level: Level;
  chunk: number;
  /** Position in the level's list of children. */
  child: number;
}

/** The way from the root to each copy of a label. */
function pathsTo(levels: Level[], label: number): PathStep[][] {
  const leaves = levels[levels.length - 1];
  return stepsTo(leaves, label).map((leaf) => {
    const path = [leaf];
    // Above the labels every node has one parent.
    for (const level of levels.slice(0, -1).reverse()) path.unshift(...stepsTo(level, path[0].chunk));
    return path;
  });
}

/** Where a node is among the children of the level above it. */
function stepsTo(level: Level, node: number): PathStep[] {
  const { indptr, indices } = level.shape;
  const steps: PathStep[] = [];
  for (let child = indices.indexOf(node); child >= 0; child = indices.indexOf(node, child + 1)) {
    steps.push({ level, chunk: indptr.findIndex((_, c) => indptr[c + 1] > child), child });
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
