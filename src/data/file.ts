// Bytes in and out of files: gzip by name or by magic number, lines with their numbers, atomic writes.
// The only place of the data room that touches the disk for streams.
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { badInput, badUsage, locate } from '../errors.ts';
import { checkCancelled } from '../progress.ts';
import type { ReadOptions } from './format.ts';

/** Longest line accepted: a corrupt file must not eat the memory before it is noticed. */
export const maxLineBytes = 64 * 2 ** 20;

/** The extension that names the format: `a/b.TXT.gz` gives `.txt`. */
export function extensionOf(path: string): string {
  const name = basename(path).toLowerCase().replace(/\.gz$/, '');
  const dot = name.lastIndexOf('.');
  return dot < 0 ? '' : name.slice(dot);
}

/** Decompressed bytes of a file (or a pipe: it is opened once), with progress in bytes of the file itself. */
export async function* readBytes(path: string, options: ReadOptions = {}): AsyncGenerator<Buffer> {
  try {
    const stored = storedBytes(path, options);
    const { value: first } = await stored.next();
    if (!first && options.mayBeEmpty) return;
    if (!first) throw badInput('file must not be empty');
    const all = async function* () {
      yield first;
      yield* stored;
    };
    yield* first[0] === 0x1f && first[1] === 0x8b ? gunzip(all) : all();
  } catch (error) {
    throw readError(error, path);
  }
}

async function* storedBytes(path: string, options: ReadOptions): AsyncGenerator<Buffer> {
  const found = await stat(path);
  const total = found.isFile() ? found.size : undefined;
  let done = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20 })) {
    checkCancelled(options.signal);
    done += chunk.length;
    options.progress?.({ phase: 'read', done, total, unit: 'bytes' });
    yield chunk;
  }
}

async function* gunzip(source: () => AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const unzipped = createGunzip({ chunkSize: 2 ** 18 });
  // A failure reaches the loop below, which reads the end of this pipeline.
  pipeline(source, unzipped).catch(() => {});
  yield* unzipped as AsyncIterable<Buffer>;
}

function readError(error: unknown, file: string): unknown {
  const code = (error as NodeJS.ErrnoException)?.code;
  if (code === 'EISDIR') return badInput('must be a file, not a folder', { file });
  if (code === 'ENOENT' || code === 'EACCES') return badInput('file must exist and be readable', { file });
  if (code === 'Z_BUF_ERROR') return badInput('gzip data must be complete: the file is cut short', { file });
  if (code?.startsWith('Z_'))
    return badInput('gzip data must be intact', { file, value: (error as Error).message });
  return locate(error, { file });
}

/** Lines that arrived together. */
export interface LineBatch {
  /** 1-based number of the first line. */
  first: number;
  lines: string[];
}

/** With the indices of lines that are bad: not UTF-8 (decoded as far as possible) or too long (left empty). */
export interface CheckedLines extends LineBatch {
  bad: Set<number>;
}

/**
 * Lines of a text file without their ends (LF or CRLF), without a byte-order mark. A line that is not UTF-8 or is
 * longer than `maxLineBytes` is an error naming it; under --skip-bad it is counted and missing from the batches, each
 * of which is a run of good lines.
 */
export async function* readLines(path: string, options: ReadOptions = {}): AsyncGenerator<LineBatch> {
  for await (const { first, lines, bad } of readCheckedLines(path, options)) {
    let start = 0;
    for (const index of bad) {
      if (index > start) yield { first: first + start, lines: lines.slice(start, index) };
      start = index + 1;
    }
    if (start === 0) yield { first, lines };
    else if (start < lines.length) yield { first: first + start, lines: lines.slice(start) };
  }
}

const notUtf8 = {
  rule: 'text must be valid UTF-8',
  hint: 'save it as UTF-8 (in Excel: CSV UTF-8), or convert it with iconv',
};
const overlongLine = { rule: `a line must have at most ${maxLineBytes} bytes` };

/** As `readLines`, but bad lines stay in their places, for formats whose records span lines. */
export async function* readCheckedLines(path: string, options: ReadOptions): AsyncGenerator<CheckedLines> {
  let first = 1;
  const report = (broken: { rule: string; hint?: string }, line: number) => {
    const error = badInput(broken.rule, { file: path, line, hint: broken.hint });
    if (!options.skipped) throw error;
    options.skipped.add(error);
  };
  for await (const bytes of wholeLines(readBytes(path, options))) {
    const batch = bytes ? { first, ...decodeLines(bytes) } : { first, lines: [''], bad: new Set([0]) };
    for (const index of batch.bad) report(bytes ? notUtf8 : overlongLine, first + index);
    if (first === 1 && batch.lines[0].startsWith('\ufeff')) batch.lines[0] = batch.lines[0].slice(1);
    yield batch;
    first += batch.lines.length;
  }
}

/** Cuts bytes into pieces that end where a line ends, without that end; an overlong line is `undefined`. */
async function* wholeLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer | undefined> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let overlong = false;
  for await (let chunk of chunks) {
    const end = chunk.indexOf(10);
    if (!overlong && pendingBytes + (end < 0 ? chunk.length : end) > maxLineBytes) {
      overlong = true;
      pending = [];
      yield undefined;
    }
    if (overlong) {
      if (end < 0) continue;
      chunk = chunk.subarray(end + 1);
      overlong = false;
      pendingBytes = 0;
    }
    const lastEnd = chunk.lastIndexOf(10);
    if (lastEnd >= 0) {
      yield Buffer.concat([...pending, chunk.subarray(0, lastEnd)]);
      pending = [];
      pendingBytes = 0;
    }
    pending.push(chunk.subarray(lastEnd + 1));
    pendingBytes += chunk.length - lastEnd - 1;
  }
  if (pendingBytes > 0 && !overlong) yield Buffer.concat(pending);
}

function decodeLines(bytes: Buffer): { lines: string[]; bad: Set<number> } {
  // Replacement characters never stand for a line end, so bad bytes do not move the lines.
  const lines = splitLines(bytes.toString('utf8'));
  const bad = new Set<number>();
  if (isUtf8(bytes)) return { lines, bad };
  let start = 0;
  for (let index = 0; index < lines.length; index++) {
    const found = bytes.indexOf(10, start);
    const end = found < 0 ? bytes.length : found;
    if (!isUtf8(bytes.subarray(start, end))) bad.add(index);
    start = end + 1;
  }
  return { lines, bad };
}

function splitLines(text: string): string[] {
  const lines = text.split('\n');
  if (text.includes('\r')) {
    for (let i = 0; i < lines.length; i++) if (lines[i].endsWith('\r')) lines[i] = lines[i].slice(0, -1);
  }
  return lines;
}

/** Writes a file (gzipped if its name says so) that appears under its name only when closed. */
export class AtomicFile {
  readonly path: string;
  readonly #partial: string;
  readonly #input = new PassThrough({ highWaterMark: 2 ** 20 });
  readonly #written: Promise<void>;
  readonly #fileClosed: Promise<void>;

  static async create(path: string): Promise<AtomicFile> {
    try {
      const folder = dirname(path);
      // Asked to make a folder that is there, Node may still try for ever where it must not write (/proc).
      await stat(folder).catch(() => mkdir(folder, { recursive: true }));
      return new AtomicFile(path, await open(partialName(path), 'w'));
    } catch (error) {
      throw writeError(error, path);
    }
  }

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#partial = partialName(path);
    const file = handle.createWriteStream();
    this.#fileClosed = new Promise((resolve) => file.once('close', resolve));
    const written = /\.gz$/i.test(path)
      ? pipeline(this.#input, createGzip(), file)
      : pipeline(this.#input, file);
    this.#written = written.catch((error) => {
      throw writeError(error, path);
    });
    this.#written.catch(() => {});
  }

  async write(chunk: string | Uint8Array): Promise<void> {
    // Destroyed, it failed before: then only the error is waited for.
    if (!this.#input.destroyed && this.#input.write(chunk)) return;
    await Promise.race([new Promise<void>((resolve) => this.#input.once('drain', resolve)), this.#written]);
  }

  async close(): Promise<void> {
    this.#input.end();
    await this.#written;
    await rename(this.#partial, this.path).catch((error) => {
      throw writeError(error, this.path);
    });
  }

  async abort(): Promise<void> {
    this.#input.destroy(new Error('aborted'));
    await this.#fileClosed;
    await rm(this.#partial, { force: true });
  }
}

/** What the system refuses (no space, no right, a folder in the way) as our error. */
function writeError(error: unknown, file: string): unknown {
  const { code, errno } = error as NodeJS.ErrnoException;
  return errno === undefined ? error : badUsage('file must be writable', { file, value: code });
}

/** Writes files that belong together: all of them appear, or none that failed to be written. */
export async function writeTogether(
  files: Iterable<[path: string, pieces: Iterable<string | Uint8Array>]>,
): Promise<void> {
  const written: AtomicFile[] = [];
  try {
    for (const [path, pieces] of files) {
      const file = await AtomicFile.create(path);
      written.push(file);
      for (const piece of pieces) await file.write(piece);
    }
  } catch (error) {
    for (const file of written) await file.abort();
    throw error;
  }
  for (const file of written) await file.close();
}

/** A hidden sibling, so that a rename is atomic and a listing does not show it. */
export function partialName(path: string): string {
  return join(dirname(path), `.${basename(path)}.partial-${process.pid}`);
}
