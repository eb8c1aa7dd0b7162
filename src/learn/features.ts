// Small questions learners ask about features: how many rows and columns, and what one row holds.
import type { Dataset, Features } from '../data/dataset.ts';
import { badInput, badUsage } from '../errors.ts';
import { type Csr, CsrBuilder, type Pattern, rowIndices, rowValues, unitRows } from '../math/csr.ts';
import { denseRow, unitDenseRows } from '../math/dense.ts';
import type { Learner, Width } from './learner.ts';

export const widthOf = ({ sparse, dense }: Features): Width => ({
  sparse: sparse?.cols ?? 0,
  dense: dense?.cols ?? 0,
});

export const inputRows = ({ sparse, dense, texts, bags }: Features): number =>
  (bags ?? sparse ?? dense)?.rows ?? texts?.length ?? 0;

/** How many numbers they hold, zeros of dense ones too. */
export const entriesOf = ({ sparse, dense }: Features): number =>
  (sparse?.indices.length ?? 0) + (dense ? dense.rows * dense.cols : 0);

/** Rows of length one (dense parts: of their own length), sparse and dense parts each on their own; zero rows stay zero. */
export function unitFeatures({ sparse, dense, denseLength }: Features): Features {
  return { sparse: sparse && unitRows(sparse), dense: dense && unitDenseRows(dense, denseLength) };
}

/** One sparse matrix: dense columns follow the sparse ones. */
export function joinFeatures({ sparse, dense }: Features): Csr {
  if (!dense)
    return (
      sparse ?? {
        rows: 0,
        cols: 0,
        indptr: new Uint32Array(1),
        indices: new Uint32Array(0),
        values: new Float32Array(0),
      }
    );
  const offset = sparse?.cols ?? 0;
  const joined = new CsrBuilder('values');
  for (let row = 0; row < dense.rows; row++) {
    const [indices, values] = sparse ? [[...rowIndices(sparse, row)], [...rowValues(sparse, row)]] : [[], []];
    denseRow(dense, row).forEach((value, column) => {
      if (value === 0) return;
      indices.push(offset + column);
      values.push(value);
    });
    joined.add(indices, values);
  }
  return joined.csr(offset + dense.cols);
}

/** Writes rows as dense numbers, sparse columns before dense ones, one after the other into `into`; the rest becomes zero. */
export function writeRows({ sparse, dense }: Features, rows: ArrayLike<number>, into: Float32Array): void {
  const offset = sparse?.cols ?? 0;
  const width = offset + (dense?.cols ?? 0);
  into.fill(0);
  for (let i = 0; i < rows.length; i++) {
    const target = into.subarray(i * width, (i + 1) * width);
    if (sparse) writeSparseRow(sparse, rows[i], target);
    if (dense) target.set(denseRow(dense, rows[i]), offset);
  }
}

function writeSparseRow({ indptr, indices, values }: Csr, row: number, target: Float32Array): void {
  for (let p = indptr[row]; p < indptr[row + 1]; p++) target[indices[p]] = values[p];
}

/** Inputs with the columns of the training data. */
export function fitted(inputs: Features, width: Width): Features {
  const { sparse, dense, denseLength, texts, bags } = inputs;
  if (texts) return { texts };
  const seen = widthOf(inputs);
  // Sparse columns that these rows do not reach are zeros.
  const given = sparse !== undefined || width.sparse === 0;
  const fits = given && seen.sparse <= width.sparse && seen.dense === width.dense;
  if (!fits) throw otherFeatures(width, seen);
  return { sparse: sparse && { ...sparse, cols: width.sparse }, dense, denseLength, bags };
}

/** The error for inputs with other columns than those of the training data. */
export function otherFeatures(wanted: Width, seen: Width) {
  const words = ({ sparse, dense }: Width) =>
    [sparse && `${sparse} sparse`, dense && `${dense} dense`].filter(Boolean).join(' and ');
  return badInput(
    `inputs must have the features of the training data: the model knows ${words(wanted)} features, these inputs have ${words(seen) ? `${words(seen)} ones` : 'none'}`,
  );
}

/** Without the labels that the training data do not know. */
export function withoutColumns(labels: Pattern, cols: number): Pattern {
  const known = new CsrBuilder('binary');
  for (let row = 0; row < labels.rows; row++)
    known.add(rowIndices(labels, row).filter((column) => column < cols));
  return known.pattern(cols);
}

export function checkLabelled({ labels }: Dataset): void {
  if (labels.indices.length === 0) throw badInput('training data must have at least one label');
}

export function checkBags({ bags }: Features, { name, takesBags }: Learner): void {
  if (bags && !takesBags)
    throw badUsage('bags of instances must go to a learner that takes them, like miml', { value: name });
}
