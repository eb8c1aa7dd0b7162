// Bytes in and out of files: gzip by name or by magic number, lines with their numbers, atomic writes.
// The only place of the data room that touches the disk for streams.
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { badInput, locate } from '../errors.ts';
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

/** Decompressed bytes of a file, with progress in bytes of the file itself. */
export async function* readBytes(path: string, options: ReadOptions = {}): AsyncGenerator<Buffer> {
  const { size, isDirectory } = await stat(path).then(
    (found) => ({ size: found.size, isDirectory: found.isDirectory() }),
    () => {
      throw badInput('file must exist and be readable', { file: path });
    },
  );
  if (isDirectory) throw badInput('must be a file, not a folder', { file: path });
  if (size === 0) throw badInput('file must not be empty', { file: path });
  const file = createReadStream(path, { highWaterMark: 2 ** 20 });
  let done = 0;
  file.on('data', (chunk) => {
    done += chunk.length;
    options.progress?.({ phase: 'read', done, total: size, unit: 'bytes' });
  });
  const source: Readable = (await startsWithGzipMagic(path))
    ? file.pipe(createGunzip({ chunkSize: 2 ** 18 }))
    : file.pipe(new PassThrough());
  file.on('error', (error) => source.destroy(error));
  try {
    for await (const chunk of source) {
      checkCancelled(options.signal);
      yield chunk as Buffer;
    }
  } catch (error) {
    throw readError(error, path);
  } finally {
    file.destroy();
    source.destroy();
  }
}

async function startsWithGzipMagic(path: string): Promise<boolean> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await handle.close();
  }
}

function readError(error: unknown, file: string): unknown {
  const code = (error as NodeJS.ErrnoException)?.code;
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

/**
 * Lines of a text file without their ends (LF or CRLF), without a byte-order mark. Text must be UTF-8; a line that is
 * not, or is longer than `maxLineBytes`, is an error naming it, or under --skip-bad an empty line.
 */
export async function* readLines(path: string, options: ReadOptions = {}): AsyncGenerator<LineBatch> {
  const bad = (rule: string, line: number, value?: unknown) => {
    const error = badInput(rule, { file: path, line, value });
    if (!options.skipped) throw error;
    options.skipped.add(error);
  };
  let first = 1;
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let overlong = false;

  const decode = (bytes: Buffer): LineBatch => {
    const lines = decodeLines(bytes, (index) => bad('text must be valid UTF-8', first + index));
    if (first === 1 && lines[0]?.startsWith('\ufeff')) lines[0] = lines[0].slice(1);
    const batch = { first, lines };
    first += lines.length;
    return batch;
  };

  for await (let chunk of readBytes(path, options)) {
    const firstEnd = chunk.indexOf(10);
    if (overlong) {
      if (firstEnd < 0) continue;
      chunk = chunk.subarray(firstEnd);
      overlong = false;
    } else if (pendingBytes + (firstEnd < 0 ? chunk.length : firstEnd) > maxLineBytes) {
      bad(`a line must have at most ${maxLineBytes} bytes`, first, `over ${maxLineBytes}`);
      pending = [];
      pendingBytes = 0;
      overlong = firstEnd < 0;
      if (overlong) continue;
      chunk = chunk.subarray(firstEnd);
    }
    const lastEnd = chunk.lastIndexOf(10);
    if (lastEnd < 0) {
      pending.push(chunk);
      pendingBytes += chunk.length;
      continue;
    }
    yield decode(Buffer.concat([...pending, chunk.subarray(0, lastEnd)]));
    pending = [chunk.subarray(lastEnd + 1)];
    pendingBytes = pending[0].length;
  }
  const rest = Buffer.concat(pending);
  if (rest.length > 0) yield decode(rest);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Lines of whole-line bytes; the slow way line by line only where something is not UTF-8. */
function decodeLines(bytes: Buffer, onBad: (index: number) => void): string[] {
  try {
    return splitLines(utf8.decode(bytes));
  } catch {
    const lines: string[] = [];
    for (let start = 0; start <= bytes.length; ) {
      const found = bytes.indexOf(10, start);
      const end = found < 0 ? bytes.length : found;
      try {
        lines.push(...splitLines(utf8.decode(bytes.subarray(start, end))));
      } catch {
        onBad(lines.length);
        lines.push('');
      }
      start = end + 1;
    }
    return lines;
  }
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

  static async create(path: string): Promise<AtomicFile> {
    await mkdir(dirname(path), { recursive: true });
    return new AtomicFile(path);
  }

  private constructor(path: string) {
    this.path = path;
    this.#partial = partialName(path);
    const file = createWriteStream(this.#partial);
    this.#written = path.endsWith('.gz')
      ? pipeline(this.#input, createGzip(), file)
      : pipeline(this.#input, file);
    this.#written.catch(() => {});
  }

  async write(chunk: string | Uint8Array): Promise<void> {
    if (this.#input.write(chunk)) return;
    await Promise.race([new Promise<void>((resolve) => this.#input.once('drain', resolve)), this.#written]);
  }

  async close(): Promise<void> {
    this.#input.end();
    await this.#written;
    await rename(this.#partial, this.path);
  }

  async abort(): Promise<void> {
    this.#input.destroy(new Error('aborted'));
    await this.#written.catch(() => {});
    await rm(this.#partial, { force: true });
  }
}

/** A hidden sibling, so that a rename is atomic and a listing does not show it. */
export function partialName(path: string): string {
  return join(dirname(path), `.${basename(path)}.partial-${process.pid}`);
}
