// What long work tells whoever is watching, and how it is stopped. Passed in as arguments, never global.
import { UmbelError } from './errors.ts';

export interface Step {
  /** What is being done: `read`, `vectorise`, `train`. */
  phase: string;
  done: number;
  /** Absent while the end is unknown. */
  total?: number;
  /** What is counted: `rows`, `labels`, `bytes`. */
  unit: string;
  /** How it goes, in a few words: `loss 3.2, macroF1 0.48`. */
  detail?: string;
}

export type Progress = (step: Step) => void;

/** What every long task is given. */
export interface Context {
  seed: number;
  threads: number;
  progress: Progress;
  signal?: AbortSignal;
}

export const quiet: Progress = () => {};

/** Throws `cancelled` once the signal has fired; call it between pieces of work. */
export function checkCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new UmbelError('cancelled', 'cancelled');
}

/** Lets timers, signals and progress bars run between pieces of work on the main thread. */
export const breathe = (): Promise<void> =>
  new Promise((resolve) => {
    // In Node, which has it, without the millisecond that a timer takes.
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
