// GRLR as it is written down: one label at a time, its direction as a vector. Slow and obvious on purpose: the
// kernels of grlr.ts are tested against it.
import type { GroupParts } from '../../data/group.ts';
import { type Csr, rowIndices, rowValues, transpose } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { type GrlrOptions, randomStart } from './grlr.ts';

export interface LabelDirection {
  /** Length one; zeros where every member is zero. */
  direction: Float64Array;
  /** The objective, sum over groups of weight times the nearest member's similarity, before each step and at the end. */
  objective: number[];
}

const tie = 1e-9;
const cancelled = 1e-7;

/** The direction of one label; `x` has unit rows. */
export function labelDirection(
  x: Csr,
  { members, labels }: GroupParts,
  label: number,
  o: GrlrOptions,
  seed: number,
): LabelDirection {
  const points = centredRows(x, o.centre);
  const byLabel = transpose(labels);
  const groups = Array.from(rowIndices(byLabel, label), (group) => [...rowIndices(members, group)]);
  const weights = rowValues(byLabel, label).map((count) => (o.weightByCount ? count : 1));
  const rows = groups.flat();
  const bounds = new Uint32Array(groups.length + 1);
  groups.forEach((group, j) => {
    bounds[j + 1] = bounds[j] + group.length;
  });

  let direction = new Float64Array(x.cols);
  const shares = new Float64Array(rows.length);
  const start = () => {
    const sum = weightedSum(points, rows, shares, x.cols);
    const found = lengthOf(sum) > cancelled * shares.reduce((total, share) => total + Math.abs(share), 0);
    if (found) direction = unit(sum);
    return found;
  };
  groups.forEach((_, j) => {
    shares.fill(weights[j], bounds[j], bounds[j + 1]);
  });
  if (!start() && !randomStart(shares, bounds, weights, start, new Random(seed, 'impute', label)))
    return { direction, objective: [0] };

  const objective: number[] = [];
  for (let t = 0; ; t++) {
    let total = 0;
    shares.fill(0);
    groups.forEach((group, j) => {
      const dots = group.map((row) => dot(direction, points[row]));
      const best = Math.max(...dots);
      total += weights[j] * best;
      dots.forEach((value, i) => {
        if (value >= best - tie * Math.abs(best)) shares[bounds[j] + i] = weights[j];
      });
    });
    objective.push(total);
    if (t === o.iterations) return { direction, objective };
    const sum = weightedSum(points, rows, shares, x.cols);
    if (lengthOf(sum) <= cancelled * shares.reduce((all, share) => all + share, 0))
      return { direction, objective };
    const pull = unit(sum);
    direction = unit(direction.map((value, column) => value + o.step * pull[column]));
  }
}

/** Rows as plain vectors, minus the mean of all where that is asked for. */
export function centredRows(x: Csr, centre: boolean): Float64Array[] {
  const points = Array.from({ length: x.rows }, (_, row) => {
    const point = new Float64Array(x.cols);
    rowIndices(x, row).forEach((column, p) => {
      point[column] = rowValues(x, row)[p];
    });
    return point;
  });
  if (!centre) return points;
  const shares = new Float64Array(x.rows).fill(1 / x.rows);
  const mean = weightedSum(points, [...points.keys()], shares, x.cols);
  return points.map((point) => point.map((value, column) => value - mean[column]));
}

function weightedSum(points: Float64Array[], rows: number[], shares: Float64Array, cols: number) {
  const sum = new Float64Array(cols);
  rows.forEach((row, i) => {
    for (let column = 0; column < cols; column++) sum[column] += shares[i] * points[row][column];
  });
  return sum;
}

export const dot = (a: Float64Array, b: Float64Array): number =>
  a.reduce((sum, value, column) => sum + value * b[column], 0);

const lengthOf = (v: Float64Array) => Math.sqrt(dot(v, v));
const unit = (v: Float64Array) => {
  const length = lengthOf(v);
  return v.map((value) => value / length);
};
