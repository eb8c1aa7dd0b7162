// What imputing decides: for every pair of a group and one of its labels (an entry of `groups.labels`), the members
// that get the label. And pairs seen from their labels.
import type { Groups } from '../../data/group.ts';
import { type Csr, CsrBuilder, nnz, type Pattern, rowIndices } from '../../math/csr.ts';

export interface Assignment {
  /** Pairs + 1 offsets into `rows`. */
  starts: Uint32Array;
  /** The members chosen, the best first. */
  rows: Uint32Array;
  /** Of each chosen member to its label. */
  similarities: Float32Array;
  /** By how much the last chosen member of a pair is ahead of the best that was not; not a number where none was left. */
  margins: Float32Array;
}

export interface PairsByLabel {
  /** Labels + 1 offsets into the lists below. */
  starts: Uint32Array;
  groups: Uint32Array;
  /** How often the group carries the label. */
  weights: Float32Array;
  /** Which entry of `groups.labels` it is. */
  pairs: Uint32Array;
}

export function pairsByLabel(labels: Csr): PairsByLabel {
  const size = nnz(labels);
  const starts = new Uint32Array(labels.cols + 1);
  for (let pair = 0; pair < size; pair++) starts[labels.indices[pair] + 1]++;
  for (let label = 0; label < labels.cols; label++) starts[label + 1] += starts[label];
  const next = starts.slice();
  const [groups, pairs] = [new Uint32Array(size), new Uint32Array(size)];
  const weights = new Float32Array(size);
  for (let group = 0; group < labels.rows; group++) {
    for (let pair = labels.indptr[group]; pair < labels.indptr[group + 1]; pair++) {
      const at = next[labels.indices[pair]]++;
      groups[at] = group;
      pairs[at] = pair;
      weights[at] = labels.values[pair];
    }
  }
  return { starts, groups, weights, pairs };
}

export const groupSizes = ({ rows, indptr }: Pattern): Uint32Array =>
  Uint32Array.from({ length: rows }, (_, group) => indptr[group + 1] - indptr[group]);

/** Where the members of each pair begin: one member, or as many as the group carries the label (and has members). */
export function chosenStarts(labels: Csr, sizes: Uint32Array, assign: 'best' | 'top-r'): Uint32Array {
  const starts = new Uint32Array(nnz(labels) + 1);
  for (let group = 0; group < labels.rows; group++) {
    for (let pair = labels.indptr[group]; pair < labels.indptr[group + 1]; pair++) {
      const wanted = assign === 'best' ? 1 : labels.values[pair];
      starts[pair + 1] = starts[pair] + Math.min(wanted, sizes[group]);
    }
  }
  return starts;
}

/** rows x labels: what the assignment makes of the data set. */
export function assignedLabels(
  { members, labels }: Pick<Groups, 'members' | 'labels'>,
  { starts, rows }: Assignment,
): Pattern {
  const indptr = new Uint32Array(members.cols + 1);
  for (const row of rows) indptr[row + 1]++;
  for (let row = 0; row < members.cols; row++) indptr[row + 1] += indptr[row];
  const next = indptr.slice();
  const indices = new Uint32Array(rows.length);
  for (let pair = 0; pair < nnz(labels); pair++) {
    for (let p = starts[pair]; p < starts[pair + 1]; p++) indices[next[rows[p]]++] = labels.indices[pair];
  }
  return sortedOnce({ rows: members.cols, cols: labels.cols, indptr, indices });
}

/** A row in several groups has labels of each: brings them in order, each once. */
function sortedOnce(m: Pattern): Pattern {
  const sorted = new CsrBuilder('binary');
  for (let row = 0; row < m.rows; row++) {
    const columns = rowIndices(m, row).sort();
    const ascends = columns.every((column, i) => i === 0 || column > columns[i - 1]);
    sorted.add(ascends ? columns : [...new Set(columns)]);
  }
  return sorted.pattern(m.cols);
}
