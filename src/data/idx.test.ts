import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { collect, type Dataset, stream } from './dataset.ts';
import { writeSamples } from './formats.ts';
import { idx } from './idx.ts';
import { Vocabulary } from './vocabulary.ts';

let folder: string;
let next = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-idx-'));
});
afterAll(() => rm(folder, { recursive: true }));

function array(type: number, shape: number[], data: Uint8Array): Buffer {
  const head = Buffer.alloc(4 + 4 * shape.length);
  head.set([0, 0, type, shape.length]);
  shape.forEach((length, i) => {
    head.writeUInt32BE(length, 4 + 4 * i);
  });
  return Buffer.concat([head, data]);
}

const images = array(8, [3, 1, 2], Uint8Array.of(0, 255, 1, 2, 3, 4));
const labels = array(8, [3], Uint8Array.of(7, 2, 7));

async function write(files: Record<string, Uint8Array>): Promise<string> {
  const own = await mkdtemp(join(folder, `${next++}-`));
  for (const [name, content] of Object.entries(files)) await writeFile(join(own, name), content);
  return join(own, Object.keys(files)[0]);
}
const load = async (path: string, options = {}) => collect(await idx.read(path, options));

describe('idx', () => {
  it('reads images as stored and finds the labels beside, gzipped or not', async () => {
    const pairs: Record<string, Uint8Array>[] = [
      { 'train-images-idx3-ubyte': images, 'train-labels-idx1-ubyte': labels },
      { 't10k-images.idx3-ubyte.gz': gzipSync(images), 't10k-labels.idx1-ubyte.gz': gzipSync(labels) },
    ];
    for (const pair of pairs) {
      const data = await load(await write(pair));
      expect(data.features?.dense).toEqual({ rows: 3, cols: 2, values: Float32Array.of(0, 255, 1, 2, 3, 4) });
      expect(Array.from(data.vocabulary, ({ id }) => id)).toEqual(['2', '7']);
      expect(Array.from(data.labels.indices)).toEqual([1, 0, 1]);
    }
  });

  it('takes labels from a companion into the columns of a vocabulary given', async () => {
    const path = await write({ 'x.idx': images, 'y.idx': labels });
    const vocabulary = new Vocabulary([{ id: '7', name: 'seven' }]);
    const data = await load(path, { companion: path.replace('x.idx', 'y.idx'), vocabulary });
    expect(Array.from(data.labels.indices)).toEqual([0, 1, 0]);
  });

  it('without a label file there are no labels', async () => {
    expect((await load(await write({ 'images-idx3': images }))).vocabulary.size).toBe(0);
  });

  it('reads big-endian floats, doubles and integers', async () => {
    const floats = Buffer.alloc(8);
    floats.writeFloatBE(1.5, 0);
    floats.writeFloatBE(-2, 4);
    const shorts = Buffer.from([0xff, 0xfe, 1, 0]);
    const double = Buffer.alloc(8);
    double.writeDoubleBE(0.25);
    const values = async (bytes: Buffer) => (await load(await write({ x: bytes }))).features?.dense?.values;
    expect(await values(array(0x0d, [1, 2], floats))).toEqual(Float32Array.of(1.5, -2));
    expect(await values(array(0x0b, [1, 2], shorts))).toEqual(Float32Array.of(-2, 256));
    expect(await values(array(0x0e, [1, 1], double))).toEqual(Float32Array.of(0.25));
    expect(await values(array(0x09, [1, 1], Uint8Array.of(255)))).toEqual(Float32Array.of(-1));
  });

  const nan = array(0x0d, [1, 1], Uint8Array.of(0x7f, 0xc0, 0, 0));
  it.each<[string, Buffer, Buffer, string]>([
    ['a wrong magic number', Buffer.from('GIF89a'), labels, 'must start with two zeros, a type'],
    ['images cut short', images.subarray(0, -1), labels, 'must not be cut short'],
    [
      'bytes after the images',
      Buffer.concat([images, Buffer.of(0)]),
      labels,
      'must end after its last value',
    ],
    ['flat images', labels, labels, 'at least two dimensions, got 1'],
    [
      'gigantic images',
      array(8, [3, 2 ** 31, 2 ** 31], Uint8Array.of()),
      labels,
      'an IDX item must have at most',
    ],
    [
      'a gigantic number of images',
      array(8, [2 ** 32 - 1, 28, 28], Uint8Array.of()),
      labels,
      'as many labels',
    ],
    ['values that are not finite', nan, array(8, [1], Uint8Array.of(1)), 'images:1: values must be finite'],
    ['too few labels', images, array(8, [2], Uint8Array.of(7, 2)), 'as many labels as images (3), got 2'],
    ['labels of two dimensions', images, images, 'IDX labels must have one dimension, got 3'],
    ['labels cut short', images, labels.subarray(0, -1), 'must not be cut short'],
  ])('refuses %s', async (_, first, second, message) => {
    await expect(write({ images: first, labels: second }).then(load)).rejects.toThrow(message);
  });
});

describe('writing idx', () => {
  const dataset = (values: number[], ids: string[]): Dataset => ({
    rows: 2,
    vocabulary: new Vocabulary(ids.map((id) => ({ id }))),
    labels: { rows: 2, cols: ids.length, indptr: Uint32Array.of(0, 1, 2), indices: Uint32Array.of(0, 1) },
    features: { dense: { rows: 2, cols: 2, values: Float32Array.from(values) } },
  });
  const target = async (name: string) => join(await mkdtemp(join(folder, `${next++}-`)), name);

  it.each([
    ['bytes', [0, 255, 7, 1]],
    ['other numbers', [0.5, -1, 1e9, 3]],
  ])('%s and classes are read back as they were', async (_, values) => {
    const path = await target('a-images-idx2-ubyte.gz');
    await writeSamples(stream(dataset(values, ['3', '8'])), path);
    const back = await load(path);
    expect(Array.from(back.features?.dense?.values ?? [])).toEqual(values);
    expect(back.labels.indices).toEqual(Uint32Array.of(0, 1));
    expect([...back.vocabulary].map(({ id }) => id)).toEqual(['3', '8']);
  });

  it('refuses labels that are no classes, and names that hide the labels', async () => {
    const path = await target('a-images-idx2-ubyte');
    await expect(writeSamples(stream(dataset([1, 2, 3, 4], ['cat', '8'])), path)).rejects.toThrow(
      /whole number, got "cat"/,
    );
    await expect(
      writeSamples(stream(dataset([1, 2, 3, 4], ['1', '8'])), await target('a.idx')),
    ).rejects.toThrow(/name must say `images`/);
  });
});
