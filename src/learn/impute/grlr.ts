// Group robust label representation (GRLR) on the kernels: for every label a direction that has a near member in each
// of its groups, and those members. Parallel over labels. The plain reference is reference.ts.
import type { Groups } from '../../data/group.ts';
import { type Prepare, runJobs, type Task } from '../../kernels/pool.ts';
import { Arena, align, createMemory, type Kernels, loadKernels } from '../../kernels/wasm.ts';
import { type Csr, columnCounts, nnz, type Pattern } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import type { Context } from '../../progress.ts';
import { ownScratch } from '../tree/chain.ts';
import { type Assignment, chosenStarts, groupSizes, type PairsByLabel, pairsByLabel } from './assignment.ts';

export interface GrlrOptions {
  iterations: number;
  step: number;
  /** Whether the mean of all rows is subtracted from each. */
  centre: boolean;
  /** Whether a group that carries a label r times counts r times. */
  weightByCount: boolean;
  /** `best`: one member for every group and label; `top-r`: as many as the group carries the label. */
  assign: 'best' | 'top-r';
}

/** The nearest members of every group for each of its labels; `x` has unit rows. */
export async function assignNearest(
  x: Csr,
  { members, labels }: Pick<Groups, 'members' | 'labels'>,
  o: GrlrOptions,
  context: Context,
): Promise<Assignment> {
  const pairs = pairsByLabel(labels);
  const starts = chosenStarts(labels, groupSizes(members), o.assign);
  const chosen = starts[starts.length - 1];
  const { meanDots, meanSquare } = meanProducts(x, o.centre);
  const { indptr, cells } = cellsOf(x, members);
  const sizes = labelSizes(pairs, members.indptr, indptr);
  const arena = new Arena(createMemory(1 << 20, true));
  const setup: Setup = {
    memory: arena.memory,
    width: x.cols,
    indptr: arena.place(indptr),
    cells: arena.place(cells),
    bounds: arena.place(members.indptr),
    meanDots: arena.place(new Uint8Array(Float64Array.from(members.indices, (row) => meanDots[row]).buffer)),
    meanSquare,
    groups: arena.place(pairs.groups),
    weights: arena.place(o.weightByCount ? pairs.weights : pairs.weights.map(() => 1)),
    pairs: arena.place(pairs.pairs),
    starts: arena.place(starts),
    chosen: arena.allocate(chosen * 4),
    similarities: arena.allocate(chosen * 4),
    margins: arena.allocate(nnz(labels) * 4),
    sizes,
    scratch: 0,
    scratchBytes: 0,
    counter: new Int32Array(new SharedArrayBuffer(4)),
    iterations: o.iterations,
    step: o.step,
    seed: context.seed,
  };
  setup.scratchBytes = scratchOf(setup).end;
  setup.scratch = arena.allocate(setup.scratchBytes * context.threads);
  let done = 0;
  await runJobs(task, setup, ranges(sizes.entries, 16 * context.threads), {
    ...context,
    onResult: (count) => {
      done += count;
      context.progress({ phase: 'impute', done, total: labels.cols, unit: 'labels' });
    },
  });
  const { buffer } = arena.memory;
  return {
    starts,
    rows: new Uint32Array(buffer, setup.chosen, chosen).map((member) => members.indices[member]),
    similarities: new Float32Array(buffer, setup.similarities, chosen).slice(),
    margins: new Float32Array(buffer, setup.margins, nnz(labels)).slice(),
  };
}

interface Setup {
  memory: WebAssembly.Memory;
  /** How many features there are. */
  width: number;
  /** One row for every member of every group, in their order; `bounds` says where each group's begin. */
  indptr: number;
  cells: number;
  bounds: number;
  meanDots: number;
  meanSquare: number;
  /** Of each label in turn, its groups. */
  groups: number;
  weights: number;
  pairs: number;
  starts: number;
  chosen: number;
  similarities: number;
  margins: number;
  sizes: LabelSizes;
  scratch: number;
  scratchBytes: number;
  counter: Int32Array;
  iterations: number;
  step: number;
  seed: number;
}

/** Of every label: where its pairs begin, and how many members and feature entries its groups have together. */
interface LabelSizes {
  starts: Uint32Array;
  places: Uint32Array;
  entries: Uint32Array;
}

type LabelRange = { from: number; to: number };
const task: Task<Setup, LabelRange, number> = { module: import.meta.url, name: 'prepareAssign' };

/** Offsets of a thread's work space, which has room for the largest label. */
function scratchOf({ width, sizes: { starts, places, entries } }: Pick<Setup, 'width' | 'sizes'>) {
  const most = (counts: Uint32Array) => counts.reduce((largest, count) => Math.max(largest, count), 0);
  const count = most(starts.subarray(1).map((end, label) => end - starts[label]));
  let end = 0;
  const take = (items: number, bytes: number) => {
    const at = end;
    end += align(items * bytes);
    return at;
  };
  const offsets = {
    slots: take(width, 4),
    // One more: the kernel notes a feature before it knows that it is new.
    ids: take(width + 1, 4),
    sums: take(width, 8),
    firsts: take(count + 1, 4),
    nearest: take(count, 4),
    ends: take(most(places), 4),
    means: take(most(places), 8),
    shares: take(most(places), 8),
    dots: take(most(places), 8),
    pulls: take(most(places), 8),
    entries: take(most(entries) + 1, 8),
  };
  return { ...offsets, end };
}
type Scratch = ReturnType<typeof scratchOf>;

export const prepareAssign: Prepare<Setup, LabelRange, number> = async (setup) => {
  const kernels = await loadKernels(setup.memory);
  const own = ownScratch(setup, setup.width * 4);
  const offsets = Object.entries(scratchOf(setup)).map(([name, offset]) => [name, own + offset]);
  const scratch: Scratch = Object.fromEntries(offsets);
  return ({ from, to }) => {
    for (let label = from; label < to; label++)
      if (setup.sizes.places[label] > 0) assignLabel(kernels, setup, scratch, label);
    return to - from;
  };
};

function assignLabel(kernels: Kernels, setup: Setup, at: Scratch, label: number): void {
  const { memory, bounds, meanSquare, sizes, iterations, step } = setup;
  const first = sizes.starts[label];
  const count = sizes.starts[label + 1] - first;
  const places = sizes.places[label];
  const [groups, weights] = [setup.groups + first * 4, setup.weights + first * 4];
  const features = kernels.gatherPlaces(
    ...([groups, count, bounds, setup.indptr, setup.cells, setup.meanDots] as const),
    ...([at.slots, at.ids, at.firsts, at.ends, at.means, at.entries] as const),
  );
  const rows = [places, at.ends, at.entries, at.means, meanSquare, features] as const;
  const start = () => kernels.startDirection(...rows, at.sums, at.shares, at.dots) > 0;
  kernels.shareWeights(count, at.firsts, weights, at.shares);
  const found = start() || findAnyStart(setup, at, label, start);
  // Where all members are empty none is nearer than another, and the first is taken.
  if (!found) new Float64Array(memory.buffer, at.dots, places).fill(0);
  else if (iterations > 0) {
    const turning = [at.sums, at.shares, at.dots, at.pulls, count, at.firsts, weights, at.nearest] as const;
    kernels.turnDirection(...rows, ...turning, iterations, step);
  }
  const results = [setup.starts, setup.chosen, setup.similarities, setup.margins] as const;
  kernels.chooseMembers(groups, count, bounds, at.firsts, at.dots, setup.pairs + first * 4, ...results);
}

function findAnyStart(
  { memory, sizes, weights, seed }: Setup,
  at: Scratch,
  label: number,
  start: () => boolean,
) {
  const first = sizes.starts[label];
  const count = sizes.starts[label + 1] - first;
  return randomStart(
    new Float64Array(memory.buffer, at.shares, sizes.places[label]),
    new Uint32Array(memory.buffer, at.firsts, count + 1),
    new Float32Array(memory.buffer, weights + first * 4, count),
    start,
    new Random(seed, 'impute', label),
  );
}

/**
 * Where the sum of all members is zero, that of one member of each group, drawn at random; where that is zero too, any
 * direction the members span. False where all members are zero.
 */
export function randomStart(
  shares: Float64Array,
  firsts: Uint32Array,
  weights: Float32Array,
  start: () => boolean,
  random: Random,
): boolean {
  shares.fill(0);
  for (let j = 0; j < weights.length; j++) {
    const size = firsts[j + 1] - firsts[j];
    if (size > 0) shares[firsts[j] + random.integer(size)] = weights[j];
  }
  if (start()) return true;
  for (let i = 0; i < shares.length; i++) shares[i] = random.normal();
  return start();
}

/** Each row's dot product with the mean row, and the mean's with itself; zeros where nothing is to be centred. */
export function meanProducts(x: Csr, centre: boolean): { meanDots: Float64Array; meanSquare: number } {
  const meanDots = new Float64Array(x.rows);
  if (!centre) return { meanDots, meanSquare: 0 };
  const mean = new Float64Array(x.cols);
  for (let p = 0; p < nnz(x); p++) mean[x.indices[p]] += x.values[p] / x.rows;
  for (let row = 0; row < x.rows; row++) {
    for (let p = x.indptr[row]; p < x.indptr[row + 1]; p++) meanDots[row] += mean[x.indices[p]] * x.values[p];
  }
  return { meanDots, meanSquare: mean.reduce((sum, value) => sum + value * value, 0) };
}

/**
 * Feature and value of each entry beside each other, rows of a group after one another: a group is read as one.
 * Features are numbered by how often they occur, so that the sums that are used most lie together.
 */
function cellsOf(x: Csr, members: Pattern): { indptr: Uint32Array; cells: Uint32Array } {
  const counts = columnCounts(x);
  const numbers = new Uint32Array(x.cols);
  Uint32Array.from({ length: x.cols }, (_, column) => column)
    .sort((a, b) => counts[b] - counts[a] || a - b)
    .forEach((column, number) => {
      numbers[column] = number;
    });
  const indptr = new Uint32Array(members.indices.length + 1);
  members.indices.forEach((row, i) => {
    indptr[i + 1] = indptr[i] + x.indptr[row + 1] - x.indptr[row];
  });
  const cells = new Uint32Array(2 * indptr[members.indices.length]);
  const values = new Float32Array(cells.buffer);
  let at = 0;
  for (const row of members.indices) {
    for (let p = x.indptr[row]; p < x.indptr[row + 1]; p++) {
      cells[at++] = numbers[x.indices[p]];
      values[at++] = x.values[p];
    }
  }
  return { indptr, cells };
}

function labelSizes({ starts, groups }: PairsByLabel, bounds: Uint32Array, indptr: Uint32Array): LabelSizes {
  const total = (size: (group: number) => number) =>
    Uint32Array.from({ length: starts.length - 1 }, (_, label) => {
      let sum = 0;
      for (let p = starts[label]; p < starts[label + 1]; p++) sum += size(groups[p]);
      return sum;
    });
  return {
    starts,
    places: total((group) => bounds[group + 1] - bounds[group]),
    entries: total((group) => indptr[bounds[group + 1]] - indptr[bounds[group]]),
  };
}

/** Consecutive labels with about the same sum of counts in each range. */
function ranges(counts: Uint32Array, pieces: number): LabelRange[] {
  const share = counts.reduce((sum, count) => sum + count, 0) / pieces;
  const found: LabelRange[] = [];
  let [from, sum] = [0, 0];
  counts.forEach((count, label) => {
    sum += count;
    if (sum < share && label + 1 < counts.length) return;
    found.push({ from, to: label + 1 });
    [from, sum] = [label + 1, 0];
  });
  return found;
}
