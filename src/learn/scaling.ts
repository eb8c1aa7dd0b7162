// Dense columns come in any unit (degrees, counts, pixels); learners want them alike. Means and deviations are the
// training data's; a column that never varies says nothing and becomes zero.
import type { Features } from '../data/dataset.ts';
import type { Csr } from '../math/csr.ts';
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

export type SparseScaling = 'global' | 'columns' | 'none';

/**
 * For learners that see sparse columns as dense ones: one factor that brings the mean square of all their numbers to 1,
 * or each column to mean zero and deviation one. Dense columns, which have their scale already, are left alone.
 */
export function inputScaling({ sparse, dense }: Features, how: SparseScaling): Scaling | undefined {
  if (!sparse || how === 'none') return undefined;
  const width = sparse.cols + (dense?.cols ?? 0);
  const [mean, scale] = [new Float32Array(width), new Float32Array(width).fill(1)];
  const own = how === 'columns' ? sparseColumns(sparse) : oneFactor(sparse);
  mean.set(own.mean);
  scale.set(own.scale);
  return { mean, scale };
}

function oneFactor({ rows, cols, values }: Csr): Scaling {
  const squares = values.reduce((sum, value) => sum + value * value, 0);
  const factor = squares > 0 ? Math.sqrt((rows * cols) / squares) : 1;
  return { mean: new Float32Array(cols), scale: new Float32Array(cols).fill(factor) };
}

function sparseColumns({ rows, cols, indices, values }: Csr): Scaling {
  const [sums, squares] = [new Float64Array(cols), new Float64Array(cols)];
  for (let p = 0; p < indices.length; p++) sums[indices[p]] += values[p];
  const mean = sums.map((sum) => sum / rows);
  const present = new Uint32Array(cols);
  for (let p = 0; p < indices.length; p++) {
    present[indices[p]]++;
    squares[indices[p]] += (values[p] - mean[indices[p]]) ** 2;
  }
  const scale = squares.map((square, j) => {
    const variance = (square + (rows - present[j]) * mean[j] ** 2) / rows;
    return variance > 0 ? 1 / Math.sqrt(variance) : 0;
  });
  return { mean: Float32Array.from(mean), scale: Float32Array.from(scale) };
}
