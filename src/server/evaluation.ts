// Evaluating an uploaded file: the upload goes to a file whose name is ours, a thread of its own (evaluator.ts) judges
// the model, and both are gone afterwards. Being a thread, it can be ended at any time.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtomicFile } from '../data/file.ts';
import { badInput } from '../errors.ts';
import { builtFile } from '../kernels/pool.ts';
import type { Task } from './evaluator.ts';
import type { Evaluation } from './judged.ts';
import type { Limits } from './limits.ts';
import { Problem } from './problem.ts';
import { askThread } from './thread.ts';

export async function evaluateUpload(
  upload: AsyncIterable<Buffer>,
  task: Omit<Task, 'file'>,
  limits: Pick<Limits, 'uploadBytes' | 'evaluateSeconds'>,
  signal: AbortSignal,
): Promise<Evaluation> {
  const scratch = await mkdtemp(join(tmpdir(), 'umbel-upload-'));
  try {
    const file = join(scratch, 'upload');
    await receive(upload, file, limits.uploadBytes);
    return await runThread({ ...task, file }, limits.evaluateSeconds, signal);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Writes an upload to a file of ours; returns its size. */
export async function receive(upload: AsyncIterable<Buffer>, path: string, limit: number): Promise<number> {
  const file = await AtomicFile.create(path);
  try {
    let [bytes, head] = [0, Buffer.alloc(0)];
    for await (const chunk of upload) {
      bytes += chunk.length;
      if (bytes > limit) throw new Problem('too-large', `upload must have at most ${limit} bytes`);
      if (head.length < 2) head = Buffer.concat([head, chunk.subarray(0, 2)]);
      // A small gzip file can hold any amount of text.
      if (head[0] === 0x1f && head[1] === 0x8b) throw badInput('upload must be plain text, not gzip');
      await file.write(chunk);
    }
    if (bytes === 0) throw badInput('upload must not be empty');
    await file.close();
    return bytes;
  } catch (error) {
    await file.abort();
    throw error;
  }
}

async function runThread(task: Task, seconds: number, signal: AbortSignal): Promise<Evaluation> {
  const url = builtFile(import.meta.url.replace(/evaluation(\.[jt]s)$/, 'evaluator$1'));
  const rule = `evaluations must end within ${seconds} seconds`;
  const ending = new AbortController();
  const end = (reason: Problem) => ending.abort(reason);
  const timer = setTimeout(() => end(new Problem('timeout', rule, 'upload fewer rows')), 1000 * seconds);
  signal.addEventListener('abort', () => end(new Problem('unavailable', 'the client is gone')));
  try {
    return await askThread(url, task, ending.signal);
  } finally {
    clearTimeout(timer);
  }
}
