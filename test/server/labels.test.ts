// Labels as people look at and change them: quality, neighbours, maps, and which are never suggested.
import { join } from 'node:path';
import { Value } from 'typebox/value';
import { beforeAll, describe, expect, it } from 'vitest';
import { datasetOf } from '../../src/data/plain-samples.ts';
import { Classifier } from '../../src/learn/classifier.ts';
import * as schemas from '../../src/server/schemas.ts';
import { saveModel } from '../../src/store/folder.ts';
import { failure, openHouse, testLines } from './harness.ts';

const house = openHouse();

describe('a label', () => {
  it('tells how it fares once the model was evaluated, also after a restart', async () => {
    const state = join(house.folder, 'state-quality');
    const first = await house.start({}, { state });
    expect((await first.client.label('m', 'sky')).quality).toBeNull();
    await first.client.evaluate('m', testLines, { format: 'jsonl' });
    const { quality } = await first.client.label('m', 'sky');
    expect(quality).toMatchObject({ k: 5, positives: 30, hits: 30, recall: 1 });
    await first.server.close();
    const second = await house.start({}, { state });
    expect((await second.client.label('m', 'sky')).quality).toEqual(quality);
    expect((await second.client.model('m')).evaluation).toMatchObject({ n: 60, 'P@1': 1 });
  });

  it('that is excluded is suggested by no thread, not after a reload or restart, until it is allowed', async () => {
    const state = join(house.folder, 'state-excluded');
    const first = await house.start({}, { state });
    const suggested = async ({ client }: typeof first) => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => client.suggest('m', 'blue sky', { top: 4 })),
      );
      return answers.some((labels) => labels.some(({ label }) => label === 'sky'));
    };
    expect(await suggested(first)).toBe(true);
    expect(await first.client.exclude('m', 'sky', true)).toMatchObject({ id: 'sky', excluded: true });
    expect(await suggested(first)).toBe(false);
    expect((await first.client.model('m')).excluded).toBe(1);
    await first.client.reload('m');
    expect(await suggested(first)).toBe(false);
    await first.server.close();
    const second = await house.start({}, { state });
    expect(await suggested(second)).toBe(false);
    await second.client.exclude('m', 'sky', false);
    expect(await suggested(second)).toBe(true);
    await first.server.close();
  });

  it('cannot be excluded where it is unknown or the last one', async () => {
    const { client } = await house.start();
    expect(await failure(client.exclude('m', 'none', true))).toMatchObject({ status: 404 });
    for (const id of ['fruit', 'sky', 'blue']) await client.exclude('m', id, true);
    const last = await failure(client.exclude('m', 'http://example.org/red', true));
    expect(last).toMatchObject({ status: 400, message: 'at least one label must remain, got 0' });
  });
});

describe('neighbours and maps', () => {
  const families = 6;
  const ids = Array.from({ length: families * 5 }, (_, i) => `f${i % families}-${i}`);
  const sameFamily = (a: string, b: string) => a.split('-')[0] === b.split('-')[0];
  let served: Awaited<ReturnType<typeof house.start>>;

  beforeAll(async () => {
    const rows = Array.from({ length: 600 }, (_, i) => {
      const id = ids[i % ids.length];
      const family = id.split('-')[0];
      return { text: `${family}alpha ${family}beta own${id.split('-')[1]} noise${i % 7}`, labels: [id] };
    });
    const folder = join(house.folder, 'families');
    await saveModel(await Classifier.train(datasetOf(rows), { learner: 'tree' }), folder);
    served = await house.start({}, { models: [{ name: 'm', folder }], state: join(house.folder, 'maps') });
  });

  it('are labels that the same words speak for', async () => {
    for (const id of ids.slice(0, 6)) {
      const near = await served.client.neighbours('m', id, 4);
      expect(near.every(({ label }) => sameFamily(label, id))).toBe(true);
      expect(near.every(({ similarity }) => similarity > 0 && similarity <= 1)).toBe(true);
    }
    expect(await failure(served.client.neighbours('m', 'none'))).toMatchObject({ status: 404 });
  });

  it('compare a selection, each with each', async () => {
    const chosen = [ids[0], ids[6], ids[1]];
    const { labels, matrix } = await served.client.similarities('m', chosen);
    expect(labels.map(({ id }) => id)).toEqual(chosen);
    expect(matrix.map((row, i) => row[i])).toEqual([1, 1, 1]);
    expect(matrix[0][1]).toBeCloseTo(matrix[1][0], 3);
    expect(matrix[0][1]).toBeGreaterThan(matrix[0][2]);
    const error = await failure(served.client.similarities('m', ['none']));
    expect(error).toMatchObject({ status: 400, message: 'label id must be in the vocabulary, got "none"' });
  });

  it('put like labels near each other, the same way every time', async () => {
    const made = async () => {
      await expect.poll(async () => (await served.client.map('m')).ready, { timeout: 20_000 }).toBe(true);
      return served.client.map('m');
    };
    const map = await made();
    expect(Value.Check(schemas.LabelMap, map)).toBe(true);
    expect(map.ids).toEqual(ids);
    const distance = (a: number, b: number) => Math.hypot(map.x[a] - map.x[b], map.y[a] - map.y[b]);
    const nearest = ids.map((_, a) => {
      const others = [...ids.keys()].filter((b) => b !== a);
      return others.reduce((best, b) => (distance(a, b) < distance(a, best) ? b : best));
    });
    const right = nearest.filter((b, a) => sameFamily(ids[a], ids[b])).length;
    expect(right).toBeGreaterThan(0.8 * ids.length);
    expect([...map.x, ...map.y].every((value) => value >= 0 && value <= 1)).toBe(true);
  });

  it('are refused by models that do not know what speaks for a label', async () => {
    const folder = join(house.folder, 'popular');
    await saveModel(
      await Classifier.train(datasetOf([{ text: 'some words', labels: ['b'] }]), { learner: 'popular' }),
      folder,
    );
    const { client } = await house.start({}, { models: [{ name: 'm', folder }] });
    expect(await failure(client.neighbours('m', 'b'))).toMatchObject({ status: 400, code: 'usage' });
    const outcome = () => client.map('m').catch((error) => error.code);
    await expect.poll(outcome, { timeout: 10_000 }).toBe('usage');
  });
});
