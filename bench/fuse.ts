// Labels made ambiguous on purpose: several labels become one, so that what overlapping clusters find can be held
// against the truth (Liu et al. 2021, section 5.1). Easy: neighbours in the label tree; medium: labels of one region; hard: any labels.

import type * as twoMeans from '../src/math/balanced-two-means.ts';
import type * as csr from '../src/math/csr.ts';
import type { Csr, Pattern } from '../src/math/csr.ts';
import type * as random from '../src/math/random.ts';
import { built } from './built.ts';

const [{ CsrBuilder, rowIndices, rowValues, transpose, unitRows }, { Random }, { balancedGroups }] =
  await Promise.all([
    built<typeof csr>('math/csr.js'),
    built<typeof random>('math/random.js'),
    built<typeof twoMeans>('math/balanced-two-means.js'),
  ]);

export const difficulties = ['easy', 'medium', 'hard'] as const;
export type Difficulty = (typeof difficulties)[number];

/** Regions hold this many fused labels. */
const regionLabels = 32;

/** The labels in an order in which neighbours are alike; labels that never occur are left out. */
export function similarityOrder(x: Csr, labels: Pattern, seed: number): Uint32Array {
  const byLabel = transpose(labels);
  const used = Uint32Array.from({ length: labels.cols }, (_, label) => label).filter(
    (label) => byLabel.indptr[label + 1] > byLabel.indptr[label],
  );
  const unit = unitRows(x);
  const sums = new CsrBuilder('values');
  for (const label of used) {
    const sum = new Map<number, number>();
    for (const row of rowIndices(byLabel, label)) {
      const values = rowValues(unit, row);
      rowIndices(unit, row).forEach((column, p) => {
        sum.set(column, (sum.get(column) ?? 0) + values[p]);
      });
    }
    const columns = [...sum.keys()].sort((a, b) => a - b);
    sums.add(
      columns,
      columns.map((column) => sum.get(column) ?? 0),
    );
  }
  const depth = Math.ceil(Math.log2(Math.max(2, used.length)));
  const groups = balancedGroups({ sparse: unitRows(sums.csr(x.cols)) }, depth, seed);
  return Uint32Array.from(used.keys())
    .sort((a, b) => groups[a] - groups[b] || a - b)
    .map((position) => used[position]);
}

/** For each label the fused label it becomes a part of, `size` parts each but for the last of a region. */
export function fuseLabels(
  order: Uint32Array,
  labels: number,
  size: number,
  difficulty: Difficulty,
  seed: number,
): { partOf: Int32Array; fused: number } {
  const region = { easy: size, medium: regionLabels * size, hard: order.length }[difficulty];
  const partOf = new Int32Array(labels).fill(-1);
  let fused = 0;
  for (let start = 0; start < order.length; start += region) {
    const members = order.subarray(start, start + region);
    const shuffled = new Random(seed, 'fuse', start).permutation(members.length);
    shuffled.forEach((position, i) => {
      partOf[members[position]] = fused + Math.floor(i / size);
    });
    fused += Math.ceil(members.length / size);
  }
  return { partOf, fused };
}

/** A sample has a fused label if it has one of its parts. */
export function fusedPattern(labels: Pattern, partOf: Int32Array, fused: number): Pattern {
  const pattern = new CsrBuilder('binary');
  for (let row = 0; row < labels.rows; row++) {
    const parts = Array.from(rowIndices(labels, row), (label) => partOf[label]);
    pattern.add([...new Set(parts.filter((part) => part >= 0))].sort((a, b) => a - b));
  }
  return pattern.pattern(fused);
}

/** How much knowing one of two splits of the same samples leaves to say about the other, in nats. */
export function variationOfInformation(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const [joint, left, right] = [
    new Map<string, number>(),
    new Map<number, number>(),
    new Map<number, number>(),
  ];
  const share = 1 / a.length;
  const add = <K>(map: Map<K, number>, key: K) => map.set(key, (map.get(key) ?? 0) + share);
  for (let i = 0; i < a.length; i++) {
    add(joint, `${a[i]} ${b[i]}`);
    add(left, a[i]);
    add(right, b[i]);
  }
  let sum = 0;
  for (const [key, both] of joint) {
    const [x, y] = key.split(' ').map(Number);
    sum -= both * (Math.log(both / (left.get(x) ?? 1)) + Math.log(both / (right.get(y) ?? 1)));
  }
  return Math.max(0, sum);
}
