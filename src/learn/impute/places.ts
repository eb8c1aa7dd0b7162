// Work on one label at a time, on all threads: the members of its groups (its places) are listed, or copied side by side,
// for the kernels, and what they choose is collected. What is done with a label is the caller's: grlr.ts, refine.ts.
import type { GroupParts } from '../../data/group.ts';
import { Arena, align, createMemory } from '../../kernels/memory.ts';
import { runJobs, startThreads, type Task } from '../../kernels/pool.ts';
import { type Kernels, loadKernels } from '../../kernels/wasm.ts';
import { type Csr, columnCounts, type Pattern } from '../../math/csr.ts';
import type { Context } from '../../progress.ts';
import { ownScratch } from '../tree/chain.ts';
import { type Assignment, type PairsByLabel, pairsByLabel, scoreOffsets } from './assignment.ts';

/** What every thread is given: addresses, sizes, and the options of the work to be done. */
export interface Setup<O> {
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
  /** How many members of each are wanted; 0 where it is one of each. */
  counts: number;
  pairs: number;
  /** Of each pair, where the scores of its members begin; and which of them were chosen before, or are now. */
  offsets: number;
  scores: number;
  chosen: number;
  sizes: LabelSizes;
  /** Groups from here on are examples that nothing is asked about. */
  asked: number;
  /** Of each label, the number of a feature that it must not see. */
  hidden?: Uint32Array;
  /** What a thread has room for. */
  room: { groups: number; places: number; entries: number };
  scratch: number;
  scratchBytes: number;
  counter: Int32Array;
  seed: number;
  options: O;
}

/** Of every label: where its pairs begin, and how many members and feature entries its groups have together. */
interface LabelSizes {
  starts: Uint32Array;
  places: Uint32Array;
  entries: Uint32Array;
}

export type LabelRange = { from: number; to: number };
/** Returns how many labels are done. */
export type LabelTask<O> = Task<Setup<O>, LabelRange, number>;

/** What a run starts from beside the groups. */
interface Given {
  /** Members chosen so far, one mark for each score. */
  chosen?: Uint8Array;
  /** Features that stand for the labels, from this column on, are hidden from their own label. */
  labelFeatures?: number;
  /** Groups that follow so many are examples that nothing is asked about. */
  asked?: number;
  /** How many rows, the first ones, make the mean that is subtracted from each; otherwise none is. */
  averaged?: number;
  /** Whether a group that carries a label r times counts r times. */
  weightByCount?: boolean;
  /** Whether a label goes to as many members of a group as it carries it, instead of to the best. */
  topR?: boolean;
  /** Groups that the work looks at, and copies the rows of, beside each of a label; none where it only lists rows. */
  others?: number;
}

/**
 * What a task says of every pair and each of its members, as a view of the memory it worked in; `x` has one row per
 * sample.
 */
export async function runLabels<O>(
  task: LabelTask<O>,
  x: Csr,
  { members, labels }: GroupParts,
  options: O,
  { chosen, labelFeatures, asked = members.rows, others, ...given }: Given,
  context: Context,
): Promise<Assignment> {
  startThreads(context.threads, true);
  const pairs = pairsByLabel(labels);
  const offsets = scoreOffsets(members, labels);
  const size = offsets[offsets.length - 1];
  const numbers = byFrequency(x);
  const arena = new Arena(createMemory(1 << 20, true));
  const { indptr, cells } = placeCells(arena, x, members, numbers);
  const sizes = labelSizes(pairs, members.indptr, indptr);
  const mean = given.averaged !== undefined && meanProducts(x, members, given.averaged);
  const counts = arena.place(pairs.weights);
  const setup: Setup<O> = {
    memory: arena.memory,
    width: x.cols,
    indptr: arena.place(indptr),
    cells,
    bounds: arena.place(members.indptr),
    meanDots: mean ? arena.place(new Uint8Array(mean.dots.buffer)) : 0,
    meanSquare: mean ? mean.square : 0,
    groups: arena.place(pairs.groups),
    weights: given.weightByCount ? counts : arena.place(pairs.weights.map(() => 1)),
    counts: given.topR ? counts : 0,
    pairs: arena.place(pairs.pairs),
    offsets: arena.place(offsets),
    scores: arena.allocate(4 * size),
    chosen: chosen ? arena.place(chosen) : arena.allocate(size),
    sizes,
    asked,
    hidden: labelFeatures === undefined ? undefined : numbers.slice(labelFeatures),
    room: roomFor(sizes, members.indptr, indptr, others),
    scratch: 0,
    scratchBytes: 0,
    counter: new Int32Array(new SharedArrayBuffer(4)),
    seed: context.seed,
    options,
  };
  setup.scratchBytes = scratchOf(setup).end;
  // A label that all groups carry may ask for so much that not every thread finds room: fewer do the same work.
  const threads = Math.max(1, Math.min(context.threads, Math.floor(arena.left / setup.scratchBytes)));
  setup.scratch = arena.allocate(setup.scratchBytes * threads);
  let done = 0;
  await runJobs(task, setup, ranges(sizes.entries, 128 * context.threads), {
    ...context,
    threads,
    here: true,
    once: true,
    onResult: (count) => {
      done += count;
      context.progress({ phase: 'impute', done, total: labels.cols, unit: 'labels' });
    },
  });
  const { buffer } = arena.memory;
  return {
    scores: { offsets, values: new Float32Array(buffer, setup.scores, size) },
    chosen: new Uint8Array(buffer, setup.chosen, size),
  };
}

/** Offsets of a thread's work space, which has room for the largest label. */
function scratchOf({ width, room }: Pick<Setup<unknown>, 'width' | 'room'>) {
  let end = 0;
  const take = (items: number, bytes: number) => {
    const at = end;
    end += align(items * bytes);
    return at;
  };
  const offsets = {
    slots: take(width, 4),
    // Room for four folds of four bytes, or for two sums of eight.
    sums: take(width + 1, 16),
    // One more: the kernel notes a feature before it knows that it is new.
    ids: take(width + 1, 4),
    list: take(room.groups, 4),
    firsts: take(room.groups + 1, 4),
    nearest: take(room.groups, 4),
    folds: take(room.groups, 1),
    ends: take(room.places, 4),
    spans: take(room.places, 8),
    order: take(room.places, 4),
    marks: take(room.places, 1),
    sides: take(room.places, 1),
    means: take(room.places, 8),
    shares: take(room.places, 8),
    dots: take(room.places, 8),
    pulls: take(room.places, 16),
    entries: take(room.entries + 1, 8),
  };
  return { ...offsets, end };
}
export type Scratch = ReturnType<typeof scratchOf>;

/** One label at work: its number, its groups, and where its places lie. */
export interface LabelPlaces {
  label: number;
  /** Addresses of its groups' weights, of how many members are wanted (0: one of each), and of their pairs. */
  weights: number;
  counts: number;
  pairs: number;
  /** Its groups: how many, and their address; groups without the label may follow them in the list. */
  count: number;
  list: number;
  places: number;
}

type Work<O> = (kernels: Kernels, setup: Setup<O>, at: Scratch, label: LabelPlaces) => void;

/** Makes a function over single labels into what the threads run. */
export const overLabels =
  <O>(work: Work<O>) =>
  async (setup: Setup<O>): Promise<(range: LabelRange) => number> => {
    const kernels = await loadKernels(setup.memory);
    const layout = scratchOf(setup);
    // Slots and sums are zero wherever a label begins.
    const own = ownScratch(setup, layout.ids);
    const offsets = Object.entries(layout).map(([name, offset]) => [name, own + offset]);
    const at: Scratch = Object.fromEntries(offsets);
    const { starts, places } = setup.sizes;
    return ({ from, to }) => {
      for (let label = from; label < to; label++) {
        if (places[label] === 0) continue;
        const first = starts[label] * 4;
        work(kernels, setup, at, {
          label,
          weights: setup.weights + first,
          counts: setup.counts && setup.counts + first,
          pairs: setup.pairs + first,
          count: starts[label + 1] - starts[label],
          list: setup.groups + first,
          places: places[label],
        });
      }
      return to - from;
    };
  };

/** Where the places' dot products with the mean lie; 0 where nothing is centred. */
export const meansOf = ({ meanDots }: Setup<unknown>, { means }: Scratch): number => meanDots && means;

/** Finds the rows of the label's groups. */
export function list(kernels: Kernels, setup: Setup<unknown>, at: Scratch, label: LabelPlaces): void {
  kernels.listPlaces(
    ...([label.list, label.count, setup.bounds, setup.indptr, setup.cells, setup.meanDots] as const),
    ...([at.firsts, at.spans, meansOf(setup, at)] as const),
  );
}

/** Copies the rows of the listed groups side by side, with features renumbered; says how many there are. */
export function gather(
  kernels: Kernels,
  setup: Setup<unknown>,
  at: Scratch,
  label: number,
  list: number,
  count: number,
): number {
  return kernels.gatherPlaces(
    ...([list, count, setup.bounds, setup.indptr, setup.cells] as const),
    ...([setup.hidden?.[label] ?? setup.width, at.slots, at.ids, at.firsts, at.ends, at.entries] as const),
  );
}

/** Keeps what was found about every place. */
export function keep(kernels: Kernels, setup: Setup<unknown>, at: Scratch, label: LabelPlaces): void {
  kernels.keepScores(label.count, at.firsts, at.dots, label.pairs, setup.offsets, setup.scores);
}

/** Each member's dot product with the mean of the first rows, and the mean's square. */
function meanProducts(x: Csr, { indices: rows }: Pattern, averaged: number) {
  const dots = new Float64Array(rows.length);
  const mean = new Float64Array(x.cols);
  for (let p = 0; p < x.indptr[averaged]; p++) mean[x.indices[p]] += x.values[p] / averaged;
  for (let i = 0; i < rows.length; i++) {
    const end = x.indptr[rows[i] + 1];
    for (let p = x.indptr[rows[i]]; p < end; p++) dots[i] += mean[x.indices[p]] * x.values[p];
  }
  return { dots, square: mean.reduce((sum, value) => sum + value * value, 0) };
}

/** Features are numbered by how often they occur, so that the sums that are used most lie together. */
function byFrequency(x: Csr): Uint32Array {
  const { rows, cols } = x;
  // As plain numbers they are sorted without asking which of two comes first.
  const keys = Float64Array.from(columnCounts(x), (count, column) => (rows - count) * cols + column);
  const numbers = new Uint32Array(cols);
  keys.sort().forEach((key, number) => {
    numbers[key % cols] = number;
  });
  return numbers;
}

/** The offset of a feature's sum beside its value, rows of a group after one another: a group is read as one. */
function placeCells(arena: Arena, x: Csr, { indices: rows }: Pattern, numbers: Uint32Array) {
  const indptr = new Uint32Array(rows.length + 1);
  for (let i = 0; i < rows.length; i++) indptr[i + 1] = indptr[i] + x.indptr[rows[i] + 1] - x.indptr[rows[i]];
  const size = 2 * indptr[rows.length];
  const cells = arena.allocate(4 * size);
  const offsets = new Uint32Array(arena.memory.buffer, cells, size);
  const values = new Float32Array(arena.memory.buffer, cells, size);
  // Taken out of `x` once: looked up again for every cell, they take as long as the cells.
  const { indptr: starts, indices: columns, values: given } = x;
  let at = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    const end = starts[row + 1];
    for (let p = starts[row]; p < end; p++, at += 2) {
      offsets[at] = numbers[columns[p]] << 3;
      values[at + 1] = given[p];
    }
  }
  return { indptr, cells };
}

/**
 * What the largest label takes: with its groups, `others` times as many of the largest groups at most, and no more than
 * there are. Entries need no room where they are not copied.
 */
function roomFor(
  { starts, places, entries }: LabelSizes,
  bounds: Uint32Array,
  indptr: Uint32Array,
  others: number | undefined,
) {
  const most = (counts: Uint32Array) => counts.reduce((largest, count) => Math.max(largest, count), 0);
  const differences = (ends: Uint32Array) => ends.subarray(1).map((end, i) => end - ends[i]);
  const own = differences(starts);
  const withOthers = (counts: Uint32Array, ends: Uint32Array) => {
    const largest = most(differences(ends));
    const needed = counts.reduce(
      (room, count, label) => Math.max(room, count + Math.ceil((others ?? 0) * own[label]) * largest),
      0,
    );
    return Math.min(needed, ends[ends.length - 1]);
  };
  const groups = bounds.length - 1;
  return {
    groups: Math.min(groups, most(own.map((count) => count + Math.ceil((others ?? 0) * count)))),
    places: withOthers(places, bounds),
    entries:
      others === undefined
        ? 0
        : withOthers(
            entries,
            bounds.map((first) => indptr[first]),
          ),
  };
}

function labelSizes({ starts, groups }: PairsByLabel, bounds: Uint32Array, indptr: Uint32Array): LabelSizes {
  const labels = starts.length - 1;
  const [places, entries] = [new Uint32Array(labels), new Uint32Array(labels)];
  const firsts = bounds.map((first) => indptr[first]);
  for (let label = 0; label < labels; label++) {
    for (let p = starts[label]; p < starts[label + 1]; p++) {
      const group = groups[p];
      places[label] += bounds[group + 1] - bounds[group];
      entries[label] += firsts[group + 1] - firsts[group];
    }
  }
  return { starts, places, entries };
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
