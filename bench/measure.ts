// One measurement of umbel in a process of its own, so that its peak memory is its own: trains and saves a model, or
// loads and judges one. Started by figures.ts; runs what `npm run build` made, as users do.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type * as formats from '../src/data/formats.ts';
import type * as learning from '../src/learn/classifier.ts';
import type * as csr from '../src/math/csr.ts';
import type { Progress } from '../src/progress.ts';
import type * as folders from '../src/store/folder.ts';
import { built } from './built.ts';
import { type Measurement, median, type PredictFigures, type TrainFigures } from './figures.ts';
import { precision } from './precision.ts';

const [{ readDataset }, { Classifier }, { loadModel, saveModel }] = await Promise.all([
  built<typeof formats>('data/formats.js'),
  built<typeof learning>('learn/classifier.js'),
  built<typeof folders>('store/folder.js'),
]);

const peakMB = () => process.resourceUsage().maxRSS / 1024;
const secondsSince = (start: number) => (performance.now() - start) / 1000;

/** Adds the time since the last report to the phase of the report that ends it. */
function phaseClock(): { phases: Record<string, number>; progress: Progress } {
  const phases: Record<string, number> = {};
  let last = performance.now();
  const progress: Progress = ({ phase }) => {
    phases[phase] = (phases[phase] ?? 0) + secondsSince(last);
    last = performance.now();
  };
  return { phases, progress };
}

async function train({ data, model, learner, options, threads, seed }: Measurement): Promise<TrainFigures> {
  // The peers' code, too, is loaded before their clock starts.
  await Promise.all([built('learn/tree/learner.js'), built('learn/tree/grow.js'), built('kernels/pool.js')]);
  const dataset = await readDataset(join(data, 'X.trn.npz'));
  const { phases, progress } = phaseClock();
  const cpu = process.cpuUsage();
  const start = performance.now();
  const classifier = await Classifier.train(dataset, { learner, options, threads, seed, progress });
  const trained = secondsSince(start);
  await saveModel(classifier, model);
  const total = secondsSince(start);
  const { user, system } = process.cpuUsage(cpu);
  const times = { total, saving: total - trained, cpu: (user + system) / 1e6, phases };
  return { train: times, trainPeakMB: peakMB(), modelMB: await folderMB(model) };
}

async function predict(measurement: Measurement): Promise<PredictFigures> {
  const { data, model, top, threads, batches, singles } = measurement;
  const { selectRows } = await built<typeof csr>('math/csr.js');
  const classifier = await loadModel(model);
  const { rows, labels, features } = await readDataset(join(data, 'X.tst.npz'));
  const sparse = features?.sparse;
  if (!sparse) throw new Error(`${data} must hold sparse features`);
  const timed = async (inputs: csr.Csr, workers: number) => {
    const start = performance.now();
    const ranking = await classifier.rank({ features: { sparse: inputs } }, { top, threads: workers });
    return { seconds: secondsSince(start), ranking };
  };
  await timed(selectRows(sparse, [0, 1, 2, 3]), threads);
  const whole = [];
  for (let i = 0; i < batches; i++) whole.push(await timed(sparse, threads));
  const one: number[] = [];
  for (let row = 0; row < Math.min(singles, rows); row++) {
    one.push((await timed(selectRows(sparse, [row]), 1)).seconds);
  }
  return {
    batchMicroseconds: (median(whole.map(({ seconds }) => seconds)) / rows) * 1e6,
    singleMicroseconds: median(one) * 1e6,
    predictPeakMB: peakMB(),
    precision: precision(whole[0].ranking, labels),
  };
}

async function folderMB(folder: string): Promise<number> {
  const files = await readdir(folder);
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, file))).size));
  return sizes.reduce((sum, size) => sum + size, 0) / 2 ** 20;
}

const measurement: Measurement = JSON.parse(process.argv[2]);
console.log(JSON.stringify(await (measurement.phase === 'train' ? train : predict)(measurement)));
