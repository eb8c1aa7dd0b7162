// Data sets whose labels have names and whose samples are texts, by name, from a folder that is not part of the project;
// WordNet needs none.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type * as datasets from '../src/data/dataset.ts';
import type * as formats from '../src/data/formats.ts';
import type * as csr from '../src/math/csr.ts';
import type * as randoms from '../src/math/random.ts';
import { built } from './built.ts';
import { named, type Parts, split, wholes } from './sets.ts';

const [{ selectSamples }, { readDataset }, { CsrBuilder, rowIndices }, { Random }] = await Promise.all([
  built<typeof datasets>('data/dataset.js'),
  built<typeof formats>('data/formats.js'),
  built<typeof csr>('math/csr.js'),
  built<typeof randoms>('math/random.js'),
]);

type Dataset = datasets.Dataset;

const openers: Record<string, (folder: string) => Promise<Parts>> = {
  wordnet: async () => split(await wholes.wordnet()),
  'cve-libraries': async (folder) => split(await wholes['cve-libraries'](folder)),
  'yso-finna-en': (folder) => readTitles(folder),
  // Rows with three labels or more: the denser variant.
  'yso-titles-l3': async (folder) => {
    const { train, test } = await readTitles(folder);
    return { train: withLabels(train, 3), test: withLabels(test, 3) };
  },
};

export const setNames = Object.keys(openers);

/** A share of the rows of a set; undefined, with a word to the reader, where the folder does not hold it. */
export async function openNamedSet(name: string, folder: string, share: number): Promise<Parts | undefined> {
  if (!Object.hasOwn(openers, name))
    throw new Error(`set must be one of ${setNames.join(', ')}, got ${name}`);
  const source = name === 'yso-titles-l3' ? 'yso-finna-en' : name;
  if (name !== 'wordnet' && !existsSync(join(folder, source))) {
    console.error(`skipped ${name}: no folder ${join(folder, source)}`);
    return undefined;
  }
  const { train, test } = await openers[name](folder);
  return { train: shareOf(train, share), test: shareOf(test, share) };
}

async function readTitles(folder: string): Promise<Parts> {
  const at = join(folder, 'yso-finna-en');
  const [train, test] = await Promise.all(
    ['train', 'test'].map((part) => readDataset(join(at, `${part}.tsv.gz`), { columns: 'labels=1,text=2' })),
  );
  const described = await named(train, join(at, 'labels.tsv.gz'), 'id=1,name=3');
  return { train: described, test: inLabelsOf(test, described) };
}

/** The same rows with the columns of another set's labels. */
function inLabelsOf(set: Dataset, { vocabulary }: Dataset): Dataset {
  const labels = new CsrBuilder('binary');
  for (let row = 0; row < set.rows; row++) {
    const own = Array.from(rowIndices(set.labels, row), (label) =>
      vocabulary.column(set.vocabulary.label(label).id),
    );
    labels.add(own.filter((column) => column !== undefined).sort((a, b) => a - b));
  }
  return { ...set, vocabulary, labels: labels.pattern(vocabulary.size) };
}

const withLabels = (set: Dataset, least: number): Dataset =>
  selectSamples(
    set,
    Array.from({ length: set.rows }, (_, row) => row).filter(
      (row) => rowIndices(set.labels, row).length >= least,
    ),
  );

function shareOf(set: Dataset, share: number): Dataset {
  if (share === 1) return set;
  const rows = new Random(1, 'share').permutation(set.rows).subarray(0, Math.round(set.rows * share));
  return selectSamples(set, rows.sort());
}
