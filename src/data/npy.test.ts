import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CsrBuilder } from '../math/csr.ts';
import { collect, type Dataset, stream } from './dataset.ts';
import { AtomicFile } from './file.ts';
import { arrayHeader } from './ndarray.ts';
import { npy, npz } from './npy.ts';
import { Skipped } from './skipped.ts';
import { Vocabulary } from './vocabulary.ts';
import { ZipWriter } from './zip.ts';

let folder: string;
let next = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-npy-'));
});
afterAll(() => rm(folder, { recursive: true }));
const fresh = (name = 'm.npz') => join(folder, `${next++}`, name);

const load = async (path: string, options = {}) => collect(await npz.read(path, options));

async function save(dataset: Dataset, path: string, format = npz) {
  const source = stream(dataset);
  const writer = await format.write?.(path, source);
  for await (const batch of source.batches) await writer?.write(batch);
  await writer?.close();
}

type Arrays = Record<string, [dtype: string, shape: number[], data: ArrayBufferView]>;

const ints = (...values: number[]): [string, number[], ArrayBufferView] => [
  '<i4',
  [values.length],
  Int32Array.from(values),
];

/** A matrix of one row, (0, 3, 0, 4), with some arrays replaced. */
async function writeArrays(changes: Arrays, path = fresh()): Promise<string> {
  const arrays: Arrays = {
    format: ['|S3', [], Buffer.from('csr')],
    shape: ['<i8', [2], BigInt64Array.from([1n, 4n])],
    indptr: ints(0, 2),
    indices: ints(1, 3),
    data: ['<f4', [2], Float32Array.from([3, 4])],
    ...changes,
  };
  const file = await AtomicFile.create(path);
  const zip = new ZipWriter(file);
  for (const [name, [dtype, shape, data]] of Object.entries(arrays)) {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    await zip.add(`${name}.npy`, [arrayHeader(dtype, shape), bytes]);
  }
  await zip.finish();
  await file.close();
  return path;
}

async function writeArray(header: Buffer, data: ArrayBufferView, path = fresh('x.npy')): Promise<string> {
  const file = await AtomicFile.create(path);
  await file.write(header);
  await file.write(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  await file.close();
  return path;
}

const rowsOf = fc.array(
  fc.tuple(
    fc.uniqueArray(fc.nat(19), { maxLength: 8 }).map((columns) => columns.sort((a, b) => a - b)),
    fc.uniqueArray(fc.nat(4), { maxLength: 5 }).map((columns) => columns.sort((a, b) => a - b)),
  ),
  { maxLength: 20 },
);

describe('npz', () => {
  it('what is written is read back, with the labels beside', async () => {
    await fc.assert(
      fc.asyncProperty(rowsOf, async (rows) => {
        const [features, labels] = [new CsrBuilder('values'), new CsrBuilder('binary')];
        rows.forEach(([columns, own], row) => {
          features.add(
            columns,
            columns.map((column) => Math.fround(column - row / 3)),
          );
          labels.add(own);
        });
        const dataset: Dataset = {
          rows: rows.length,
          vocabulary: Vocabulary.numbered(5),
          labels: labels.pattern(5),
          features: rows.length > 0 ? { sparse: features.csr(20) } : undefined,
        };
        const path = fresh();
        await save(dataset, path);
        const back = await load(path);
        expect(back.labels).toEqual(dataset.labels);
        expect(back.features).toEqual(
          dataset.features && { sparse: dataset.features.sparse, dense: undefined },
        );
        expect(back.vocabulary.size).toBe(5);
      }),
      { numRuns: 30 },
    );
  });

  it('labels of X.trn.npz go to Y.trn.npz, of others to name.labels.npz, ids that are no numbers to name.labels.txt', async () => {
    const dataset: Dataset = {
      rows: 1,
      vocabulary: Vocabulary.numbered(1),
      labels: { rows: 1, cols: 1, indptr: Uint32Array.of(0, 1), indices: Uint32Array.of(0) },
      features: {
        sparse: {
          rows: 1,
          cols: 2,
          indptr: Uint32Array.of(0, 1),
          indices: Uint32Array.of(1),
          values: Float32Array.of(2),
        },
      },
    };
    const paths = [fresh('X.trn.npz'), fresh('Xylo.npz')];
    for (const path of paths) await save(dataset, path);
    const names = await Promise.all(paths.map((path) => readdir(join(path, '..'))));
    expect(names.map((list) => list.sort())).toEqual([
      ['X.trn.npz', 'Y.trn.npz'],
      ['Xylo.labels.npz', 'Xylo.npz'],
    ]);
    const named = fresh('named.npz');
    await save({ ...dataset, vocabulary: new Vocabulary([{ id: 'apple' }]) }, named);
    expect(await readFile(named.replace('.npz', '.labels.txt'), 'utf8')).toBe('apple\n');
    await expect(save(dataset, fresh('x.npy'), npy)).rejects.toThrow('npy cannot hold sparse features');
  });

  it('reads 32 and 64 bit indices and every kind of number', async () => {
    const wide: Arrays = {
      indptr: ['<i8', [2], BigInt64Array.from([0n, 2n])],
      indices: ['<i8', [2], BigInt64Array.from([1n, 3n])],
    };
    const kinds: [string, ArrayBufferView][] = [
      ['<f8', Float64Array.from([3, 4])],
      ['<i8', BigInt64Array.from([3n, 4n])],
      ['<u2', Uint16Array.from([3, 4])],
      ['|i1', Int8Array.from([3, 4])],
    ];
    for (const [dtype, data] of kinds) {
      const { features } = await load(await writeArrays({ ...wide, data: [dtype, [2], data] }));
      expect(features?.sparse).toMatchObject({
        indices: Uint32Array.of(1, 3),
        values: Float32Array.of(3, 4),
      });
    }
    const { features } = await load(await writeArrays({ data: ['|b1', [2], Uint8Array.from([1, 0])] }));
    expect(features?.sparse?.values).toEqual(Float32Array.of(1, 0));
  });

  it('puts columns in order and adds up those that come twice, as SciPy does', async () => {
    const path = await writeArrays({
      indptr: ints(0, 3),
      indices: ints(3, 1, 3),
      data: ['<f4', [3], Float32Array.of(1, 2, 4)],
    });
    expect((await load(path)).features?.sparse).toMatchObject({
      indices: Uint32Array.of(1, 3),
      values: Float32Array.of(2, 5),
    });
  });

  it('without a label matrix there are no labels', async () => {
    const data = await load(await writeArrays({}));
    expect([data.vocabulary.size, data.labels.indices.length]).toEqual([0, 0]);
  });

  it('takes labels from a companion, sparse or dense, leaving out explicit zeros', async () => {
    const path = await writeArrays({});
    const sparse = await writeArrays({ data: ['<f4', [2], Float32Array.of(0, 1)] });
    const dense = await writeArray(arrayHeader('|b1', [1, 4]), Uint8Array.of(1, 0, 0, 1));
    expect(Array.from((await load(path, { companion: sparse })).labels.indices)).toEqual([3]);
    expect(Array.from((await load(path, { companion: dense })).labels.indices)).toEqual([0, 3]);
    const vocabulary = new Vocabulary([{ id: '3' }, { id: 'x' }]);
    const data = await load(path, { companion: dense, vocabulary });
    expect(Array.from(data.labels.indices)).toEqual([0, 2]);
    expect(data.vocabulary.label(2).id).toBe('0');
  });

  it('refuses labels for another number of rows', async () => {
    const companion = await writeArray(arrayHeader('|b1', [2, 1]), Uint8Array.of(1, 0));
    await expect(load(await writeArrays({}), { companion })).rejects.toThrow(
      'as many rows as the features (1), got 2',
    );
  });

  it('refuses labels that are not zeros and ones, as where X and Y are swapped', async () => {
    const companion = await writeArray(arrayHeader('<f4', [1, 4]), Float32Array.of(1, 0, 0.5, 0));
    await expect(load(await writeArrays({}), { companion })).rejects.toThrow(
      `${companion}:1: label matrix must hold zeros and ones, got 0.5 (features come first: X.npz,Y.npz)`,
    );
  });

  it('skips a row that is not finite where told to', async () => {
    const path = await writeArrays({ data: ['<f4', [2], Float32Array.of(1, Number.NaN)] });
    await expect(load(path)).rejects.toThrow('m.npz:1: values must be finite');
    const skipped = new Skipped();
    expect((await load(path, { skipped })).rows).toBe(0);
    expect(skipped.count).toBe(1);
  });

  it.each<[string, Arrays, string]>([
    [
      'another sparse format',
      { format: ['|S3', [], Buffer.from('csc')] },
      'must be in csr format, got "csc"',
    ],
    ['a column beyond the shape', { indices: ints(1, 4) }, 'column must be from 0 to 3, got 4'],
    ['a negative column', { indices: ints(-1, 3) }, 'column must be from 0 to 3, got -1'],
    ['pointers that descend', { indptr: ints(0, -1) }, 'indptr must ascend from 0 to 2, got -1'],
    ['pointers beyond the data', { indptr: ints(0, 3) }, 'indptr must ascend from 0 to 2, got 3'],
    [
      'pointers that leave values over',
      { indptr: ints(0, 1) },
      'indptr must end with the number of values, 2',
    ],
    ['pointers that start late', { indptr: ints(1, 2) }, 'indptr must start with 0'],
    ['the wrong number of pointers', { indptr: ints(0, 1, 2) }, 'one more value than the 1 rows, got 3'],
    [
      'data of another length',
      { data: ['<f4', [1], Float32Array.of(1)] },
      'as many values as indices (2), got 1',
    ],
    ['a length that lies', { indices: ['<i4', [2], Int32Array.of(1)] }, 'must not be cut short'],
    [
      'values after the last',
      { indices: ['<i4', [2], Int32Array.of(1, 3, 5)] },
      'must end after its last value',
    ],
    ['a gigantic shape', { shape: ['<i8', [2], BigInt64Array.from([2n ** 60n, 4n])] }, 'from 0 to 2^32 - 1'],
    [
      'a gigantic array',
      { indices: ['<i4', [2 ** 31, 2 ** 31], Int32Array.of(1, 3)] },
      'array lengths must be below',
    ],
    ['big-endian numbers', { data: ['>f4', [2], Float32Array.of(1, 3)] }, 'must be little-endian, got ">f4"'],
    ['pickles', { data: ['|O', [2], Float32Array.of(1, 3)] }, 'arrays of Python objects are refused'],
    ['complex numbers', { data: ['<c8', [1], Float32Array.of(1, 3)] }, 'array type must be one of'],
  ])('refuses %s', async (_, changes, message) => {
    await expect(writeArrays(changes).then(load)).rejects.toThrow(message);
  });

  it('says what is missing from a zip that is no sparse matrix', async () => {
    const path = fresh();
    const file = await AtomicFile.create(path);
    const zip = new ZipWriter(file);
    await zip.add('arr_0.npy', [arrayHeader('<f4', [0])]);
    await zip.finish();
    await file.close();
    await expect(load(path)).rejects.toThrow(/npz must hold format.npy.*save_npz/);
  });

  it('no damage to a file crashes the reader or goes unnoticed in the numbers', async () => {
    const path = await writeArrays({});
    const good = await readFile(path);
    const expected = (await load(path)).features;
    const damaged = fresh();
    await writeArrays({}, damaged);
    for (let at = 0; at < good.length; at += 13) {
      const bytes = Buffer.from(good);
      bytes[at] ^= 0x55;
      await writeFile(damaged, bytes);
      const result = await load(damaged).then(
        ({ features }) => features,
        (error) => error,
      );
      if (result instanceof Error) expect(result.name).toBe('UmbelError');
      else expect(result).toEqual(expected);
    }
    await writeFile(damaged, good.subarray(0, good.length - 30));
    await expect(load(damaged)).rejects.toThrow('zip');
  });
});

describe('npy', () => {
  const matrix = Float32Array.of(1, 2, 3, 4, 5, 6);
  const fortran = (shape: string) =>
    Buffer.from(
      arrayHeader('<f8', [])
        .toString('latin1')
        .replace(/False, 'shape': \(\), }/, `True, 'shape': (${shape}), }`),
      'latin1',
    );

  it('reads rows in C order and in Fortran order, gzipped too', async () => {
    const c = await writeArray(arrayHeader('<f4', [2, 3]), matrix);
    expect((await load(c)).features?.dense).toEqual({ rows: 2, cols: 3, values: matrix });
    const header = fortran('2, 3');
    header.writeUInt16LE(header.length - 10, 8);
    const f = await writeArray(header, Float64Array.of(1, 4, 2, 5, 3, 6));
    expect((await load(f)).features?.dense).toEqual({ rows: 2, cols: 3, values: matrix });
    await writeFile(`${c}.gz`, gzipSync(await readFile(c)));
    expect((await load(`${c}.gz`)).rows).toBe(2);
  });

  it('what is written is read back', async () => {
    const dataset: Dataset = {
      rows: 2,
      vocabulary: Vocabulary.numbered(3),
      labels: { rows: 2, cols: 3, indptr: Uint32Array.of(0, 1, 3), indices: Uint32Array.of(2, 0, 1) },
      features: { dense: { rows: 2, cols: 3, values: matrix } },
    };
    const path = fresh('X.npy');
    await save(dataset, path, npy);
    const back = await load(path);
    expect(back.features?.dense).toEqual(dataset.features?.dense);
    expect(back.labels).toEqual(dataset.labels);
  });

  it.each([
    ['one dimension', arrayHeader('<f4', [6]), 'must have two dimensions, got 1'],
    ['too few values', arrayHeader('<f4', [3, 3]), 'must not be cut short'],
    ['too many values', arrayHeader('<f4', [1, 3]), 'must end after its last value'],
    ['another file', Buffer.from('not a NumPy array at all'), 'must start with \\x93NUMPY'],
    ['a later version', Buffer.from('\x93NUMPY\x04\x00', 'latin1'), 'NumPy version must be 1 to 3, got 4'],
    [
      'a huge header',
      Buffer.from('\x93NUMPY\x02\x00\xff\xff\xff\xff', 'latin1'),
      'NumPy header must have at most',
    ],
    ['a structured type', arrayHeader("'), ('a", [1, 1]), 'array type must be'],
  ])('refuses %s', async (_, header, message) => {
    await expect(writeArray(header, matrix).then(load)).rejects.toThrow(message);
  });
});
