// Dense columns come in any unit (degrees, counts, pixels); learners want them alike. Means and deviations are the
// training data's; a column that never varies says nothing and becomes zero.
import type { Dense } from '../math/dense.ts';

export interface Scaling {
  mean: Float32Array;
  /** One over the standard deviation; 0 for a column that never varies. */
  scale: Float32Array;
}

export function fitScaling(m: Dense): Scaling {
  const columnSums = (term: (value: number, column: number) => number) => {
    const sums = new Float64Array(m.cols);
    for (let p = 0; p < m.values.length; p++) sums[p % m.cols] += term(m.values[p], p % m.cols);
    return sums;
  };
  const mean = columnSums((value) => value).map((total) => total / m.rows);
  // A second pass: the difference of large sums would lose the digits of a small deviation.
  const squares = columnSums((value, j) => (value - mean[j]) ** 2);
  const scale = squares.map((total, j) => {
    const deviation = Math.sqrt(total / m.rows);
    // What rounding alone leaves of a constant column is no variation.
    return deviation > 1e-6 * Math.abs(mean[j]) ? 1 / deviation : 0;
  });
  return { mean: Float32Array.from(mean), scale: Float32Array.from(scale) };
}

/** A copy with columns of mean zero and deviation one, as far as the data are like the training data. */
export function standardise(m: Dense, { mean, scale }: Scaling): Dense {
  const values = new Float32Array(m.values.length);
  for (let p = 0; p < values.length; p++) {
    const j = p % m.cols;
    values[p] = (m.values[p] - mean[j]) * scale[j];
  }
  return { ...m, values };
}
