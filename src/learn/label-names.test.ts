import { describe, expect, it } from 'vitest';
import type { Dataset } from '../data/dataset.ts';
import { Vocabulary } from '../data/vocabulary.ts';
import { type Csr, CsrBuilder, rowIndices } from '../math/csr.ts';
import { quiet } from '../progress.ts';
import { Vectoriser } from '../text/vectoriser.ts';
import { nameFeatures } from './label-names.ts';

const context = { seed: 1, threads: 1, progress: quiet };
const vocabulary = new Vocabulary([
  { id: 'p1', name: 'Sea birds', altNames: ['gulls'] },
  { id: 'p2' },
  { id: 'Birds' },
  { id: 'https://example.org/sea' },
  { id: 'p5', name: 'something else' },
]);
const words = ['birds', 'gulls', 'sea'];
const labels = new CsrBuilder('binary').pattern(vocabulary.size);
const columns = (rows: Csr | undefined) =>
  rows && Array.from({ length: rows.rows }, (_, row) => [...rowIndices(rows, row)]);
const expected = [[0, 1, 2], [], [0], [], []];

describe('features of names', () => {
  it('are those of texts; ids are names where they are words', async () => {
    const { vectoriser } = await Vectoriser.fit(['birds gulls', 'sea gulls', 'sea birds'], {}, context);
    expect(columns(await nameFeatures({ rows: 0, labels, vocabulary }, vectoriser, context))).toEqual(
      expected,
    );
  });

  it('are the columns that words name, where those of the inputs are named', async () => {
    const sparse = new CsrBuilder('values').csr(words.length);
    const set: Dataset = { rows: 0, labels, vocabulary, features: { sparse } };
    expect(columns(await nameFeatures({ ...set, featureNames: words }, undefined, context))).toEqual(
      expected,
    );
    expect(await nameFeatures(set, undefined, context)).toBeUndefined();
  });
});
