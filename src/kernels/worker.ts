// The thread side of pool.ts: loads a task's module, then answers jobs, until another task comes or it is terminated.
import { parentPort } from 'node:worker_threads';
import { type ErrorCode, type ErrorDetail, UmbelError } from '../errors.ts';
import { collectGarbage } from './garbage.ts';
import type { Prepare } from './pool.ts';

export type Order =
  | { kind: 'prepare'; module: string; name: string; setup: unknown }
  | { kind: 'forget' }
  /** Of a long job: the first number turns 1 when it is cancelled, the second when it has ended. */
  | { kind: 'job'; index: number; job: unknown; stop?: Int32Array };

export type Answer =
  | { index: number; result: unknown }
  | { report: unknown }
  | { failure: { umbel?: [ErrorCode, string, ErrorDetail]; error?: unknown } };

type Work = (job: unknown, report: (message: unknown) => void) => unknown;

// Orders arrive while the module is still loading; each job waits for the preparation before it.
let work: Promise<Work> | undefined;

parentPort?.on('message', async (order: Order) => {
  try {
    if (order.kind === 'prepare') {
      work = load(order.module, order.name, order.setup);
      work.catch(() => {});
      return;
    }
    if (order.kind === 'forget') {
      work = undefined;
      // A thread makes too little garbage of its own to notice that a large memory is among it.
      collectGarbage();
      return;
    }
    const result = await (await work)?.(order.job, (message) => report(message, order.stop));
    parentPort?.postMessage({ index: order.index, result } satisfies Answer, ownedBuffers(result));
  } catch (error) {
    parentPort?.postMessage({ failure: describe(error) } satisfies Answer);
  }
  if (order.kind === 'job' && order.stop) {
    Atomics.store(order.stop, 1, 1);
    Atomics.notify(order.stop, 1);
  }
});

/** What a long job tells while it runs. */
function report(message: unknown, stop: Int32Array | undefined): void {
  if (stop && Atomics.load(stop, 0) === 1) throw new UmbelError('cancelled', 'cancelled');
  parentPort?.postMessage({ report: message } satisfies Answer, ownedBuffers(message));
}

async function load(module: string, name: string, setup: unknown): Promise<Work> {
  const prepare = (await import(module))[name] as Prepare<unknown, unknown, unknown>;
  return prepare(setup);
}

/** Buffers of the typed arrays in a result. Views into something larger, like a kernel's memory, are left to be copied. */
function ownedBuffers(value: unknown, found = new Set<ArrayBuffer>()): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) {
    const { buffer, byteLength } = value;
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) found.add(buffer);
  } else if (typeof value === 'object' && value !== null && !isPlainList(value)) {
    for (const inner of Object.values(value)) ownedBuffers(inner, found);
  }
  return [...found];
}

/** Lists of numbers or strings can be long and hold no buffers. */
const isPlainList = (value: object) => Array.isArray(value) && typeof value[0] !== 'object';

function describe(error: unknown) {
  if (!(error instanceof UmbelError)) return { error };
  const { value, ...place } = error.detail;
  const detail = value === undefined ? place : { ...place, value: cloneable(value) };
  return { umbel: [error.code, error.rule, detail] as [ErrorCode, string, ErrorDetail] };
}

/** Errors quote any value; functions and symbols cannot travel. */
const cloneable = (value: unknown) =>
  typeof value === 'function' || typeof value === 'symbol' ? String(value) : value;
