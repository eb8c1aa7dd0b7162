// The typed client against a real server: it says what the library says.
import { join } from 'node:path';
import { Value } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import { ServerError } from '../../src/client.ts';
import { datasetOf } from '../../src/data/plain-samples.ts';
import { Classifier } from '../../src/learn/classifier.ts';
import * as schemas from '../../src/server/schemas.ts';
import { loadModel, saveModel } from '../../src/store/folder.ts';
import { failure, openHouse, testLines } from './harness.ts';

const house = openHouse();

describe('the typed client against the server', () => {
  it('suggests what the library suggests, one by one, in batches and in streams', async () => {
    const texts = ['a red apple', 'the blue sky', 'nothing known'];
    const expected = await (await loadModel(house.model)).suggest(texts, { top: 2 });
    const { client } = house.shared;
    for (const [i, text] of texts.entries())
      expect(await client.suggest('m', text, { top: 2 })).toEqual(expected[i]);
    const batch = await client.suggestBatch(
      'm',
      texts.map((text, i) => ({ id: `t${i}`, text })),
      { top: 2 },
    );
    expect(batch).toEqual(expected.map((labels, i) => ({ id: `t${i}`, labels })));
    const streamed = [];
    for await (const line of client.suggestStream('m', Array(2500).fill(texts[0]), { top: 2 }))
      streamed.push(line);
    expect(streamed).toEqual(Array(2500).fill({ labels: expected[0] }));
  });

  it('leaves out labels below the threshold', async () => {
    const all = await house.shared.client.suggest('m', 'a red apple', { top: 4 });
    const threshold = all[1].score;
    const kept = await house.shared.client.suggest('m', 'a red apple', { top: 4, threshold });
    expect(kept).toEqual(all.filter(({ score }) => score >= threshold));
  });

  it('lists the models and tells one of them in full', async () => {
    const [summary] = await house.shared.client.models();
    expect(summary).toMatchObject({
      name: 'm',
      learner: 'one-vs-rest',
      labels: 4,
      samples: 60,
      takesText: true,
    });
    const detail = await house.shared.client.model('m');
    expect(detail).toMatchObject({ ...summary, seed: 1, threads: 2 });
    expect(detail.settings).toEqual((await loadModel(house.model)).options);
  });

  it('explains the label asked for, and else the best one', async () => {
    const best = await house.shared.client.explain('m', 'a red apple');
    const [suggested] = await house.shared.client.suggest('m', 'a red apple', { top: 1 });
    expect(best.label).toBe(suggested.label);
    expect(best.score).toBeCloseTo(suggested.score);
    const sky = await house.shared.client.explain('m', 'a red apple', { label: 'sky', words: 1 });
    expect(sky).toMatchObject({ label: 'sky', name: 'The sky' });
    expect(sky.steps[0].contributions).toHaveLength(1);
    expect(sky.spans.map(({ start, end }) => 'a red apple'.slice(start, end))).toEqual(['red', 'apple']);
  });

  it('finds labels by id, words and other names, and gives one with its relatives', async () => {
    const ids = async (search: string) =>
      (await house.shared.client.labels('m', { search })).labels.map(({ id }) => id);
    expect(await ids('berr fru')).toEqual(['fruit']);
    expect(await ids('POME')).toEqual(['fruit']);
    expect(await ids('http://ex')).toEqual(['http://example.org/red']);
    expect(await ids('erries')).toEqual([]);
    const page = await house.shared.client.labels('m', { offset: 1, limit: 2 });
    expect(page).toMatchObject({ found: 4, offset: 1 });
    expect(page.labels).toHaveLength(2);
    expect(await house.shared.client.label('m', 'http://example.org/red')).toMatchObject({ samples: 30 });
    expect((await house.shared.client.label('m', 'sky')).broader).toMatchObject([{ id: 'blue' }]);
    expect((await house.shared.client.label('m', 'blue')).narrower).toMatchObject([{ id: 'sky' }]);
  });

  it('tells the meanings of labels where the model has them', async () => {
    const own = join(house.folder, 'overlapping');
    const rows = Array.from({ length: 120 }, (_, i) => ({
      text: `word${i % 24} word${(i * 7) % 24} word${(i * 5) % 24}`,
      labels: [`l${i % 24}`, `l${(i * 7) % 24}`],
    }));
    const options = { overlap: true, flatSize: 1, leafSize: 4 };
    const classifier = await Classifier.train(datasetOf(rows), { learner: 'tree', options });
    await saveModel(classifier, own);
    const { client } = await house.start({}, { models: [{ name: 'm', folder: own }] });
    const top = await client.sensesTop('m', 3);
    expect(top).toEqual(classifier.sensesTop(3));
    const senses = await client.senses('m', 'l7');
    expect(senses).toEqual(classifier.senses('l7'));
    expect(Value.Check(schemas.Senses, { senses })).toBe(true);
    expect(await failure(client.senses('m', 'none'))).toMatchObject({ status: 404 });
    expect(await failure(house.shared.client.senses('m', 'sky'))).toMatchObject({
      status: 400,
      code: 'usage',
    });
  });

  it('evaluates an uploaded file in every format it takes', async () => {
    const report = await house.shared.client.evaluate('m', testLines, { format: 'jsonl', resamples: 20 });
    expect(report).toMatchObject({ n: 60, labels: 4, 'P@1': 1, 'R@10': 1, unknownLabels: 0 });
    expect(report.intervals?.['P@1']).toBeDefined();
    expect((await house.shared.client.model('m')).evaluation).toEqual(report);
    const csv = 'title;tags\nred apple;fruit|red\nblue sky;sky|new\n';
    const table = await house.shared.client.evaluate('m', csv, {
      format: 'csv',
      columns: 'text=title,labels=tags',
      labelDelimiter: '|',
    });
    expect(table).toMatchObject({ n: 2, unknownLabels: 0.5 });
  });

  it('hands on the words of the server', async () => {
    const error = await failure(house.shared.client.suggest('other', 'x'));
    expect(error).toBeInstanceOf(ServerError);
    expect(error).toMatchObject({ status: 404, code: 'not-found', hint: 'known: m' });
  });
});
