// PRIME beside a text-only Siamese encoder, its lite and classifier forms, the label tree, and tree and PRIME blended, on
// sets whose labels have names; the paper's ablations; and labels taken in after training. Arguments: the folder of data
// sets, then flags. Every run is added to bench/results/prime.json as it ends, and those found there are not run again.
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import type * as datasets from '../src/data/dataset.ts';
import type * as formats from '../src/data/formats.ts';
import type * as labelling from '../src/data/labels.ts';
import type * as splits from '../src/data/split.ts';
import type * as vocabularies from '../src/data/vocabulary.ts';
import type * as wordnet from '../src/data/wordnet.ts';
import type * as judging from '../src/judge/evaluate.ts';
import type * as learning from '../src/learn/classifier.ts';
import type * as csr from '../src/math/csr.ts';
import type * as randoms from '../src/math/random.ts';
import { built } from './built.ts';
import { machine, rounded } from './figures.ts';

const [{ selectSamples }, { readDataset }, { readLabels }, { splitRows }, { readWordNet }] =
  await Promise.all([
    built<typeof datasets>('data/dataset.js'),
    built<typeof formats>('data/formats.js'),
    built<typeof labelling>('data/labels.js'),
    built<typeof splits>('data/split.js'),
    built<typeof wordnet>('data/wordnet.js'),
  ]);
const [{ evaluate }, { Classifier }, { CsrBuilder, rowIndices }, { Random }, { Vocabulary }] =
  await Promise.all([
    built<typeof judging>('judge/evaluate.js'),
    built<typeof learning>('learn/classifier.js'),
    built<typeof csr>('math/csr.js'),
    built<typeof randoms>('math/random.js'),
    built<typeof vocabularies>('data/vocabulary.js'),
  ]);

const { positionals, values: flags } = parseArgs({
  allowPositionals: true,
  options: {
    sets: { type: 'string', default: 'wordnet,cve-libraries,yso-titles-l3' },
    /** main, losses, sampling, free, convergence, or new: which table of experiments. */
    experiment: { type: 'string', default: 'main' },
    seeds: { type: 'string', default: '1' },
    /** Of the rows of a set, for a quick look. */
    share: { type: 'string', default: '1' },
    epochs: { type: 'string', default: '20' },
    batch: { type: 'string', default: '512' },
    threads: { type: 'string', default: '2' },
    out: { type: 'string', default: join('bench', 'results', 'prime.json') },
  },
});

type Dataset = datasets.Dataset;
interface Parts {
  train: Dataset;
  test: Dataset;
}

const folder = positionals[0] ?? '';
const common = { epochs: Number(flags.epochs), batch: Number(flags.batch) };
const threads = Number(flags.threads);

const named = async (dataset: Dataset, file: string, columns?: string) => {
  dataset.vocabulary.describe(await readLabels(file, { columns }));
  return { ...dataset, labels: { ...dataset.labels, cols: dataset.vocabulary.size } };
};

/** Sets of one piece are split at random, always alike: seeds are for the learners. */
function split(whole: Dataset): Parts {
  const { train, test } = splitRows(whole.labels, { rule: 'random', test: 0.2, seed: 1 });
  return { train: selectSamples(whole, train), test: selectSamples(whole, test) };
}

const openers: Record<string, () => Promise<Parts>> = {
  wordnet: async () => split(await readWordNet()),
  'cve-libraries': async () => {
    const file = join(folder, 'cve-libraries', 'cve-desc');
    const whole = await readDataset(`${file}.tsv.gz`, { columns: 'id=1,labels=2,text=3' });
    return split(await named(whole, `${file}.labels.txt`));
  },
  'yso-titles-l3': async () => {
    const at = join(folder, 'yso-finna-en');
    const [train, test] = await Promise.all(
      ['train', 'test'].map((part) =>
        readDataset(join(at, `${part}.tsv.gz`), { columns: 'labels=1,text=2' }),
      ),
    );
    const described = await named(train, join(at, 'labels.tsv.gz'), 'id=1,name=3');
    return { train: dense(described), test: dense(inLabelsOf(test, described)) };
  },
};

/** Rows with three labels or more: the denser variant. */
const dense = (set: Dataset): Dataset =>
  selectSamples(
    set,
    Array.from({ length: set.rows }, (_, row) => row).filter(
      (row) => rowIndices(set.labels, row).length >= 3,
    ),
  );

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

function shareOf(set: Dataset): Dataset {
  const share = Number(flags.share);
  if (share === 1) return set;
  const rows = new Random(1, 'share').permutation(set.rows).subarray(0, Math.round(set.rows * share));
  return selectSamples(set, rows.sort());
}

type Settings = Record<string, unknown>;
type Row = { learner: string; options: Settings };
const prime = (options: Settings = {}, learner = 'prime'): Row => ({
  learner,
  options: { ...common, ...options },
});

/** Rows of the tables, by experiment. */
const experiments: Record<string, Record<string, Row>> = {
  main: {
    tree: { learner: 'tree', options: {} },
    'text only': prime({ labels: 'text' }),
    'prime-lite': prime({ positives: 1, batch: common.batch / 2 }, 'prime-lite'),
    prime: prime(),
    'prime-w': prime({}, 'prime-w'),
  },
  losses: {
    'prototypes, fixed margin': prime({
      textLoss: false,
      backLoss: false,
      regulariser: 'off',
      margin: 'fixed',
    }),
    '+ texts': prime({ backLoss: false, regulariser: 'off', margin: 'fixed' }),
    '+ margin by distance': prime({ backLoss: false, regulariser: 'off' }),
    '+ labels to samples': prime({ regulariser: 'off' }),
    '+ regulariser': prime(),
    'margin as printed': prime({ margin: 'inverted' }),
    'gradient at ties': prime({ tieGradient: 1 }),
    'hardest negatives': prime({ aggregate: 'hardest' }),
  },
  sampling: { 'by propensity': prime(), uniform: prime({ sampling: 'uniform' }) },
  free: Object.fromEntries(
    [0, 256, 1024, 4096].map((count) => [String(count), prime({ freeVectors: count })]),
  ),
  convergence: Object.fromEntries(
    [2, 5, 10].flatMap((epochs) => [
      [`${epochs} epochs`, prime({ epochs })],
      [`${epochs} epochs without centroids`, prime({ epochs, centroids: false })],
    ]),
  ),
};

const figures = ['P@1', 'P@3', 'P@5', 'PSP@1', 'PSP@3', 'PSP@5', 'R@10', 'R@100'];

async function judge(classifier: learning.Classifier, { test }: Parts) {
  const report = evaluate(await classifier.rank(test, { top: 100, threads }), test.labels, {
    counts: classifier.counts,
    rows: classifier.rows,
    ks: [1, 3, 5, 10, 100],
  });
  const numbers = report as unknown as Record<string, number>;
  return Object.fromEntries(
    figures.flatMap((name) => (numbers[name] === undefined ? [] : [[name, rounded(100 * numbers[name])]])),
  );
}

async function train({ train: set }: Parts, { learner, options }: Row, seed: number) {
  const [start, before] = [performance.now(), process.cpuUsage()];
  const classifier = await Classifier.train(set, { learner, options, seed, threads });
  const { user, system } = process.cpuUsage(before);
  const seconds = rounded((performance.now() - start) / 1000);
  return { classifier, seconds, cpuSeconds: rounded((user + system) / 1e6) };
}

/** Labels held out of training and taken in afterwards; recall among all labels on the rows that carry them. */
async function newLabels(parts: Parts, seed: number) {
  const { vocabulary, labels } = parts.train;
  const held = new Set(
    new Random(seed, 'held').permutation(vocabulary.size).subarray(0, vocabulary.size / 10),
  );
  const columns = Array.from(vocabulary, (_, column) => column).filter((column) => !held.has(column));
  const rest = new Vocabulary(columns.map((column) => vocabulary.label(column)));
  const place = new Map(columns.map((column, i) => [column, i]));
  const kept = new CsrBuilder('binary');
  const [rows, examples] = [[] as number[], new Map<number, string[]>()];
  for (let row = 0; row < labels.rows; row++) {
    const own = rowIndices(labels, row);
    for (const label of own)
      if (held.has(label))
        examples.set(label, [...(examples.get(label) ?? []), parts.train.texts?.[row] ?? '']);
    if (!own.some((label) => place.has(label))) continue;
    rows.push(row);
    kept.add(Array.from(own, (label) => place.get(label)).filter((column) => column !== undefined));
  }
  const without: Dataset = {
    ...selectSamples(parts.train, rows),
    vocabulary: rest,
    labels: kept.pattern(rest.size),
  };
  const whole = await train(parts, prime(), seed);
  const partly = await train({ ...parts, train: without }, prime(), seed);
  const results: Record<string, number> = { 'trained on all': await recall(whole.classifier, parts, held) };
  for (const count of [0, 1, 5]) {
    const added = [...held].map((column) => ({
      ...vocabulary.label(column),
      examples: (examples.get(column) ?? []).slice(0, count),
    }));
    const name = count === 0 ? 'added by name' : `added by name and ${count} examples`;
    results[name] = await recall(await partly.classifier.withLabels(added), parts, held);
  }
  return results;
}

/** R@10 of the held labels alone, in percent. */
async function recall(classifier: learning.Classifier, { test }: Parts, held: ReadonlySet<number>) {
  const ranking = await classifier.rank(test, { top: 10, threads });
  let [hits, all] = [0, 0];
  for (let row = 0; row < test.rows; row++) {
    const found = new Set(
      Array.from(rowIndices(ranking, row), (column) => classifier.vocabulary.label(column).id),
    );
    for (const label of rowIndices(test.labels, row)) {
      if (!held.has(label)) continue;
      all++;
      if (found.has(test.vocabulary.label(label).id)) hits++;
    }
  }
  return rounded((100 * hits) / all);
}

interface Report {
  date: string;
  machine: ReturnType<typeof machine>;
  /** By experiment, set with share and epochs, row and seed. */
  runs: Record<string, unknown>;
}
const report: Report = existsSync(flags.out)
  ? JSON.parse(readFileSync(flags.out, 'utf8'))
  : { date: '', machine: machine(), runs: {} };

async function keep(name: string, make: () => Promise<unknown>): Promise<void> {
  if (name in report.runs) return;
  report.runs[name] = await make();
  report.date = new Date().toISOString().slice(0, 10);
  await mkdir(dirname(flags.out), { recursive: true });
  await writeFile(flags.out, `${JSON.stringify(report, null, 2)}\n`);
  console.log(name, JSON.stringify(report.runs[name]));
}

for (const name of flags.sets.split(',')) {
  if (name !== 'wordnet' && !existsSync(join(folder, name))) {
    console.error(`skipped ${name}: no folder ${join(folder, name)}`);
    continue;
  }
  const { train: all, test } = await openers[name]();
  const parts = { train: shareOf(all), test: shareOf(test) };
  for (const seed of flags.seeds.split(',').map(Number)) {
    const at = `${flags.experiment} | ${name} x ${flags.share}, ${common.epochs} epochs of ${common.batch}`;
    if (flags.experiment === 'new') {
      await keep(`${at} | R@10 of held labels | seed ${seed}`, () => newLabels(parts, seed));
      continue;
    }
    const made = new Map<string, learning.Classifier>();
    for (const [row, how] of Object.entries(experiments[flags.experiment]))
      await keep(`${at} | ${row} | seed ${seed}`, async () => {
        const { classifier, ...times } = await train(parts, how, seed);
        made.set(row, classifier);
        return { ...(await judge(classifier, parts)), ...times };
      });
    const [tree, other] = [made.get('tree'), made.get('prime')];
    if (!tree || !other) continue;
    for (const by of ['rank', 'score'] as const)
      await keep(`${at} | tree + prime by ${by} | seed ${seed}`, () =>
        judge(tree.blended(other, { by, weight: 0.5 }), parts),
      );
  }
}
