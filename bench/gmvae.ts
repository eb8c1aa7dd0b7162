// C-GMVAE beside other learners on the data sets of its paper and their kin: random splits 80/10/10, F1s by three
// protocols of thresholds, all or a part of the training rows. Arguments: the folder of data sets, then flags. Every run
// is added to bench/results/gmvae.json as it ends, and those found there are not run again.
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import type * as datasets from '../src/data/dataset.ts';
import type * as formats from '../src/data/formats.ts';
import type * as splits from '../src/data/split.ts';
import type * as judging from '../src/judge/evaluate.ts';
import type * as learning from '../src/learn/classifier.ts';
import type * as csr from '../src/math/csr.ts';
import type * as randoms from '../src/math/random.ts';
import type * as checkpoints from '../src/store/checkpoint.ts';
import { built } from './built.ts';
import { machine } from './figures.ts';

const [{ Collector, selectSamples, stream }, { readDataset }, { splitRows }] = await Promise.all([
  built<typeof datasets>('data/dataset.js'),
  built<typeof formats>('data/formats.js'),
  built<typeof splits>('data/split.js'),
]);
const [{ evaluate }, { Classifier }, { selectRows }, { Random }, { openCheckpoint }] = await Promise.all([
  built<typeof judging>('judge/evaluate.js'),
  built<typeof learning>('learn/classifier.js'),
  built<typeof csr>('math/csr.js'),
  built<typeof randoms>('math/random.js'),
  built<typeof checkpoints>('store/checkpoint.js'),
]);

const { positionals, values: flags } = parseArgs({
  allowPositionals: true,
  options: {
    sets: { type: 'string' },
    methods: { type: 'string', default: 'gmvae,one-vs-rest,ml-knn' },
    /** Seeds of the splits; 0: the test part that the set comes with, and a tenth of the rest to validate. */
    splits: { type: 'string', default: '1,2,3,4,5' },
    /** Shares of the training rows. */
    shares: { type: 'string', default: '1' },
    threads: { type: 'string', default: '1' },
    /** Options of gmvae, beside those of the set. */
    set: { type: 'string', multiple: true, default: [] },
    out: { type: 'string', default: join('bench', 'results', 'gmvae.json') },
  },
});

type Settings = Record<string, unknown>;
const folder = positionals[0] ?? '';
const threads = Number(flags.threads);

/** Files of a set (train and test parts are put together before they are split anew) and its settings for gmvae. */
interface Source {
  files: string[];
  columns?: string;
  settings?: Settings;
}

const mulan = (name: string, settings: Settings = {}, file = name, end = 'arff.gz'): Source => ({
  files: ['train', 'test'].map((part) =>
    join(folder, name, `${file}-${part}${end === 'arff.gz' ? '.' : ''}${end}`),
  ),
  settings,
});

/** Sizes of embeddings, dropout and rates are the paper's, where it has the set; lower rates where they did better. */
const sources: Record<string, Source> = {
  yeast: mulan('yeast', { learningRate: 0.0005 }),
  scene: mulan('scene', { dropout: 0.3, learningRate: 0.0005 }),
  delicious: mulan('delicious', { epochs: 24, restart: 24 }),
  reuters: {
    files: ['train', 'test'].map((part) => join(folder, 'reuters21578', `modapte-${part}.tsv.gz`)),
    columns: 'id=1,labels=2,text=3+4',
    settings: { 'text.maxFeatures': 3000, embedding: 2048, contrastWeight: 2, likelihoodWeight: 1 },
  },
  emotions: mulan('emotions', { learningRate: 0.0005 }),
  enron: mulan('enron', { inputDropout: 0.5, scaling: 'none', learningRate: 0.002, epochs: 40, restart: 40 }),
  corel5k: mulan('corel5k', {}, 'Corel5k', '-sparse.arff.gz'),
  bibtex: mulan('bibtex'),
};

const neural = (settings: Settings) => ({
  learner: 'gmvae',
  settings: { runtimeThreads: threads, ...settings },
});
/** Without what the authors do not have. */
const authors = (settings: Settings) => neural({ labelBias: false, decoderDropout: 0, ...settings });
const methods: Record<string, { learner: string; settings: Settings }> = {
  gmvae: neural({}),
  'gmvae-code': authors({}),
  'gmvae-code-one-gaussian': authors({ prior: 'single', contrastWeight: 0 }),
  'gmvae-code-mixture-only': authors({ contrastWeight: 0 }),
  'gmvae-code-contrast-only': authors({ klWeight: 0 }),
  'gmvae-paper': authors({ profile: 'paper' }),
  // The weight that the paper prints leaves nothing in the codes, and its decoder sees nothing else.
  'gmvae-paper-kl-0.1': authors({ profile: 'paper', klWeight: 0.1 }),
  // A tree with no more labels than this has one leaf: a logistic regression for every label.
  'one-vs-rest': { learner: 'tree', settings: { loss: 'logistic', flatSize: 1000, threshold: 0 } },
  'ml-knn': { learner: 'ml-knn', settings: {} },
};

/** What the paper reports, %: example-, micro- and macro-F1, Hamming accuracy, P@1; best thresholds on the test rows. */
const published: Record<string, number[]> = {
  yeast: [65.6, 66.5, 48.7, 79.6, 75.1],
  scene: [77.7, 76.2, 76.9, 91.5, 78.8],
  delicious: [38.1, 40.3, 19.7, 98.3, 70.7],
  reuters: [91.7, 89, 58.2, 99.7, 93.9],
};

export interface GmvaeRun {
  set: string;
  method: string;
  share: number;
  split: number;
  /** Options that are not the defaults. */
  settings: Settings;
  'P@1': number;
  protocols: judging.Report['protocols'];
}

interface Whole {
  data: datasets.Dataset;
  /** Rows that the set gives for training; they come first. */
  training: number;
}

async function readWhole({ files, columns }: Source): Promise<Whole> {
  const first = await readDataset(files[0], { columns });
  const collector = new Collector();
  const parts = [
    first,
    ...(await Promise.all(
      files.slice(1).map((file) => readDataset(file, { columns, vocabulary: first.vocabulary })),
    )),
  ];
  for (const part of parts)
    for await (const batch of stream(part).batches) for (const sample of batch) collector.add(sample);
  return { data: collector.dataset({ ...first, width: first.features?.sparse?.cols }), training: first.rows };
}

function divide({ data, training }: Whole, split: number) {
  const shares = { rule: 'random', test: 0.1, valid: 0.1, seed: split } as const;
  if (split > 0) return splitRows(data.labels, shares);
  const rows = (from: number, to: number) => Uint32Array.from({ length: to - from }, (_, i) => from + i);
  const given = selectRows(data.labels, rows(0, training));
  const { train, test: valid } = splitRows(given, { rule: 'random', test: 0.1, seed: split });
  return { train, valid, test: rows(training, data.rows) };
}

/** The same part of the training rows for every method. */
function portion(rows: Uint32Array, share: number, seed: number): Uint32Array {
  const order = new Random(seed, 'share').permutation(rows.length);
  return order.subarray(0, Math.round(share * rows.length)).map((i) => rows[i]);
}

async function run(
  name: string,
  whole: Whole,
  method: string,
  share: number,
  split: number,
): Promise<GmvaeRun> {
  const { learner, settings } = methods[method];
  const { train, valid = train, test } = divide(whole, split);
  const part = (rows: Uint32Array) => selectSamples(whole.data, rows);
  const [training, validation, testing] = [part(portion(train, share, split)), part(valid), part(test)];
  const isText = ([option]: [string, unknown]) => option.startsWith('text.');
  const given = flags.set.map((pair): [string, unknown] => [pair.split('=')[0], pair.split('=')[1]]);
  const own = [...Object.entries(sources[name].settings ?? {}), ...given];
  const options = { ...Object.fromEntries(learner === 'gmvae' ? own : own.filter(isText)), ...settings };
  const checkpoint = await openCheckpoint(
    join(tmpdir(), `umbel-bench-${name}-${method}-${share}-${split}`),
    'go on',
  );
  const classifier = await Classifier.train(training, {
    learner,
    options,
    seed: split,
    threads,
    ...(learner === 'gmvae' && { validation, checkpoint }),
  });
  await checkpoint.remove();
  const top = whole.data.labels.cols;
  const ranked = { ranking: await classifier.rank(validation, { top }), truth: validation.labels };
  const report = evaluate(await classifier.rank(testing, { top }), testing.labels, {
    ...classifier,
    validation: ranked,
  });
  const { per_label: _, ...protocols } = report.protocols;
  console.error(
    `${name}, ${method}, ${share}, split ${split}: ${JSON.stringify(protocols.oracle_test)} ${report['P@1']}`,
  );
  return {
    set: name,
    method,
    share,
    split,
    settings: options,
    'P@1': report['P@1'],
    protocols,
  };
}

const runs: GmvaeRun[] = existsSync(flags.out) ? JSON.parse(readFileSync(flags.out, 'utf8')).runs : [];
const list = (text: string) => text.split(',').map(Number);
await mkdir(dirname(flags.out), { recursive: true });
for (const name of flags.sets?.split(',') ?? Object.keys(sources)) {
  if (!sources[name].files.every(existsSync)) {
    console.error(`skipped ${name}: no file ${sources[name].files[0]}`);
    continue;
  }
  const whole = await readWhole(sources[name]);
  for (const split of list(flags.splits))
    for (const share of list(flags.shares))
      for (const method of flags.methods.split(',')) {
        const same = (made: GmvaeRun) =>
          made.set === name && made.method === method && made.share === share && made.split === split;
        if (runs.some(same)) continue;
        runs.push(await run(name, whole, method, share, split));
        await writeFile(flags.out, `${JSON.stringify({ machine: machine(), published, runs }, null, 2)}\n`);
      }
}
