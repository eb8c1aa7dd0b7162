import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Step } from '../progress.ts';
import { AtomicFile, extensionOf, maxLineBytes, partialName, readBytes, readLines } from './file.ts';
import type { ReadOptions } from './format.ts';
import { Skipped } from './skipped.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-file-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function fileOf(content: string | Uint8Array, name = 'input.txt'): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

/** Lines with their numbers. */
async function linesOf(path: string, options: ReadOptions = {}): Promise<[number, string][]> {
  const all: [number, string][] = [];
  for await (const { first, lines } of readLines(path, options))
    for (const [i, line] of lines.entries()) all.push([first + i, line]);
  return all;
}

const textsOf = async (content: string | Uint8Array) =>
  (await linesOf(await fileOf(content))).map(([, line]) => line);

describe('readLines', () => {
  it('an end of line ends a line, and the last line may lack it', async () => {
    expect(await textsOf('a\n\nb\n')).toEqual(['a', '', 'b']);
    expect(await textsOf('a\nb')).toEqual(['a', 'b']);
    expect(await textsOf('\n')).toEqual(['']);
    expect(await textsOf('a\n\n')).toEqual(['a', '']);
  });

  it('takes off CRLF and the byte-order mark, but no other carriage return', async () => {
    expect(await textsOf('\ufeffa\r\nb\rc\r\n\r\nd\r')).toEqual(['a', 'b\rc', '', 'd']);
  });

  it('gives the lines that were written, compressed or not, across chunks', async () => {
    const line = fc.string({ unit: 'grapheme' }).map((text) => text.replace(/[\r\n\ufeff]/g, ''));
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1 }), fc.boolean(), async (lines, zipped) => {
        // Repeated until chunks of the reader end inside lines.
        const long = Array.from({ length: 2_000_000 / (lines.join('').length + 100) }, () => lines).flat();
        const text = `${long.join('\n')}\n`;
        expect(await textsOf(zipped ? gzipSync(text, { level: 1 }) : text)).toEqual(long);
      }),
      { numRuns: 8 },
    );
  });

  it('names the line that is not UTF-8', async () => {
    const path = await fileOf(Buffer.from('good\nb\xe4d\nfine\n', 'latin1'));
    await expect(linesOf(path)).rejects.toThrow(
      `${path}:2: text must be valid UTF-8 (save it as UTF-8 (in Excel: CSV UTF-8), or convert it with iconv)`,
    );
  });

  it('leaves out a line that is not UTF-8 under --skip-bad, keeping the numbers of the others', async () => {
    const skipped = new Skipped();
    const path = await fileOf(Buffer.from('\xff\n\xe4\na\n\xff\nb\n\xff', 'latin1'));
    expect(await linesOf(path, { skipped })).toEqual([
      [3, 'a'],
      [5, 'b'],
    ]);
    expect(skipped.count).toBe(4);
  });

  it('refuses an overlong line without holding it, and can read on after it', async () => {
    const path = await fileOf('first\n');
    await truncate(path, maxLineBytes + 2 ** 21);
    await writeFile(path, '\nlast\n', { flag: 'a' });
    await expect(linesOf(path)).rejects.toThrow(`${path}:2: a line must have at most ${maxLineBytes} bytes`);
    const skipped = new Skipped();
    expect(await linesOf(path, { skipped })).toEqual([
      [1, 'first'],
      [3, 'last'],
    ]);
    expect(skipped.count).toBe(1);
  });
});

describe('readBytes', () => {
  const size = async (path: string, options?: ReadOptions) => {
    let bytes = 0;
    for await (const chunk of readBytes(path, options)) bytes += chunk.length;
    return bytes;
  };

  it('knows gzip by its first bytes, whatever the name, and reads all its members', async () => {
    const members = Buffer.concat([gzipSync('one\n'), gzipSync('two\n')]);
    expect(await textsOf(members)).toEqual(['one', 'two']);
    expect(await size(await fileOf('plain', 'plain.gz'))).toBe(5);
  });

  it('refuses gzip data that is cut short or damaged', async () => {
    const zipped = gzipSync('x'.repeat(1000));
    await expect(size(await fileOf(zipped.subarray(0, zipped.length - 9)))).rejects.toThrow('cut short');
    zipped[12] ^= 0xff;
    await expect(size(await fileOf(zipped))).rejects.toThrow('gzip data must be intact');
  });

  it('refuses an empty file, a folder and a file that is not there', async () => {
    const empty = await fileOf('');
    await expect(size(empty)).rejects.toThrow(`${empty}: file must not be empty`);
    await expect(size(folder)).rejects.toThrow('must be a file, not a folder');
    await expect(size(join(folder, 'nowhere'))).rejects.toThrow('file must exist and be readable');
  });

  it('reports progress up to the size of the file', async () => {
    const steps: Step[] = [];
    const zipped = gzipSync('abc');
    await size(await fileOf(zipped), { progress: (step) => steps.push(step) });
    expect(steps.at(-1)).toEqual({ phase: 'read', done: zipped.length, total: zipped.length, unit: 'bytes' });
  });

  it('stops when cancelled', async () => {
    await expect(size(await fileOf('abc'), { signal: AbortSignal.abort() })).rejects.toThrow('cancelled');
  });
});

describe('AtomicFile', () => {
  it('shows the file only when closed', async () => {
    const path = join(folder, 'deep', 'out.txt');
    const file = await AtomicFile.create(path);
    await file.write('x'.repeat(3_000_000));
    await expect(readFile(path)).rejects.toThrow('ENOENT');
    await file.close();
    expect((await readFile(path)).length).toBe(3_000_000);
    expect(await readdir(join(folder, 'deep'))).toEqual(['out.txt']);
  });

  it('leaves nothing when aborted, at once or later, and keeps the file that was there', async () => {
    const path = join(folder, 'kept', 'out.gz');
    for (const text of ['', 'x'.repeat(3_000_000)]) {
      const file = await AtomicFile.create(path);
      if (text) await file.write(text);
      await file.abort();
      expect(await readdir(join(folder, 'kept'))).toEqual([]);
    }
    const first = await AtomicFile.create(path);
    await first.write('old');
    await first.close();
    const second = await AtomicFile.create(path);
    await second.write('new');
    await second.abort();
    expect(await linesOf(path)).toEqual([[1, 'old']]);
  });

  it('says that a path cannot be written', async () => {
    const blocker = await fileOf('x', 'blocker');
    await expect(AtomicFile.create(join(blocker, 'out.txt'))).rejects.toThrow('file must be writable');
  });

  it('says that the disk is full, soon and on close, and leaves nothing', async ({ skip }) => {
    if (!existsSync('/dev/full')) skip();
    const path = join(folder, 'full', 'out.txt');
    for (const pieces of [1, 100_000]) {
      await mkdir(dirname(path), { recursive: true });
      await symlink('/dev/full', partialName(path));
      const file = await AtomicFile.create(path);
      let written = 0;
      const work = async () => {
        for (; written < pieces; written++) await file.write('x'.repeat(1000));
        await file.close();
      };
      await expect(work()).rejects.toThrow(`${path}: file must be writable, got "ENOSPC"`);
      if (pieces > 1) expect(written).toBeLessThan(pieces);
      await file.abort();
      expect(await readdir(dirname(path))).toEqual([]);
    }
  });

  it('says that a folder is in the way', async () => {
    const path = join(folder, 'way');
    await mkdir(join(path, 'inner'), { recursive: true });
    const file = await AtomicFile.create(path);
    await expect(file.close()).rejects.toThrow(`${path}: file must be writable`);
    await file.abort();
  });
});

it('the extension is what stands before .gz', () => {
  expect(extensionOf('a.b/C.TXT.gz')).toBe('.txt');
  expect(extensionOf('a.b/c')).toBe('');
});
