// The thread side of pool.ts: loads the task's module once, then answers jobs until it is terminated.
import { parentPort, workerData } from 'node:worker_threads';
import type { Prepare } from './pool.ts';

const { module, name, setup } = workerData as { module: string; name: string; setup: unknown };
const prepare = (await import(module))[name] as Prepare<unknown, unknown, unknown>;
const work = await prepare(setup);
parentPort?.on('message', ({ index, job }: { index: number; job: unknown }) => {
  parentPort?.postMessage({ index, result: work(job) });
});
