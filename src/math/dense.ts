// Dense row-major matrices.

export interface Dense {
  rows: number;
  cols: number;
  /** rows * cols values, row after row. */
  values: Float32Array;
}

export const denseRow = (m: Dense, row: number): Float32Array =>
  m.values.subarray(row * m.cols, (row + 1) * m.cols);

/** The given rows, in the given order. */
export function selectDenseRows(m: Dense, rows: ArrayLike<number>): Dense {
  const values = new Float32Array(rows.length * m.cols);
  for (let i = 0; i < rows.length; i++) values.set(denseRow(m, rows[i]), i * m.cols);
  return { rows: rows.length, cols: m.cols, values };
}

/** The columns of both, those of the first before those of the second. */
export function joinColumns(first: Dense, second: Dense): Dense {
  const cols = first.cols + second.cols;
  const values = new Float32Array(first.rows * cols);
  for (let row = 0; row < first.rows; row++) {
    values.set(denseRow(first, row), row * cols);
    values.set(denseRow(second, row), row * cols + first.cols);
  }
  return { rows: first.rows, cols, values };
}

/** A copy with rows of Euclidean length one, or another; zero rows stay zero. */
export function unitDenseRows(m: Dense, length = 1): Dense {
  const values = m.values.slice();
  for (let row = 0; row < m.rows; row++) {
    const v = values.subarray(row * m.cols, (row + 1) * m.cols);
    let sum = 0;
    for (let j = 0; j < v.length; j++) sum += v[j] * v[j];
    if (sum === 0) continue;
    const scale = length / Math.sqrt(sum);
    for (let j = 0; j < v.length; j++) v[j] *= scale;
  }
  return { ...m, values };
}
