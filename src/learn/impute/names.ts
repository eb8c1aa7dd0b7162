// Names of labels as examples of them: rows that surely carry their label, each a group of one behind all others.
import type { GroupParts } from '../../data/group.ts';
import { type Csr, columnCounts, type Pattern, rowIndices, selectRows, stackRows } from '../../math/csr.ts';
import type { Assignment } from './assignment.ts';

/** Labels, and of each a row: what its name has as a text. */
export interface Names {
  labels: Uint32Array;
  rows: Csr;
}

/** Without the names of labels that no group carries, and those that hold no known word. */
export function usefulNames(names: Csr, carried: Pattern): Names {
  const counts = columnCounts(carried);
  const labels = Uint32Array.from(counts.keys()).filter(
    (label) => counts[label] > 0 && rowIndices(names, label).length > 0,
  );
  return { labels, rows: selectRows(names, labels) };
}

export function withNames(x: Csr, given: GroupParts, names: Names): { rows: Csr; groups: GroupParts } {
  const { members, labels, pinned = 0 } = given;
  const count = names.labels.length;
  const own = Uint32Array.from(names.labels.keys(), (i) => x.rows + i);
  const carried = { ...oneEach(names.labels, labels.cols), values: new Float32Array(count).fill(1) };
  return {
    rows: stackRows(x, names.rows),
    groups: {
      ...given,
      pinned: pinned + count,
      members: stackRows(members, oneEach(own, x.rows + count)),
      labels: stackRows(labels, carried),
    },
  };
}

/** One entry in each row. */
function oneEach(indices: Uint32Array, cols: number): Pattern {
  const rows = indices.length;
  return { rows, cols, indptr: Uint32Array.from({ length: rows + 1 }, (_, row) => row), indices };
}

/** What was decided of the groups that come first, which have so many pairs. */
export function firstPairs(
  { scores: { offsets, values }, chosen, drawn }: Assignment,
  pairs: number,
): Assignment {
  const end = offsets[pairs];
  return {
    scores: { offsets: offsets.slice(0, pairs + 1), values: values.slice(0, end) },
    chosen: chosen.slice(0, end),
    drawn,
  };
}
