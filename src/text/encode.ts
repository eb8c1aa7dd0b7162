// Texts → TF-IDF rows by what a fit has learnt. Synchronous and free of disk and threads: this is what serves, in Node
// and in a browser, and what worker threads run.
import { Analyser, gramMark, type WordFilters } from './analyse.ts';
import { hashedTerms, Lexicon } from './lexicon.ts';
import { decode, type Packed, toBlocks } from './utf8.ts';
import type { TextOptions } from './vectoriser.ts';
import { inverseFrequency, RowCounter, type Rows, type Weights, weigh } from './weigh.ts';

/** All that a fit learns. */
export interface Fitted {
  options: TextOptions;
  /** The user's own, beside those of the options. */
  stopWords: readonly string[];
  /** Texts seen. */
  rows: number;
  /** How many of them each column occurs in; for a hashed column that is not to be used, 0. */
  documents: Uint32Array;
  /** What each column is called; empty when terms are hashed. */
  names: Packed;
}

/** A place in a text that is a feature, in UTF-16 units as in `text.slice(start, end)`. */
export interface Span {
  start: number;
  end: number;
  column: number;
}

export class Encoder {
  readonly #analyser: Analyser;
  readonly #columns: Int32Array;
  readonly #weights: Weights;
  readonly #counter = new RowCounter();
  /** Hashed terms are cut down to the bits of a column; known terms are small already. */
  readonly #mask: number;

  constructor(fitted: Fitted, filters: WordFilters) {
    const { options, names, documents } = fitted;
    const lexicon = new Lexicon();
    const terms = addNames(lexicon, names);
    lexicon.frozen = true;
    const isHashed = options.hashBits > 0;
    this.#mask = columnMask(options);
    this.#columns = isHashed ? usedColumns(documents) : new Int32Array(lexicon.size).fill(-1);
    terms.forEach((term, column) => {
      this.#columns[term] = column;
    });
    this.#analyser = new Analyser(options, isHashed ? hashedTerms : lexicon, filters);
    this.#weights = weightsOf(fitted);
  }

  rows({ bytes, offsets }: Packed): Rows {
    for (let i = 1; i < offsets.length; i++) {
      this.#analyser.terms(bytes, offsets[i - 1], offsets[i], this.#count);
      this.#counter.endRow();
    }
    return weigh(this.#counter.take(), this.#columns, this.#weights);
  }

  /** The features in a text, in order of where they end. */
  spans(text: string): Span[] {
    const spans: Span[] = [];
    this.#analyser.placedTerms(text, (term, start, end) => {
      const column = this.#columns[term & this.#mask];
      if (column >= 0) spans.push({ start, end, column });
    });
    return spans;
  }

  readonly #count = (term: number): void => this.#counter.add(term & this.#mask);
}

export const columnMask = ({ hashBits }: TextOptions): number =>
  hashBits > 0 ? 2 ** hashBits - 1 : 0x7fffffff;

/** Hashed terms are their own columns, where those are used. */
export function usedColumns(documents: Uint32Array): Int32Array {
  const columns = new Int32Array(documents.length);
  for (let i = 0; i < columns.length; i++) columns[i] = documents[i] > 0 ? i : -1;
  return columns;
}

export const weightsOf = ({ options, documents, rows }: Fitted): Weights => ({
  idf: options.idf ? inverseFrequency(documents, rows) : undefined,
  sublinear: options.sublinear,
  normalise: options.normalise,
});

/** The terms of names: each a character n-gram, a word, or words with spaces between. */
function addNames(lexicon: Lexicon, { bytes, offsets }: Packed): Int32Array {
  const terms = new Int32Array(offsets.length - 1);
  for (let i = 0; i < terms.length; i++) {
    const name = decode(bytes, offsets[i], offsets[i + 1]);
    terms[i] = -1;
    for (const word of name.startsWith(gramMark) ? [name] : name.split(' ')) {
      const blocks = toBlocks(word);
      const string = lexicon.string(blocks, 0, blocks.length);
      terms[i] = terms[i] < 0 ? string : lexicon.pair(terms[i], string);
    }
  }
  return terms;
}
