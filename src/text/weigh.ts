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

/** TF-IDF of counted rows; `columns` says which column a term is, -1 for none. */
export function weigh({ indptr, terms, counts }: Counts, columns: Int32Array, weights: Weights): Rows {
  const rows = indptr.length - 1;
  const kept = new Uint32Array(rows + 1);
  const indices = new Uint32Array(terms.length);
  const values = new Float32Array(terms.length);
  let row = new Row(64);
  let size = 0;
  for (let i = 0; i < rows; i++) {
    if (indptr[i + 1] - indptr[i] > row.capacity) row = new Row(2 * (indptr[i + 1] - indptr[i]));
    let length = 0;
    for (let p = indptr[i]; p < indptr[i + 1]; p++) {
      const column = columns[terms[p]];
      if (column < 0) continue;
      row.columns[length] = column;
      row.values[length] = weight(counts[p], column, weights);
      length++;
    }
    row.write(length, weights.normalise, indices, values, size);
    size += length;
    kept[i + 1] = size;
  }
  return size === terms.length
    ? { indptr: kept, indices, values }
    : { indptr: kept, indices: indices.slice(0, size), values: values.slice(0, size) };
}

function weight(count: number, column: number, { idf, sublinear }: Weights): number {
  const frequency = sublinear && count > 1 ? 1 + Math.log(count) : count;
  return idf ? frequency * idf[column] : frequency;
}

/** One row being made. */
class Row {
  readonly capacity: number;
  readonly columns: Int32Array;
  readonly values: Float64Array;
  readonly #ranks: Uint32Array;
  readonly #sorted: Float64Array;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.columns = new Int32Array(capacity);
    this.values = new Float64Array(capacity);
    this.#ranks = new Uint32Array(capacity);
    this.#sorted = new Float64Array(capacity);
  }

  /** Writes the first `length` columns in ascending order. */
  write(
    length: number,
    normalise: boolean,
    indices: Uint32Array,
    values: Float32Array,
    offset: number,
  ): void {
    const ranks = this.#rank(length);
    const sorted = this.#sorted;
    for (let i = 0; i < length; i++) {
      indices[offset + ranks[i]] = this.columns[i];
      sorted[ranks[i]] = this.values[i];
    }
    let squares = 0;
    // Summed in column order, which does not depend on who numbered the terms.
    for (let i = 0; i < length; i++) squares += sorted[i] * sorted[i];
    const scale = normalise && squares > 0 ? 1 / Math.sqrt(squares) : 1;
    for (let i = 0; i < length; i++) values[offset + i] = sorted[i] * scale;
  }

  /** How many columns are below each. Comparing all with all needs no branches, which wins on rows as short as titles. */
  #rank(length: number): Uint32Array {
    const { columns } = this;
    const ranks = this.#ranks;
    if (length > 64) {
      const order = Array.from({ length }, (_, i) => i).sort((a, b) => columns[a] - columns[b]);
      for (let rank = 0; rank < length; rank++) ranks[order[rank]] = rank;
      return ranks;
    }
    for (let i = 0; i < length; i++) {
      const column = columns[i];
      let rank = 0;
      for (let j = 0; j < length; j++) rank += (columns[j] - column) >>> 31;
      ranks[i] = rank;
    }
    return ranks;
  }
}

/** Smoothed as if one more text had every term: ln((1 + rows) / (1 + documents)) + 1. */
export function inverseFrequency(documents: Uint32Array, rows: number): Float64Array {
  const idf = new Float64Array(documents.length);
  for (let i = 0; i < idf.length; i++) idf[i] = Math.log((1 + rows) / (1 + documents[i])) + 1;
  return idf;
}
