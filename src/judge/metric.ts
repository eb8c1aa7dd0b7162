// A metric kept as what each row adds, so that one pass serves the value, its confidence interval and a paired
// comparison; and the marks every metric starts from: which predictions are true.
import { badInput } from '../errors.ts';
import { type Csr, nnz, type Pattern } from '../math/csr.ts';

/** Its value is Σ numerator / Σ denominator; a plain mean has no denominator (every row counts one). */
export interface RowMetric {
  name: string;
  numerator: Float64Array;
  denominator?: Float64Array;
}

/** 0/0 is 0 in every metric here: nothing to find and nothing found earns nothing, and reports stay JSON. */
export const ratio = (above: number, below: number): number => (below === 0 ? 0 : above / below);

export const f1 = (hits: number, predicted: number, positives: number): number =>
  ratio(2 * hits, predicted + positives);

export const sum = (values: ArrayLike<number>): number => {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i];
  return total;
};

export const metricValue = ({ numerator, denominator }: RowMetric): number =>
  ratio(sum(numerator), denominator ? sum(denominator) : numerator.length);

/** The label space of a judgement: the test file may hold labels the model never saw, and the other way round. */
export const labelSpace = (predicted: Pattern, truth: Pattern): number =>
  Math.max(predicted.cols, truth.cols);

/** How many entries each row holds. */
export function rowCounts(m: Pattern): Uint32Array {
  const counts = new Uint32Array(m.rows);
  for (let row = 0; row < m.rows; row++) counts[row] = m.indptr[row + 1] - m.indptr[row];
  return counts;
}

/** For every stored entry of `predicted`, 1 where the truth holds it too. */
export function hitFlags(predicted: Pattern, truth: Pattern): Uint8Array {
  if (predicted.rows !== truth.rows)
    throw badInput(`predictions must have as many rows as the truth, ${truth.rows}`, {
      value: predicted.rows,
    });
  const flags = new Uint8Array(nnz(predicted));
  // One stamp per label instead of a set per row: a label is true in this row if its stamp is the row's.
  const stamp = new Uint32Array(labelSpace(predicted, truth));
  for (let row = 0; row < truth.rows; row++) {
    for (let p = truth.indptr[row]; p < truth.indptr[row + 1]; p++) stamp[truth.indices[p]] = row + 1;
    for (let p = predicted.indptr[row]; p < predicted.indptr[row + 1]; p++)
      if (stamp[predicted.indices[p]] === row + 1) flags[p] = 1;
  }
  return flags;
}

/** The entries whose flag is 1, in their order. */
export function keepEntries(m: Csr, flags: Uint8Array): Csr {
  const kept = sum(flags);
  const indptr = new Uint32Array(m.rows + 1);
  const indices = new Uint32Array(kept);
  const values = new Float32Array(kept);
  let size = 0;
  for (let row = 0; row < m.rows; row++) {
    for (let p = m.indptr[row]; p < m.indptr[row + 1]; p++) {
      if (flags[p] === 0) continue;
      indices[size] = m.indices[p];
      values[size++] = m.values[p];
    }
    indptr[row + 1] = size;
  }
  return { rows: m.rows, cols: m.cols, indptr, indices, values };
}
