// Grows the trees of a model: clusters the labels, decides which rows every node learns from, and trains the levels;
// with overlap, trains the upper levels first, to see in which clusters the labels belong.
import { Arena, createMemory } from '../../kernels/memory.ts';
import type { Pool } from '../../kernels/pool.ts';
import { type Csr, CsrBuilder, joinFound, type Pattern, transpose } from '../../math/csr.ts';
import type { Context, Progress } from '../../progress.ts';
import { fingerprint } from '../fingerprint.ts';
import type { TrainContext } from '../learner.ts';
import { buildChain, type ChainOptions, type Placed, placeMatrix } from './chain.ts';
import type { Scoring } from './explain.ts';
import { type Level, levelFrom, levelTensors } from './level.ts';
import { searchAll } from './model.ts';
import { matchedPositives, type Overlap, placeCopies } from './overlap.ts';
import { openForest, plantForest } from './search.ts';
import { findSenses, type SenseRecord } from './senses.ts';
import { type LevelTask, type SolveOptions, trainLevels } from './solve.ts';

export type GrowOptions = ChainOptions &
  SolveOptions &
  Scoring & {
    trees: number;
    /** Rows a node learns from: those whose labels lie below its parent, those the beam takes there, or both. */
    negatives: 'tfn' | 'man' | 'tfn+man';
    /** Absent: every label is in one cluster. */
    overlap?: Overlap;
  };

export interface GrownTree {
  levels: Level[];
  /** Where labels may lie in several clusters; its examples are training rows. */
  senses?: SenseRecord;
}

/** What all trees of one training run share. */
interface Ground {
  arena: Arena;
  pool: Pool;
  x: Csr;
  placed: Placed;
  labels: Pattern;
  byLabel: Pattern;
  options: GrowOptions;
  context: TrainContext;
}

/** `x` has unit rows; `labels` is rows x labels. */
export async function growTrees(
  x: Csr,
  labels: Pattern,
  options: GrowOptions,
  pool: Pool,
  context: TrainContext,
): Promise<GrownTree[]> {
  const arena = new Arena(createMemory(1 << 20, true));
  const placed = placeMatrix(arena, x);
  const byLabel = transpose(labels);
  const ground: Ground = { arena, pool, x, placed, labels, byLabel, options, context };
  const trees: GrownTree[] = [];
  for (let t = 0; t < options.trees; t++) {
    const seed = `${context.seed} tree ${t}`;
    const grouped = await buildChain(arena, placed, labels, byLabel, options, seed, pool, context);
    const chain = grouped.with(-1, frequentFirst(grouped[grouped.length - 1], byLabel));
    const { overlap } = options;
    // Where all labels hang from the root there are no clusters to choose from.
    if (overlap && chain.length > 1) trees.push(await growOverlapping(ground, chain, overlap, seed));
    else trees.push({ levels: await growLevels(ground, levelTasks(labels, byLabel, chain), [], seed, '') });
  }
  return trees;
}

/**
 * Trains the levels above the labels, puts the labels where these levels look for them, and starts again with the
 * labels there. The first round has no use for the labels' own classifiers.
 */
async function growOverlapping(
  ground: Ground,
  chain: Pattern[],
  overlap: Overlap,
  seed: string,
): Promise<GrownTree> {
  const { arena, x, placed, labels, byLabel, options, context, pool } = ground;
  const upper = chain.slice(0, -1);
  const grow = (tasks: LevelTask[], above: Level[], round: number, iterations = overlap.passes.above) =>
    growLevels({ ...ground, options: { ...options, iterations } }, tasks, above, seed, `-round-${round}`);
  const { step, passes, beam } = overlap.draft;
  const first = levelTasks(everyNth(labels, step), byLabel, chain, step).slice(0, -1);
  let matcher = await grow(first, [], 0, passes);
  for (let round = 1; ; round++) {
    const reached = await reachedNodes(x, matcher, { ...options, beam }, context, pool);
    const leaves = frequentFirst(
      placeCopies(byLabel, reached, chain[chain.length - 1], overlap, seed),
      byLabel,
    );
    const tasks = levelTasks(labels, byLabel, [...upper, leaves]);
    const last = tasks.length - 1;
    tasks[last].passes = overlap.passes.labels;
    if (overlap.positives === 'matched') tasks[last] = ownPositives(tasks[last], byLabel, reached);
    if (round < overlap.rounds) {
      matcher = await grow(tasks.slice(0, -1), [], round);
      continue;
    }
    const frozen = overlap.update === 'ranker-only' ? matcher : [];
    const start = arena.next;
    // This thread has little to do while the others train. Senses come first: they keep their room till the end.
    const [senses, trained] = await Promise.all([
      findSenses(arena, placed, byLabel, reached, leaves, overlap.examples, context.signal),
      grow(tasks.slice(frozen.length), frozen, round),
    ]);
    arena.release(start);
    const grown = [...frozen, ...trained];
    return { levels: grown.with(last, { ...grown[last], shape: leaves }), senses };
  }
}

/** The task with a row of positives for each copy, instead of one for each label. */
function ownPositives(task: LevelTask, byLabel: Pattern, reached: Pattern): LevelTask {
  const positives = matchedPositives(task.shape, byLabel, reached);
  const indices = task.shape.indices.map((_, copy) => copy);
  return { ...task, shape: { ...task.shape, cols: indices.length, indices }, positives };
}

/** Trains the given levels, which follow those `above`; `stage` tells apart levels of the same depth and tree. */
async function growLevels(
  { arena, pool, x, placed, labels, options, context }: Ground,
  tasks: LevelTask[],
  above: Level[],
  seed: string,
  stage: string,
): Promise<Level[]> {
  const { checkpoint } = context;
  const train = (some: LevelTask[]) =>
    trainLevels(arena, placed, x.indptr, some, options, seed, pool, context);
  // Levels that need nothing of each other share the threads best when they are trained together.
  if (options.negatives === 'tfn' && !checkpoint) return train(tasks);
  const made =
    checkpoint &&
    fingerprint(
      [x.cols, labels.cols, options, seed],
      [x.indptr, x.indices, x.values, labels.indptr, labels.indices],
    );
  const levels: Level[] = [];
  for (const task of tasks) {
    const name = `${made}${stage}-level-${task.depth + 1}`;
    const kept = await checkpoint?.load(name);
    if (kept) {
      levels.push({ ...levelFrom(kept), shape: task.shape });
      continue;
    }
    const rows = await trainingRows(task, x, [...above, ...levels], options, context, pool);
    const [level] = await train([{ ...task, rows }]);
    await checkpoint?.save(name, levelTensors(level));
    levels.push(level);
  }
  return levels;
}

async function trainingRows(
  { rows }: LevelTask,
  x: Csr,
  above: Level[],
  o: GrowOptions,
  context: Context,
  pool: Pool,
): Promise<Pattern> {
  if (o.negatives === 'tfn' || above.length === 0) return rows;
  const reached = transpose(await reachedNodes(x, above, o, context, pool));
  return o.negatives === 'man' ? reached : union(rows, reached);
}

/**
 * The labels of each leaf, the most frequent first. Eight are solved at a time, which takes as many passes as the
 * slowest needs and as many steps as there are rows that any of them learns from: like ones do best together.
 */
function frequentFirst(leaves: Pattern, byLabel: Pattern): Pattern {
  const frequency = (label: number) => byLabel.indptr[label + 1] - byLabel.indptr[label];
  const indices = leaves.indices.slice();
  for (let leaf = 0; leaf < leaves.rows; leaf++)
    indices
      .subarray(leaves.indptr[leaf], leaves.indptr[leaf + 1])
      .sort((a, b) => frequency(b) - frequency(a) || a - b);
  return { ...leaves, indices };
}

/** The labels of every so many-th row; the other rows have none. */
function everyNth({ rows, cols, indptr, indices }: Pattern, step: number): Pattern {
  const some = new CsrBuilder('binary');
  for (let row = 0; row < rows; row++)
    some.add(row % step === 0 ? indices.subarray(indptr[row], indptr[row + 1]) : []);
  return some.pattern(cols);
}

/** Each level with its parents' true rows; the root's are all rows, or every so many-th. */
export function levelTasks(labels: Pattern, byLabel: Pattern, chain: Pattern[], step = 1): LevelTask[] {
  const targets = [labels];
  for (const shape of chain.slice(1).reverse()) targets.unshift(parentsOf(targets[0], shape));
  const positives = [...targets.slice(0, -1).map((nodes) => transpose(nodes)), byLabel];
  return chain.map((shape, depth) => {
    const rows = depth === 0 ? allRows(labels.rows, step) : positives[depth - 1];
    return { depth, shape, rows, positives: positives[depth] };
  });
}

/** Each sample's nodes one level up, once each, in any order; a node may have several parents. */
function parentsOf(nodes: Pattern, shape: Pattern): Pattern {
  const parents = transpose(shape);
  const ups = nodes.indices.reduce((sum, node) => sum + parents.indptr[node + 1] - parents.indptr[node], 0);
  const lastRow = new Int32Array(shape.rows).fill(-1);
  const indptr = new Uint32Array(nodes.rows + 1);
  const indices = new Uint32Array(ups);
  let size = 0;
  for (let row = 0; row < nodes.rows; row++) {
    for (let i = nodes.indptr[row]; i < nodes.indptr[row + 1]; i++) {
      const node = nodes.indices[i];
      for (let p = parents.indptr[node]; p < parents.indptr[node + 1]; p++) {
        const parent = parents.indices[p];
        if (lastRow[parent] === row) continue;
        lastRow[parent] = row;
        indices[size++] = parent;
      }
    }
    indptr[row + 1] = size;
  }
  return { rows: nodes.rows, cols: shape.rows, indptr, indices: indices.subarray(0, size) };
}

function allRows(cols: number, step: number): Pattern {
  const indices = new Uint32Array(Math.ceil(cols / step)).map((_, i) => i * step);
  return { rows: 1, cols, indptr: Uint32Array.of(0, indices.length), indices };
}

/** rows x nodes: where the beam takes each row at the last of these levels, best first. */
async function reachedNodes(
  x: Csr,
  levels: Level[],
  { bias, beam, power }: Scoring,
  context: Context,
  pool: Pool,
): Promise<Pattern> {
  const labels = levels[levels.length - 1].shape.cols;
  const { forest } = plantForest([levels], { features: x.cols, labels, bias, beam, power }, true);
  const search = await openForest(forest);
  const progress: Progress = (step) => context.progress({ ...step, phase: 'match' });
  const parts = await searchAll(forest, search, x, { ...context, progress, top: beam }, pool);
  const found = joinFound(parts, labels);
  const { rows, cols, indptr, indices } = found;
  return { rows, cols, indptr, indices };
}

/** Both patterns have ascending rows, and so has the answer. */
function union(a: Pattern, b: Pattern): Pattern {
  const indptr = new Uint32Array(a.rows + 1);
  const rows = Array.from({ length: a.rows }, (_, row) => {
    const both = new Set(a.indices.subarray(a.indptr[row], a.indptr[row + 1]));
    for (let p = b.indptr[row]; p < b.indptr[row + 1]; p++) both.add(b.indices[p]);
    indptr[row + 1] = indptr[row] + both.size;
    return Uint32Array.from(both).sort();
  });
  const indices = new Uint32Array(indptr[a.rows]);
  rows.forEach((row, i) => {
    indices.set(row, indptr[i]);
  });
  return { ...a, indptr, indices };
}
