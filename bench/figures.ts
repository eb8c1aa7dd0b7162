// What a benchmark of a learner measures, how one measurement is started, and how several become one.
import { spawn } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export interface Measurement {
  phase: 'train' | 'predict';
  /** Folder with X.trn.npz, Y.trn.npz, X.tst.npz, Y.tst.npz. */
  data: string;
  model: string;
  learner: string;
  options: Record<string, string>;
  threads: number;
  seed: number;
  top: number;
  /** How often the whole test set is predicted, and how many rows are predicted one by one. */
  batches: number;
  singles: number;
}

export interface TrainFigures {
  train: { total: number; saving: number; cpu: number; phases: Record<string, number> };
  trainPeakMB: number;
  modelMB: number;
}

export interface PredictFigures {
  batchMicroseconds: number;
  singleMicroseconds: number;
  predictPeakMB: number;
  precision: Record<string, number>;
}

export type Figures = TrainFigures & PredictFigures;

/** Runs a script of this folder in a process of its own. */
export const runScript = (name: string, ...args: string[]): Promise<unknown> =>
  runJson(process.execPath, [fileURLToPath(new URL(`./${name}.js`, import.meta.url)), ...args]);

/** Trains, then predicts, each in a fresh process. */
export async function measure(measurement: Omit<Measurement, 'phase'>): Promise<Figures> {
  const run = (phase: Measurement['phase']) =>
    runScript('measure', JSON.stringify({ ...measurement, phase }));
  const trained = (await run('train')) as TrainFigures;
  return { ...trained, ...((await run('predict')) as PredictFigures) };
}

/** What a command printed, as JSON; its messages go to our terminal. */
export async function runJson(command: string, args: string[]): Promise<unknown> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  const [printed, code] = await Promise.all([text(child.stdout), ended]);
  if (code !== 0) throw new Error(`${command} ${args[0]} ended with code ${code}`);
  return JSON.parse(printed);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export interface Mean {
  mean: number;
  /** Standard deviation from run to run. */
  deviation: number;
}

/** Several runs figure by figure. */
export function means<T extends object>(runs: T[]): Record<string, Mean> {
  const names = Object.keys(runs[0]) as (keyof T & string)[];
  return Object.fromEntries(
    names.map((name) => {
      const values = runs.map((run) => Number(run[name]));
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
      const deviation = Math.sqrt(squares / Math.max(1, values.length - 1));
      return [name, { mean: rounded(mean), deviation: rounded(deviation) }];
    }),
  );
}

/** Four significant digits: what a reader can use. */
export const rounded = (value: number): number => Number(value.toPrecision(4));

export const machine = () => ({
  processor: cpus()[0].model,
  cores: cpus().length,
  memoryGB: rounded(totalmem() / 2 ** 30),
  node: process.version,
});
