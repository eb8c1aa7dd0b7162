import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readWordVectors } from './word-vectors.ts';

let folder: string;
const wanted = new Set(['violin', 'castle', 'nowhere']);
const expected = new Map([
  ['castle', Float32Array.of(-1, 0.25, 3)],
  ['violin', Float32Array.of(0.5, 2, 0)],
]);
const lines = 'violin 0.5 2 0\nharbour 1 1 1\ncastle -1 0.25 3\n';
const wink = {
  dimensions: 3,
  vectors: { violin: [0.5, 2, 0, 2.06, 0], harbour: [1, 1, 1, 1.73, 1], castle: [-1, 0.25, 3, 3.17, 2] },
};

describe('vectors of words', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'umbel-words-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const write = async (name: string, content: string | Uint8Array) => {
    const file = join(folder, name);
    await writeFile(file, content);
    return file;
  };

  it.each<[string, string | Uint8Array]>([
    ['glove.txt', lines],
    ['word2vec.vec', `3 3\n${lines}`],
    ['glove.txt.gz', gzipSync(lines)],
    ['wink.json', JSON.stringify(wink)],
  ])('are read from %s, those alone that are wanted', async (name, content) => {
    const { width, byWord } = await readWordVectors(await write(name, content), wanted);
    expect(width).toBe(3);
    expect(new Map([...byWord].sort())).toEqual(expected);
  });

  it.each<[string, string, RegExp]>([
    ['short.txt', 'harbour 1 1 1\nviolin 1 2\n', /short\.txt:2: a vector must have 3 numbers, got 2/],
    ['word.txt', 'violin 1 x 3\n', /word\.txt:1: a vector must have 3 numbers/],
    ['none.txt', 'harbour 1 1 1\n', /none\.txt: file must have vectors of words of the training texts/],
    ['broken.json', '{', /broken\.json: file must be readable and JSON/],
    ['other.json', '{"a":[1]}', /other\.json: file must have dimensions and vectors/],
  ])('are refused from %s, saying where', async (name, content, message) => {
    await expect(readWordVectors(await write(name, content), wanted)).rejects.toThrow(message);
  });
});
