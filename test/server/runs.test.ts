// Training runs from the outside: started, watched, cancelled, served, and still there after kill -9.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Value } from 'typebox/value';
import { beforeAll, describe, expect, it } from 'vitest';
import { Client, type Run } from '../../src/client.ts';
import { learnerNames } from '../../src/learn/registry.ts';
import * as schemas from '../../src/server/runs/schemas.ts';
import { failure, openHouse, testLines } from './harness.ts';

const house = openHouse();
let file: string;
let served: Awaited<ReturnType<typeof house.start>>;
const start = (name: string) =>
  house.start({}, { state: join(house.folder, name), data: [{ name: 'colours', file }], threads: 1 });

/** Many labels for a slow learner: it would take minutes. */
const slow = Array.from({ length: 4000 }, (_, i) =>
  JSON.stringify({ text: `word${i % 900} word${(i * 7) % 900} word${i}`, labels: [`l${i % 900}`] }),
).join('\n');

beforeAll(async () => {
  file = join(house.folder, 'colours.jsonl');
  await writeFile(file, testLines);
  served = await start('state');
});

async function finished(client: Client, id: number): Promise<Run> {
  let last = await client.run(id);
  for await (const run of client.watchRun(id)) last = run;
  return last;
}

describe('a run', () => {
  it('is made from the options that the learners tell', async () => {
    const learners = await served.client.learners();
    expect(learners.map(({ name }) => name)).toEqual(learnerNames);
    const tree = learners.find(({ name }) => name === 'tree');
    expect(tree?.options['text.ngrams']).toMatchObject({ kind: 'integer', default: 1 });
    expect(Value.Check(schemas.LearnerList, { learners })).toBe(true);
    expect(await served.client.data()).toMatchObject([{ name: 'colours', added: null }]);
  });

  it('trains, tells how far it is, and is judged with intervals and by frequency', async () => {
    const { client } = served;
    const spec = {
      data: 'colours',
      learner: 'one-vs-rest',
      options: { cost: 2 },
      curve: true,
      name: 'first',
    };
    const { id, status } = await client.startRun(spec);
    expect(['waiting', 'running']).toContain(status);
    const seen: Run[] = [];
    for await (const run of client.watchRun(id)) seen.push(run);
    const run = seen[seen.length - 1];
    expect(run).toMatchObject({ id, spec, status: 'done', error: null });
    expect(Value.Check(schemas.Run, run)).toBe(true);
    expect(seen.some(({ progress }) => progress !== null)).toBe(true);
    expect(run.curve.map(({ samples }) => samples)).toEqual([7, 14, 27, 54]);
    expect(run.curve[3].metrics['P@1']).toMatchObject({ value: 1, low: 1, high: 1 });
    expect(run.result).toMatchObject({ samples: 54, labels: 4 });
    expect(run.result?.report).toMatchObject({ n: 6, 'P@1': 1, intervals: { 'P@1': { high: 1 } } });
    expect(run.result?.report.bins.rows.map(({ name }) => name)).toContain('torso');
    expect((await client.runs())[0]).toEqual(run);
  });

  it('is served under a name, also after a restart, and removed with its model', async () => {
    const state = 'state-served';
    const first = await start(state);
    const { id } = await first.client.startRun({ data: 'colours', learner: 'one-vs-rest' });
    await finished(first.client, id);
    expect(await failure(first.client.serveRun(id, 'm'))).toMatchObject({ status: 409, code: 'conflict' });
    expect(await first.client.serveRun(id, 'trained')).toMatchObject({ served: 'trained' });
    const [best] = await first.client.suggest('trained', 'a red apple', { top: 1 });
    expect((await first.client.label('trained', 'sky')).quality).not.toBeNull();
    await first.server.close();
    const { client } = await start(state);
    expect(await client.suggest('trained', 'a red apple', { top: 1 })).toEqual([best]);
    expect(await failure(client.removeRun(id))).toMatchObject({ status: 409 });
    expect(await client.unserveRun(id)).toMatchObject({ served: null });
    expect(await failure(client.suggest('trained', 'x'))).toMatchObject({ status: 404 });
    await client.removeRun(id);
    expect(await client.runs()).toEqual([]);
    expect(existsSync(join(house.folder, state, 'runs', String(id)))).toBe(false);
  }, 60_000);

  it('can be cancelled, while it waits and while it runs', async () => {
    const { client } = served;
    await client.addData('slow', slow, { format: 'jsonl' });
    const spec = { data: 'slow', learner: 'one-vs-rest', options: { iterations: 100_000, epsilon: 1e-12 } };
    const [running, waiting] = [await client.startRun(spec), await client.startRun(spec)];
    const isTraining = async () => (await client.run(running.id)).progress?.phase === 'train';
    await expect.poll(isTraining, { timeout: 20_000 }).toBe(true);
    expect((await client.cancelRun(waiting.id)).status).toBe('cancelled');
    await client.cancelRun(running.id);
    expect((await finished(client, running.id)).status).toBe('cancelled');
    expect(await failure(client.cancelRun(running.id))).toMatchObject({ status: 409, code: 'conflict' });
    expect(await client.suggest('m', 'a red apple')).not.toEqual([]);
  });

  it('that fails says why in words, without a place of ours', async () => {
    const { client } = served;
    await client.addData('broken', '{"text":"a","labels":["b"]}\n{bad', { format: 'jsonl' });
    const { id } = await client.startRun({ data: 'broken' });
    const { status, error } = await finished(client, id);
    expect(status).toBe('failed');
    expect(error).toMatch(/^broken:2: line must be valid JSON/);
  });

  it('is refused before it starts where it cannot work', async () => {
    const { client } = served;
    const refused = async (spec: object) => failure(client.startRun(spec as { data: string }));
    expect(await refused({ data: 'colors' })).toMatchObject({ status: 404, hint: 'did you mean colours?' });
    expect(await refused({ data: '../colours.jsonl' })).toMatchObject({ status: 404 });
    expect(await refused({ data: 'colours', learner: 'forest' })).toMatchObject({ status: 400 });
    const misspelt = await refused({ data: 'colours', options: { cots: 1 } });
    const path = { data: 'colours', learner: 'prime', options: { encoder: 'pretrained', folder: '/etc' } };
    expect(await refused(path)).toMatchObject({
      status: 400,
      message: expect.stringContaining('unknown option'),
    });
    expect(misspelt).toMatchObject({ status: 400, code: 'usage' });
    expect(await refused({ data: 'colours', test: 0.9 })).toMatchObject({
      message: 'test must be <= 0.5, got 0.9',
    });
    expect(await failure(client.run(999))).toMatchObject({ status: 404 });
    expect(await failure(house.shared.client.runs())).toMatchObject({
      status: 409,
      code: 'no-state',
      hint: 'umbel serve --state FOLDER',
    });
  });
});

describe('uploaded data', () => {
  it('has a name of its own, is kept and can be removed', async () => {
    const { client } = served;
    const entry = await client.addData('more', testLines, { format: 'jsonl' });
    expect(entry).toMatchObject({ name: 'more', bytes: testLines.length });
    expect(await failure(client.addData('more', testLines, { format: 'jsonl' }))).toMatchObject({
      status: 409,
    });
    expect(await failure(client.addData('colours', 'x', { format: 'jsonl' }))).toMatchObject({ status: 409 });
    await client.removeData('more');
    expect((await client.data()).map(({ name }) => name)).not.toContain('more');
    expect(await failure(client.removeData('colours'))).toMatchObject({ status: 409 });
  });

  it('is refused where it is too large, gzip, or its name is a path', async () => {
    const { client } = await house.start({ uploadBytes: 1000 }, { state: join(house.folder, 'state-small') });
    expect(await failure(client.addData('a', testLines, { format: 'jsonl' }))).toMatchObject({ status: 413 });
    const gzip = new Blob([Uint8Array.of(0x1f, 0x8b, 8, 0)]);
    expect(await failure(client.addData('a', gzip, { format: 'jsonl' }))).toMatchObject({ status: 400 });
    expect(await failure(client.addData('../a', 'x', { format: 'jsonl' }))).toMatchObject({ status: 400 });
    expect(await client.data()).toEqual([]);
  });
});

describe('kill -9', () => {
  const main = join(import.meta.dirname, '..', '..', 'dist', 'cli', 'main.js');
  const writeGroup = async () => {
    const files = {
      instances: '{"id":"a","text":"red apple"}\n{"id":"b","text":"blue sky"}',
      groups: '{"group":"first","instances":["a","b"],"labels":["sky"]}',
      evidence: '{"group":"first","label":"sky","instances":["a"],"similarities":[0.5],"margin":0.1}',
    };
    const paths = Object.entries(files).map(async ([name, lines]) => {
      await writeFile(join(house.folder, `${name}.jsonl`), lines);
      return join(house.folder, `${name}.jsonl`);
    });
    return (await Promise.all(paths)).join(',');
  };

  it('loses no run, upload, decision or correction, and marks what was under way', async () => {
    const state = join(house.folder, 'state-killed');
    const groups = await writeGroup();
    const serve = async () => {
      const args = ['serve', '--model', `m=${house.model}`, '--state', state, '--data', `colours=${file}`];
      args.push('--groups', `pages=${groups}`);
      const child = spawn(process.execPath, [main, ...args, '--port', '0', '--threads', '1']);
      let said = '';
      for await (const text of child.stdout.setEncoding('utf8')) {
        said += text;
        if (said.includes('Ctrl-C')) break;
      }
      return { child, client: new Client(/http:\S+\d/.exec(said)?.[0] ?? '') };
    };
    const first = await serve();
    const done = await first.client.startRun({ data: 'colours', learner: 'one-vs-rest' });
    await finished(first.client, done.id);
    await first.client.addData('slow', slow, { format: 'jsonl' });
    const { id } = await first.client.startRun({
      data: 'slow',
      learner: 'one-vs-rest',
      options: { iterations: 100_000 },
    });
    await first.client.exclude('m', 'sky', true);
    await first.client.fillReview('m', { texts: ['red blue'], low: 0, high: 1 });
    const { items } = await first.client.review('m');
    await first.client.decide('m', items[0].id, 'accepted');
    await first.client.correct('pages', 'first', 'sky', ['b']);
    const status = async () => (await first.client.run(id)).status;
    await expect.poll(status, { timeout: 20_000 }).toBe('running');
    const exited = once(first.child, 'exit');
    first.child.kill('SIGKILL');
    expect(await exited).toEqual([null, 'SIGKILL']);

    const second = await serve();
    const runs = await second.client.runs();
    expect(runs.map((run) => [run.id, run.status])).toEqual([
      [id, 'interrupted'],
      [done.id, 'done'],
    ]);
    expect(runs[1].result?.report['P@1']).toBe(1);
    expect((await second.client.data()).map(({ name }) => name)).toEqual(['colours', 'slow']);
    expect((await second.client.label('m', 'sky')).excluded).toBe(true);
    expect(await second.client.review('m')).toMatchObject({ accepted: 1 });
    const { labels } = await second.client.group('pages', 'first');
    expect(labels[0].correction?.instances).toEqual(['b']);
    second.child.kill('SIGTERM');
    expect(await once(second.child, 'exit')).toEqual([0, null]);
  }, 120_000);
});
