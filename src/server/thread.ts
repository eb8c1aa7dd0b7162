// One piece of work in a thread of its own, which is gone afterwards: how it is asked for, and how the thread replies.
import { parentPort, Worker } from 'node:worker_threads';
import { type Failure, Problem, packError, renamePlaces, unpackError } from './problem.ts';

type Reply<T> = { answer: T } | { failure: Failure };

/** What the thread replies. Being a thread, it can be ended at any time: the answer is then the signal's reason. */
export async function askThread<T>(file: URL, workerData: unknown, signal?: AbortSignal): Promise<T> {
  signal?.throwIfAborted();
  const worker = new Worker(file, { workerData });
  try {
    return await new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
      worker.once('message', (reply: Reply<T>) => {
        if ('answer' in reply) resolve(reply.answer);
        else reject(unpackError(reply.failure));
      });
      worker.once('error', reject);
      worker.once('exit', () => reject(new Problem('unavailable', 'the thread at work on this ended')));
    });
  } finally {
    await worker.terminate();
  }
}

/** In the thread; places of this machine have other names in errors. */
export function reply<T>(work: Promise<T>, names: Record<string, string>): void {
  const post = (message: Reply<T>) => parentPort?.postMessage(message);
  work.then(
    (answer) => post({ answer }),
    (error) => post({ failure: packError(renamePlaces(error, names)) }),
  );
}
