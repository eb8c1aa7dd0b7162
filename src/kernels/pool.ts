// Worker threads that run named exports of our own modules. Jobs are handed out one at a time in order, so a long
// job does not hold up the rest; results come back in job order, so nothing depends on the number of threads.
// With one thread, or one job, everything runs here, with a pause between jobs.
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { UmbelError } from '../errors.ts';
import { breathe, checkCancelled } from '../progress.ts';
import type { Answer, Order } from './worker.ts';

export interface Task<Setup, Job, Result> {
  /** The module: `import.meta.url` of the file that exports `name`. */
  module: string;
  /** Export called once per worker with the setup; it returns the function that does one job. */
  name: string;
  /** Type carriers only; never present at run time. */
  types?: { setup: Setup; job: Job; result: Result };
}

/** What a task's export looks like. Typed arrays in a result that own their whole buffer are moved, not copied. */
export type Prepare<Setup, Job, Result> = (
  setup: Setup,
) => Promise<(job: Job) => Result> | ((job: Job) => Result);

export interface RunOptions<Result> {
  signal?: AbortSignal;
  /** Called as each job ends, in any order. */
  onResult?: (result: Result, index: number) => void;
  /** The setup is for this run alone: threads let go of it, and of what it holds, at the end. */
  once?: boolean;
  /** Jobs a thread holds beside the one at work: 1 keeps threads from waiting when jobs are many and short. */
  ahead?: number;
}

export interface PoolOptions {
  resourceLimits?: ResourceLimits;
  /** The caller's thread is one of them, which saves starting one. For short work, since it can do nothing else then. */
  here?: boolean;
}

/** Threads that stay alive from one run to the next. One run at a time. */
export class Pool {
  readonly threads: number;
  readonly here: boolean;
  readonly #workers: Worker[] = [];
  readonly #resourceLimits: ResourceLimits | undefined;
  /** Why a thread did not start. */
  #broken: unknown;

  /** The threads start at once, so that they are there when the caller has made its first jobs. */
  constructor(threads: number, { here = false, resourceLimits }: PoolOptions = {}) {
    this.threads = threads;
    this.here = here;
    this.#resourceLimits = resourceLimits;
    if (threads > 1) for (let lane = 0; lane < this.#lanes; lane++) this.#worker(lane).unref();
  }

  /** Runs all jobs and returns their results in job order. Jobs may be a generator: they are made as needed. */
  async run<Setup, Job, Result>(
    task: Task<Setup, Job, Result>,
    setup: Setup,
    jobs: Iterable<Job>,
    options: RunOptions<Result> = {},
  ): Promise<Result[]> {
    checkCancelled(options.signal);
    const queue = new Queue(jobs, options);
    if (this.threads <= 1 || queue.pending <= 1) {
      await workHere(task, setup, queue, options.signal);
      return queue.results;
    }
    try {
      await this.#runLanes(task, setup, queue, options);
    } catch (error) {
      await this.close();
      throw error;
    }
    return queue.results;
  }

  /** Ends the threads; whatever they were doing is lost. */
  async close(): Promise<void> {
    this.#broken = undefined;
    await Promise.all(this.#workers.splice(0).map((worker) => worker.terminate()));
  }

  #runLanes<Setup, Job, Result>(
    task: Task<Setup, Job, Result>,
    setup: Setup,
    queue: Queue<Job, Result>,
    { signal, once, ahead = this.here ? 1 : 0 }: RunOptions<Result>,
  ): Promise<unknown> {
    if (this.#broken) throw this.#broken;
    const ended = new AbortController();
    const cancelled = new Promise<never>((_, reject) => {
      const cancel = () => reject(new UmbelError('cancelled', 'cancelled'));
      signal?.addEventListener('abort', cancel, { signal: ended.signal });
    });
    const order = prepareOrder(task, setup);
    const lanes: Promise<void>[] = [];
    while (lanes.length < this.#lanes && queue.pending > 0) {
      const worker = this.#worker(lanes.length);
      worker.ref();
      worker.postMessage(order);
      lanes.push(runLane(worker, queue, ahead, ended.signal));
    }
    if (this.here) lanes.push(workHere(task, setup, queue, ended.signal));
    return Promise.race([cancelled, Promise.all(lanes)]).finally(() => {
      ended.abort();
      if (once) for (const worker of this.#workers) worker.postMessage({ kind: 'forget' } satisfies Order);
      // Idle threads do not keep the process alive.
      for (const idle of this.#workers) idle.unref();
    });
  }

  /** Threads beside the caller's. */
  get #lanes(): number {
    return this.here ? this.threads - 1 : this.threads;
  }

  #worker(lane: number): Worker {
    const resourceLimits = this.#resourceLimits;
    this.#workers[lane] ??= new Worker(workerFile(), { resourceLimits }).once('error', (error) => {
      this.#broken = error;
    });
    return this.#workers[lane];
  }
}

/** Pools that wait for the next `runJobs`: starting threads takes longer than many a batch. */
const waiting: Pool[] = [];

const waitingFor = (threads: number, here: boolean) =>
  waiting.findIndex((pool) => pool.threads === threads && pool.here === here);

/** Lets threads start for a `runJobs` that is still being prepared. */
export function startThreads(threads: number, here = false): void {
  if (waitingFor(threads, here) < 0) waiting.push(new Pool(threads, { here }));
}

/** Runs all jobs on threads that wait for them, and on the caller's where it may; results come in job order. */
export async function runJobs<Setup, Job, Result>(
  task: Task<Setup, Job, Result>,
  setup: Setup,
  jobs: Iterable<Job>,
  { threads, here = false, ...options }: RunOptions<Result> & { threads: number; here?: boolean },
): Promise<Result[]> {
  const at = waitingFor(threads, here);
  const pool = at < 0 ? new Pool(threads, { here }) : waiting.splice(at, 1)[0];
  try {
    return await pool.run(task, setup, jobs, options);
  } finally {
    waiting.push(pool);
  }
}

/** Jobs to hand out and results received; two jobs are drawn ahead so that no thread waits for one to be made. */
class Queue<Job, Result> {
  readonly results: Result[] = [];
  readonly #jobs: Iterator<Job>;
  readonly #ahead: { job: Job }[] = [];
  readonly #onResult: RunOptions<Result>['onResult'];
  #taken = 0;

  constructor(jobs: Iterable<Job>, { onResult }: RunOptions<Result>) {
    this.#jobs = jobs[Symbol.iterator]();
    this.#onResult = onResult;
    this.refill();
  }

  get pending(): number {
    return this.#ahead.length;
  }

  take(): { index: number; job: Job } | undefined {
    const next = this.#ahead.shift();
    return next && { index: this.#taken++, job: next.job };
  }

  /** Call once the job taken is on its way, so that the next is made while a thread works. */
  refill(): void {
    while (this.#ahead.length < 2) {
      const { done, value } = this.#jobs.next();
      if (done) return;
      this.#ahead.push({ job: value });
    }
  }

  finish(index: number, result: Result): void {
    this.results[index] = result;
    this.#onResult?.(result, index);
  }
}

/** Works on the caller's thread until the queue is empty, with a pause between jobs. */
async function workHere<Setup, Job, Result>(
  task: Task<Setup, Job, Result>,
  setup: Setup,
  queue: Queue<Job, Result>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const work = await prepare(task, setup);
  for (let entry = queue.take(); entry; entry = queue.take()) {
    checkCancelled(signal);
    queue.refill();
    queue.finish(entry.index, work(entry.job));
    await breathe();
  }
  checkCancelled(signal);
}

/** Feeds one worker until the queue is empty. */
function runLane<Job, Result>(
  worker: Worker,
  queue: Queue<Job, Result>,
  ahead: number,
  ended: AbortSignal,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    let given = 0;
    const give = () => {
      const entry = queue.take();
      if (!entry) return;
      given++;
      worker.postMessage({ kind: 'job', ...entry } satisfies Order);
      queue.refill();
    };
    const receive = (answer: Answer) => {
      try {
        if ('failure' in answer) throw revive(answer.failure);
        if ('report' in answer) return;
        given--;
        give();
        queue.finish(answer.index, answer.result as Result);
        if (given === 0) resolve();
      } catch (error) {
        reject(error);
      }
    };
    const died = (code: number) => reject(endedEarly(code));
    worker.on('message', receive).on('error', reject).on('exit', died);
    ended.addEventListener('abort', () => {
      worker.off('message', receive).off('error', reject).off('exit', died);
    });
    for (let i = 0; i <= ahead; i++) give();
  });
}

async function prepare<Setup, Job, Result>(task: Task<Setup, Job, Result>, setup: Setup) {
  const start = (await import(task.module))[task.name] as Prepare<Setup, Job, Result>;
  return start(setup);
}

/** Milliseconds that a process which ends waits for the next report of a long job. */
const exitPatience = 10_000;

/** What the export looks like that `runThread` runs. */
export type LongJob<Setup, Report, Result> = (
  setup: Setup,
) => (job: undefined, report: (message: Report) => void) => Promise<Result>;

/**
 * Runs one long job on a thread of its own, so that this one stays free for timers, signals and requests. When cancelled
 * the job ends at its next report: to end its thread in the middle of native code would end the whole process.
 */
export async function runThread<Setup, Report, Result>(
  task: Task<Setup, undefined, Result>,
  setup: Setup,
  { signal, onReport }: { signal?: AbortSignal; onReport?: (message: Report) => void } = {},
): Promise<Result> {
  checkCancelled(signal);
  const stop = new Int32Array(new SharedArrayBuffer(8));
  const cancel = () => Atomics.store(stop, 0, 1);
  const leave = () => {
    cancel();
    Atomics.wait(stop, 1, 0, exitPatience);
  };
  signal?.addEventListener('abort', cancel);
  process.on('exit', leave);
  const worker = new Worker(workerFile());
  try {
    return await new Promise<Result>((resolve, reject) => {
      let unheard: unknown;
      const hear = (message: Report) => {
        try {
          onReport?.(message);
        } catch (error) {
          unheard ??= error;
          cancel();
        }
      };
      worker.on('error', reject).on('messageerror', reject);
      worker.on('exit', (code) => reject(endedEarly(code)));
      worker.on('message', (answer: Answer) => {
        if ('report' in answer) hear(answer.report as Report);
        else if (unheard !== undefined) reject(unheard);
        else if ('failure' in answer) reject(revive(answer.failure));
        else resolve(answer.result as Result);
      });
      worker.postMessage(prepareOrder(task, setup));
      worker.postMessage({ kind: 'job', index: 0, job: undefined, stop } satisfies Order);
    });
  } finally {
    signal?.removeEventListener('abort', cancel);
    process.off('exit', leave);
    await worker.terminate();
  }
}

const endedEarly = (code: number) => new Error(`worker thread ended with code ${code}`);
const workerFile = () => builtFile(import.meta.url.replace(/pool(\.[jt]s)$/, 'worker$1'));
const prepareOrder = ({ module, name }: { module: string; name: string }, setup: unknown): Order => ({
  kind: 'prepare',
  module: builtFile(module).href,
  name,
  setup,
});

/** The error as it was thrown in the worker. */
function revive(failure: Extract<Answer, { failure: unknown }>['failure']): unknown {
  return failure.umbel ? new UmbelError(...failure.umbel) : failure.error;
}

/** Workers load compiled files: from sources (under test) this is the twin in dist, from dist the file itself. */
export function builtFile(file: string): URL {
  if (!file.endsWith('.ts')) return new URL(file);
  return new URL(file.replace(/\/src\/(?!.*\/src\/)/, '/dist/').replace(/\.ts$/, '.js'));
}
