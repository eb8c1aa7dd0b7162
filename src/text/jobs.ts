// What threads do for the vectoriser: count the terms of texts, weigh counted rows, or encode texts. The results do not
// depend on which thread does which job.
import type { Prepare, Task } from '../kernels/pool.ts';
import { Analyser, wordFilters } from './analyse.ts';
import { columnMask, Encoder, type Fitted } from './encode.ts';
import { hashedTerms, Lexicon, type TermList } from './lexicon.ts';
import type { Packed } from './utf8.ts';
import type { TextOptions } from './vectoriser.ts';
import { type Counts, RowCounter, type Rows, type Weights, weigh } from './weigh.ts';

interface CountSetup {
  options: TextOptions;
  stopWords: readonly string[];
  /** Shared by all threads, so that each can take the next number as its own. */
  lanes: Int32Array;
}

/** A counted chunk, in terms numbered by the thread that counted it. */
export interface Counted {
  lane: number;
  counts: Counts;
  /** The terms new to that thread since its last chunk. */
  terms: TermList;
}

export const countTask: Task<CountSetup, Packed, Counted> = { module: import.meta.url, name: 'prepareCount' };

export const prepareCount: Prepare<CountSetup, Packed, Counted> = async ({ options, stopWords, lanes }) => {
  const lane = Atomics.add(lanes, 0, 1);
  const lexicon = new Lexicon();
  const index = options.hashBits > 0 ? hashedTerms : lexicon;
  const mask = columnMask(options);
  const analyser = new Analyser(options, index, await wordFilters(options, stopWords));
  const counter = new RowCounter();
  const count = (term: number) => counter.add(term & mask);
  return ({ bytes, offsets }) => {
    const known = lexicon.size;
    for (let i = 1; i < offsets.length; i++) {
      analyser.terms(bytes, offsets[i - 1], offsets[i], count);
      counter.endRow();
    }
    return { lane, counts: counter.take(), terms: lexicon.list(known) };
  };
};

interface WeighSetup {
  /** Per lane, the column of each of its terms. */
  columns: Int32Array[];
  weights: Weights;
}
type WeighJob = Pick<Counted, 'lane' | 'counts'>;

export const weighTask: Task<WeighSetup, WeighJob, Rows> = { module: import.meta.url, name: 'prepareWeigh' };

export const prepareWeigh: Prepare<WeighSetup, WeighJob, Rows> =
  ({ columns, weights }) =>
  ({ lane, counts }) =>
    weigh(counts, columns[lane], weights);

export const encodeTask: Task<Fitted, Packed, Rows> = { module: import.meta.url, name: 'prepareEncode' };

export const prepareEncode: Prepare<Fitted, Packed, Rows> = async (fitted) => {
  const encoder = new Encoder(fitted, await wordFilters(fitted.options, fitted.stopWords));
  return (chunk) => encoder.rows(chunk);
};
