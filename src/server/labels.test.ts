import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { datasetOf } from '../data/plain-samples.ts';
import { Classifier } from '../learn/classifier.ts';
import { LabelIndex } from './labels.ts';

describe('label search', () => {
  it('finds exactly the labels whose names have a word for every beginning', async () => {
    const word = fc.constantFrom('bird', 'birds', 'red', 'blue', 'bluebird', 'sky');
    const name = fc.array(word, { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(name, { minLength: 1, maxLength: 8 }),
        fc.array(word, { minLength: 1, maxLength: 2 }),
        async (names, wanted) => {
          const dataset = datasetOf([{ text: 'some text', labels: names.map((_, i) => `#${i}`) }]);
          dataset.vocabulary.describe(names.map((words, i) => ({ id: `#${i}`, name: words.join(' ') })));
          const index = new LabelIndex(await Classifier.train(dataset, { learner: 'popular' }));
          const beginnings = wanted.map((full) => full.slice(0, 3));
          const expected = names.flatMap((words, i) =>
            beginnings.every((beginning) => words.some((own) => own.startsWith(beginning))) ? [`#${i}`] : [],
          );
          const { labels, found } = index.search({ search: beginnings.join(' ') });
          expect(labels.map(({ id }) => id).sort()).toEqual(expected.sort());
          expect(found).toBe(expected.length);
        },
      ),
      { numRuns: 50 },
    );
  });
});
