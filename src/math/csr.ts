// Compressed sparse rows: the shape of features, labels, rankings and weights. Pure numbers, no input checks
// beyond what keeps memory safe; the data room checks what comes from outside.

/** A binary sparse matrix: which columns are set in each row. Columns ascend within a row unless said otherwise. */
export interface Pattern {
  rows: number;
  cols: number;
  /** rows + 1 offsets into `indices`. */
  indptr: Uint32Array;
  indices: Uint32Array;
}

/** A sparse matrix with values. */
export interface Csr extends Pattern {
  values: Float32Array;
}

/** Predictions: a Csr (inputs x labels) whose rows hold label columns by descending score, ties by lowest column. */
export type Ranking = Csr;

export const nnz = (m: Pattern): number => m.indptr[m.rows];

export const rowIndices = (m: Pattern, row: number): Uint32Array =>
  m.indices.subarray(m.indptr[row], m.indptr[row + 1]);

export const rowValues = (m: Csr, row: number): Float32Array =>
  m.values.subarray(m.indptr[row], m.indptr[row + 1]);

/** Collects rows one by one into growing arrays. */
export class CsrBuilder {
  #indptr = new Uint32Array(1024);
  #indices = new Uint32Array(4096);
  #values: Float32Array | undefined;
  #rows = 0;
  #size = 0;
  #width = 0;

  /** `binary` keeps no values. */
  constructor(kind: 'binary' | 'values') {
    if (kind === 'values') this.#values = new Float32Array(4096);
  }

  get rows(): number {
    return this.#rows;
  }

  /** One more than the largest column seen. */
  get width(): number {
    return this.#width;
  }

  /** Appends a row; columns are kept in the order given. */
  add(indices: ArrayLike<number>, values?: ArrayLike<number>): void {
    const start = this.#size;
    const end = start + indices.length;
    if (end > this.#indices.length) {
      const capacity = Math.max(end, this.#indices.length * 2);
      this.#indices = grow(this.#indices, capacity);
      if (this.#values) this.#values = grow(this.#values, capacity);
    }
    this.#indices.set(indices, start);
    if (this.#values && values) this.#values.set(values, start);
    for (let p = start; p < end; p++) if (this.#indices[p] >= this.#width) this.#width = this.#indices[p] + 1;
    this.#size = end;
    this.#rows++;
    if (this.#rows >= this.#indptr.length) this.#indptr = grow(this.#indptr, this.#indptr.length * 2);
    this.#indptr[this.#rows] = end;
  }

  /** The matrix so far; `cols` defaults to the width seen. */
  pattern(cols = this.#width): Pattern {
    const indptr = this.#indptr.slice(0, this.#rows + 1);
    return { rows: this.#rows, cols, indptr, indices: this.#indices.slice(0, this.#size) };
  }

  csr(cols = this.#width): Csr {
    const values = this.#values?.slice(0, this.#size) ?? new Float32Array(this.#size).fill(1);
    return { ...this.pattern(cols), values };
  }
}

function grow<T extends Uint32Array | Float32Array>(old: T, capacity: number): T {
  const larger = new (old.constructor as new (n: number) => T)(capacity);
  larger.set(old);
  return larger;
}

/** Rows become columns; rows of the result ascend. */
export function transpose(m: Csr): Csr;
export function transpose(m: Pattern): Pattern;
export function transpose(m: Pattern & { values?: Float32Array }): Pattern & { values?: Float32Array } {
  const { indptr: starts, indices: columns, values: given } = m;
  const size = nnz(m);
  const indptr = new Uint32Array(m.cols + 1);
  for (let p = 0; p < size; p++) indptr[columns[p] + 1]++;
  for (let c = 0; c < m.cols; c++) indptr[c + 1] += indptr[c];
  const next = indptr.slice();
  const indices = new Uint32Array(size);
  const values = given && new Float32Array(size);
  for (let row = 0; row < m.rows; row++) {
    const end = starts[row + 1];
    for (let p = starts[row]; p < end; p++) {
      const q = next[columns[p]]++;
      indices[q] = row;
      if (values && given) values[q] = given[p];
    }
  }
  const shape = { rows: m.cols, cols: m.rows, indptr, indices };
  return values ? { ...shape, values } : shape;
}

/** The given rows, in the given order. */
export function selectRows(m: Csr, rows: ArrayLike<number>): Csr;
export function selectRows(m: Pattern, rows: ArrayLike<number>): Pattern;
export function selectRows(
  m: Pattern & { values?: Float32Array },
  rows: ArrayLike<number>,
): Pattern & { values?: Float32Array } {
  const indptr = new Uint32Array(rows.length + 1);
  for (let i = 0; i < rows.length; i++) indptr[i + 1] = indptr[i] + m.indptr[rows[i] + 1] - m.indptr[rows[i]];
  const indices = new Uint32Array(indptr[rows.length]);
  const values = m.values && new Float32Array(indptr[rows.length]);
  for (let i = 0; i < rows.length; i++) {
    const [start, end] = [m.indptr[rows[i]], m.indptr[rows[i] + 1]];
    indices.set(m.indices.subarray(start, end), indptr[i]);
    if (values && m.values) values.set(m.values.subarray(start, end), indptr[i]);
  }
  const shape = { rows: rows.length, cols: m.cols, indptr, indices };
  return values ? { ...shape, values } : shape;
}

/** The rows of one matrix behind those of another; the wider one says how many columns there are. */
export function stackRows(first: Csr, last: Csr): Csr;
export function stackRows(first: Pattern, last: Pattern): Pattern;
export function stackRows(
  first: Pattern & { values?: Float32Array },
  last: Pattern & { values?: Float32Array },
): Pattern & { values?: Float32Array } {
  const [size, more] = [nnz(first), nnz(last)];
  const indptr = new Uint32Array(first.rows + last.rows + 1);
  indptr.set(first.indptr);
  for (let row = 1; row <= last.rows; row++) indptr[first.rows + row] = size + last.indptr[row];
  const indices = new Uint32Array(size + more);
  indices.set(first.indices.subarray(0, size));
  indices.set(last.indices.subarray(0, more), size);
  const shape = { rows: indptr.length - 1, cols: Math.max(first.cols, last.cols), indptr, indices };
  if (!first.values || !last.values) return shape;
  const values = new Float32Array(size + more);
  values.set(first.values.subarray(0, size));
  values.set(last.values.subarray(0, more), size);
  return { ...shape, values };
}

/** A copy with rows of Euclidean length one; zero rows stay zero. */
export function unitRows(m: Csr): Csr {
  const values = m.values.slice();
  for (let row = 0; row < m.rows; row++) {
    let sum = 0;
    for (let p = m.indptr[row]; p < m.indptr[row + 1]; p++) sum += values[p] * values[p];
    if (sum === 0) continue;
    const scale = 1 / Math.sqrt(sum);
    for (let p = m.indptr[row]; p < m.indptr[row + 1]; p++) values[p] *= scale;
  }
  return { ...m, values };
}

/** How many rows hold each column. */
export function columnCounts(m: Pattern): Uint32Array {
  const counts = new Uint32Array(m.cols);
  for (let p = 0; p < nnz(m); p++) counts[m.indices[p]]++;
  return counts;
}

/** Some rows of a ranking, one after the other. */
export interface Found {
  counts: Uint32Array;
  labels: Uint32Array;
  scores: Float32Array;
}

/** All rows, in the order of the parts. */
export function joinFound(parts: Found[], cols: number): Ranking {
  const rows = parts.reduce((sum, { counts }) => sum + counts.length, 0);
  const size = parts.reduce((sum, { labels }) => sum + labels.length, 0);
  const joined: Ranking = {
    rows,
    cols,
    indptr: new Uint32Array(rows + 1),
    indices: new Uint32Array(size),
    values: new Float32Array(size),
  };
  let [row, entry] = [0, 0];
  for (const { counts, labels, scores } of parts) {
    joined.indices.set(labels, entry);
    joined.values.set(scores, entry);
    entry += labels.length;
    for (let i = 0; i < counts.length; i++, row++) joined.indptr[row + 1] = joined.indptr[row] + counts[i];
  }
  return joined;
}
