// The review: unsure predictions are queued, decided, exported, and become training data of the next run.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Value } from 'typebox/value';
import { beforeAll, describe, expect, it } from 'vitest';
import * as schemas from '../../src/server/review/schemas.ts';
import { failure, openHouse, testLines } from './harness.ts';

const house = openHouse();
let served: Awaited<ReturnType<typeof house.start>>;

beforeAll(async () => {
  const file = join(house.folder, 'colours.jsonl');
  await writeFile(file, testLines);
  const data = [{ name: 'colours', file }];
  served = await house.start({}, { state: join(house.folder, 'state'), data });
});

describe('the review', () => {
  it('queues what the model is unsure of, the least sure first, each once', async () => {
    const { client } = served;
    const texts = ['red sky', 'blue apple', 'red apple', 'number'];
    const filled = await client.fillReview('m', { texts, low: 0.2, high: 0.8 });
    expect(filled.added).toBe(filled.waiting);
    expect(filled.added).toBeGreaterThan(0);
    expect(await client.fillReview('m', { texts, low: 0.2, high: 0.8 })).toMatchObject({ added: 0 });
    const page = await client.review('m');
    expect(Value.Check(schemas.ReviewPage, page)).toBe(true);
    const doubts = page.items.map(({ score }) => Math.abs(score - 0.5));
    expect(doubts).toEqual([...doubts].sort((a, b) => a - b));
    expect(page.items.every(({ score }) => score >= 0.2 && score <= 0.8)).toBe(true);
    const [{ text, label, score }] = page.items;
    const suggested = await client.suggest('m', text, { top: 10 });
    expect(suggested.find((suggestion) => suggestion.label === label)?.score).toBeCloseTo(score, 6);
  });

  it('takes texts from named data', async () => {
    const { client } = served;
    const options = { data: 'colours', sample: 20, low: 0, high: 1, most: 7 };
    expect(await client.fillReview('m', options)).toMatchObject({ added: 7 });
    expect(await failure(client.fillReview('m', { data: 'none' }))).toMatchObject({ status: 404 });
    expect(await failure(client.fillReview('m', {}))).toMatchObject({
      message: 'either texts or data must be given',
    });
  });

  it('keeps decisions, takes them back, and exports them as training data', async () => {
    const { client } = served;
    const { items, waiting } = await client.review('m');
    const [first, second, third] = items;
    await client.decide('m', first.id, 'accepted');
    await client.decide('m', second.id, 'rejected');
    await client.decide('m', third.id, 'accepted');
    expect(await client.decide('m', third.id, null)).toEqual({
      waiting: waiting - 2,
      accepted: 1,
      rejected: 1,
    });
    const decided = await client.review('m', { show: 'decided' });
    expect(decided.items.map(({ id }) => id).sort()).toEqual([first.id, second.id].sort());
    const lines = (await client.reviewed('m'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.flatMap(({ labels }) => labels)).toEqual([first.label]);
    expect(lines.flatMap(({ rejected }) => rejected)).toEqual([second.label]);
    expect(await failure(client.decide('m', 999, 'accepted'))).toMatchObject({ status: 404 });
  });

  it('adds accepted texts to the next run', async () => {
    const { client } = served;
    const rows = async (reviewed?: string) => {
      const { id } = await client.startRun({ data: 'colours', learner: 'one-vs-rest', reviewed });
      for await (const run of client.watchRun(id))
        if (run.result) return run.result.samples + run.result.report.n;
      throw new Error('must end');
    };
    expect(await rows()).toBe(60);
    expect(await rows('m')).toBe(61);
  });
});
