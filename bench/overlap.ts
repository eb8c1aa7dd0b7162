// Label disentanglement on real data: overlapping clusters against the plain tree, against random copies, by number of
// copies, and on labels fused on purpose. Arguments: the folder of data sets, then flags; one experiment per run. Every
// figure is a mean over seeds with its standard deviation. Writes bench/results/overlap-<experiment>.json.
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Model, TrainingSet } from '../src/learn/learner.ts';
import type * as registry from '../src/learn/registry.ts';
import type * as options from '../src/options.ts';
import { built } from './built.ts';
import { disentanglement } from './disentangle.ts';
import { type Mean, machine, means, rounded } from './figures.ts';
import { difficulties, fusedPattern, fuseLabels, similarityOrder } from './fuse.ts';
import { linePlot } from './plot.ts';
import { percentages } from './precision.ts';
import { openSet, type RealSet } from './sets.ts';

const { positionals, values: flags } = parseArgs({
  allowPositionals: true,
  options: {
    experiment: { type: 'string', default: 'real' },
    /** All that the experiment is about, where none is named. */
    sets: { type: 'string' },
    seeds: { type: 'string', default: '1,2,3' },
    /** Of the labels to fuse. */
    difficulties: { type: 'string', default: difficulties.join(',') },
    parts: { type: 'string', default: '2,4,8' },
    /** Per fused label, where they are not as many as it has parts, four at most. */
    clusters: { type: 'string' },
    threads: { type: 'string', default: '2' },
    /** Options of the tree for every row, plain or not. */
    set: { type: 'string', multiple: true, default: [] },
    out: { type: 'string', default: join('bench', 'results') },
  },
});

const [{ findLearner }, { parseOptions }] = await Promise.all([
  built<typeof registry>('learn/registry.js'),
  built<typeof options>('options.js'),
]);
const tree = await findLearner('tree');
const seeds = flags.seeds.split(',').map(Number);
const threads = Number(flags.threads);

type Settings = Record<string, unknown>;
interface Run {
  figures: Record<string, number>;
  model: Model;
}

/** Of which the median is taken: small sets take milliseconds. */
const predictions = 9;

/** Trains and judges once. */
async function run(
  { train, test }: Pick<RealSet, 'train' | 'test'>,
  settings: Settings,
  seed: number,
): Promise<Run> {
  const given = Object.fromEntries(flags.set.map((pair) => pair.split('=', 2)));
  const chosen = parseOptions(tree.options, { ...given, ...settings });
  const started = performance.now();
  const model = await tree.train(train, chosen, { seed, threads, progress: () => {} });
  const trained = performance.now();
  // Once to wake the threads.
  const ranking = await model.predict(test.features, { top: 5, threads });
  const times: number[] = [];
  while (times.length < predictions) {
    const before = performance.now();
    await model.predict(test.features, { top: 5, threads });
    times.push(performance.now() - before);
  }
  const figures = {
    ...percentages(ranking, test.labels),
    trainSeconds: (trained - started) / 1000,
    microseconds: (times.sort((a, b) => a - b)[predictions >> 1] / test.rows) * 1000,
  };
  return { figures, model };
}

const shown = (figures: Record<string, number>) =>
  Object.entries(figures)
    .map(([name, value]) => `${name} ${rounded(value)}`)
    .join(', ');

/** A row of the results. */
interface Row {
  set: string;
  variant: string;
  [figure: string]: string | Mean;
}

const summary = (set: string, variant: string, runs: Record<string, number>[]): Row => ({
  set,
  variant,
  ...means(runs),
});

const overlap = (lambda = 2, more: Settings = {}): Settings => ({
  overlap: true,
  'overlap.lambda': lambda,
  ...more,
});

/** Variants side by side: seeds in the outer loop, so that a slow hour of the machine meets all of them. */
async function compare(set: RealSet, variants: Record<string, Settings>): Promise<Row[]> {
  const runs = new Map(Object.keys(variants).map((name) => [name, [] as Record<string, number>[]]));
  for (const seed of seeds) {
    for (const [name, settings] of Object.entries(variants)) {
      const { figures } = await run(set, settings, seed);
      runs.get(name)?.push(figures);
      console.error(`${set.name}, ${name}, seed ${seed}: ${shown(figures)}`);
    }
  }
  return [...runs].map(([name, figures]) => summary(set.name, name, figures));
}

/** Sets with few labels have no tree unless they must: one of sixteen leaves, since of two a label would lie in both. */
const clustered = ({ train: { labels } }: Pick<RealSet, 'train'>): Settings =>
  labels.cols <= 1000 ? { flatSize: 1, leafSize: Math.ceil(labels.cols / 16) } : {};

const experiments: Record<string, { sets: string[]; rows: (set: RealSet) => Promise<Row[]> }> = {
  real: {
    sets: ['yso-titles-l3', 'wordnet', 'cve-libraries', 'rcv1sub', 'delicious', 'bibtex'],
    rows(set) {
      const forced = clustered(set);
      return compare(set, {
        ...('flatSize' in forced && { flat: {} }),
        plain: forced,
        overlap: { ...forced, ...overlap() },
      });
    },
  },
  lambda: {
    sets: ['yso-titles-l3', 'wordnet', 'cve-libraries'],
    rows: (set) =>
      compare(set, {
        plain: {},
        ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((lambda) => [`lambda ${lambda}`, overlap(lambda)])),
      }),
  },
  variants: {
    sets: ['yso-titles-l3', 'wordnet', 'cve-libraries', 'delicious'],
    rows(set) {
      const forced = clustered(set);
      const other = (settings: Settings) => ({ ...forced, ...overlap(2, settings) });
      return compare(set, {
        plain: forced,
        overlap: other({}),
        'random copies': other({ 'overlap.placement': 'random' }),
        'ranker only': other({ 'overlap.update': 'ranker-only' }),
        'positives matched': other({ 'overlap.positives': 'matched' }),
        'merge mean': other({ 'overlap.merge': 'mean' }),
        'merge max': other({ 'overlap.merge': 'max' }),
        'no cap': other({ 'overlap.balance': 'none' }),
      });
    },
  },
  fused: { sets: ['yso-titles-l3', 'cve-libraries', 'wordnet'], rows: fusedRows },
};

/** More bring nothing in the paper, and cost much. */
const mostCopies = 4;

/** From so many leaves on, umbel makes them smaller as labels have more copies. */
const manyLeaves = 80;

/** As in the paper, both trees have the same leaves. */
function sameLeaves({ train }: Pick<RealSet, 'train'>, lambda: number): Settings {
  const { leafSize } = parseOptions(tree.options, {}) as { leafSize: number };
  const leaves = 2 ** Math.ceil(Math.log2(train.labels.cols / leafSize));
  return leaves < manyLeaves ? {} : { leafSize: leafSize * lambda };
}

async function fusedRows(set: RealSet): Promise<Row[]> {
  const sparse = set.train.features.sparse;
  if (!sparse) throw new Error(`${set.name} must have sparse features`);
  const orders = new Map(seeds.map((seed) => [seed, similarityOrder(sparse, set.train.labels, seed)]));
  const rows: Row[] = [];
  for (const difficulty of difficulties.filter((name) => flags.difficulties.split(',').includes(name))) {
    for (const size of flags.parts.split(',').map(Number)) {
      const lambda = Number(flags.clusters ?? Math.min(size, mostCopies));
      const figures: Record<string, number>[] = [];
      for (const seed of seeds) {
        const order = orders.get(seed) ?? new Uint32Array(0);
        const { partOf, fused } = fuseLabels(order, set.train.labels.cols, size, difficulty, seed);
        const part = (given: TrainingSet) => ({
          ...given,
          labels: fusedPattern(given.labels, partOf, fused),
        });
        const both = { train: part(set.train), test: part(set.test) };
        const plain = await run(both, clustered(both), seed);
        const ours = await run(
          both,
          { ...clustered(both), ...overlap(lambda, sameLeaves(both, lambda)) },
          seed,
        );
        const [before, after] = [plain.figures['P@5'], ours.figures['P@5']];
        const found = {
          'plain P@5': before,
          'overlap P@5': after,
          'relative gain %': (100 * (after - before)) / before,
          ...(size === 2 &&
            lambda === 2 &&
            (await disentanglement(ours.model, set.train, both.train, partOf, { seed, threads }))),
        };
        console.error(`${set.name}, ${difficulty}, ${size} parts, seed ${seed}: ${shown(found)}`);
        figures.push(found);
      }
      const clusters = flags.clusters === undefined ? '' : `, ${lambda} clusters`;
      rows.push(summary(set.name, `${difficulty}, ${size} parts${clusters}`, figures));
    }
  }
  return rows;
}

const [folder = ''] = positionals;
const experiment = experiments[flags.experiment];
if (!experiment) throw new Error(`experiment must be one of ${Object.keys(experiments).join(', ')}`);
await mkdir(flags.out, { recursive: true });
for (const name of flags.sets?.split(',') ?? experiment.sets) {
  const set = await openSet(name, folder);
  // After every set: a run over all of them takes long.
  if (set) await save(join(flags.out, `overlap-${flags.experiment}`), await experiment.rows(set));
}

/** Rows of earlier runs stay unless they were measured again. */
async function save(file: string, measured: Row[]): Promise<void> {
  const earlier: Row[] = existsSync(`${file}.json`)
    ? JSON.parse(await readFile(`${file}.json`, 'utf8')).rows
    : [];
  const key = ({ set, variant }: Row) => `${set}, ${variant}`;
  const rows = [...new Map([...earlier, ...measured].map((row) => [key(row), row])).values()];
  const report = { machine: machine(), experiment: flags.experiment, seeds, threads, set: flags.set, rows };
  await writeFile(`${file}.json`, `${JSON.stringify(report, null, 2)}\n`);
  if (flags.experiment === 'lambda') await writeFile(`${file}.svg`, lambdaPlot(rows));
}

/** P@5 of each set above its plain tree, by the number of copies. */
function lambdaPlot(all: Row[]): string {
  const names = [...new Set(all.map(({ set }) => set))];
  const curves = names.map((name) => {
    const own = all.filter(({ set }) => set === name);
    const value = (row: Row) => (row['P@5'] as Mean).mean;
    return {
      name,
      points: own.slice(1).map((row, i) => [i + 1, value(row) - value(own[0])] as [number, number]),
    };
  });
  return linePlot({ title: 'P@5 above the plain tree, by clusters per label (lambda)', curves });
}
