// How mixed groups are: whether their members differ as much as any rows do, or are alike.
import { type Csr, nnz, type Pattern, rowIndices } from '../../math/csr.ts';

/**
 * Of unit rows: one-way analysis of variance over all features at once (the trace). About 1 for random groups, near 0
 * where members of a group are all alike.
 */
export function withinShare(x: Csr, members: Pattern): number {
  const [sums, total] = [new Float64Array(x.cols), new Float64Array(x.cols)];
  let [squares, inside, freedom] = [0, 0, 0];
  const each = (rows: Uint32Array, visit: (p: number) => void) => {
    for (const row of rows) for (let p = x.indptr[row]; p < x.indptr[row + 1]; p++) visit(p);
  };
  for (let group = 0; group < members.rows; group++) {
    const rows = rowIndices(members, group);
    let [own, ofMean] = [0, 0];
    each(rows, (p) => {
      own += x.values[p] ** 2;
      sums[x.indices[p]] += x.values[p];
      total[x.indices[p]] += x.values[p];
    });
    each(rows, (p) => {
      ofMean += sums[x.indices[p]] ** 2;
      sums[x.indices[p]] = 0;
    });
    squares += own;
    inside += own - ofMean / Math.max(1, rows.length);
    freedom += Math.max(0, rows.length - 1);
  }
  const n = nnz(members);
  const all = squares - total.reduce((sum, value) => sum + value * value, 0) / Math.max(1, n);
  return freedom === 0 || all <= 0 ? 1 : inside / freedom / (all / Math.max(1, n - 1));
}
