// Trains the classifiers of a chain of levels: each cluster (a parent and its children) is a job over the rows that
// reach it, eight children at a time. Levels do not wait for each other.
import type { Pool, Prepare, Task } from '../../kernels/pool.ts';
import { type Arena, align, loadKernels } from '../../kernels/wasm.ts';
import type { Pattern } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import type { Context } from '../../progress.ts';
import { ownScratch, type Placed, placePattern } from './chain.ts';
import { type Chunk, joinChunks, type Level, mergeChunks } from './level.ts';

export interface SolveOptions {
  loss: 'squared-hinge' | 'logistic';
  costPositive: number;
  costNegative: number;
  epsilon: number;
  iterations: number;
  threshold: number;
  bias: number;
}

const lanes = 8;
/** Weights kept are handed over in blocks of at most this many. */
const blockEntries = 1 << 18;
const maxWeightBytes = 64 << 20;

/** Addresses of one task's patterns. */
interface PlacedTask {
  depth: number;
  shape: { indptr: number; indices: number };
  rows: { indptr: number; indices: number };
  positives: { indptr: number; indices: number };
}

interface SolveSetup {
  memory: WebAssembly.Memory;
  x: Placed;
  tasks: PlacedTask[];
  options: SolveOptions;
  seed: string;
  scratch: number;
  scratchBytes: number;
  counter: Int32Array;
}

/** Some of the children of one cluster: groups of eight, from `group` on. */
interface SolveJob {
  task: number;
  cluster: number;
  group: number;
  groups: number;
  children: number;
  cost: number;
}

const solveTask: Task<SolveSetup, SolveJob, Chunk> = { module: import.meta.url, name: 'prepareSolve' };

/** What there is to learn at one level of the tree. */
export interface LevelTask {
  /** Names the level in the seeds of its jobs. */
  depth: number;
  /** parents x children. */
  shape: Pattern;
  /** parents x rows: the training set of each parent's children. */
  rows: Pattern;
  /** children x rows: who is positive. Positives outside the training set do not count. */
  positives: Pattern;
}

/** The weights of all given levels; `x` is in the arena already, its `indptr` also here. */
export async function trainLevels(
  arena: Arena,
  x: Placed,
  rowStart: Uint32Array,
  tasks: LevelTask[],
  options: SolveOptions,
  seed: string,
  pool: Pool,
  { threads, signal, progress }: Context,
): Promise<Level[]> {
  const start = arena.next;
  const clusters = tasks.flatMap(({ shape, rows }, task) => taskClusters(task, shape, rows, rowStart));
  const share = clusters.reduce((sum, { cost }) => sum + cost, 0) / (8 * threads);
  const pieces = clusters.flatMap((cluster) => cutCluster(cluster, x.cols, share));
  pieces.sort((a, b) => b.cost - a.cost);
  // The training set of a level often is the positives of the level above: placed once.
  const placed = new Map<Pattern, { indptr: number; indices: number }>();
  const place = (m: Pattern) => {
    const addresses = placed.get(m) ?? placePattern(arena, m);
    placed.set(m, addresses);
    return addresses;
  };
  const shared = align(x.rows * 4) + align(x.cols * 4);
  const scratchBytes = shared + pieces.reduce((most, { bytes }) => Math.max(most, bytes), 0);
  const setup: SolveSetup = {
    memory: arena.memory,
    x,
    tasks: tasks.map(({ depth, shape, rows, positives }) => {
      return { depth, shape: place(shape), rows: place(rows), positives: place(positives) };
    }),
    options,
    seed,
    scratch: arena.allocate(scratchBytes * threads),
    scratchBytes,
    counter: new Int32Array(new SharedArrayBuffer(4)),
  };
  const total = tasks.reduce((sum, { shape }) => sum + shape.indices.length, 0);
  const work = pieces.reduce((sum, { cost }) => sum + cost, 0);
  const phase = tasks.length > 1 ? 'train' : `train level ${tasks[0].depth + 1}`;
  let worked = 0;
  // Counted by cost, so that the time left is right although the longest jobs come first.
  const onResult = (_: Chunk, index: number) => {
    worked += pieces[index].cost;
    progress({ phase, done: Math.round((total * worked) / work), total, unit: 'classifiers' });
  };
  const chunks = await pool.run(solveTask, setup, pieces, { signal, onResult });
  arena.release(start);
  return tasks.map(({ shape }, task) => joinChunks(shape, collect(shape, task, pieces, chunks)));
}

/** The chunk of every parent of a level, out of the pieces it was cut into. */
function collect(shape: Pattern, task: number, pieces: SolveJob[], chunks: Chunk[]): Chunk[] {
  const parts = Array.from({ length: shape.rows }, () => [] as { group: number; chunk: Chunk }[]);
  pieces.forEach((piece, i) => {
    if (piece.task === task) parts[piece.cluster].push({ group: piece.group, chunk: chunks[i] });
  });
  return parts.map((list) => mergeChunks(list.sort((a, b) => a.group - b.group).map(({ chunk }) => chunk)));
}

/** A whole cluster, before it is cut into jobs. */
interface Cluster {
  task: number;
  cluster: number;
  children: number;
  rows: number;
  entries: number;
  cost: number;
}

function taskClusters(task: number, shape: Pattern, set: Pattern, rowStart: Uint32Array): Cluster[] {
  return Array.from({ length: shape.rows }, (_, cluster) => {
    const children = shape.indptr[cluster + 1] - shape.indptr[cluster];
    const rows = set.indptr[cluster + 1] - set.indptr[cluster];
    let entries = 0;
    for (let p = set.indptr[cluster]; p < set.indptr[cluster + 1]; p++)
      entries += rowStart[set.indices[p] + 1] - rowStart[set.indices[p]];
    return {
      task,
      cluster,
      children,
      rows,
      entries,
      cost: (entries + 8 * rows) * Math.ceil(children / lanes),
    };
  });
}

/** Long clusters become several jobs, so that every thread has its share to the end and weights stay in bounds. */
function cutCluster(
  { task, cluster, children, rows, entries, cost }: Cluster,
  features: number,
  share: number,
) {
  const groups = Math.ceil(children / lanes);
  const present = Math.min(features, entries);
  const byCost = Math.floor((share * groups) / Math.max(cost, 1));
  const byMemory = Math.floor(maxWeightBytes / ((present + 2) * lanes * 4));
  const step = Math.max(1, Math.min(groups, byMemory, byCost));
  return Array.from({ length: Math.max(1, Math.ceil(groups / step)) }, (_, i) => {
    const group = i * step;
    const size = Math.min(step, groups - group);
    return {
      task,
      cluster,
      group,
      groups: size,
      children: Math.min(children - group * lanes, size * lanes),
      cost: (cost * size) / Math.max(groups, 1),
      bytes: jobLayout(rows, entries, present, size).bytes,
    };
  });
}

/** Where a job's working arrays lie, after the thread's own maps. */
function jobLayout(rows: number, entries: number, features: number, groups: number) {
  let bytes = 0;
  const take = (size: number) => {
    const offset = bytes;
    bytes += align(size);
    return offset;
  };
  const layout = {
    ids: take((features + 1) * 4),
    spare: take((features + 1) * 4),
    headers: take(rows * 16),
    entries: take(entries * 8),
    signs: take(rows),
    // Two per row and lane: the logistic loss keeps the distance to both of its bounds.
    alphas: take(rows * lanes * 8),
    order: take(rows * 4),
    counts: take((features + 1) * 4),
    children: take(blockEntries * 2),
    values: take(blockEntries * 4),
    // One row more for the bias, and one that the logistic solver works in.
    weights: take((features + 2) * lanes * 4 * groups),
  };
  return { ...layout, bytes };
}

export const prepareSolve: Prepare<SolveSetup, SolveJob, Chunk> = async (setup) => {
  const { memory, x, tasks, options: o, seed } = setup;
  const kernels = await loadKernels(memory);
  const localFeature = ownScratch(setup, x.cols * 4);
  const localRow = localFeature + align(x.cols * 4);
  const work = localRow + align(x.rows * 4);
  const u32 = (address: number, length: number) => new Uint32Array(memory.buffer, address, length);
  const between = ({ indptr, indices }: { indptr: number; indices: number }, row: number) => {
    const [start, end] = u32(indptr + row * 4, 2);
    return { address: indices + start * 4, length: end - start };
  };
  const hinge = o.loss === 'squared-hinge';
  const solve = hinge ? kernels.solveSquaredHinge : kernels.solveLogistic;
  const diagonals = hinge ? [1 / (2 * o.costPositive), 1 / (2 * o.costNegative)] : [0, 0];
  const [positive, negative] = hinge ? diagonals : [o.costPositive, o.costNegative];

  return (job) => {
    const task = tasks[job.task];
    const rows = between(task.rows, job.cluster);
    const children = between(task.shape, job.cluster);
    const starts = u32(x.indptr, x.rows + 1);
    const entries = u32(rows.address, rows.length).reduce((sum, r) => sum + starts[r + 1] - starts[r], 0);
    const bound = Math.min(x.cols, entries);
    const layout = jobLayout(rows.length, entries, bound, job.groups);
    const at = (key: keyof typeof layout) => work + layout[key];
    const features = kernels.compact(
      rows.address,
      rows.length,
      x.indptr,
      x.indices,
      x.values,
      localRow,
      localFeature,
      at('ids'),
      at('spare'),
      at('headers'),
      at('entries'),
    );
    kernels.stepSizes(rows.length, at('headers'), o.bias, diagonals[0], diagonals[1]);
    const groupBytes = (features + 2) * lanes * 4;
    for (let g = 0; g < job.groups; g++) {
      const first = (job.group + g) * lanes;
      const used = Math.min(lanes, children.length - first);
      const labels = children.address + first * 4;
      const { indptr, indices } = task.positives;
      kernels.markPositives(rows.address, rows.length, at('signs'), localRow, labels, used, indptr, indices);
      solve(
        rows.length,
        at('headers'),
        at('signs'),
        at('alphas'),
        at('order'),
        at('weights') + g * groupBytes,
        features,
        used,
        o.bias,
        positive,
        negative,
        o.epsilon,
        o.iterations,
        new Random(seed, 'solve', task.depth, job.cluster, job.group + g).uint32(),
      );
    }
    return keep(job, features, at, groupBytes);
  };

  /** The weights above the threshold, by ascending feature; the bias comes last. */
  function keep(
    job: SolveJob,
    features: number,
    at: (key: 'ids' | 'spare' | 'weights' | 'counts' | 'children' | 'values') => number,
    groupBytes: number,
  ): Chunk {
    const ids = u32(at('ids'), features + 1);
    const map = u32(localFeature, x.cols);
    for (let i = 0; i < features; i++) map[ids[i]] = i;
    ids[features] = x.cols;
    const sorted = ids.slice().sort();
    const locals = u32(at('spare'), features + 1);
    for (let i = 0; i < features; i++) locals[i] = map[sorted[i]];
    locals[features] = features;
    for (let i = 0; i < features; i++) map[ids[i]] = 0;
    const blocks: Chunk[] = [];
    const step = Math.floor(blockEntries / Math.max(1, job.groups * lanes));
    for (let from = 0; from <= features; from += step) {
      const to = Math.min(from + step, features + 1);
      const kept = kernels.keepWeights(
        at('spare'),
        from,
        to,
        at('weights'),
        job.groups,
        groupBytes,
        job.group * lanes,
        o.threshold,
        at('counts'),
        at('children'),
        at('values'),
      );
      const counts = u32(at('counts'), to - from);
      blocks.push({
        features: sorted.subarray(from, to).filter((_, i) => counts[i] > 0),
        counts: counts.filter((count) => count > 0),
        children: new Uint16Array(memory.buffer, at('children'), kept).slice(),
        values: new Float32Array(memory.buffer, at('values'), kept).slice(),
      });
    }
    if (blocks.length === 1) return blocks[0];
    const whole = joinChunks(
      { rows: 0, cols: 0, indptr: new Uint32Array(1), indices: new Uint32Array(0) },
      blocks,
    );
    const counts = Uint32Array.from({ length: whole.features.length }, (_, row) => {
      return whole.rowStart[row + 1] - whole.rowStart[row];
    });
    return { features: whole.features, counts, children: whole.children, values: whole.values };
  }
};
