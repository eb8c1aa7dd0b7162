// What imputing decides: for every pair of a group and one of its labels (an entry of `groups.labels`), the members
// that get the label. And pairs seen from their labels.
import type { GroupParts } from '../../data/group.ts';
import { UmbelError } from '../../errors.ts';
import { type Csr, CsrBuilder, nnz, type Pattern, transpose } from '../../math/csr.ts';

export interface Assignment {
  scores: Scores;
  /** One for every score: whether that member gets that label. */
  chosen: Uint8Array;
  /** Labels whose members were drawn, instead of the best being taken. */
  drawn?: ReadonlySet<number>;
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

export function pairsByLabel({ rows, cols, indptr, indices, values }: Csr): PairsByLabel {
  const size = indptr[rows];
  const starts = new Uint32Array(cols + 1);
  for (let pair = 0; pair < size; pair++) starts[indices[pair] + 1]++;
  for (let label = 0; label < cols; label++) starts[label + 1] += starts[label];
  const next = starts.slice();
  const [groups, pairs] = [new Uint32Array(size), new Uint32Array(size)];
  const weights = new Float32Array(size);
  for (let group = 0; group < rows; group++) {
    const end = indptr[group + 1];
    for (let pair = indptr[group]; pair < end; pair++) {
      const at = next[indices[pair]]++;
      groups[at] = group;
      pairs[at] = pair;
      weights[at] = values[pair];
    }
  }
  return { starts, groups, weights, pairs };
}

/** What is known about every pair and each member of its group: values from the pair's offset on. */
export interface Scores {
  offsets: Uint32Array;
  values: Float32Array;
}

/** Four bytes each fill the memory of the kernels. */
const mostScores = 2 ** 30;

export function scoreOffsets(members: Pattern, labels: Pattern): Uint32Array {
  const offsets = new Uint32Array(nnz(labels) + 1);
  let total = 0;
  for (let group = 0; group < labels.rows; group++) {
    const size = members.indptr[group + 1] - members.indptr[group];
    for (let pair = labels.indptr[group]; pair < labels.indptr[group + 1]; pair++) {
      total += size;
      offsets[pair + 1] = total;
    }
  }
  if (total > mostScores)
    throw new UmbelError('too-large', 'members times labels of all groups must be a billion at most', {
      value: total,
      hint: 'cut large groups into smaller ones',
    });
  return offsets;
}

/** The best members of every pair: one, or (`top-r`) as many as the group carries the label; the first of equals. */
export function chooseBest(
  { members, labels }: GroupParts,
  { offsets, values }: Scores,
  assign: 'best' | 'top-r',
): Uint8Array {
  const chosen = new Uint8Array(values.length);
  for (let group = 0; group < labels.rows; group++) {
    const size = members.indptr[group + 1] - members.indptr[group];
    for (let pair = labels.indptr[group]; pair < labels.indptr[group + 1]; pair++) {
      const wanted = assign === 'best' ? 1 : Math.min(size, labels.values[pair]);
      for (let r = 0; r < wanted; r++) chosen[bestOf(values, chosen, offsets[pair], offsets[pair + 1])] = 1;
    }
  }
  return chosen;
}

/** The first of the largest values that are not taken. */
function bestOf(values: Float32Array, taken: Uint8Array, from: number, to: number): number {
  let best = -1;
  for (let i = from; i < to; i++) if (taken[i] === 0 && (best < 0 || values[i] > values[best])) best = i;
  return best;
}

/** What a person wants to know of a pair: places of its chosen members in the group, the best first, and why them. */
export function choiceOf(
  { scores: { offsets, values }, chosen }: Assignment,
  pair: number,
): { places: number[]; similarities: number[]; margin: number | null } {
  const [own, marks] = [values, chosen].map((all) => all.subarray(offsets[pair], offsets[pair + 1]));
  const order = Array.from(own.keys()).sort((a, b) => marks[b] - marks[a] || own[b] - own[a] || a - b);
  const places = order.filter((place) => marks[place] === 1);
  const [last, next] = [own[places[places.length - 1]], own[order[places.length]]];
  // Negative where the label had to make room for others.
  return {
    places,
    similarities: places.map((place) => own[place]),
    margin: next === undefined || last === undefined ? null : last - next,
  };
}

/** rows x labels: what the choice makes of the data set. */
export const chosenLabels = (groups: GroupParts, { scores, chosen }: Assignment): Pattern =>
  labelsOfRows(groups, rowsOfPairs(groups, scores.offsets, chosen));

/** rows x labels: what is given for every score, where it is not zero; of a row in several groups, the largest. */
export function givenLabels(groups: GroupParts, offsets: Uint32Array, given: Float32Array): Csr {
  const chosen = rowsOfPairs(groups, offsets, given);
  const values = given.filter((value) => value !== 0);
  return labelsOfRows(groups, { ...chosen, values });
}

/** pairs x rows: the members of each pair's group that something other than zero is given. */
function rowsOfPairs(
  { members, labels }: GroupParts,
  offsets: Uint32Array,
  given: Uint8Array | Float32Array,
): Pattern {
  const indptr = new Uint32Array(offsets.length);
  // More than there are, which takes no memory where nothing is written, and is quicker than counting first.
  const indices = new Uint32Array(given.length);
  const { indptr: starts, indices: rows } = members;
  let at = 0;
  for (let group = 0; group < labels.rows; group++) {
    const end = labels.indptr[group + 1];
    for (let pair = labels.indptr[group]; pair < end; pair++) {
      const to = offsets[pair + 1];
      const shift = starts[group] - offsets[pair];
      for (let i = offsets[pair]; i < to; i++) if (given[i] !== 0) indices[at++] = rows[i + shift];
      indptr[pair + 1] = at;
    }
  }
  return { rows: indptr.length - 1, cols: members.cols, indptr, indices: indices.subarray(0, at) };
}

function labelsOfRows(groups: GroupParts, rowsOf: Csr): Csr;
function labelsOfRows(groups: GroupParts, rowsOf: Pattern): Pattern;
function labelsOfRows({ labels }: GroupParts, rowsOf: Pattern | Csr): Pattern | Csr {
  const byRow = transpose(rowsOf);
  const { indices } = byRow;
  for (let p = 0; p < indices.length; p++) indices[p] = labels.indices[indices[p]];
  return sortedOnce({ ...byRow, cols: labels.cols });
}

/** A row in several groups has labels of each: brings them in order, each once. */
function sortedOnce(m: Pattern & { values?: Float32Array }): Pattern | Csr {
  const { indptr, indices } = m;
  const ascends = (row: number) => {
    for (let p = indptr[row] + 1; p < indptr[row + 1]; p++) if (indices[p] <= indices[p - 1]) return false;
    return true;
  };
  let row = 0;
  while (row < m.rows && ascends(row)) row++;
  if (row === m.rows) return m;
  const sorted = new CsrBuilder(m.values ? 'values' : 'binary');
  for (row = 0; row < m.rows; row++) {
    const largest = new Map<number, number>();
    for (let p = indptr[row]; p < indptr[row + 1]; p++)
      largest.set(indices[p], Math.max(m.values?.[p] ?? 1, largest.get(indices[p]) ?? 0));
    const labels = [...largest.keys()].sort((a, b) => a - b);
    sorted.add(
      labels,
      labels.map((label) => largest.get(label) ?? 0),
    );
  }
  return m.values ? sorted.csr(m.cols) : sorted.pattern(m.cols);
}
