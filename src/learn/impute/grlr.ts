// Group robust label representation (GRLR) on the kernels: for every label a direction that has a near member in each
// of its groups, and those members. Parallel over labels. The plain reference is reference.ts.
import type { Groups } from '../../data/group.ts';
import { type Prepare, runJobs, type Task } from '../../kernels/pool.ts';
import { Arena, align, createMemory, type Kernels, loadKernels } from '../../kernels/wasm.ts';
import { type Csr, nnz } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import type { Context } from '../../progress.ts';
import { ownScratch, type Placed, placeMatrix, placePattern } from '../tree/chain.ts';
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
  const sizes = groupSizes(members);
  const starts = chosenStarts(labels, sizes, o.assign);
  const arena = new Arena(createMemory(1 << 20, true));
  const { meanDots, meanSquare } = meanProducts(x, o.centre);
  const chosen = starts[starts.length - 1];
  const out = {
    rows: arena.allocate(chosen * 4),
    similarities: arena.allocate(chosen * 4),
    margins: arena.allocate(nnz(labels) * 4),
  };
  const places = placesByLabel(pairs, sizes);
  const setup: Setup = {
    memory: arena.memory,
    x: placeMatrix(arena, x),
    members: placePattern(arena, members),
    groups: arena.place(pairs.groups),
    weights: arena.place(o.weightByCount ? pairs.weights : new Float32Array(pairs.groups.length).fill(1)),
    pairs: arena.place(pairs.pairs),
    counts: arena.place(pairs.pairs.map((pair) => starts[pair + 1] - starts[pair])),
    starts: arena.place(starts),
    meanDots: arena.place(new Uint8Array(meanDots.buffer)),
    meanSquare,
    out,
    labelStarts: pairs.starts,
    most: { places: largest(places), groups: largest(differences(pairs.starts)) },
    scratch: 0,
    scratchBytes: 0,
    counter: new Int32Array(new SharedArrayBuffer(4)),
    iterations: o.iterations,
    step: o.step,
    seed: context.seed,
  };
  setup.scratchBytes = scratchOf(setup).bytes;
  setup.scratch = arena.allocate(setup.scratchBytes * context.threads);
  let done = 0;
  const jobs = ranges(places, 16 * context.threads);
  await runJobs(task, setup, jobs, {
    ...context,
    onResult: (count) => {
      done += count;
      context.progress({ phase: 'impute', done, total: labels.cols, unit: 'labels' });
    },
  });
  return {
    starts,
    rows: new Uint32Array(arena.memory.buffer, out.rows, chosen).slice(),
    similarities: new Float32Array(arena.memory.buffer, out.similarities, chosen).slice(),
    margins: new Float32Array(arena.memory.buffer, out.margins, nnz(labels)).slice(),
  };
}

interface Setup {
  memory: WebAssembly.Memory;
  x: Placed;
  members: { indptr: number; indices: number };
  groups: number;
  weights: number;
  pairs: number;
  counts: number;
  starts: number;
  meanDots: number;
  meanSquare: number;
  out: { rows: number; similarities: number; margins: number };
  labelStarts: Uint32Array;
  /** What the label with the most needs. */
  most: { places: number; groups: number };
  scratch: number;
  scratchBytes: number;
  counter: Int32Array;
  iterations: number;
  step: number;
  seed: number;
}

type LabelRange = { from: number; to: number };
const task: Task<Setup, LabelRange, number> = { module: import.meta.url, name: 'prepareAssign' };

function scratchOf({ x, most }: Pick<Setup, 'x' | 'most'>) {
  const rows = align(x.cols * 8);
  const bounds = rows + align(most.places * 4);
  const dots = bounds + align((most.groups + 1) * 4);
  const shares = dots + align(most.places * 8);
  const pulls = shares + align(most.places * 8);
  return { sums: 0, rows, bounds, dots, shares, pulls, bytes: pulls + align(most.places * 8) };
}

export const prepareAssign: Prepare<Setup, LabelRange, number> = async (setup) => {
  const kernels = await loadKernels(setup.memory);
  const own = ownScratch(setup, setup.x.cols * 8);
  return ({ from, to }) => {
    for (let label = from; label < to; label++) assignLabel(kernels, setup, own, label);
    return to - from;
  };
};

function assignLabel(kernels: Kernels, setup: Setup, own: number, label: number): void {
  const { x, members, out } = setup;
  const first = setup.labelStarts[label];
  const count = setup.labelStarts[label + 1] - first;
  if (count === 0) return;
  const at = scratchOf(setup);
  const [rows, bounds, dots] = [own + at.rows, own + at.bounds, own + at.dots];
  const [groups, weights] = [setup.groups + first * 4, setup.weights + first * 4];
  const places = kernels.layPlaces(groups, count, members.indptr, members.indices, rows, bounds);
  const matrix = [x.indptr, x.indices, x.values, setup.meanDots, setup.meanSquare] as const;
  const shares = new Float64Array(setup.memory.buffer, own + at.shares, places);
  const start = () =>
    kernels.startDirection(rows, places, own + at.shares, ...matrix, own + at.sums, dots) > 0;
  const boundsOf = new Uint32Array(setup.memory.buffer, bounds, count + 1);
  const weightsOf = new Float32Array(setup.memory.buffer, weights, count);
  if (findStart(shares, boundsOf, weightsOf, start, new Random(setup.seed, 'impute', label)))
    kernels.turnDirection(
      ...[rows, places, bounds, weights, count, ...matrix, setup.iterations, setup.step],
      ...[own + at.sums, dots, own + at.shares, own + at.pulls],
    );
  // Nothing is nearer than anything else: the first member is taken.
  else new Float64Array(setup.memory.buffer, dots, places).fill(0);
  const [counts, pairs] = [setup.counts + first * 4, setup.pairs + first * 4];
  const results = [out.rows, out.similarities, out.margins] as const;
  kernels.chooseMembers(rows, bounds, count, counts, pairs, setup.starts, dots, ...results);
}

/**
 * The sum of all members; where that is zero, of one member of each group, drawn at random; where that is zero too, any
 * direction the members span. False where all members are zero.
 */
export function findStart(
  shares: Float64Array,
  bounds: Uint32Array,
  weights: Float32Array,
  start: () => boolean,
  random: Random,
): boolean {
  for (let j = 0; j < weights.length; j++) shares.fill(weights[j], bounds[j], bounds[j + 1]);
  if (start()) return true;
  shares.fill(0);
  for (let j = 0; j < weights.length; j++) {
    const size = bounds[j + 1] - bounds[j];
    if (size > 0) shares[bounds[j] + random.integer(size)] = weights[j];
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

function placesByLabel({ starts, groups }: PairsByLabel, sizes: Uint32Array): Uint32Array {
  return Uint32Array.from({ length: starts.length - 1 }, (_, label) => {
    let places = 0;
    for (let p = starts[label]; p < starts[label + 1]; p++) places += sizes[groups[p]];
    return places;
  });
}

const differences = (starts: Uint32Array) => starts.subarray(1).map((end, i) => end - starts[i]);
const largest = (values: Uint32Array) => values.reduce((most, value) => Math.max(most, value), 0);

/** Consecutive labels with about as many places in each range. */
function ranges(places: Uint32Array, pieces: number): LabelRange[] {
  const share = places.reduce((sum, count) => sum + count, 0) / pieces;
  const found: LabelRange[] = [];
  let [from, sum] = [0, 0];
  places.forEach((count, label) => {
    sum += count;
    if (sum < share && label + 1 < places.length) return;
    found.push({ from, to: label + 1 });
    [from, sum] = [label + 1, 0];
  });
  return found;
}
