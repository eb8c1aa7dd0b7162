// Words → numbers: learns a vocabulary from texts and turns texts into TF-IDF rows. The same texts and options give the
// same bytes for any number of threads. Columns are ordered by how many texts have them, ties by name: learners are
// faster when frequent features have low numbers.
import { badUsage } from '../errors.ts';
import type { Csr } from '../math/csr.ts';
import { choice, flag, integer, number, type OptionsOf, parseOptions } from '../options.ts';
import { type Json, type PartReader, type PartWriter, vector } from '../parts.ts';
import { breathe, type Context, checkCancelled, type Progress } from '../progress.ts';
import { type WordFilters, wordFilters } from './analyse.ts';
import { Encoder, type Fitted, type Span, weightsOf } from './encode.ts';
import { countTask, encodeTask, weighTask } from './jobs.ts';
import { Tally } from './tally.ts';
import { decode, type Packed, pack } from './utf8.ts';
import type { Rows } from './weigh.ts';

const languages = [
  ...['arabic', 'armenian', 'basque', 'catalan', 'czech', 'danish', 'dutch', 'english', 'finnish', 'french'],
  ...['german', 'hungarian', 'irish', 'italian', 'norwegian', 'porter', 'portuguese', 'romanian', 'russian'],
  ...['slovene', 'spanish', 'swedish', 'tamil', 'turkish'],
] as const;

export const textOptions = {
  words: choice(
    'unicode',
    ['unicode', 'sklearn'],
    'what a word is: letters, digits, underscores and marks, or exactly what scikit-learn takes for one',
  ),
  accents: choice('keep', ['keep', 'strip'], 'keep é and e apart, or make them one'),
  ngrams: integer(1, 'longest run of words that is a feature; 0 for no words', { min: 0, max: 3 }),
  charMin: integer(3, 'shortest run of characters that is a feature', { min: 2, max: 10 }),
  charMax: integer(0, 'longest run of characters within a word that is a feature; 0 for none', {
    min: 0,
    max: 10,
  }),
  stem: choice('none', ['none', ...languages], 'cut words down to their stems, by the rules of a language'),
  stopWords: choice('none', ['none', 'english'], 'leave out the most common words of a language'),
  minDocuments: integer(1, 'leave out features that fewer texts have', { min: 1 }),
  maxShare: number(1, 'leave out features that a larger share of the texts have', { min: 0, max: 1 }),
  maxFeatures: integer(0, 'keep only so many features, those of most texts; 0 for all', { min: 0 }),
  hashBits: integer(0, 'hash terms to 2^this columns and keep no vocabulary; 0 for a vocabulary', {
    min: 0,
    max: 24,
  }),
  sublinear: flag(true, 'weigh n occurrences as 1 + ln n'),
  idf: flag(true, 'weigh rare features more'),
  normalise: flag(true, 'give every row length one'),
};

export type TextOptions = OptionsOf<typeof textOptions>;

export interface TransformOptions {
  threads?: number;
  progress?: Progress;
  signal?: AbortSignal;
}

/** Characters per job: some ten milliseconds of work. */
const chunkLength = 2 ** 20;

export class Vectoriser {
  readonly #fitted: Fitted;
  readonly #filters: WordFilters;
  #made: Encoder | undefined;

  private constructor(fitted: Fitted, filters: WordFilters) {
    this.#fitted = fitted;
    this.#filters = filters;
  }

  /** Learns from texts and gives their rows; `stopWords` are left out beside those of the options. */
  static async fit(
    texts: readonly string[],
    given: Partial<TextOptions>,
    { threads, progress, signal }: Pick<Context, 'threads' | 'progress' | 'signal'>,
    { stopWords = [] }: { stopWords?: readonly string[] } = {},
  ): Promise<{ vectoriser: Vectoriser; features: Csr }> {
    const options = parseOptions(textOptions, given);
    checkOptions(options);
    const filters = await wordFilters(options, stopWords);
    const { Pool } = await import('../kernels/pool.ts');
    const pool = new Pool(threads);
    try {
      const tally = new Tally(options);
      const report = reporter('count words', texts.length, progress);
      const lanes = new Int32Array(new SharedArrayBuffer(4));
      const counted = await pool.run(countTask, { options, stopWords, lanes }, chunks(texts), {
        signal,
        ahead: 1,
        onResult: (result) => report(tally.add(result)),
      });
      const { columns, ...learnt } = tally.choose(texts.length);
      const fitted: Fitted = { options, stopWords, rows: texts.length, ...learnt };
      const setup = { columns, weights: weightsOf(fitted) };
      const reportRows = reporter('weigh words', texts.length, progress);
      const parts = await pool.run(weighTask, setup, counted, {
        signal,
        ahead: 1,
        onResult: (rows) => reportRows(rows.indptr.length - 1),
      });
      const features = stack(parts, fitted.documents.length);
      return { vectoriser: new Vectoriser(fitted, filters), features };
    } finally {
      await pool.close();
    }
  }

  get columns(): number {
    return this.#fitted.documents.length;
  }

  /** What a column is called: a word, words with spaces between, `~` and a run of characters, or a hashed number. */
  featureName(column: number): string {
    const { bytes, offsets } = this.#fitted.names;
    return column + 1 < offsets.length ? decode(bytes, offsets[column], offsets[column + 1]) : `#${column}`;
  }

  /** One row per text. With one thread it stays here and needs nothing of Node. */
  async transform(
    texts: readonly string[],
    { threads = 1, progress, signal }: TransformOptions = {},
  ): Promise<Csr> {
    checkCancelled(signal);
    const report = reporter('vectorise', texts.length, progress);
    const onResult = (rows: Rows) => report(rows.indptr.length - 1);
    const parts: Rows[] = [];
    if (threads > 1) {
      const { runJobs } = await import('../kernels/pool.ts');
      parts.push(
        ...(await runJobs(encodeTask, this.#fitted, chunks(texts), { threads, signal, onResult, ahead: 1 })),
      );
    } else {
      for (const chunk of chunks(texts)) {
        if (parts.length > 0) await breathe();
        checkCancelled(signal);
        parts.push(this.#encoder.rows(chunk));
        onResult(parts[parts.length - 1]);
      }
    }
    return stack(parts, this.columns);
  }

  /** The row of one text, at once. */
  vector(text: string): Pick<Rows, 'indices' | 'values'> {
    const { indices, values } = this.#encoder.rows(pack([text]));
    return { indices, values };
  }

  /** Where the features of a text are in it; those of several words or of parts of words overlap. */
  spans(text: string): Span[] {
    return this.#encoder.spans(text);
  }

  async save(parts: Pick<PartWriter, 'write'>): Promise<Json> {
    const { options, stopWords, rows, documents, names } = this.#fitted;
    await parts.write('terms', {
      names: vector(names.bytes),
      offsets: vector(names.offsets),
      documents: vector(documents),
    });
    return { options, stopWords: [...stopWords], rows };
  }

  static async load(config: Json, parts: Pick<PartReader, 'read'>): Promise<Vectoriser> {
    const { options, stopWords, rows } = config as unknown as Pick<Fitted, 'options' | 'stopWords' | 'rows'>;
    const { names, offsets, documents } = await parts.read('terms');
    const fitted: Fitted = {
      options: parseOptions(textOptions, options),
      stopWords,
      rows,
      documents: documents.data as Uint32Array,
      names: { bytes: names.data as Uint8Array, offsets: offsets.data as Uint32Array },
    };
    return new Vectoriser(fitted, await wordFilters(fitted.options, stopWords));
  }

  /** Made when first needed: whoever only fits does without. */
  get #encoder(): Encoder {
    this.#made ??= new Encoder(this.#fitted, this.#filters);
    return this.#made;
  }
}

function checkOptions({ ngrams, charMin, charMax, hashBits, maxFeatures }: TextOptions): void {
  if (ngrams === 0 && charMax === 0) throw badUsage('ngrams or charMax must be above 0');
  if (charMax > 0 && charMin > charMax) throw badUsage('charMin must be at most charMax', { value: charMin });
  if (hashBits > 0 && maxFeatures > 0)
    throw badUsage('maxFeatures must be 0 when terms are hashed', { value: maxFeatures });
}

/** The texts in pieces of about `chunkLength` characters. */
function* chunks(texts: readonly string[]): Generator<Packed> {
  for (let first = 0; first < texts.length; ) {
    let last = first;
    for (let length = 0; last < texts.length && length < chunkLength; last++) length += texts[last].length;
    yield pack(texts, first, last);
    first = last;
  }
}

/** Parts of a matrix, one above the other. */
function stack(parts: readonly Rows[], cols: number): Csr {
  const rows = parts.reduce((sum, { indptr }) => sum + indptr.length - 1, 0);
  const size = parts.reduce((sum, { indices }) => sum + indices.length, 0);
  const [indptr, indices, values] = [
    new Uint32Array(rows + 1),
    new Uint32Array(size),
    new Float32Array(size),
  ];
  let [row, offset] = [0, 0];
  for (const part of parts) {
    for (let i = 1; i < part.indptr.length; i++) indptr[++row] = offset + part.indptr[i];
    indices.set(part.indices, offset);
    values.set(part.values, offset);
    offset += part.indices.length;
  }
  return { rows, cols, indptr, indices, values };
}

/** Adds up rows and tells whoever watches. */
function reporter(phase: string, total: number, progress?: Progress): (rows: number) => void {
  let done = 0;
  return (rows) => {
    done += rows;
    progress?.({ phase, done, total, unit: 'rows' });
  };
}
