import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { threadId } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UmbelError } from '../errors.ts';
import { Pool, type RunOptions, runJobs, runThread, type Task } from './pool.ts';

let folder: string;
let module: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-pool-'));
  const file = join(folder, 'tasks.mjs');
  module = pathToFileURL(file).href;
  const errors = new URL('../../dist/errors.js', import.meta.url).href;
  await writeFile(
    file,
    `import { UmbelError } from ${JSON.stringify(errors)};
     import { threadId } from 'node:worker_threads';
     export const times = (factor) => (x) => {
       if (x < 0) throw new UmbelError('input', 'x must not be negative', { value: x, line: 3 });
       if (x === 404) throw new RangeError('no such x');
       if (x === 500) process.exit(7);
       return x * factor;
     };
     export const broken = () => { throw new UmbelError('usage', 'setup must be right'); };
     export const who = () => () => threadId;
     export const sleep = () => (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
     export const nap = (ms) => () => {
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
       return threadId;
     };
     export const count = (to) => async (_, report) => {
       for (let i = 0; i < to; i++) {
         report(i);
         await new Promise((resolve) => setTimeout(resolve, 1));
       }
       if (to === 13) throw new UmbelError('usage', 'to must not be 13');
       return { counted: to, threadId };
     };
     export const spin = () => (_, report) => { for (;;) report('spinning'); };
     let last;
     export const arrays = () => (n) => {
       const moved = last && last.length === 0;
       last = new Float32Array(n).fill(n);
       return { moved, nested: [{ last }], view: new Uint8Array(new ArrayBuffer(8), 2, 3).fill(n) };
     };`,
  );
});

afterAll(() => rm(folder, { recursive: true }));

const task = <Setup, Job, Result>(name: string): Task<Setup, Job, Result> => ({ module, name });
const times = () => task<number, number, number>('times');
const manyJobs = Array.from({ length: 40 }, (_, i) => i);

describe.each([
  { threads: 1, here: false },
  { threads: 3, here: false },
  { threads: 3, here: true },
])('a pool of $threads, one of them the caller: $here', ({ threads, here }) => {
  async function run<Setup, Job, Result>(
    task: Task<Setup, Job, Result>,
    setup: Setup,
    jobs: Iterable<Job>,
    options?: RunOptions<Result>,
  ): Promise<Result[]> {
    const pool = new Pool(threads, { here });
    try {
      return await pool.run(task, setup, jobs, options);
    } finally {
      await pool.close();
    }
  }

  it('returns results in job order', async () => {
    const results = await run(times(), 3, manyJobs);
    expect(results).toEqual(manyJobs.map((x) => 3 * x));
  });

  it('tells of every result once', async () => {
    const seen: number[][] = [];
    await run(times(), 2, manyJobs, { onResult: (result, index) => seen.push([index, result]) });
    expect(seen.sort(([a], [b]) => a - b)).toEqual(manyJobs.map((x) => [x, 2 * x]));
  });

  it('does nothing when there are no jobs', async () => {
    expect(await run(times(), 2, [])).toEqual([]);
  });

  it('makes the jobs of a generator only as they are needed', async () => {
    let [made, done, ahead] = [0, 0, 0];
    function* jobs() {
      for (; made < 50; made++) {
        ahead = Math.max(ahead, made - done);
        yield made;
      }
    }
    await run(times(), 1, jobs(), { onResult: () => done++ });
    expect(done).toBe(50);
    expect(ahead).toBeLessThanOrEqual((here ? 2 * threads : threads) + 2);
  });

  it('throws the error of a job as it was', async () => {
    const failure = run(times(), 2, [1, 2, -5, 3]);
    await expect(failure).rejects.toMatchObject({
      name: 'UmbelError',
      code: 'input',
      rule: 'x must not be negative',
      detail: { value: -5, line: 3 },
    });
    await expect(run(times(), 2, [1, 404])).rejects.toThrow(new RangeError('no such x'));
  });

  it('throws the error of a setup', async () => {
    await expect(run(task('broken'), 0, [1, 2])).rejects.toMatchObject({ code: 'usage' });
  });

  it('throws what a listener throws', async () => {
    const onResult = () => {
      throw new Error('listener');
    };
    await expect(run(times(), 2, [1, 2], { onResult })).rejects.toThrow('listener');
  });

  it('stops when cancelled', async () => {
    const controller = new AbortController();
    let done = 0;
    const onResult = () => {
      done++;
      controller.abort();
    };
    const sleeping = run(task('sleep'), 0, Array(200).fill(20), {
      signal: controller.signal,
      onResult,
    });
    await expect(sleeping).rejects.toMatchObject({ code: 'cancelled' });
    expect(done).toBeLessThan(20);
    await expect(run(times(), 1, [1, 2], { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'cancelled',
    });
  });
});

it('an UmbelError thrown in a thread is one here', async () => {
  await expect(runJobs(times(), 2, [1, -5], { threads: 2 })).rejects.toBeInstanceOf(UmbelError);
});

it('runs where it is installed, also below a folder called src', async () => {
  const installed = join(folder, 'src', 'app');
  for (const file of [
    'package.json',
    'dist/errors.js',
    'dist/progress.js',
    'dist/kernels/garbage.js',
    'dist/kernels/pool.js',
    'dist/kernels/worker.js',
  ])
    await cp(new URL(`../../${file}`, import.meta.url), join(installed, file));
  const copy: typeof import('./pool.ts') = await import(
    pathToFileURL(join(installed, 'dist', 'kernels', 'pool.js')).href
  );
  expect(await copy.runJobs(times(), 2, [1, 2, 3], { threads: 2 })).toEqual([2, 4, 6]);
});

it('a worker that dies is an error, not a silence', async () => {
  await expect(runJobs(times(), 2, [1, 500, 3], { threads: 2 })).rejects.toThrow('ended with code 7');
});

it('the caller works beside the others where it may', async () => {
  const pool = new Pool(2, { here: true });
  try {
    const ids = new Set(await pool.run(task<number, number, number>('nap'), 5, Array(20).fill(0)));
    expect(ids.size).toBe(2);
    expect(ids.has(threadId)).toBe(true);
  } finally {
    await pool.close();
  }
});

it('threads live from run to run and can be used after a failure', async () => {
  const pool = new Pool(2);
  try {
    const jobs = Array(20).fill(0);
    const first = new Set(await pool.run(task<number, number, number>('who'), 0, jobs));
    const second = new Set(await pool.run(task<number, number, number>('who'), 0, jobs));
    expect([...second].every((id) => first.has(id))).toBe(true);
    await expect(pool.run(times(), 1, [1, -1])).rejects.toThrow('negative');
    expect(await pool.run(times(), 5, [1, 2])).toEqual([5, 10]);
  } finally {
    await pool.close();
  }
});

it('whole typed arrays in a result move, views are copied', async () => {
  type Result = { moved?: boolean; nested: { last: Float32Array }[]; view: Uint8Array };
  const results = await runJobs(task<number, number, Result>('arrays'), 0, [4, 5, 6, 7], { threads: 2 });
  expect(results.map(({ nested }) => [...nested[0].last])).toEqual([4, 5, 6, 7].map((n) => Array(n).fill(n)));
  expect(results.map(({ view }) => view.length)).toEqual([3, 3, 3, 3]);
  expect(results.filter(({ moved }) => moved === false)).toEqual([]);
  expect(results.some(({ moved }) => moved)).toBe(true);
});

describe('a long job', () => {
  const count = () => task<number, undefined, { counted: number; threadId: number }>('count');

  it('runs on a thread of its own and reports while it runs', async () => {
    const seen: number[] = [];
    const { counted, threadId } = await runThread(count(), 5, { onReport: (i: number) => seen.push(i) });
    expect(counted).toBe(5);
    expect(threadId).toBeGreaterThan(0);
    expect(seen).toEqual([0, 1, 2, 3, 4]);
  });

  it('fails with its own error, or with that of whoever hears its reports', async () => {
    await expect(runThread(count(), 13)).rejects.toThrow(new UmbelError('usage', 'to must not be 13'));
    const full = () => {
      throw new Error('disk full');
    };
    await expect(runThread(count(), 5, { onReport: full })).rejects.toThrow('disk full');
  });

  it('ends at its next report when cancelled, even if it never pauses', async () => {
    const stop = new AbortController();
    const run = runThread(task<undefined, undefined, never>('spin'), undefined, {
      signal: stop.signal,
      onReport: () => stop.abort(),
    });
    await expect(run).rejects.toMatchObject({ code: 'cancelled' });
  });
});
