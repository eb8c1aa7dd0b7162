// From labelled rows to the shape of a tree: label features, their balanced clusters, and the chain of levels above
// them. Each level is a pattern, parents x children, from the root (one row) down to the labels.
import { type Arena, align } from '../../kernels/memory.ts';
import type { Pool, Prepare, Task } from '../../kernels/pool.ts';
import { loadKernels } from '../../kernels/wasm.ts';
import type { Csr, Pattern } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import type { Context } from '../../progress.ts';

/** Addresses of a sparse matrix in a kernel memory. */
export interface Placed {
  rows: number;
  cols: number;
  indptr: number;
  indices: number;
  values: number;
}

export interface ChainOptions {
  branching: number;
  leafSize: number;
  flatSize: number;
  /** Copies of each label that leaves will have to hold, and nodes that a search keeps per level. */
  copies: number;
  beam: number;
  /** Whether a row that carries many labels counts less for each of them. */
  shareRows: boolean;
}

/** Of fewer leaves than this times the beam, the beam reaches a good part: they are better left large. */
const manyBeams = 10;

/**
 * How many halvings bring the labels down to leaves of at most `leafSize`; 0 means no clusters at all. Where leaves are
 * many, they are made smaller as labels have more copies: a leaf costs its labels times its rows.
 */
function treeDepth(labels: number, { leafSize, flatSize, copies, beam }: ChainOptions): number {
  if (labels <= Math.max(leafSize, flatSize)) return 0;
  const depth = Math.max(1, Math.ceil(Math.log2(labels / leafSize)));
  return 2 ** depth < manyBeams * beam
    ? depth
    : Math.max(depth, Math.ceil(Math.log2((copies * labels) / leafSize)));
}

/** The chain for labels that occur; `labels` is rows x labels, `byLabel` its transpose, `x` already in the arena. */
export async function buildChain(
  arena: Arena,
  x: Placed,
  labels: Pattern,
  byLabel: Pattern,
  options: ChainOptions,
  seed: string,
  pool: Pool,
  context: Context,
): Promise<Pattern[]> {
  const used = Uint32Array.from({ length: labels.cols }, (_, label) => label).filter(
    (label) => byLabel.indptr[label + 1] > byLabel.indptr[label],
  );
  const depth = treeDepth(used.length, options);
  if (depth === 0) return [blocks(used, [0, used.length], labels.cols)];
  const start = arena.next;
  const rowsOf = placePattern(arena, byLabel);
  const weights = Float32Array.from({ length: labels.rows }, (_, row) => {
    const size = labels.indptr[row + 1] - labels.indptr[row];
    return options.shareRows ? 1 / Math.sqrt(size) : 1;
  });
  const setup: ClusterSetup = {
    memory: arena.memory,
    x,
    rowsOf,
    rowWeights: arena.place(weights),
    features: { rows: labels.cols, cols: x.cols, indptr: 0, indices: 0, values: 0 },
    items: arena.place(used),
    scratch: 0,
    scratchBytes: align(x.cols * 16) + align(used.length * 32),
    counter: new Int32Array(new SharedArrayBuffer(4)),
    seed,
  };
  context.progress({ phase: 'cluster', done: 0, total: used.length, unit: 'labels' });
  await labelFeatures(arena, setup, byLabel, pool, context);
  takeScratch(arena, setup, context.threads);
  const bounds = await halve(setup, used.length, depth, pool, context);
  context.progress({ phase: 'cluster', done: used.length, total: used.length, unit: 'labels' });
  const order = new Uint32Array(arena.memory.buffer, setup.items, used.length).slice();
  arena.release(start);
  return [...upperLevels(bounds.length - 1, options.branching), blocks(order, bounds, labels.cols)];
}

export function placeMatrix(arena: Arena, x: Csr): Placed {
  return { rows: x.rows, cols: x.cols, ...placePattern(arena, x), values: arena.place(x.values) };
}

export function placePattern(arena: Arena, m: Pattern): { indptr: number; indices: number } {
  return { indptr: arena.place(m.indptr), indices: arena.place(m.indices) };
}

/** Consecutive runs of `order` are the children of consecutive parents. */
function blocks(order: Uint32Array, bounds: number[], cols: number): Pattern {
  const indices = order.slice();
  for (let i = 1; i < bounds.length; i++) indices.subarray(bounds[i - 1], bounds[i]).sort();
  return { rows: bounds.length - 1, cols, indptr: Uint32Array.from(bounds), indices };
}

/** Groups `nodes` consecutive nodes `branching` at a time until the root is left. */
export function upperLevels(nodes: number, branching: number): Pattern[] {
  const levels: Pattern[] = [];
  for (let below = nodes; levels.length === 0 || below > 1; ) {
    const parents = below <= branching ? 1 : Math.ceil(below / branching);
    const bounds = Array.from({ length: parents + 1 }, (_, p) => Math.min(p * branching, below));
    bounds[parents] = below;
    levels.unshift(
      blocks(
        Uint32Array.from({ length: below }, (_, i) => i),
        bounds,
        below,
      ),
    );
    below = parents;
  }
  return levels;
}

interface ClusterSetup {
  memory: WebAssembly.Memory;
  x: Placed;
  rowsOf: { indptr: number; indices: number };
  rowWeights: number;
  features: Placed;
  items: number;
  /** Every thread takes its own piece: the counter says which. */
  scratch: number;
  scratchBytes: number;
  counter: Int32Array;
  seed: string;
}

function takeScratch(arena: Arena, setup: ClusterSetup, threads: number): void {
  setup.scratch = arena.allocate(setup.scratchBytes * threads);
}

/** A piece of scratch memory of this thread's own, of which the first bytes are zero. */
export function ownScratch(
  setup: Pick<ClusterSetup, 'memory' | 'scratch' | 'scratchBytes' | 'counter'>,
  zeroBytes: number,
): number {
  const address = setup.scratch + Atomics.add(setup.counter, 0, 1) * setup.scratchBytes;
  new Uint8Array(setup.memory.buffer, address, zeroBytes).fill(0);
  return address;
}

type LabelRange = { from: number; to: number };
const countTask: Task<ClusterSetup, LabelRange, Uint32Array> = {
  module: import.meta.url,
  name: 'prepareCount',
};
const sumTask: Task<ClusterSetup, LabelRange, void> = { module: import.meta.url, name: 'prepareSum' };
const halveTask: Task<ClusterSetup, HalveJob, void> = { module: import.meta.url, name: 'prepareHalve' };

/** Counts first, so that the vectors of all labels fit side by side, then sums. */
async function labelFeatures(
  arena: Arena,
  setup: ClusterSetup,
  byLabel: Pattern,
  pool: Pool,
  { threads, signal }: Context,
): Promise<void> {
  const ranges = evenRanges(byLabel, 4 * threads);
  const bottom = arena.next;
  const run = <R>(task: Task<ClusterSetup, LabelRange, R>) => {
    setup.counter[0] = 0;
    return pool.run(task, setup, ranges, { signal });
  };
  takeScratch(arena, setup, threads);
  const counts = await run(countTask);
  arena.release(bottom);
  const indptr = new Uint32Array(byLabel.rows + 1);
  ranges.forEach(({ from, to }, i) => {
    for (let label = from; label < to; label++) indptr[label + 1] = indptr[label] + counts[i][label - from];
  });
  setup.features.indptr = arena.place(indptr);
  setup.features.indices = arena.allocate(indptr[byLabel.rows] * 4);
  setup.features.values = arena.allocate(indptr[byLabel.rows] * 4);
  const top = arena.next;
  takeScratch(arena, setup, threads);
  await run(sumTask);
  arena.release(top);
}

/** Cuts the rows of a pattern into at most `pieces` ranges of about as many entries each. */
function evenRanges(m: Pattern, pieces: number): LabelRange[] {
  const ranges: LabelRange[] = [];
  const share = m.indptr[m.rows] / pieces;
  for (let from = 0; from < m.rows; ) {
    let to = from + 1;
    while (to < m.rows && m.indptr[to] - m.indptr[from] < share) to++;
    ranges.push({ from, to });
    from = to;
  }
  return ranges;
}

export const prepareCount: Prepare<ClusterSetup, LabelRange, Uint32Array> = async (setup) => {
  const { memory, x, rowsOf } = setup;
  const kernels = await loadKernels(memory);
  const slots = ownScratch(setup, x.cols * 4);
  const touched = slots + align(x.cols * 4);
  return ({ from, to }) => {
    const starts = new Uint32Array(memory.buffer, rowsOf.indptr, to + 1);
    return Uint32Array.from({ length: to - from }, (_, i) => {
      const rows = rowsOf.indices + starts[from + i] * 4;
      const count = starts[from + i + 1] - starts[from + i];
      return kernels.countFeatures(rows, count, x.indptr, x.indices, slots, touched);
    });
  };
};

export const prepareSum: Prepare<ClusterSetup, LabelRange, void> = async (setup) => {
  const { memory, x, rowsOf, features, rowWeights } = setup;
  const kernels = await loadKernels(memory);
  const slots = ownScratch(setup, x.cols * 4);
  return ({ from, to }) => {
    const starts = new Uint32Array(memory.buffer, rowsOf.indptr, to + 1);
    const outStarts = new Uint32Array(memory.buffer, features.indptr, to + 1);
    for (let label = from; label < to; label++) {
      kernels.sumRows(
        rowsOf.indices + starts[label] * 4,
        starts[label + 1] - starts[label],
        rowWeights,
        x.indptr,
        x.indices,
        x.values,
        slots,
        features.indices + outStarts[label] * 4,
        features.values + outStarts[label] * 4,
      );
    }
  };
};

/** One node, from `start` to `end` of the items, and how many halvings are to be done below it. */
interface HalveJob {
  start: number;
  end: number;
  level: number;
  path: number;
  depth: number;
}

/** Halves `count` items `depth` times in place; returns the bounds of the 2^depth leaves. */
async function halve(
  setup: ClusterSetup,
  count: number,
  depth: number,
  pool: Pool,
  { signal }: Context,
): Promise<number[]> {
  let nodes: HalveJob[] = [{ start: 0, end: count, level: 0, path: 0, depth }];
  // The first halvings are one run each; once there is work for every thread, a job is a whole subtree.
  const shallow = Math.min(depth, 3);
  for (let level = 0; level <= shallow; level++) {
    const steps = level < shallow ? 1 : depth - level;
    setup.counter[0] = 0;
    const jobs = nodes.map((node) => ({ ...node, depth: steps }));
    if (steps > 0) await pool.run(halveTask, setup, jobs, { signal });
    if (level < shallow) nodes = nodes.flatMap(children);
  }
  for (let level = shallow; level < depth; level++) nodes = nodes.flatMap(children);
  return [0, ...nodes.map(({ end }) => end)];
}

function children({ start, end, level, path, depth }: HalveJob): HalveJob[] {
  const middle = start + ((end - start) >> 1);
  const below = { level: level + 1, depth: depth - 1 };
  return [
    { ...below, start, end: middle, path: 2 * path },
    { ...below, start: middle, end, path: 2 * path + 1 },
  ];
}

export const prepareHalve: Prepare<ClusterSetup, HalveJob, void> = async (setup) => {
  const { memory, features, items, seed } = setup;
  const kernels = await loadKernels(memory);
  const sums = ownScratch(setup, features.cols * 16);
  const work = sums + align(features.cols * 16);
  const split = (job: HalveJob) => {
    if (job.depth === 0) return;
    const q = job.end - job.start;
    if (q > 1) {
      const random = new Random(seed, 'two-means', job.level, job.path);
      const first = random.integer(q);
      const other = random.integer(q - 1);
      kernels.splitInTwo(
        items + job.start * 4,
        q,
        first,
        other < first ? other : other + 1,
        features.indptr,
        features.indices,
        features.values,
        sums,
        work,
      );
    }
    for (const child of children(job)) split(child);
  };
  return split;
};
