import { createHash } from 'node:crypto';
import fc from 'fast-check';
import snowball from 'snowball-stemmers';
import { describe, expect, it } from 'vitest';
import { slowFit, slowTerms, trickyText } from '../../test/slow-text.ts';
import type { UmbelError } from '../errors.ts';
import { type Csr, rowIndices, rowValues } from '../math/csr.ts';
import { Random } from '../math/random.ts';
import { parseOptions } from '../options.ts';
import type { Json, Tensors } from '../parts.ts';
import { quiet } from '../progress.ts';
import { type TextOptions, textOptions, Vectoriser } from './vectoriser.ts';

const context = { threads: 1, progress: quiet };
const learn = (texts: string[], options: Partial<TextOptions> = {}, threads = 1) =>
  Vectoriser.fit(texts, options, { threads, progress: quiet });

const rowOf = (m: Csr, row: number, vectoriser: Vectoriser) =>
  new Map(Array.from(rowIndices(m, row), (c, i) => [vectoriser.featureName(c), rowValues(m, row)[i]]));

const namesOf = (vectoriser: Vectoriser) =>
  Array.from({ length: vectoriser.columns }, (_, column) => vectoriser.featureName(column));

/** Large matrices are compared by their digests: element by element takes a test runner seconds. */
const digests = ({ rows, cols, indptr, indices, values }: Csr) => [
  [rows, cols],
  ...[indptr, indices, values].map((array) => createHash('sha256').update(array).digest('hex')),
];

/** Saved in memory, as JSON text and copied tensors. */
async function reloaded(vectoriser: Vectoriser): Promise<Vectoriser> {
  const saved = new Map<string, Tensors>();
  const config = await vectoriser.save({
    write: async (name, tensors) => {
      saved.set(name, structuredClone(tensors));
    },
  });
  return Vectoriser.load(JSON.parse(JSON.stringify(config)) as Json, {
    read: async (name) => saved.get(name) ?? {},
  });
}

const someOptions = fc.record({
  words: fc.constantFrom('unicode', 'sklearn'),
  accents: fc.constantFrom('keep', 'strip'),
  ngrams: fc.integer({ min: 1, max: 3 }),
  charMin: fc.integer({ min: 2, max: 3 }),
  charMax: fc.constantFrom(0, 0, 3, 4),
  stem: fc.constantFrom('none', 'none', 'english', 'finnish'),
  minDocuments: fc.integer({ min: 1, max: 2 }),
  maxShare: fc.constantFrom(1, 0.7),
  maxFeatures: fc.constantFrom(0, 0, 5),
  sublinear: fc.boolean(),
  idf: fc.boolean(),
  normalise: fc.boolean(),
} satisfies Partial<Record<keyof TextOptions, unknown>>);

const somePhrase = fc
  .array(fc.constantFrom('the', 'cats', 'Cat', 'running', 'runs', 'dog', 'of', 'Häuser', 'talossa'), {
    maxLength: 9,
  })
  .map((words) => words.join(' '));
const someTexts = fc.array(fc.oneof(somePhrase, trickyText), { minLength: 1, maxLength: 8 });

/** Titles of made-up words, the frequent ones short, so that threads meet old and new words. */
function titles(count: number): string[] {
  const random = new Random(7, 'titles');
  const word = () =>
    `w${Math.floor(1 / (random.uniform() + 1e-4)).toString(36)}${'é'.repeat(random.integer(2))}`;
  return Array.from({ length: count }, () => Array.from({ length: random.integer(12) }, word).join(' '));
}

describe('fit', () => {
  it('gives the rows and names that a slow reading of the rules gives', async () => {
    await fc.assert(
      fc.asyncProperty(someTexts, someOptions, fc.boolean(), async (texts, given, hasStops) => {
        const options = parseOptions(textOptions, given);
        const stopWords = hasStops ? ['the', 'of'] : [];
        const stemmer = options.stem === 'none' ? undefined : snowball.newStemmer(options.stem);
        const stem = (word: string) => stemmer?.stem(word) || word;
        const slow = slowFit(
          texts.map((text) => slowTerms(text, options, stem, stopWords)),
          options,
        );
        const fast = Vectoriser.fit(texts, options, context, { stopWords });
        if (slow.names.length === 0) {
          await expect(fast).rejects.toThrow('at least one feature');
          return;
        }
        const { vectoriser, features } = await fast;
        expect(namesOf(vectoriser)).toEqual(slow.names);
        expect(features.rows).toBe(texts.length);
        expect(features.cols).toBe(slow.names.length);
        slow.rows.forEach((row, i) => {
          const found = rowOf(features, i, vectoriser);
          expect([...found.keys()].sort()).toEqual([...row.keys()].sort());
          for (const [name, value] of row) expect(found.get(name)).toBeCloseTo(value, 5);
        });
      }),
      { numRuns: 150 },
    );
  });

  it.each<Partial<TextOptions>>([
    {},
    { ngrams: 3, minDocuments: 2 },
    { ngrams: 2, charMin: 2, charMax: 3, stem: 'english' },
    { hashBits: 10, ngrams: 2 },
  ])('gives the same bytes for 1 and 3 threads: %j', async (options) => {
    // Several chunks of text, so that every thread gets some.
    const texts = [
      ...titles(3000),
      'long '.repeat(210_000),
      ...titles(2000),
      'longer '.repeat(150_000),
      'last one',
    ];
    const one = await learn(texts, options, 1);
    const three = await learn(texts, options, 3);
    expect(digests(three.features)).toEqual(digests(one.features));
    expect(namesOf(three.vectoriser)).toEqual(namesOf(one.vectoriser));
    const transformed = await one.vectoriser.transform(texts, { threads: 3 });
    expect(digests(transformed)).toEqual(digests(one.features));
  });

  it('orders columns by frequency, ties by name, and keeps the most frequent', async () => {
    const { vectoriser } = await learn(['bb cc', 'bb aa', 'dd bb aa'], { maxFeatures: 3 });
    expect(namesOf(vectoriser)).toEqual(['bb', 'aa', 'cc']);
  });

  it('takes words, character n-grams, or both', async () => {
    const chars = await learn(['ab'], { ngrams: 0, charMin: 2, charMax: 3 });
    expect(namesOf(chars.vectoriser)).toEqual(['~ a', '~ ab', '~ab', '~ab ', '~b ']);
    const both = await learn(['ab'], { charMin: 4, charMax: 6 });
    expect(namesOf(both.vectoriser)).toEqual(['ab', '~ ab ']);
  });

  it('drops English stop words before making n-grams', async () => {
    const { vectoriser } = await learn(['history of the war'], { stopWords: 'english', ngrams: 2 });
    expect(namesOf(vectoriser)).toEqual(['history', 'history war', 'war']);
  });

  it('refuses options that cannot be meant', async () => {
    await expect(learn(['ab'], { ngrams: 0 })).rejects.toThrow('ngrams or charMax must be above 0');
    await expect(learn(['ab'], { charMin: 4, charMax: 3 })).rejects.toThrow(
      'charMin must be at most charMax',
    );
    await expect(learn(['ab'], { hashBits: 8, maxFeatures: 3 })).rejects.toThrow('maxFeatures must be 0');
    await expect(learn(['a', '']).catch((error: UmbelError) => error.code)).resolves.toBe('input');
    await expect(learn([])).rejects.toThrow('at least one feature');
  });

  it('tells how far it is and can be stopped', async () => {
    const done: number[] = [];
    const texts = titles(100);
    await Vectoriser.fit(texts, {}, { threads: 1, progress: (step) => done.push(step.done) });
    expect(Math.max(...done)).toBe(100);
    const stopped = Vectoriser.fit(texts, {}, { ...context, signal: AbortSignal.abort() });
    await expect(stopped).rejects.toMatchObject({ code: 'cancelled' });
  });
});

describe('transform', () => {
  it('gives the texts of the fit the rows of the fit, one by one or together, also when loaded', async () => {
    await fc.assert(
      fc.asyncProperty(someTexts, someOptions, fc.constantFrom(0, 0, 4), async (texts, given, hashBits) => {
        const options = { ...given, hashBits, maxFeatures: hashBits > 0 ? 0 : given.maxFeatures };
        const fitted = await learn(texts, options).catch(() => undefined);
        if (!fitted) return;
        const { vectoriser, features } = fitted;
        expect(await vectoriser.transform(texts)).toEqual(features);
        const loaded = await reloaded(vectoriser);
        expect(await loaded.transform(texts)).toEqual(features);
        expect(namesOf(loaded)).toEqual(namesOf(vectoriser));
        texts.forEach((text, row) => {
          expect(loaded.vector(text)).toEqual({
            indices: rowIndices(features, row).slice(),
            values: rowValues(features, row).slice(),
          });
        });
      }),
      { numRuns: 80 },
    );
  });

  it('ignores unseen words and gives an empty text an empty row', async () => {
    const { vectoriser } = await learn(['red apple', 'green apple']);
    const rows = await vectoriser.transform(['', 'unseen words', 'unseen apple']);
    expect([...rows.indptr]).toEqual([0, 0, 0, 1]);
    expect(rows.cols).toBe(3);
    expect(vectoriser.vector('')).toEqual({ indices: new Uint32Array(0), values: new Float32Array(0) });
    expect([...vectoriser.vector('apple unseen').values]).toEqual([1]);
  });

  it('finds an n-gram whose words are no features', async () => {
    const { vectoriser } = await learn(['aa bb', 'aa cc', 'dd bb', 'aa bb'], { ngrams: 2, maxShare: 0.5 });
    const column = namesOf(vectoriser).indexOf('aa bb');
    expect(namesOf(vectoriser)).not.toContain('aa');
    expect([...vectoriser.vector('xx aa bb').indices]).toEqual([column]);
  });

  it('remembers the stop words of the fit', async () => {
    const { vectoriser } = await Vectoriser.fit(['Foo bar baz'], { ngrams: 2 }, context, {
      stopWords: ['BAR'],
    });
    const loaded = await reloaded(vectoriser);
    expect(namesOf(loaded)).toEqual(['baz', 'foo', 'foo baz']);
    expect(loaded.vector('foo bar baz').indices.length).toBe(3);
  });

  it('keeps working after more distinct words than it remembers', async () => {
    const { vectoriser } = await learn(['running the dogs'], { stopWords: 'english' });
    const many = Array.from({ length: 2 ** 18 }, (_, i) => `x${i}`).join(' ');
    expect(vectoriser.vector(`the dogs ${many} running the`).indices.length).toBe(2);
    expect(vectoriser.vector('the dogs').indices.length).toBe(1);
  });
});

describe('spans', () => {
  const marked = (vectoriser: Vectoriser, text: string) =>
    vectoriser
      .spans(text)
      .map(({ start, end, column }) => [text.slice(start, end), vectoriser.featureName(column)]);

  it('point at the words as written', async () => {
    const { vectoriser } = await learn(['İstanbul straße café σας 東京'], {});
    expect(marked(vectoriser, '😀 İSTANBUL, STRASSE/Straße Cafe\u0301! ΣΑΣ x東京')).toEqual([
      ['İSTANBUL', 'i̇stanbul'],
      ['Straße', 'straße'],
      ['Cafe\u0301', 'café'],
      ['ΣΑΣ', 'σας'],
      ['東京', '東京'],
    ]);
  });

  it('point at n-grams, stems and parts of words', async () => {
    const { vectoriser } = await learn(['running dog'], {
      ngrams: 2,
      stem: 'english',
      charMin: 3,
      charMax: 3,
    });
    const found = marked(vectoriser, 'My RUNS, dogs');
    expect(found).toContainEqual(['RUNS, dogs', 'run dog']);
    expect(found).toContainEqual(['RUNS', 'run']);
    expect(found).toContainEqual(['RU', '~ ru']);
    expect(found).toContainEqual(['dog', '~dog']);
  });

  it('cover every feature of the row as often as it occurs', async () => {
    await fc.assert(
      fc.asyncProperty(someTexts, someOptions, async (texts, given) => {
        const options = { ...given, sublinear: false, idf: false, normalise: false };
        const fitted = await learn(texts, options).catch(() => undefined);
        if (!fitted) return;
        for (const text of texts) {
          const counts = new Map<number, number>();
          for (const { column, start, end } of fitted.vectoriser.spans(text)) {
            counts.set(column, (counts.get(column) ?? 0) + 1);
            expect(end).toBeGreaterThan(start);
            expect(end).toBeLessThanOrEqual(text.length);
          }
          const { indices, values } = fitted.vectoriser.vector(text);
          const sorted = [...counts].sort(([a], [b]) => a - b);
          expect(sorted).toEqual(Array.from(indices, (column, i) => [column, values[i]]));
        }
      }),
      { numRuns: 80 },
    );
  });
});
