// The row that XMC and svmlight text share, `l1,l2 f:v f:v`: a scanner over character codes (no split, no regular
// expression: this is where reading time goes), and the way back to text.
import { badInput, badUsage } from '../errors.ts';
import type { Sample } from './dataset.ts';
import { checkHolds } from './records.ts';

const [tab, space, plus, minus, dot, zero, nine, colon] = Array.from('\t +-.09:', (c) => c.charCodeAt(0));

const isBlank = (code: number) => code === space || code === tab;
const isDigit = (code: number) => code >= zero && code <= nine;

/** Powers of ten that a double holds exactly: dividing a mantissa below 2^53 by one rounds correctly. */
const powersOfTen = Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

/** Where the labels at the start of a row end; 0 where there are none and features come first. */
export function labelsEnd(row: string): number {
  for (let at = 0; at < row.length; at++) {
    const code = row.charCodeAt(at);
    if (isBlank(code)) return at;
    if (code === colon) return 0;
  }
  return row.length;
}

export class FeatureScanner {
  readonly #width: number;
  #row = '';
  #at = 0;
  #count = 0;
  #indices = new Uint32Array(256);
  #values = new Float32Array(256);

  /** Feature ids must be below `width`. */
  constructor(width = 2 ** 32 - 1) {
    this.#width = width;
  }

  /** The features of a row from a position on, by ascending column. */
  scan(row: string, start: number): { indices: Uint32Array; values: Float32Array } {
    this.#row = row;
    this.#at = start;
    this.#count = 0;
    let sorted = true;
    let previous = -1;
    while (this.#skipBlanks()) {
      const column = this.#column();
      if (column <= previous) sorted = false;
      previous = column;
      this.#add(column, this.#value());
    }
    const features = {
      indices: this.#indices.slice(0, this.#count),
      values: this.#values.slice(0, this.#count),
    };
    return sorted ? features : sortFeatures(features);
  }

  /** Whether anything is left. */
  #skipBlanks(): boolean {
    while (this.#at < this.#row.length && isBlank(this.#row.charCodeAt(this.#at))) this.#at++;
    return this.#at < this.#row.length;
  }

  /** The feature id and the colon after it. */
  #column(): number {
    const row = this.#row;
    const start = this.#at;
    let at = start;
    let column = 0;
    let code = row.charCodeAt(at);
    while (isDigit(code)) {
      column = column * 10 + (code - zero);
      code = row.charCodeAt(++at);
    }
    if (code !== colon || at === start)
      throw badInput('a feature must be written as id:value', { value: this.#token(start) });
    if (column >= this.#width)
      throw badInput(`feature id must be below ${this.#width}`, { value: row.slice(start, at) });
    this.#at = at + 1;
    return column;
  }

  /** A decimal number and the end of its token. */
  #value(): number {
    const row = this.#row;
    const start = this.#at;
    let at = start;
    let code = row.charCodeAt(at);
    const negative = code === minus;
    if (negative || code === plus) code = row.charCodeAt(++at);
    let mantissa = 0;
    let digits = 0;
    let decimals = 0;
    for (; isDigit(code); digits++) {
      mantissa = mantissa * 10 + (code - zero);
      code = row.charCodeAt(++at);
    }
    if (code === dot) {
      code = row.charCodeAt(++at);
      for (; isDigit(code); decimals++) {
        mantissa = mantissa * 10 + (code - zero);
        code = row.charCodeAt(++at);
      }
    }
    this.#at = at;
    digits += decimals;
    // NaN is the code past the end of the row.
    const simple = digits > 0 && digits <= 15 && (isBlank(code) || Number.isNaN(code));
    if (!simple) return this.#unusualValue(start);
    const value = mantissa / powersOfTen[decimals];
    return negative ? -value : value;
  }

  /** Exponents and long mantissas: seldom seen, so clarity before speed. */
  #unusualValue(start: number): number {
    const token = this.#token(start);
    const value = Number(token);
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(token) || !Number.isFinite(Math.fround(value)))
      throw badInput('feature value must be a finite number', { value: token });
    this.#at = start + token.length;
    return value;
  }

  #token(start: number): string {
    let end = start;
    while (end < this.#row.length && !isBlank(this.#row.charCodeAt(end))) end++;
    return this.#row.slice(start, end);
  }

  #add(column: number, value: number): void {
    if (this.#count === this.#indices.length) {
      const [indices, values] = [this.#indices, this.#values];
      this.#indices = new Uint32Array(indices.length * 2);
      this.#values = new Float32Array(values.length * 2);
      this.#indices.set(indices);
      this.#values.set(values);
    }
    this.#indices[this.#count] = column;
    this.#values[this.#count++] = value;
  }
}

function sortFeatures({ indices, values }: { indices: Uint32Array; values: Float32Array }) {
  const order = Uint32Array.from(indices.keys()).sort((a, b) => indices[a] - indices[b]);
  const sorted = { indices: indices.slice().sort(), values: Float32Array.from(order, (p) => values[p]) };
  for (let i = 1; i < order.length; i++) {
    if (sorted.indices[i] === sorted.indices[i - 1])
      throw badInput('a feature must appear once in a row', { value: sorted.indices[i] });
  }
  return sorted;
}

interface SparseRow {
  indices: ArrayLike<number>;
  values: ArrayLike<number>;
}

/** What a format of sparse rows can write of a sample: its sparse features, or the non-zero ones of its dense. */
export function rowOf(format: string, sample: Sample): SparseRow {
  const { sparse, dense } = sample;
  checkHolds(format, sparse ? ['sparse'] : ['dense'], sample);
  if (sparse) return sparse;
  if (!dense) throw badUsage(`${format} needs features`, { hint: 'write .jsonl, .csv or .tsv instead' });
  const indices = Array.from(dense.keys()).filter((column) => dense[column] !== 0);
  return { indices, values: indices.map((column) => dense[column]) };
}

/** ` f:v f:v`, each value in the fewest digits that read back as the same 32-bit number. */
export function featureText({ indices, values }: SparseRow): string {
  let text = '';
  for (let i = 0; i < indices.length; i++) text += ` ${indices[i]}:${shortFloat(values[i])}`;
  return text;
}

/** The double with the fewest digits among those that round to the same 32-bit number. */
export function shortFloat(value: number): number {
  const single = Math.fround(value);
  // Arithmetic finds nearly all of them, much faster than formatting does; large numbers have no decimals to find.
  for (let decimals = 0; decimals < 9 && Math.abs(single) < 2 ** 24; decimals++) {
    const short = Math.round(single * powersOfTen[decimals]) / powersOfTen[decimals];
    if (Math.fround(short) === single) return short;
  }
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(single.toPrecision(digits));
    if (Math.fround(short) === single) return short;
  }
  return Number(single.toPrecision(9));
}
