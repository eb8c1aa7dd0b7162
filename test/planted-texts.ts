// Texts that hold words of their labels, beside others; labels are called by those words.
import type { Dataset } from '../src/data/dataset.ts';
import { type Label, Vocabulary } from '../src/data/vocabulary.ts';
import type { Classifier } from '../src/learn/classifier.ts';
import { CsrBuilder, rowIndices } from '../src/math/csr.ts';
import { Random } from '../src/math/random.ts';

export const words = [
  'violin',
  'harbour',
  'glacier',
  'market',
  'pepper',
  'castle',
  'planet',
  'weaver',
  'thunder',
  'letter',
];

export function planted(
  rows: number,
  describe: (word: string, i: number) => Label = (name) => ({ id: name, name }),
) {
  const random = new Random('prime planted');
  const labels = new CsrBuilder('binary');
  const texts: string[] = [];
  for (let row = 0; row < rows; row++) {
    const own = [...new Set([random.integer(10), random.integer(10)])].sort((a, b) => a - b);
    labels.add(own);
    texts.push(
      own.map((label) => `the ${words[label]} of ${['old', 'new', 'some'][random.integer(3)]}`).join(' and '),
    );
  }
  const vocabulary = new Vocabulary(words.map(describe));
  return { rows, texts, labels: labels.pattern(10), vocabulary } satisfies Dataset;
}

/** Makes `prime` quick on these. */
export const quickPrime = {
  epochs: 6,
  batch: 32,
  width: 16,
  vocabulary: 200,
  length: 16,
  learningRate: 0.01,
};

/** Share of the rows whose first label is right. */
export async function precision(classifier: Classifier, data: Dataset): Promise<number> {
  const ranking = await classifier.rank(data, { top: 1 });
  const hits = Array.from({ length: data.rows }, (_, row) =>
    rowIndices(data.labels, row).includes(rowIndices(ranking, row)[0]),
  );
  return hits.filter(Boolean).length / data.rows;
}
