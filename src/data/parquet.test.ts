import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { collect, type Dataset, stream } from './dataset.ts';
import { parquet } from './parquet.ts';
import { Skipped } from './skipped.ts';
import { Vocabulary } from './vocabulary.ts';

let folder: string;
let next = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-parquet-'));
});
afterAll(() => rm(folder, { recursive: true }));
const fresh = () => join(folder, `${next++}.parquet`);

async function table(
  columns: Record<string, unknown[] | ColumnSource>,
  rowGroupSize = 1000,
): Promise<string> {
  const path = fresh();
  const columnData = Object.entries(columns).map(([name, data]) =>
    Array.isArray(data) ? { name, data } : data,
  );
  await writeFile(path, new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize })));
  return path;
}
const load = async (path: string, options = {}) => collect(await parquet.read(path, options));
const idsOf = ({ labels, vocabulary }: Dataset) =>
  Array.from({ length: labels.rows }, (_, row) =>
    Array.from(
      labels.indices.subarray(labels.indptr[row], labels.indptr[row + 1]),
      (c) => vocabulary.label(c).id,
    ),
  );

describe('parquet', () => {
  it('reads the default columns over several row groups', async () => {
    const path = await table(
      {
        title: ['one', 'two', 'three'],
        ID: [1, 2, 3],
        body: ['a', null, 'c'],
        tags: ['x, y', '', 'y'],
        group: ['g', 'g', 'h'],
        other: [true, false, true],
      },
      2,
    );
    const data = await load(path);
    expect(data.texts).toEqual(['one a', 'two ', 'three c']);
    expect(data.ids).toEqual(['1', '2', '3']);
    expect(data.groups).toEqual(['g', 'g', 'h']);
    expect(idsOf(data)).toEqual([['x', 'y'], [], ['y']]);
  });

  it('labels may be one number', async () => {
    expect(idsOf(await load(await table({ text: ['a', 'b'], label: [7n, 3n] })))).toEqual([['7'], ['3']]);
  });

  it('takes columns by name or position and indicator columns by range', async () => {
    const path = await table({ a: ['t', 'u'], rain: [1, 0], sun: [true, true], snow: [0n, 1n] });
    const data = await load(path, { columns: { text: ['1'], labels: ['rain..snow'] } });
    expect(idsOf(data)).toEqual([
      ['rain', 'sun'],
      ['sun', 'snow'],
    ]);
    await expect(load(path, { columns: { text: ['b'] } })).rejects.toThrow('unknown column, got "b"');
  });

  it('what is written is read back, group by group', async () => {
    const rows = 4500;
    const dataset: Dataset = {
      rows,
      vocabulary: new Vocabulary([{ id: 'a,b' }, { id: 'ä' }]),
      labels: {
        rows,
        cols: 2,
        indptr: Uint32Array.from({ length: rows + 1 }, (_, i) => Math.max(0, i - 1)),
        indices: Uint32Array.from({ length: rows - 1 }, (_, i) => i % 2),
      },
      ids: Array.from({ length: rows }, (_, i) => `id${i}`),
      texts: Array.from({ length: rows }, (_, i) => (i % 7 === 0 ? '' : `text “${i}”`)),
      groups: Array.from({ length: rows }, (_, i) => `g${i % 3}`),
      features: {
        dense: { rows, cols: 3, values: Float32Array.from({ length: rows * 3 }, (_, i) => i / 3) },
      },
    };
    const path = fresh();
    const source = stream(dataset);
    const writer = await parquet.write?.(path, source);
    for await (const batch of source.batches) await writer?.write(batch);
    await writer?.close();
    const back = await load(path);
    expect(idsOf(back)).toEqual(idsOf(dataset));
    expect(back.features?.dense).toEqual(dataset.features?.dense);
    expect([back.ids, back.texts, back.groups]).toEqual([dataset.ids, dataset.texts, dataset.groups]);
  });

  it('a data set without rows is a file without rows; an aborted one is no file', async () => {
    const [path, gone] = [fresh(), fresh()];
    await (await parquet.write?.(path, { vocabulary: new Vocabulary() }))?.close();
    await expect(load(path)).rejects.toThrow('must have a column that holds the text');
    await (await parquet.write?.(gone, { vocabulary: new Vocabulary() }))?.abort();
    await expect(readFile(gone)).rejects.toThrow('ENOENT');
  });

  it.each<[string, Record<string, unknown[]>, string]>([
    ['an empty id', { id: ['x', ''], text: ['a', 'b'] }, ':2: id must not be empty'],
    [
      'no text and no features',
      { id: ['x'], labels: ['a'] },
      'must have a column that holds the text or the features',
    ],
    ['features that are no list', { features: [1, 2] }, ':1: features must be a list of numbers, got "1"'],
  ])('refuses %s', async (_, columns, message) => {
    await expect(table(columns).then(load)).rejects.toThrow(message);
  });

  it('skips bad rows where told to', async () => {
    const skipped = new Skipped();
    expect((await load(await table({ id: ['x', ''], text: ['a', 'b'] }), { skipped })).rows).toBe(1);
    expect(skipped.count).toBe(1);
  });

  it('no damage crashes the reader with anything but a clear error', async () => {
    const path = await table({ text: ['hello', 'world', 'hello'], labels: ['a', 'b', 'a'] });
    const good = await readFile(path);
    for (let at = 0; at < good.length; at += 3) {
      const bytes = Buffer.from(good);
      bytes[at] ^= 0x55;
      await writeFile(path, bytes);
      const result = await load(path).catch((error) => error);
      if (result instanceof Error) expect(result.name).toBe('UmbelError');
    }
    await writeFile(path, good.subarray(0, 50));
    await expect(load(path)).rejects.toThrow('Parquet file must be');
    await writeFile(path, 'PAR1');
    await expect(load(path)).rejects.toThrow('Parquet file must be');
  });
});
