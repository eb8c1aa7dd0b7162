// Words → terms: stop words, stems, word n-grams and the character n-grams inside words. Says which terms occur where;
// counting and weighing them is done elsewhere.
import { UmbelError } from '../errors.ts';
import { Lexicon, type TermIndex } from './lexicon.ts';
import { english } from './stopwords.ts';
import { Tokeniser } from './tokenise.ts';
import { fromBlocks, toBlocks } from './utf8.ts';
import type { TextOptions } from './vectoriser.ts';

/** Takes one occurrence of a term; `start` and `end` are its place in the folded text where places were asked for. */
export type TakeTerm = (term: number, start: number, end: number) => void;

/** What happens to a word before it becomes a term. */
export interface WordFilters {
  stem?: (word: string) => string;
  stopWords: readonly string[];
}

/** In front of a character n-gram's name, so that it is not taken for a word. Words never contain it. */
export const gramMark = '~';

/** Distinct words remembered with their stems and character n-grams; beyond that the memory starts afresh. */
const maxRemembered = 2 ** 18;

interface Known {
  /** -1 where words are not terms or the index does not know it. */
  token: number;
  /** Character n-grams: term, start and end relative to the word, and so on. */
  grams: Int32Array;
}

export async function wordFilters(
  options: TextOptions,
  stopWords: readonly string[] = [],
): Promise<WordFilters> {
  const words = options.stopWords === 'english' ? [...english, ...stopWords] : stopWords;
  if (options.stem === 'none') return { stopWords: words };
  const stemmer = (await loadStemmers()).newStemmer(options.stem);
  return { stopWords: words, stem: (word) => stemmer.stem(word) || word };
}

async function loadStemmers() {
  try {
    return await import('snowball-stemmers');
  } catch {
    throw new UmbelError('missing-package', 'stemming needs the package snowball-stemmers', {
      hint: 'a page without a bundler needs an import map that says where it is, as an ES module',
    });
  }
}

export class Analyser {
  readonly #index: TermIndex;
  readonly #options: TextOptions;
  readonly #tokeniser: Tokeniser;
  readonly #stem: WordFilters['stem'];
  readonly #stopWords = new Set<string>();
  /** Words are terms as they stand: nothing to remember about them. */
  readonly #isPlain: boolean;
  #words = new Lexicon();
  /** What is known of each of `#words`; undefined for a stop word. */
  #known: (Known | undefined)[] = [];

  #take: TakeTerm = () => {};
  #wordStart = 0;
  #wordEnd = 0;
  /** The n-grams that end with the last word, and where they start: one word, two words. */
  #last = -1;
  #lastStart = 0;
  #lastPair = -1;
  #lastPairStart = 0;

  constructor(options: TextOptions, index: TermIndex, { stem, stopWords }: WordFilters) {
    this.#index = index;
    this.#options = options;
    this.#stem = stem;
    this.#tokeniser = new Tokeniser(options.words, options.accents === 'strip');
    for (const entry of stopWords)
      for (const { word } of this.#tokeniser.placedWords(entry)) this.#stopWords.add(word);
    this.#isPlain = !stem && this.#stopWords.size === 0 && options.charMax === 0;
  }

  /** Gives every occurrence of a known term in the UTF-8 text `bytes[from..to)` to `take`. */
  terms(bytes: Uint8Array, from: number, to: number, take: TakeTerm): void {
    this.#begin(take);
    this.#tokeniser.words(bytes, from, to, this.#word);
  }

  /** The same terms, with their places in the text itself. */
  placedTerms(text: string, take: TakeTerm): void {
    const { starts, ends } = this.#tokeniser.origins(text);
    this.#begin((term, start, end) => take(term, starts[start], ends[end]));
    for (const { word, start } of this.#tokeniser.placedWords(text)) {
      this.#wordStart = start;
      this.#wordEnd = start + word.length;
      const blocks = toBlocks(word);
      this.#word(blocks, 0, blocks.length);
    }
  }

  #begin(take: TakeTerm): void {
    this.#take = take;
    this.#last = -1;
    this.#lastPair = -1;
  }

  readonly #word = (blocks: Int32Array, start: number, end: number): void => {
    if (this.#isPlain) {
      this.#token(this.#index.string(blocks, start, end));
      return;
    }
    const known = this.#recall(blocks, start, end);
    if (!known) return;
    const { token, grams } = known;
    if (this.#options.ngrams > 0) this.#token(token);
    for (let i = 0; i < grams.length; i += 3)
      this.#take(grams[i], this.#wordStart + grams[i + 1], this.#wordStart + grams[i + 2]);
  };

  #token(token: number): void {
    if (token >= 0) this.#take(token, this.#wordStart, this.#wordEnd);
    const { ngrams } = this.#options;
    if (ngrams === 1) return;
    const pair = this.#index.pair(this.#last, token);
    if (pair >= 0) this.#take(pair, this.#lastStart, this.#wordEnd);
    if (ngrams > 2) {
      const triple = this.#index.pair(this.#lastPair, token);
      if (triple >= 0) this.#take(triple, this.#lastPairStart, this.#wordEnd);
    }
    this.#lastPair = pair;
    this.#lastPairStart = this.#lastStart;
    this.#last = token;
    this.#lastStart = this.#wordStart;
  }

  #recall(blocks: Int32Array, start: number, end: number): Known | undefined {
    if (this.#known.length >= maxRemembered) {
      this.#words = new Lexicon();
      this.#known = [];
    }
    const id = this.#words.string(blocks, start, end);
    if (id === this.#known.length) this.#known.push(this.#study(fromBlocks(blocks, start, end)));
    return this.#known[id];
  }

  #study(word: string): Known | undefined {
    if (this.#stopWords.has(word)) return undefined;
    const { ngrams, charMin, charMax } = this.#options;
    const stem = this.#stem ? this.#stem(word) : word;
    const token = ngrams > 0 ? this.#number(stem) : -1;
    const grams: number[] = [];
    if (charMax > 0) {
      forEachGram(word, charMin, charMax, (gram, start, end) => {
        const term = this.#number(gramMark + gram);
        if (term >= 0) grams.push(term, start, end);
      });
    }
    return { token, grams: Int32Array.from(grams) };
  }

  #number(name: string): number {
    const blocks = toBlocks(name);
    return this.#index.string(blocks, 0, blocks.length);
  }
}

/**
 * Character n-grams of a word with a space on either side, as scikit-learn's `char_wb` makes them: a word shorter than
 * n gives itself, once. Places are relative to the word and leave the spaces out.
 */
function forEachGram(
  word: string,
  min: number,
  max: number,
  take: (gram: string, start: number, end: number) => void,
): void {
  const padded = [' ', ...word, ' '];
  const places = [0];
  for (const character of word) places.push(places[places.length - 1] + character.length);
  const place = (i: number) => places[Math.min(Math.max(i - 1, 0), places.length - 1)];
  for (let n = min; n <= max; n++) {
    for (let i = 0; i === 0 || i + n <= padded.length; i++)
      take(padded.slice(i, i + n).join(''), place(i), place(Math.min(i + n, padded.length)));
    if (n >= padded.length) return;
  }
}
