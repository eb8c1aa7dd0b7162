// The real data sets of the experiments by name, from a folder that is not part of the project: train and test rows
// with their features made. WordNet needs no folder.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type * as datasets from '../src/data/dataset.ts';
import type * as formats from '../src/data/formats.ts';
import type * as splits from '../src/data/split.ts';
import type * as wordnet from '../src/data/wordnet.ts';
import type { TrainingSet } from '../src/learn/learner.ts';
import type * as vectorisers from '../src/text/vectoriser.ts';
import { built } from './built.ts';

const [{ selectSamples }, { readDataset }, { splitRows }, { readWordNet }, { Vectoriser }] =
  await Promise.all([
    built<typeof datasets>('data/dataset.js'),
    built<typeof formats>('data/formats.js'),
    built<typeof splits>('data/split.js'),
    built<typeof wordnet>('data/wordnet.js'),
    built<typeof vectorisers>('text/vectoriser.js'),
  ]);

export interface RealSet {
  name: string;
  train: TrainingSet;
  test: TrainingSet;
}

type Whole = { whole: () => Promise<datasets.Dataset> };
type Parts = { parts: [string, string] };

/** Sets that come in one piece are split at random, always alike: seeds are for the learners. */
const sources: Record<string, (folder: string) => Whole | Parts> = {
  'yso-titles-l3': (folder) => ({
    parts: [join(folder, 'yso-titles-l3/train.txt.gz'), join(folder, 'yso-titles-l3/test.txt.gz')],
  }),
  wordnet: () => ({ whole: readWordNet }),
  'cve-libraries': (folder) => ({
    whole: () =>
      readDataset(join(folder, 'cve-libraries/cve-desc.tsv.gz'), { columns: 'id=1,labels=2,text=3' }),
  }),
  rcv1sub: (folder) => ({ whole: () => readDataset(join(folder, 'rcv1sub/rcv1sub1.txt.gz')) }),
  delicious: mulan('delicious'),
  bibtex: mulan('bibtex'),
};

export const setNames = Object.keys(sources);

function mulan(name: string) {
  return (folder: string): Parts => ({
    parts: [join(folder, name, `${name}-train.arff.gz`), join(folder, name, `${name}-test.arff.gz`)],
  });
}

/** Undefined, with a word to the reader, where the folder does not hold the set. */
export async function openSet(name: string, folder: string): Promise<RealSet | undefined> {
  const source = sources[name];
  if (!source) throw new Error(`set must be one of ${setNames.join(', ')}, got ${name}`);
  if (name !== 'wordnet' && !existsSync(join(folder, name))) {
    console.error(`skipped ${name}: no folder ${join(folder, name)}`);
    return undefined;
  }
  const opened = source(folder);
  if ('parts' in opened) {
    const [train, test] = await Promise.all(opened.parts.map((file) => readDataset(file)));
    return featured(name, train, test);
  }
  const whole = await opened.whole();
  const { train, test } = splitRows(whole.labels, { rule: 'random', test: 0.2, seed: 1 });
  return featured(name, selectSamples(whole, train), selectSamples(whole, test));
}

async function featured(name: string, train: datasets.Dataset, test: datasets.Dataset): Promise<RealSet> {
  const labels = { ...test.labels, cols: train.labels.cols };
  if (test.vocabulary !== train.vocabulary) checkSameLabels(name, train, test);
  if (train.features && test.features) {
    const cols = train.features.sparse?.cols ?? 0;
    const sparse = test.features.sparse && { ...test.features.sparse, cols };
    return {
      name,
      train: { ...train, features: train.features },
      test: { ...test, labels, features: { ...test.features, sparse } },
    };
  }
  const context = { seed: 1, threads: 1, progress: () => {} };
  const { vectoriser, features } = await Vectoriser.fit(train.texts ?? [], {}, context);
  return {
    name,
    train: { ...train, features: { sparse: features } },
    test: { ...test, labels, features: { sparse: await vectoriser.transform(test.texts ?? [], context) } },
  };
}

function checkSameLabels(name: string, train: datasets.Dataset, test: datasets.Dataset): void {
  for (let column = 0; column < test.vocabulary.size; column++) {
    if (train.vocabulary.label(column).id !== test.vocabulary.label(column).id)
      throw new Error(`${name}: train and test must list the same labels, not ${column}`);
  }
}
