// Work that survives being killed: results in one file, written after each; models and half-trained ones in a folder
// beside, from which the next run goes on.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type * as datasets from '../src/data/dataset.ts';
import type * as learning from '../src/learn/classifier.ts';
import type * as checkpoints from '../src/store/checkpoint.ts';
import type * as folders from '../src/store/folder.ts';
import { built } from './built.ts';
import { machine, rounded } from './figures.ts';

const [{ Classifier }, { openCheckpoint }, { loadModel, saveModel }] = await Promise.all([
  built<typeof learning>('learn/classifier.js'),
  built<typeof checkpoints>('store/checkpoint.js'),
  built<typeof folders>('store/folder.js'),
]);

interface Report {
  date: string;
  machine: ReturnType<typeof machine>;
  runs: Record<string, unknown>;
}

/** Results by name; those found in the file are not made again. */
export class Results {
  readonly #file: string;
  readonly #report: Report;

  constructor(file: string) {
    this.#file = file;
    this.#report = existsSync(file)
      ? JSON.parse(readFileSync(file, 'utf8'))
      : { date: '', machine: machine(), runs: {} };
  }

  async keep(name: string, make: () => Promise<unknown>): Promise<void> {
    const { runs } = this.#report;
    if (name in runs) return;
    runs[name] = await make();
    this.#report.date = new Date().toISOString().slice(0, 10);
    await mkdir(dirname(this.#file), { recursive: true });
    await writeFile(`${this.#file}.partial`, `${JSON.stringify(this.#report, null, 2)}\n`);
    await rename(`${this.#file}.partial`, this.#file);
    console.log(name, JSON.stringify(runs[name]));
  }
}

export interface Training {
  /** What tells the data from others. */
  data: string;
  learner: string;
  options: Record<string, unknown>;
  seed: number;
  threads: number;
  /** Whose vectors of texts are features. */
  vectors?: Training;
}

export type Times = { seconds: number; cpuSeconds: number };
export interface Made extends Times {
  classifier: learning.Classifier;
}

/** Trains, or goes on training, or loads what an earlier run has trained; times are those of all runs together. */
export async function trained(work: string, training: Training, set: datasets.Dataset): Promise<Made> {
  const { learner, options, seed, threads, vectors } = training;
  const key = createHash('sha256').update(JSON.stringify(training)).digest('hex').slice(0, 16);
  const folder = join(work, key);
  const timesFile = `${folder}.times.json`;
  const before: Times = existsSync(timesFile)
    ? JSON.parse(readFileSync(timesFile, 'utf8'))
    : { seconds: 0, cpuSeconds: 0 };
  if (existsSync(join(folder, 'model.json'))) return { classifier: await loadModel(folder), ...before };
  const lent = vectors && (await trained(work, vectors, set)).classifier;
  await mkdir(work, { recursive: true });
  const checkpoint = await openCheckpoint(`${folder}.checkpoint`, 'go on');
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const soFar = async (): Promise<Times> => {
    const { user, system } = process.cpuUsage(cpu);
    const times = {
      seconds: rounded(before.seconds + (performance.now() - start) / 1000),
      cpuSeconds: rounded(before.cpuSeconds + (user + system) / 1e6),
    };
    await writeFile(timesFile, JSON.stringify(times));
    return times;
  };
  const classifier = await Classifier.train(set, {
    learner,
    options,
    seed,
    threads,
    vectors: lent,
    checkpoint: {
      load: (name) => checkpoint.load(name),
      save: async (name, tensors) => {
        await checkpoint.save(name, tensors);
        await soFar();
      },
    },
  });
  const times = await soFar();
  await saveModel(classifier, folder);
  await checkpoint.remove();
  return { classifier, ...times };
}
