// Which rows train, which validate and which test: at random, by file order, or stratified by label. Knows labels
// only; `selectSamples` takes the rows out.
import { badInput, badUsage, unknownName } from '../errors.ts';
import { type Pattern, rowIndices, selectRows, transpose } from '../math/csr.ts';
import { Random } from '../math/random.ts';

export const splitRules = ['random', 'stratified', 'order'] as const;
export type SplitRule = (typeof splitRules)[number];

export interface SplitOptions {
  /** `order` keeps the file's order, as time goes: the last rows test, those before them validate. */
  rule: SplitRule;
  /** Share of the rows, above 0 and below 1. */
  test: number;
  valid?: number;
  seed: number;
}

/** Row numbers, ascending; every row is in exactly one part. */
export interface Split {
  train: Uint32Array;
  valid?: Uint32Array;
  test: Uint32Array;
}

export function splitRows(labels: Pattern, options: SplitOptions): Split {
  const sizes = partSizes(labels.rows, options);
  const parts = partOfRows(labels, sizes, options);
  const rowsOf = (part: number): Uint32Array => {
    const rows = new Uint32Array(sizes[part]);
    for (let row = 0, next = 0; row < parts.length; row++) if (parts[row] === part) rows[next++] = row;
    return rows;
  };
  const [train, test] = [rowsOf(0), rowsOf(sizes.length - 1)];
  return options.valid === undefined ? { train, test } : { train, valid: rowsOf(1), test };
}

/** Rows of train, valid (if any) and test: the nearest to the fractions that leaves no part empty. */
function partSizes(rows: number, { test, valid }: SplitOptions): number[] {
  for (const [name, share] of Object.entries({ test, valid })) {
    if (share !== undefined && !(share > 0 && share < 1))
      throw badUsage(`${name} must be a fraction above 0 and below 1`, { value: share });
  }
  if (test + (valid ?? 0) >= 1)
    throw badUsage('test and valid together must be below 1', { value: test + (valid ?? 0) });
  const parts = valid === undefined ? 2 : 3;
  if (rows < parts)
    throw badInput(`a split into ${parts} parts needs at least ${parts} rows`, { value: rows });
  const testSize = clamp(Math.round(rows * test), 1, rows - parts + 1);
  if (valid === undefined) return [rows - testSize, testSize];
  const validSize = clamp(Math.round(rows * valid), 1, rows - testSize - 1);
  return [rows - validSize - testSize, validSize, testSize];
}

const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

function partOfRows(labels: Pattern, sizes: number[], { rule, seed }: SplitOptions): Uint8Array {
  const random = new Random(seed, 'split');
  switch (rule) {
    case 'order':
      return dealt(
        Uint32Array.from({ length: labels.rows }, (_, row) => row),
        sizes,
      );
    case 'random':
      return dealt(random.permutation(labels.rows), sizes);
    case 'stratified':
      return stratified(labels, sizes, random);
    default:
      rule satisfies never;
      throw unknownName('split rule', rule, splitRules);
  }
}

/** Consecutive runs of `order` to one part after the other. */
function dealt(order: Uint32Array, sizes: number[]): Uint8Array {
  const parts = new Uint8Array(order.length);
  let start = 0;
  sizes.forEach((size, part) => {
    for (const row of order.subarray(start, start + size)) parts[row] = part;
    start += size;
  });
  return parts;
}

/**
 * Iterative stratification (Sechidis, Tsoumakas, Vlahavas 2011): the label with the fewest rows left deals them out,
 * each to the part that wants this label most, while frequent labels can still make up for it. Three additions: rows
 * come in random order, because the largest part is served first; a full part takes no more, so sizes are exact; and
 * an overdue part gets the odd rows, or among many labels of three rows the last ones would all end up in the test.
 */
function stratified(labels: Pattern, sizes: number[], random: Random): Uint8Array {
  const order = random.permutation(labels.rows);
  const rowsOfLabel = transpose(selectRows(labels, order));
  const totals = Uint32Array.from(
    { length: labels.cols },
    (_, label) => rowIndices(rowsOfLabel, label).length,
  );
  const count = sizes.length;
  const wanted = new Float64Array(labels.cols * count);
  for (let i = 0; i < wanted.length; i++) {
    wanted[i] = (totals[Math.floor(i / count)] * sizes[i % count]) / labels.rows;
  }
  const room = [...sizes];
  let rowsLeft = labels.rows;
  const unset = count;
  const parts = new Uint8Array(labels.rows).fill(unset);
  const rarest = new RarestFirst(totals);

  const give = (row: number, part: number) => {
    parts[row] = part;
    room[part]--;
    rowsLeft--;
    for (let p = labels.indptr[row]; p < labels.indptr[row + 1]; p++) {
      wanted[labels.indices[p] * count + part]--;
      rarest.decrease(labels.indices[p]);
    }
  };
  /** The first part that has more than twice its share of the rows left still to come, or -1. */
  const overdue = () => sizes.findIndex((size, part) => room[part] * labels.rows > 2 * size * rowsLeft);
  for (let label = rarest.next(); label !== undefined; label = rarest.next()) {
    const wantedHere = wanted.subarray(label * count, (label + 1) * count);
    for (const position of rowIndices(rowsOfLabel, label)) {
      const row = order[position];
      if (parts[row] !== unset) continue;
      // Where no part wants a whole row, any choice is rounding. A label's only row is better off in the largest part.
      const odd = totals[label] > 1 && wantedHere.every((share) => share < 1);
      const late = odd ? overdue() : -1;
      give(row, late >= 0 ? late : neediest(wantedHere, room, random));
    }
  }
  for (const row of order) if (parts[row] === unset) give(row, neediest(room, room, random));
  return parts;
}

/** The part with room that wants most; ties by most room, then at random. */
function neediest(wanted: ArrayLike<number>, room: number[], random: Random): number {
  let best: number[] = [];
  for (let part = 0; part < room.length; part++) {
    if (room[part] === 0) continue;
    const order = best.length === 0 ? 1 : wanted[part] - wanted[best[0]] || room[part] - room[best[0]];
    if (order > 0) best = [part];
    else if (order === 0) best.push(part);
  }
  return best.length === 1 ? best[0] : best[random.integer(best.length)];
}

const takenOut = 0xffffffff;

/** Labels by rows left, fewest first, ties by lowest label: a binary heap in which counts may fall. */
class RarestFirst {
  readonly #left: Uint32Array;
  readonly #heap: Uint32Array;
  /** Where each label is in the heap, or `takenOut`. */
  readonly #place: Uint32Array;
  #size: number;

  constructor(counts: Uint32Array) {
    this.#left = counts.slice();
    // A sorted list is a heap.
    this.#heap = Uint32Array.from(counts.keys()).sort((a, b) => counts[a] - counts[b] || a - b);
    this.#place = new Uint32Array(counts.length);
    for (let i = 0; i < counts.length; i++) this.#place[this.#heap[i]] = i;
    this.#size = counts.length;
  }

  /** Takes out the rarest label that has rows left. */
  next(): number | undefined {
    while (this.#size > 0) {
      const label = this.#heap[0];
      const last = this.#heap[--this.#size];
      if (this.#size > 0) this.#sink(last);
      this.#place[label] = takenOut;
      if (this.#left[label] > 0) return label;
    }
    return undefined;
  }

  /** One row less for a label; a label already taken out stays out. */
  decrease(label: number): void {
    this.#left[label]--;
    if (this.#place[label] !== takenOut) this.#rise(label);
  }

  #before(a: number, b: number): boolean {
    return this.#left[a] < this.#left[b] || (this.#left[a] === this.#left[b] && a < b);
  }

  #put(label: number, place: number): void {
    this.#heap[place] = label;
    this.#place[label] = place;
  }

  #rise(label: number): void {
    let place = this.#place[label];
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#before(label, this.#heap[parent])) break;
      this.#put(this.#heap[parent], place);
      place = parent;
    }
    this.#put(label, place);
  }

  #sink(label: number): void {
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.#before(this.#heap[child + 1], this.#heap[child])) child++;
      if (!this.#before(this.#heap[child], label)) break;
      this.#put(this.#heap[child], place);
      place = child;
    }
    this.#put(label, place);
  }
}
