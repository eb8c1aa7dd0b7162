// Labels as people look at and change them: quality, neighbours, maps, new ones, and which are never suggested.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Value } from 'typebox/value';
import { beforeAll, describe, expect, it } from 'vitest';
import { datasetOf } from '../../src/data/plain-samples.ts';
import { Classifier } from '../../src/learn/classifier.ts';
import * as schemas from '../../src/server/schemas.ts';
import { loadModel, saveModel } from '../../src/store/folder.ts';
import { failure, hasNetworks, openHouse, post, testLines, trainNamed } from './harness.ts';

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
  });

  it('cannot be excluded where it is unknown or the last one', async () => {
    const { client } = await house.start();
    expect(await failure(client.exclude('m', 'none', true))).toMatchObject({ status: 404 });
    for (const id of ['fruit', 'sky', 'blue']) await client.exclude('m', id, true);
    const last = await failure(client.exclude('m', 'http://example.org/red', true));
    expect(last).toMatchObject({ status: 400, message: 'at least one label must remain, got 0' });
  });
});

describe.runIf(hasNetworks)('a new label', () => {
  let folder: string;
  let served: Awaited<ReturnType<typeof house.start>>;

  beforeAll(async () => {
    folder = join(house.folder, 'named');
    await trainNamed(folder);
    served = await house.start({}, { models: [{ name: 'm', folder }], threads: 1 });
  });

  it('is taken by a model that knows labels by name, suggested at once and saved', async () => {
    const { client } = served;
    expect(await client.model('m')).toMatchObject({ takesLabels: true, labels: 6 });
    const before = await readdir(house.folder);
    const examples = ['a violin', 'the violin of 3'];
    const added = await client.addLabel('m', { id: 'v', name: 'violin', examples });
    expect(added).toMatchObject({ id: 'v', name: 'violin', samples: 2, excluded: false });
    expect((await client.suggest('m', 'some violin', { top: 1 }))[0].label).toBe('v');
    expect((await client.models())[0].labels).toBe(7);
    expect((await loadModel(folder)).vocabulary.column('v')).toBe(6);
    expect(await readdir(house.folder)).toEqual(before);
    expect(await client.addLabel('m', { name: 'saddle' })).toMatchObject({ id: 'saddle', samples: 0 });
  });

  it('is refused where it is known, nameless, too much, or a path', async () => {
    const { client, url } = served;
    const known = await failure(client.addLabel('m', { id: 'l1', name: 'other' }));
    expect(known).toMatchObject({ status: 400, message: 'a new label must have an id of its own, got "l1"' });
    expect(await failure(client.addLabel('m', { name: '  ' }))).toMatchObject({ status: 400 });
    const many = Array(1001).fill('a violin');
    expect(await failure(client.addLabel('m', { name: 'x', examples: many }))).toMatchObject({ status: 400 });
    const strange = await post(`${url}/v1/models/m/labels`, '{"name":"x","folder":"/etc"}');
    expect(strange.status).toBe(400);
    expect(await failure(client.addLabel('../m', { name: 'x' }))).toMatchObject({ status: 404 });
  });

  it('is forgotten at once, and can be taught again', async () => {
    const { client, url } = served;
    await client.addLabel('m', { id: 'gone', name: 'trumpet' });
    await client.removeLabel('m', 'gone');
    expect((await loadModel(folder)).vocabulary.column('gone')).toBeUndefined();
    expect(await failure(client.label('m', 'gone'))).toMatchObject({ status: 404 });
    expect(await failure(client.removeLabel('m', 'gone'))).toMatchObject({ status: 404 });
    expect((await client.suggest('m', 'a trumpet', { top: 10 })).map(({ label }) => label)).not.toContain(
      'gone',
    );
    expect(await client.addLabel('m', { id: 'gone', name: 'trumpet' })).toMatchObject({ id: 'gone' });
    expect((await fetch(`${url}/v1/models/m/labels/gone`, { method: 'DELETE' })).status).toBe(204);
    const [{ id }] = (await house.shared.client.labels('m')).labels;
    const refused = await failure(house.shared.client.removeLabel('m', id));
    expect(refused).toMatchObject({ status: 400, code: 'usage', hint: 'exclude them instead' });
  });

  it('is refused by a model that would have to be trained', async () => {
    expect((await house.shared.client.model('m')).takesLabels).toBe(false);
    const refused = await failure(house.shared.client.addLabel('m', { name: 'x' }));
    expect(refused).toMatchObject({ status: 400, code: 'usage', hint: 'train it again, or use prime' });
    expect(refused.message).not.toContain(house.folder);
  });

  it('comes one at a time, and the others are told to wait', async () => {
    const { client } = served;
    const outcomes = await Promise.allSettled(['one', 'two'].map((name) => client.addLabel('m', { name })));
    const refused = outcomes.filter(({ status }) => status === 'rejected');
    expect(refused).toMatchObject([{ reason: { status: 503, code: 'overloaded', retryAfter: 1 } }]);
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
    const dataset = datasetOf(rows);
    dataset.vocabulary.add('never seen');
    dataset.labels.cols = dataset.vocabulary.size;
    await saveModel(await Classifier.train(dataset, { learner: 'tree' }), folder);
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
    expect(map).toMatchObject({ ids, leftOut: 1 });
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
