// Trains the classifiers of a chain of levels: each cluster (a parent and its children) is a job over the rows that
// reach it, eight children at a time; a long one is several jobs over one copy of its rows. Levels do not wait.
import { type Arena, align } from '../../kernels/memory.ts';
import type { Pool, Prepare, Task } from '../../kernels/pool.ts';
import { loadKernels } from '../../kernels/wasm.ts';
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
/** Until this pass few rows can be left out, and to look at them all again at the end costs more than it saved. */
const shrinkFrom = 10;

/** Addresses of one task's patterns. */
interface PlacedTask {
  depth: number;
  shape: { indptr: number; indices: number };
  rows: { indptr: number; indices: number };
  positives: { indptr: number; indices: number };
  passes: Passes;
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
  /** One per cluster that several jobs work on: whether its rows are being copied, or have been. */
  copied: Int32Array;
}

/** Some of the children of one cluster: groups of eight, from `group` on. */
interface SolveJob {
  task: number;
  cluster: number;
  entries: number;
  group: number;
  groups: number;
  cost: number;
  /** Where the jobs of this cluster keep the copy of its rows; undefined where this job is the only one. */
  shared?: { address: number; flag: number };
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
  /** Over the rows, at most; where absent, as the options say. */
  passes?: Passes;
}

/** One more for twice as many rows that carry a child, within these. Eight are learnt together: the first decides. */
export interface Passes {
  least: number;
  most: number;
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
  let flags = 0;
  const jobs = clusters.flatMap((cluster) => {
    const pieces = cutCluster(cluster, x, share);
    if (pieces.length === 1) return pieces;
    const shared = { address: arena.allocate(copyLayout(cluster, x).bytes), flag: flags++ };
    return pieces.map((piece) => ({ ...piece, shared }));
  });
  jobs.sort((a, b) => b.cost - a.cost);
  // The training set of a level often is the positives of the level above: placed once.
  const placed = new Map<Pattern, { indptr: number; indices: number }>();
  const place = (m: Pattern) => {
    const addresses = placed.get(m) ?? placePattern(arena, m);
    placed.set(m, addresses);
    return addresses;
  };
  const own = jobs.reduce((most, { bytes }) => Math.max(most, bytes), 0);
  const scratchBytes = align(x.cols * 4) + own;
  const usual = { least: options.iterations, most: options.iterations };
  const setup: SolveSetup = {
    memory: arena.memory,
    x,
    tasks: tasks.map(({ depth, shape, rows, positives, passes = usual }) => {
      return { depth, shape: place(shape), rows: place(rows), positives: place(positives), passes };
    }),
    options,
    seed,
    scratch: arena.allocate(scratchBytes * threads),
    scratchBytes,
    counter: new Int32Array(new SharedArrayBuffer(4)),
    copied: new Int32Array(new SharedArrayBuffer(4 * flags)),
  };
  const total = tasks.reduce((sum, { shape }) => sum + shape.indices.length, 0);
  const work = jobs.reduce((sum, { cost }) => sum + cost, 0);
  const phase = tasks.length > 1 ? 'train' : `train level ${tasks[0].depth + 1}`;
  let worked = 0;
  // Counted by cost, so that the time left is right although the longest jobs come first.
  const onResult = (_: Chunk, index: number) => {
    worked += jobs[index].cost;
    progress({ phase, done: Math.round((total * worked) / work), total, unit: 'classifiers' });
  };
  const chunks = await pool.run(solveTask, setup, jobs, { signal, onResult });
  arena.release(start);
  return tasks.map(({ shape }, task) => joinChunks(shape, collect(shape, task, jobs, chunks)));
}

/** The chunk of every parent of a level, out of the pieces it was cut into. */
function collect(shape: Pattern, task: number, jobs: SolveJob[], chunks: Chunk[]): Chunk[] {
  const parts = Array.from({ length: shape.rows }, () => [] as { group: number; chunk: Chunk }[]);
  jobs.forEach((job, i) => {
    if (job.task === task) parts[job.cluster].push({ group: job.group, chunk: chunks[i] });
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
function cutCluster(whole: Cluster, x: Size, share: number) {
  const { task, cluster, children, entries, cost } = whole;
  const groups = Math.ceil(children / lanes);
  const byCost = Math.floor((share * groups) / Math.max(cost, 1));
  const byMemory = Math.floor(maxWeightBytes / ((Math.min(x.cols, entries) + 2) * lanes * 4));
  const step = Math.max(1, Math.min(groups, byMemory, byCost));
  const alone = step >= groups;
  return Array.from({ length: alone ? 1 : Math.ceil(groups / step) }, (_, i) => {
    const group = i * step;
    const size = Math.min(step, groups - group);
    const bytes = jobLayout(whole, x, size).bytes + (alone ? copyLayout(whole, x).bytes : 0);
    return { task, cluster, entries, group, groups: size, cost: (cost * size) / Math.max(groups, 1), bytes };
  });
}

type Size = { rows: number; cols: number };

/** Hands out offsets one after the other. */
function offsets() {
  let bytes = 0;
  const take = (size: number) => {
    const offset = bytes;
    bytes += align(size);
    return offset;
  };
  return { take, total: () => bytes };
}

/** The copy of a cluster's rows in which features are renumbered. */
function copyLayout({ rows, entries }: { rows: number; entries: number }, x: Size) {
  const { take, total } = offsets();
  const features = Math.min(x.cols, entries);
  const layout = {
    /** How many features there are. */
    count: take(4),
    localRow: take(x.rows * 4),
    /** Features, ascending, and the number that each has here; the bias comes last. */
    ids: take((features + 1) * 4),
    locals: take((features + 1) * 4),
    headers: take(rows * 16),
    entries: take(entries * 8),
  };
  return { ...layout, bytes: total() };
}

/** What a job works in beside the copy of the rows. */
function jobLayout({ rows, entries }: { rows: number; entries: number }, x: Size, groups: number) {
  const { take, total } = offsets();
  const features = Math.min(x.cols, entries);
  const layout = {
    state: take(64),
    signs: take(rows),
    // Two per row and lane: the logistic loss keeps the distance to both of its bounds.
    alphas: take(rows * lanes * 8),
    order: take(rows * 4),
    kept: take((features + 1) * 4),
    counts: take((features + 1) * 4),
    children: take(blockEntries * 2),
    values: take(blockEntries * 4),
    // One row more for the bias, and one that the logistic solver works in.
    weights: take((features + 2) * lanes * 4 * groups),
  };
  return { ...layout, bytes: total() };
}

export const prepareSolve: Prepare<SolveSetup, SolveJob, Chunk> = async (setup) => {
  const { memory, x, tasks, options: o, seed, copied } = setup;
  const kernels = await loadKernels(memory);
  const localFeature = ownScratch(setup, x.cols * 4);
  const work = localFeature + align(x.cols * 4);
  const u32 = (address: number, length: number) => new Uint32Array(memory.buffer, address, length);
  const between = ({ indptr, indices }: { indptr: number; indices: number }, row: number) => {
    const [start, end] = u32(indptr + row * 4, 2);
    return { address: indices + start * 4, length: end - start };
  };
  const hinge = o.loss === 'squared-hinge';
  const diagonals = hinge ? [1 / (2 * o.costPositive), 1 / (2 * o.costNegative)] : [0, 0];

  return (job) => {
    const task = tasks[job.task];
    const rows = between(task.rows, job.cluster);
    const children = between(task.shape, job.cluster);
    const size = { rows: rows.length, entries: job.entries };
    const copy = addresses(copyLayout(size, x), job.shared?.address ?? work);
    const own = job.shared ? work : work + copyLayout(size, x).bytes;
    const at = addresses(jobLayout(size, x, job.groups), own);
    once(job.shared?.flag, () => copyRows(rows, copy));
    const [features] = u32(copy.count, 1);
    const groupBytes = (features + 2) * lanes * 4;
    for (let g = 0; g < job.groups; g++) {
      const first = (job.group + g) * lanes;
      const used = Math.min(lanes, children.length - first);
      const labels = children.address + first * 4;
      const { indptr, indices } = task.positives;
      const marked = [rows.address, rows.length, at.signs, copy.localRow] as const;
      kernels.markPositives(...marked, labels, used, indptr, indices);
      const carriers = between(task.positives, u32(labels, 1)[0]).length;
      const { least, most } = task.passes;
      const passes = Math.min(most, Math.max(least, Math.round(Math.log2(carriers))));
      const draw = new Random(seed, 'solve', task.depth, job.cluster, job.group + g).uint32();
      const weights = at.weights + g * groupBytes;
      (hinge ? solveHinge : solveLogistic)(
        rows.length,
        copy.headers,
        at,
        weights,
        features,
        used,
        passes,
        draw,
      );
    }
    return keep(job, features, copy, at, groupBytes);
  };

  function solveHinge(
    rows: number,
    headers: number,
    { signs, alphas, order, state }: Addresses<'signs' | 'alphas' | 'order' | 'state'>,
    weights: number,
    features: number,
    used: number,
    passes: number,
    draw: number,
  ): void {
    const [positive, negative] = diagonals;
    kernels.startSquaredHinge(rows, alphas, order, weights, features, used, draw, state);
    const pass = (shrink: boolean) =>
      kernels.passSquaredHinge(
        rows,
        headers,
        signs,
        alphas,
        order,
        weights,
        features,
        o.bias,
        positive,
        negative,
        o.epsilon,
        Number(shrink),
        state,
      );
    for (let done = 1; done <= passes && pass(done >= shrinkFrom) === 0; done++);
  }

  function solveLogistic(
    rows: number,
    headers: number,
    { signs, alphas, order }: Addresses<'signs' | 'alphas' | 'order'>,
    weights: number,
    features: number,
    used: number,
    passes: number,
    draw: number,
  ): void {
    kernels.solveLogistic(
      rows,
      headers,
      signs,
      alphas,
      order,
      weights,
      features,
      used,
      o.bias,
      o.costPositive,
      o.costNegative,
      o.epsilon,
      passes,
      draw,
    );
  }

  /** Does what the jobs of one cluster need once; those that come while it is being done wait. */
  function once(flag: number | undefined, action: () => void): void {
    if (flag === undefined) action();
    else if (Atomics.compareExchange(copied, flag, 0, 1) === 0) {
      action();
      Atomics.store(copied, flag, 2);
      Atomics.notify(copied, flag);
    } else Atomics.wait(copied, flag, 1);
  }

  function copyRows(rows: { address: number; length: number }, copy: Addresses<CopyPart>): void {
    const features = kernels.compact(
      rows.address,
      rows.length,
      x.indptr,
      x.indices,
      x.values,
      copy.localRow,
      localFeature,
      copy.ids,
      copy.locals,
      copy.headers,
      copy.entries,
    );
    kernels.stepSizes(rows.length, copy.headers, o.bias, diagonals[0], diagonals[1]);
    u32(copy.count, 1)[0] = features;
    const map = u32(localFeature, x.cols);
    const ids = u32(copy.ids, features + 1);
    const locals = u32(copy.locals, features + 1);
    for (let i = 0; i < features; i++) map[ids[i]] = i;
    ids.subarray(0, features).sort();
    for (let i = 0; i < features; i++) {
      locals[i] = map[ids[i]];
      map[ids[i]] = 0;
    }
    ids[features] = x.cols;
    locals[features] = features;
  }

  /** The weights above the threshold, by ascending feature; the bias comes last. */
  function keep(
    job: SolveJob,
    features: number,
    { ids, locals }: Addresses<'ids' | 'locals'>,
    at: Addresses<'weights' | 'kept' | 'counts' | 'children' | 'values'>,
    groupBytes: number,
  ): Chunk {
    const blocks: Chunk[] = [];
    const step = Math.floor(blockEntries / Math.max(1, job.groups * lanes));
    for (let from = 0; from <= features; from += step) {
      const to = Math.min(from + step, features + 1);
      const rows = kernels.keepWeights(
        ids,
        locals,
        from,
        to,
        at.weights,
        job.groups,
        groupBytes,
        job.group * lanes,
        o.threshold,
        at.kept,
        at.counts,
        at.children,
        at.values,
      );
      const counts = u32(at.counts, rows).slice();
      const entries = counts.reduce((sum, count) => sum + count, 0);
      blocks.push({
        features: u32(at.kept, rows).slice(),
        counts,
        children: new Uint16Array(memory.buffer, at.children, entries).slice(),
        values: new Float32Array(memory.buffer, at.values, entries).slice(),
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

type CopyPart = 'count' | 'localRow' | 'ids' | 'locals' | 'headers' | 'entries';
type Addresses<T extends string> = Record<T, number>;

const addresses = <T extends string>(layout: Record<T, number>, base: number): Addresses<T> =>
  Object.fromEntries(
    Object.entries<number>(layout).map(([name, offset]) => [name, base + offset]),
  ) as Addresses<T>;
