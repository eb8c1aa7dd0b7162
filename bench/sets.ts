// The real data sets of the experiments by name, from a folder that is not part of the project: train and test rows
// with their features made. WordNet needs no folder.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type * as datasets from '../src/data/dataset.ts';
import type * as formats from '../src/data/formats.ts';
import type * as labelling from '../src/data/labels.ts';
import type * as splits from '../src/data/split.ts';
import type * as wordnet from '../src/data/wordnet.ts';
import type * as naming from '../src/learn/label-names.ts';
import type { TrainingSet } from '../src/learn/learner.ts';
import type * as preparing from '../src/learn/preparation.ts';
import type * as options from '../src/options.ts';
import { built } from './built.ts';

const [{ selectSamples }, { readDataset }, { readLabels }, { splitRows }, { readWordNet }] =
  await Promise.all([
    built<typeof datasets>('data/dataset.js'),
    built<typeof formats>('data/formats.js'),
    built<typeof labelling>('data/labels.js'),
    built<typeof splits>('data/split.js'),
    built<typeof wordnet>('data/wordnet.js'),
  ]);
const [{ nameFeatures }, { Preparation, preparationOptions }, { parseOptions }] = await Promise.all([
  built<typeof naming>('learn/label-names.js'),
  built<typeof preparing>('learn/preparation.js'),
  built<typeof options>('options.js'),
]);

export interface RealSet {
  name: string;
  train: TrainingSet;
  test: TrainingSet;
}

type Open<T> = (folder: string) => Promise<T>;
export interface Parts {
  train: datasets.Dataset;
  test: datasets.Dataset;
}

/** Sets that come in one piece. */
export const wholes = {
  wordnet: () => readWordNet(),
  'cve-libraries': async (folder) => {
    const at = join(folder, 'cve-libraries');
    const whole = await readDataset(join(at, 'cve-desc.tsv.gz'), { columns: 'id=1,labels=2,text=3' });
    return named(whole, join(at, 'cve-desc.labels.txt'));
  },
  rcv1sub: (folder) => readDataset(join(folder, 'rcv1sub/rcv1sub1.txt.gz')),
} satisfies Record<string, Open<datasets.Dataset>>;

/** With what a file says of the labels. */
export async function named(
  dataset: datasets.Dataset,
  file: string,
  columns?: string,
): Promise<datasets.Dataset> {
  dataset.vocabulary.describe(await readLabels(file, { columns }));
  return { ...dataset, labels: { ...dataset.labels, cols: dataset.vocabulary.size } };
}

/** Sets of one piece are split at random, always alike: seeds are for the learners. */
export function split(whole: datasets.Dataset): Parts {
  const { train, test } = splitRows(whole.labels, { rule: 'random', test: 0.2, seed: 1 });
  return { train: selectSamples(whole, train), test: selectSamples(whole, test) };
}

const sources: Record<string, Open<Parts>> = {
  'yso-titles-l3': async (folder) => {
    const at = join(folder, 'yso-titles-l3');
    const { train, test } = await twoFiles((part) => join('yso-titles-l3', `${part}.txt.gz`))(folder);
    const words = gunzipSync(await readFile(join(at, 'features.txt.gz'))).toString();
    const described = await named(train, join(at, 'labels.txt.gz'));
    return { train: { ...described, featureNames: words.trimEnd().split('\n') }, test };
  },
  wordnet: async () => split(await wholes.wordnet()),
  'cve-libraries': async (folder) => split(await wholes['cve-libraries'](folder)),
  rcv1sub: async (folder) => split(await wholes.rcv1sub(folder)),
  delicious: tagged('delicious'),
  bibtex: tagged('bibtex'),
};

export const setNames = Object.keys(sources);

function twoFiles(file: (part: string) => string): Open<Parts> {
  return async (folder) => {
    const [train, test] = await Promise.all(
      ['train', 'test'].map((part) => readDataset(join(folder, file(part)))),
    );
    return { train, test };
  };
}

/** Labels are called TAG_ and a word, columns by words. */
function tagged(name: string): Open<Parts> {
  return async (folder) => {
    const parts = await twoFiles((part) => join(name, `${name}-${part}.arff.gz`))(folder);
    const { vocabulary } = parts.train;
    vocabulary.describe(Array.from(vocabulary, ({ id }) => ({ id, name: id.replace(/^TAG_/, '') })));
    return parts;
  };
}

/** Undefined, with a word to the reader, where the folder does not hold the set. */
export async function openSet(name: string, folder: string): Promise<RealSet | undefined> {
  const source = sources[name];
  if (!source) throw new Error(`set must be one of ${setNames.join(', ')}, got ${name}`);
  if (name !== 'wordnet' && !existsSync(join(folder, name))) {
    console.error(`skipped ${name}: no folder ${join(folder, name)}`);
    return undefined;
  }
  return featured(name, await source(folder));
}

async function featured(name: string, { train, test }: Parts): Promise<RealSet> {
  const labels = { ...test.labels, cols: train.labels.cols };
  if (test.vocabulary !== train.vocabulary) checkSameLabels(name, train, test);
  const context = { seed: 1, threads: 1, progress: () => {} };
  if (train.features && test.features) {
    const cols = train.features.sparse?.cols ?? 0;
    const sparse = test.features.sparse && { ...test.features.sparse, cols };
    return {
      name,
      train: {
        ...train,
        features: train.features,
        nameFeatures: await nameFeatures(train, undefined, context),
      },
      test: { ...test, labels, features: { ...test.features, sparse } },
    };
  }
  const { preparation, features } = await Preparation.fit(train, parseOptions(preparationOptions), context);
  return {
    name,
    train: { ...train, features, nameFeatures: await nameFeatures(train, preparation.vectoriser, context) },
    test: { ...test, labels, features: await preparation.apply(test, context) },
  };
}

function checkSameLabels(name: string, train: datasets.Dataset, test: datasets.Dataset): void {
  for (let column = 0; column < test.vocabulary.size; column++) {
    if (train.vocabulary.label(column).id !== test.vocabulary.label(column).id)
      throw new Error(`${name}: train and test must list the same labels, not ${column}`);
  }
}
