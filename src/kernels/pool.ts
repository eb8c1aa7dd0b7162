// Worker threads that run named exports of our own modules. Jobs are handed out one at a time in order, so a long
// job does not hold up the rest; results come back in job order, so nothing depends on the number of threads.
// With one thread everything runs here, with a pause between jobs.
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { breathe, checkCancelled } from '../progress.ts';

export interface Task<Setup, Job, Result> {
  /** The module: `import.meta.url` of the file that exports `name`. */
  module: string;
  /** Export called once per worker with the setup; it returns the function that does one job. */
  name: string;
  /** Type carriers only; never present at run time. */
  types?: { setup: Setup; job: Job; result: Result };
}

/** What a task's export looks like. */
export type Prepare<Setup, Job, Result> = (
  setup: Setup,
) => Promise<(job: Job) => Result> | ((job: Job) => Result);

export interface RunOptions<Result> {
  threads: number;
  signal?: AbortSignal;
  /** Called as each job ends, in any order. */
  onResult?: (result: Result, index: number) => void;
}

/** Runs all jobs and returns their results in job order. */
export async function runJobs<Setup, Job, Result>(
  task: Task<Setup, Job, Result>,
  setup: Setup,
  jobs: readonly Job[],
  { threads, signal, onResult }: RunOptions<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(jobs.length);
  const finish = (index: number, result: Result) => {
    results[index] = result;
    onResult?.(result, index);
  };
  if (Math.min(threads, jobs.length) <= 1) {
    const prepare = (await import(task.module))[task.name] as Prepare<Setup, Job, Result>;
    const work = await prepare(setup);
    for (let i = 0; i < jobs.length; i++) {
      checkCancelled(signal);
      finish(i, work(jobs[i]));
      await breathe();
    }
    return results;
  }
  checkCancelled(signal);
  let next = 0;
  const workers: Worker[] = [];
  const lanes = Array.from({ length: Math.min(threads, jobs.length) }, () => {
    const worker = new Worker(builtFile('./worker.ts', import.meta.url), {
      workerData: { module: builtFile(task.module).href, name: task.name, setup },
    });
    workers.push(worker);
    return new Promise<void>((resolve, reject) => {
      const give = () => {
        if (signal?.aborted || next >= jobs.length) return resolve();
        const index = next++;
        worker.postMessage({ index, job: jobs[index] });
      };
      worker.on('error', reject);
      worker.on('message', (message: { index: number; result: Result }) => {
        finish(message.index, message.result);
        give();
      });
      signal?.addEventListener('abort', () => resolve(), { once: true });
      give();
    });
  });
  try {
    await Promise.all(lanes);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  checkCancelled(signal);
  return results;
}

/** Workers load compiled files: from sources (under test) this is the twin in dist, from dist the file itself. */
function builtFile(file: string, base?: string): URL {
  const url = new URL(file, base);
  const path = fileURLToPath(url);
  if (!path.endsWith('.ts')) return url;
  return new URL(url.href.replace(/\/src\/(?!.*\/src\/)/, '/dist/').replace(/\.ts$/, '.js'));
}
