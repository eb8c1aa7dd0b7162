import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { collect } from './dataset.ts';
import type { ReadOptions } from './format.ts';
import { Skipped } from './skipped.ts';
import { svmlight } from './svmlight.ts';
import { Vocabulary } from './vocabulary.ts';
import { xmc } from './xmc.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-xmc-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function read(content: string | Uint8Array, options: ReadOptions = {}, format = xmc) {
  const path = join(folder, 'rows');
  await writeFile(path, content);
  return collect(await format.read(path, options));
}

const labelsOf = ({ labels }: Awaited<ReturnType<typeof read>>) =>
  Array.from({ length: labels.rows }, (_, row) =>
    Array.from(labels.indices.subarray(labels.indptr[row], labels.indptr[row + 1])),
  );

it('reads labels, features and the counts of the header', async () => {
  const dataset = await read('3 5 4\n3,1 4:0.5 0:1\n 2:1\n\n');
  expect(labelsOf(dataset)).toEqual([[1, 3], [], []]);
  expect(dataset.features?.sparse).toEqual({
    rows: 3,
    cols: 5,
    indptr: Uint32Array.of(0, 2, 3, 3),
    indices: Uint32Array.of(0, 4, 2),
    values: Float32Array.of(1, 0.5, 1),
  });
  expect(dataset.vocabulary.size).toBe(4);
  expect(dataset.labels.cols).toBe(4);
});

it('takes byte-order mark, CRLF, gzip, a label said twice, and empty lines after the last row', async () => {
  const dataset = await read(gzipSync('\ufeff2 2 2\r\n1,1 0:1\r\n0,1\r\n\r\n \r\n'));
  expect(labelsOf(dataset)).toEqual([[1], [0, 1]]);
});

it('maps label numbers to the columns of a given vocabulary', async () => {
  const vocabulary = new Vocabulary([{ id: 'new' }, { id: '1' }]);
  const dataset = await read('1 1 3\n0,1,2\n', { vocabulary });
  expect(Array.from(vocabulary, ({ id }) => id)).toEqual(['new', '1', '0', '2']);
  expect(labelsOf(dataset)).toEqual([[1, 2, 3]]);
});

it.each([
  ['', 'file must not be empty'],
  ['a b c\n', ':1: header must be three counts: samples features labels, got "a b c"'],
  ['1 2\n', 'header must be three counts'],
  ['1 2 3 4\n', 'header must be three counts'],
  ['1 1 99999999999\n', 'number of labels must be at most 16777216'],
  ['1 99999999999 1\n', 'number of features must be below 2^32'],
  ['3 2 2\n0 0:1\n1 1:1\n', ':3: file must have as many rows as its header says (3), got 2'],
  ['1 2 2\n0 0:1\n1 1:1\n', ':3: file must have as many rows as its header says (1)'],
  ['1 2 2\n2 0:1\n', ':2: label must be a whole number below 2, got "2"'],
  ['1 2 2\n1,x 0:1\n', ':2: label must be a whole number below 2, got "x"'],
  ['1 2 2\n-1 0:1\n', 'label must be a whole number below 2, got "-1"'],
  ['1 2 2\n,1 0:1\n', 'label must be a whole number below 2, got ""'],
  ['1 2 2\n1, 0:1\n', 'labels must not end with a comma, got "1,"'],
  ['1 2 2\n1 2:1\n', ':2: feature id must be below 2, got "2"'],
  ['1 2 2\n1 1:NaN\n', ':2: feature value must be a finite number, got "NaN"'],
  ['1 2 2\n1 1:Infinity\n', ':2: feature value must be a finite number, got "Infinity"'],
])('refuses %j', async (content, message) => {
  await expect(read(content)).rejects.toThrow(message);
});

it('leaves out bad rows under --skip-bad, and never takes an unreadable line for an empty sample', async () => {
  const skipped = new Skipped();
  const content = Buffer.from('5 2 2\n0 0:1\n9 0:1\n0 0:\xff1\n1 1:x\n1 1:1\n', 'latin1');
  const dataset = await read(content, { skipped });
  expect(labelsOf(dataset)).toEqual([[0], [1]]);
  expect(skipped.count).toBe(3);
  expect(skipped.first).toEqual([
    expect.stringContaining(':4: text must be valid UTF-8'),
    expect.stringContaining(':3: label must be a whole number'),
    expect.stringContaining(':5: feature value must be a finite number'),
  ]);
});

it('says where gzip data is cut short', async () => {
  const zipped = gzipSync('2 2 2\n0 0:1\n1 1:1\n');
  await expect(read(zipped.subarray(0, -4))).rejects.toThrow('the file is cut short');
});

it('svmlight keeps labels and features as written, and ignores comments and qid', async () => {
  const content = '# head\nb,a 1:1 # tail\n\na qid:3 2:2\n 3:1\n7:1\nqid:4 1:1\n';
  const dataset = await read(content, {}, svmlight);
  expect(Array.from(dataset.vocabulary, ({ id }) => id)).toEqual(['b', 'a']);
  expect(labelsOf(dataset)).toEqual([[0, 1], [1], [], [], []]);
  expect(Array.from(dataset.features?.sparse?.indices ?? [])).toEqual([1, 2, 3, 7, 1]);
  expect(dataset.features?.sparse?.cols).toBe(8);
});

it.each([
  ['a,, 1:1\n', ':1: labels must not be empty, got "a,,"'],
  ['a 1:1\nb 4294967295:1\n', ':2: feature id must be below 4294967295'],
  ['a b 1:1\n', 'a feature must be written as id:value, got "b"'],
])('svmlight refuses %j', async (content, message) => {
  await expect(read(content, {}, svmlight)).rejects.toThrow(message);
});

it('a bad svmlight row adds no label', async () => {
  const skipped = new Skipped();
  const dataset = await read('x 1:NaN\ny 1:1\n', { skipped }, svmlight);
  expect(Array.from(dataset.vocabulary, ({ id }) => id)).toEqual(['y']);
});
