// How often terms occur in each row, and the TF-IDF rows made of that.
import type { Csr } from '../math/csr.ts';
import { enlarge } from './utf8.ts';

/** Rows of terms in order of first occurrence, each with how often it occurs. */
export interface Counts {
  indptr: Uint32Array;
  terms: Uint32Array;
  counts: Uint32Array;
}

export interface Weights {
  /** Per column; absent where all weigh the same. */
  idf?: Float64Array;
  sublinear: boolean;
  normalise: boolean;
}

/** Rows without their width. */
export type Rows = Pick<Csr, 'indptr' | 'indices' | 'values'>;

/** Counts terms row by row with no sorting: each term remembers its place in the row at hand. */
export class RowCounter {
  /** Per term, one more than the place of its last occurrence, counted over all rows ever. */
  #places = new Int32Array(1024);
  #before = 0;
  #rowStart = 0;
  #size = 0;
  #terms = new Uint32Array(1024);
  #counts = new Uint32Array(1024);
  #indptr = new Uint32Array(256);
  #rows = 0;

  add(term: number): void {
    if (term >= this.#places.length) this.#places = enlarge(this.#places, 2 * term + 1);
    const place = this.#places[term] - this.#before - 1;
    if (place >= this.#rowStart) {
      this.#counts[place]++;
      return;
    }
    const size = this.#size;
    if (size === this.#terms.length) {
      this.#terms = enlarge(this.#terms, 2 * size);
      this.#counts = enlarge(this.#counts, 2 * size);
    }
    this.#terms[size] = term;
    this.#counts[size] = 1;
    this.#size = size + 1;
    this.#places[term] = this.#before + size + 1;
  }

  endRow(): void {
    this.#rowStart = this.#size;
    this.#rows++;
    if (this.#rows === this.#indptr.length) this.#indptr = enlarge(this.#indptr, 2 * this.#rows);
    this.#indptr[this.#rows] = this.#size;
  }

  /** The rows since the last call. */
  take(): Counts {
    const counts = {
      indptr: this.#indptr.slice(0, this.#rows + 1),
      terms: this.#terms.slice(0, this.#size),
      counts: this.#counts.slice(0, this.#size),
    };
    this.#before += this.#size;
    if (this.#before > 2 ** 30) {
      this.#before = 0;
      this.#places.fill(0);
    }
    this.#rowStart = 0;
    this.#size = 0;
    this.#rows = 0;
    return counts;
  }
}

/** A row is sorted as numbers that hold a column and, below it, a place in the row: more than any text has words. */
const placeLimit = 2 ** 22;

/** TF-IDF of counted rows; `columns` says which column a term is, -1 for none. */
export function weigh({ indptr, terms, counts }: Counts, columns: Int32Array, weights: Weights): Rows {
  const rows = indptr.length - 1;
  const kept = new Uint32Array(rows + 1);
  const indices = new Uint32Array(terms.length);
  const values = new Float32Array(terms.length);
  let keys = new Float64Array(64);
  let size = 0;
  for (let row = 0; row < rows; row++) {
    const [start, end] = [indptr[row], indptr[row + 1]];
    if (end - start > keys.length) keys = new Float64Array(2 * (end - start));
    let length = 0;
    for (let p = start; p < end; p++) {
      const column = columns[terms[p]];
      if (column >= 0) keys[length++] = column * placeLimit + (p - start);
    }
    sortNumbers(keys, length);
    let squares = 0;
    for (let i = 0; i < length; i++) {
      const column = Math.floor(keys[i] / placeLimit);
      const value = weight(counts[start + (keys[i] - column * placeLimit)], column, weights);
      indices[size + i] = column;
      // The key is spent: its place keeps the value in full precision until the length of the row is known.
      keys[i] = value;
      squares += value * value;
    }
    const scale = weights.normalise && squares > 0 ? 1 / Math.sqrt(squares) : 1;
    for (let i = 0; i < length; i++) values[size + i] = keys[i] * scale;
    size += length;
    kept[row + 1] = size;
  }
  return size === terms.length
    ? { indptr: kept, indices, values }
    : { indptr: kept, indices: indices.slice(0, size), values: values.slice(0, size) };
}

function weight(count: number, column: number, { idf, sublinear }: Weights): number {
  const frequency = sublinear && count > 1 ? 1 + Math.log(count) : count;
  return idf ? frequency * idf[column] : frequency;
}

/** Insertion sort wins on rows as short as titles. */
function sortNumbers(numbers: Float64Array, length: number): void {
  if (length > 32) {
    numbers.subarray(0, length).sort();
    return;
  }
  for (let i = 1; i < length; i++) {
    const number = numbers[i];
    let j = i - 1;
    for (; j >= 0 && numbers[j] > number; j--) numbers[j + 1] = numbers[j];
    numbers[j + 1] = number;
  }
}

/** Smoothed as if one more text had every term: ln((1 + rows) / (1 + documents)) + 1. */
export function inverseFrequency(documents: Uint32Array, rows: number): Float64Array {
  const idf = new Float64Array(documents.length);
  for (let i = 0; i < idf.length; i++) idf[i] = Math.log((1 + rows) / (1 + documents[i])) + 1;
  return idf;
}
