// Groups of samples that share their labels: how rows are put into groups, what a group's labels become, and what
// that leaves for each row. Their file is in groups-file.ts.
import { badUsage } from '../errors.ts';
import { balancedGroups } from '../math/balanced-two-means.ts';
import {
  type Csr,
  CsrBuilder,
  type Pattern,
  rowIndices,
  rowValues,
  transpose,
  unitRows,
} from '../math/csr.ts';
import { type Dense, denseRow, unitDenseRows } from '../math/dense.ts';
import { Random } from '../math/random.ts';
import type { Dataset, Features } from './dataset.ts';

export interface Groups {
  names: string[];
  /** groups x rows; a row may be in several groups. */
  members: Pattern;
  /** groups x labels; how often the group carries the label, all 1 after a set merge. */
  labels: Csr;
  /** So many at the end are single rows that surely have their label: people named them, or they are its name. */
  pinned?: number;
  /** Whether groups say how often they carry a label, where the labels alone no longer tell. */
  counted?: boolean;
}

/** Groups without their names. */
export type GroupParts = Omit<Groups, 'names'>;

export const merges = ['list', 'set'] as const;
/** `list` keeps how many members have a label, `set` only that one has. */
export type Merge = (typeof merges)[number];

/** Whether groups say how often they carry a label. */
export const countLabels = ({ labels, counted }: Pick<Groups, 'labels' | 'counted'>): boolean =>
  counted ?? labels.values.some((count) => count > 1);

/** How many groups people made: those before the single rows at the end. */
export const askedGroups = ({ labels, pinned = 0 }: Pick<Groups, 'labels' | 'pinned'>): number =>
  labels.rows - pinned;

/** Members and their merged labels; the names are the groups' numbers. */
export function groupRows(members: Pattern, labels: Pattern, merge: Merge): Groups {
  const names = Array.from({ length: members.rows }, (_, group) => String(group));
  return { names, members, labels: mergeLabels(members, labels, merge) };
}

/** Rows in random order, cut into groups of `size`; the last may be smaller. */
export function randomGroups(rows: number, size: number, seed: number): Pattern {
  if (!Number.isInteger(size) || size < 1)
    throw badUsage('group size must be a positive integer', { value: size });
  return shuffledGroups(rows, Math.ceil(rows / size), (position) => Math.floor(position / size), seed);
}

function shuffledGroups(rows: number, groups: number, groupAt: (position: number) => number, seed: number) {
  const groupOfRow = new Uint32Array(rows);
  new Random(seed, 'groups').permutation(rows).forEach((row, position) => {
    groupOfRow[row] = groupAt(position);
  });
  return membersOf(groupOfRow, groups);
}

/** groups x rows, from the one group of every row. */
function membersOf(groupOfRow: Uint32Array, groups: number): Pattern {
  const rows = groupOfRow.length;
  const indptr = Uint32Array.from({ length: rows + 1 }, (_, row) => row);
  return transpose({ rows, cols: groups, indptr, indices: groupOfRow });
}

/**
 * Rows halved `depth` times by balanced 2-means into 2^depth groups of like rows. `noise` blurs them: each row is
 * moved in a random direction by `noise` times its own length before clustering; Infinity makes the groups random.
 */
export function clusteredGroups(
  { sparse, dense }: Features,
  depth: number,
  { seed, noise = 0 }: { seed: number; noise?: number },
): Pattern {
  const rows = sparse?.rows ?? dense?.rows ?? 0;
  const groups = 2 ** depth;
  if (!Number.isInteger(depth) || depth < 0 || groups > Math.max(rows, 1))
    throw badUsage(`depth must be a whole number with 2^depth at most ${rows}, the rows`, { value: depth });
  if (!(noise >= 0)) throw badUsage('noise must be a number >= 0', { value: noise });
  if (noise === Number.POSITIVE_INFINITY)
    return shuffledGroups(rows, groups, (position) => Math.floor((position * groups) / rows), seed);
  const moved =
    noise === 0 ? { sparse, dense } : movedRows({ sparse, dense }, noise, new Random(seed, 'noise'));
  const points = {
    sparse: moved.sparse && unitRows(moved.sparse),
    dense: moved.dense && unitDenseRows(moved.dense),
  };
  return membersOf(balancedGroups(points, depth, seed), groups);
}

/**
 * Dense noise on tens of thousands of columns cannot be stored, so each row's Gaussian noise sits on this many columns
 * chosen at random. Rescaled to the row's length, its mean is zero, its covariance is that of dense noise (length^2 /
 * columns in every direction), and so is the variance of the dot product of two rows' noises; a row keeps its noise
 * through all levels. Only higher moments differ, and sums over many rows or columns wash those out.
 */
const noisyColumns = 64;

const movedRows = ({ sparse, dense }: Features, noise: number, random: Random): Features => ({
  sparse: sparse && movedSparse(sparse, noise, random),
  dense: dense && movedDense(dense, noise, random),
});

function movedSparse(m: Csr, noise: number, random: Random): Csr {
  const moved = new CsrBuilder('values');
  const sums = new Float64Array(m.cols);
  for (let row = 0; row < m.rows; row++) {
    const [indices, values] = [rowIndices(m, row), rowValues(m, row)];
    const columns = new Set(indices);
    const noisy = someColumns(m.cols, noisyColumns, random);
    gaussian(noisy.length, noise * lengthOf(values), random).forEach((value, i) => {
      columns.add(noisy[i]);
      sums[noisy[i]] = value;
    });
    indices.forEach((column, i) => {
      sums[column] += values[i];
    });
    const union = Uint32Array.from(columns).sort();
    moved.add(
      union,
      Float32Array.from(union, (column) => sums[column]),
    );
    for (const column of union) sums[column] = 0;
  }
  return moved.csr(m.cols);
}

function movedDense(m: Dense, noise: number, random: Random): Dense {
  const values = m.values.slice();
  for (let row = 0; row < m.rows; row++) {
    const step = gaussian(m.cols, noise * lengthOf(denseRow(m, row)), random);
    for (let j = 0; j < m.cols; j++) values[row * m.cols + j] += step[j];
  }
  return { ...m, values };
}

/** A random direction of `size` numbers with the given length. */
function gaussian(size: number, length: number, random: Random): Float64Array {
  const values = new Float64Array(size);
  for (let i = 0; i < size; i++) values[i] = random.normal();
  const scale = size === 0 ? 0 : length / lengthOf(values);
  return values.map((value) => value * scale);
}

function lengthOf(values: Float32Array | Float64Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] * values[i];
  return Math.sqrt(sum);
}

/** `size` different numbers below `cols` (all of them if there are no more), every choice as likely (Floyd). */
function someColumns(cols: number, size: number, random: Random): number[] {
  const chosen = new Set<number>();
  for (let last = Math.max(0, cols - size); last < cols; last++) {
    const column = random.integer(last + 1);
    chosen.add(chosen.has(column) ? last : column);
  }
  return [...chosen];
}

/** The labels of each group: of every member, or, with rows for groups, of every group a row is in. */
export function mergeLabels(members: Pattern, labels: Pattern, merge: Merge): Csr {
  const merged = new CsrBuilder('values');
  const counts = new Float32Array(labels.cols);
  for (let group = 0; group < members.rows; group++) {
    const found: number[] = [];
    for (const row of rowIndices(members, group)) {
      for (const label of rowIndices(labels, row)) if (counts[label]++ === 0) found.push(label);
    }
    const columns = Uint32Array.from(found).sort();
    merged.add(
      columns,
      Float32Array.from(columns, (label) => (merge === 'list' ? counts[label] : 1)),
    );
    for (const label of columns) counts[label] = 0;
  }
  return merged.csr(labels.cols);
}

/** What is known of each row without imputing: every label of every group it is in (rows x labels). */
export function baselineLabels({ members, labels }: GroupParts): Pattern {
  const { values: _ones, ...known } = mergeLabels(transpose(members), labels, 'set');
  return known;
}

/** A data set of bags: each group is one sample, its members are the sample's instances. */
export function bagSamples<T extends Dataset>(dataset: T, { names, members, labels }: Groups): T {
  const { values, ...carried } = labels;
  return {
    ...dataset,
    rows: names.length,
    ids: names,
    texts: undefined,
    groups: undefined,
    labels: { ...carried, cols: dataset.vocabulary.size },
    labelCounts: values,
    features: { ...dataset.features, bags: members },
  };
}
