import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { collect } from './dataset.ts';
import type { ReadOptions } from './format.ts';
import { jsonl } from './jsonl.ts';
import { Skipped } from './skipped.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-jsonl-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function read(content: string, options: ReadOptions = {}) {
  const path = join(folder, 'rows.jsonl');
  await writeFile(path, content);
  return collect(await jsonl.read(path, options));
}

it('reads texts with ids, labels and groups, and ignores other keys', async () => {
  const dataset = await read(
    '\ufeff{"id":7,"text":"a\\nb","labels":["x",3],"group":"g","more":{}}\r\n\r\n' +
      '{"id":"8","text":"","labels":["3","3"],"group":1}',
  );
  expect(dataset).toMatchObject({ ids: ['7', '8'], texts: ['a\nb', ''], groups: ['g', '1'] });
  expect(Array.from(dataset.vocabulary, ({ id }) => id)).toEqual(['x', '3']);
  expect(Array.from(dataset.labels.indices)).toEqual([0, 1, 1]);
});

it('reads labels as predictions are written', async () => {
  const labels = '[{"label":"a","name":"A","score":0.9},{"label":"b","score":0.1},"a"]';
  const dataset = await read(`{"text":"t","labels":${labels}}\n`);
  expect(Array.from(dataset.vocabulary, ({ id }) => id)).toEqual(['a', 'b']);
  expect(Array.from(dataset.labels.indices)).toEqual([0, 1]);
});

it('reads sparse features by column and dense features by position, labels or not', async () => {
  const sparse = await read('{"features":{"4000000000":1,"9":0.5,"10":2}}\n{"features":{}}\n');
  expect(Array.from(sparse.features?.sparse?.indices ?? [])).toEqual([9, 10, 4_000_000_000]);
  const dense = await read('{"features":[1,2.5]}\n{"features":[3,4]}\n');
  expect(dense.features?.dense).toEqual({ rows: 2, cols: 2, values: Float32Array.of(1, 2.5, 3, 4) });
});

const good = '{"text":"t"}\n';
it.each([
  ['{"text":', /:2: line must be valid JSON: .*JSON/],
  ['[1]', ':2: a record must be an object, got [1]'],
  ['null', 'a record must be an object, got nothing'],
  ['{"labels":[]}', 'a record must have a text or features'],
  ['{"text":null}', 'text must be a string, got nothing'],
  ['{"text":"t","id":""}', 'id must be a string or a number, and not empty'],
  ['{"text":"t","id":null}', 'id must be a string or a number'],
  ['{"text":"t","labels":"x"}', 'labels must be an array of strings, got "x"'],
  ['{"text":"t","labels":[{}]}', 'a label must be a string or a number'],
  ['{"text":"t","labels":[""]}', 'a label must be a string or a number, and not empty'],
  ['{"features":3}', 'features must be an object {"column": value} or an array of numbers, got 3'],
  ['{"features":{"x":1}}', 'feature column must be a whole number below 2^32 - 1, got "x"'],
  ['{"features":{"-1":1}}', 'feature column must be a whole number'],
  ['{"features":{"1":1e99}}', 'feature value must be a finite number, got 1e+99'],
  ['{"features":{"1":NaN}}', 'line must be valid JSON'],
  ['{"features":[1,null]}', 'feature value must be a finite number, got nothing'],
])('refuses %s, or leaves it out under --skip-bad', async (line, message) => {
  await expect(read(good + line)).rejects.toThrow(message);
  const skipped = new Skipped();
  expect((await read(`${good}${line}\n${good}`, { skipped })).rows).toBe(2);
  expect(skipped.count).toBe(1);
});

it('refuses dense features of another length', async () => {
  await expect(read('{"features":[1]}\n{"features":[1,2]}\n')).rejects.toThrow(
    ':2: features must be as many as in the first record (1), got 2',
  );
});
