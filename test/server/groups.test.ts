// What EAGLE decided in groups, over HTTP: looked at, corrected, exported, and taken up by the next training.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Value } from 'typebox/value';
import { beforeAll, describe, expect, it } from 'vitest';
import * as schemas from '../../src/server/groups/schemas.ts';
import { failure, openHouse, samples } from './harness.ts';

const house = openHouse();
const main = join(import.meta.dirname, '..', '..', 'dist', 'cli', 'main.js');
const umbel = (...args: string[]) => promisify(execFile)(process.execPath, [main, ...args]);
let served: Awaited<ReturnType<typeof house.start>>;
let files: { instances: string; groups: string; evidence: string };

beforeAll(async () => {
  const at = (name: string) => join(house.folder, name);
  files = { instances: at('instances.jsonl'), groups: at('groups.jsonl'), evidence: at('evidence.jsonl') };
  const instances = samples.map(({ text }, i) => JSON.stringify({ id: `i${i}`, text }));
  // One sample of each kind, but two of a kind in the last ten: from those one can tell the kinds.
  const alike = (g: number) => 40 + 4 * ((g - 20) % 5) + Math.floor((g - 20) / 5);
  const groups = Array.from({ length: 30 }, (_, g) => {
    const members = g < 20 ? [2 * g, 2 * g + 1] : [alike(g), alike(g) + 2];
    const labels = members.flatMap((row) => samples[row].labels);
    return JSON.stringify({ group: `g${g}`, instances: members.map((row) => `i${row}`), labels });
  });
  await writeFile(files.instances, instances.join('\n'));
  await writeFile(files.groups, groups.join('\n'));
  const { instances: train, groups: grouped, evidence } = files;
  const out = ['--out', at('labelled.jsonl'), '--evidence', evidence, '--method', 'eagle'];
  await umbel('impute', '--train', train, '--groups', grouped, ...out);
  served = await house.start({}, { state: at('state'), groups: [{ name: 'pairs', ...files }] });
});

describe('groups', () => {
  it('are listed with the least clear first', async () => {
    const { client } = served;
    expect(await client.groupSources()).toEqual([
      { name: 'pairs', groups: 30, pairs: 100, missing: 0, corrected: 0, misfits: 0 },
    ]);
    const page = await client.groups('pairs', { limit: 10 });
    expect(page).toMatchObject({ found: 30, offset: 0 });
    expect(Value.Check(schemas.GroupPage, page)).toBe(true);
    const margins = page.groups.map(({ margin }) => margin ?? Number.POSITIVE_INFINITY);
    expect(margins).toEqual([...margins].sort((a, b) => a - b));
    expect((await client.groups('pairs', { search: 'G29' })).groups).toMatchObject([{ group: 'g29' }]);
    expect(await failure(client.groups('pears'))).toMatchObject({ status: 404, hint: 'known: pairs' });
  });

  it('tell which member took which label, and how clearly', async () => {
    const detail = await served.client.group('pairs', 'g3');
    expect(Value.Check(schemas.GroupDetail, detail)).toBe(true);
    expect(detail.instances).toEqual([
      { id: 'i6', text: 'blue sky number 6' },
      { id: 'i7', text: 'red apple number 7' },
    ]);
    const fruit = detail.labels.find(({ label }) => label === 'fruit');
    expect(fruit).toMatchObject({ name: 'Fruits and berries', instances: ['i7'], correction: null });
    expect(fruit?.margin).toBeGreaterThan(0);
    expect(await failure(served.client.group('pairs', 'g99'))).toMatchObject({ status: 404 });
  });

  it('are corrected, and the export is what training takes', async () => {
    const { client } = served;
    await client.correct('pairs', 'g0', 'fruit', ['i0']);
    await client.correct('pairs', 'g0', 'sky', []);
    await client.correct('pairs', 'g1', 'blue', ['i2', 'i2']);
    await client.uncorrect('pairs', 'g1', 'blue');
    const strange = await failure(client.correct('pairs', 'g0', 'fruit', ['i5']));
    expect(strange).toMatchObject({
      status: 400,
      message: 'instance must be a member of group g0, got "i5"',
    });
    expect(await failure(client.correct('pairs', 'g0', 'none', []))).toMatchObject({ status: 404 });
    expect((await client.groups('pairs', { search: 'g0' })).groups[0]).toMatchObject({ corrected: 2 });
    const lines = (await client.corrections('pairs')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { group: 'g0', label: 'fruit', instances: ['i0'] },
      { group: 'g0', label: 'sky', instances: [] },
    ]);
    const corrections = join(house.folder, 'corrections.jsonl');
    await writeFile(corrections, lines.join('\n'));
    const out = join(house.folder, 'corrected.jsonl');
    await umbel(
      ...['impute', '--train', files.instances, '--groups', files.groups, '--method', 'eagle'],
      ...['--corrections', corrections, '--out', out],
    );
    const rows = (await readFile(out, 'utf8')).trim().split('\n');
    expect(JSON.parse(rows[0]).labels.sort()).toEqual(['blue', 'fruit']);
  });

  it('are only done once every label is decided', async () => {
    const { client } = served;
    const names = async (show: 'open' | 'done') =>
      (await client.groups('pairs', { show, limit: 100 })).groups.map(({ group }) => group);
    expect(await names('done')).toEqual([]);
    for (const { label, instances } of (await client.group('pairs', 'g5')).labels)
      await client.correct('pairs', 'g5', label, instances);
    expect(await names('done')).toEqual(['g5']);
    expect(await names('open')).not.toContain('g5');
  });

  it('are not thought unclear because of what was drawn, and may carry labels of any name', async () => {
    const at = (name: string) => join(house.folder, name);
    await writeFile(at('few.jsonl'), '{"id":"a","text":"x"}\n{"id":"b","text":"y"}\n');
    await writeFile(
      at('odd.jsonl'),
      '{"group":"g","instances":["a","b"],"labels":["constructor","often"]}\n{"group":"h","instances":["a"],"labels":["often"]}\n',
    );
    const record = (label: string, rest: object) =>
      `${JSON.stringify({ group: 'g', label, instances: ['a'], similarities: [0.5], ...rest })}\n`;
    const lines = [record('constructor', { margin: 0.4 }), record('often', { margin: -2, drawn: true })];
    await writeFile(at('odd-why.jsonl'), lines.join(''));
    const odd = {
      name: 'odd',
      instances: at('few.jsonl'),
      groups: at('odd.jsonl'),
      evidence: at('odd-why.jsonl'),
    };
    const { client } = await house.start({}, { groups: [odd] });
    expect((await client.groups('odd', {})).groups[0]).toMatchObject({ group: 'g', margin: 0.4 });
    expect((await client.group('odd', 'g')).labels).toMatchObject([
      { name: 'constructor', drawn: false },
      { name: 'often', drawn: true },
    ]);
  });

  it('keep what imputing was given as corrected, and leave alone what fits other groups', async () => {
    const at = (name: string) => join(house.folder, name);
    const lines = (await readFile(files.evidence, 'utf8')).trim().split('\n');
    const records = lines.map((line) => JSON.parse(line));
    const chosen = records.find(({ group }) => group === 'g8');
    const pinned = { group: 'g8', label: chosen.label, instances: [], pinned: true };
    const changedLines = [pinned, ...records.filter((record) => record !== chosen).slice(0, -1)];
    await writeFile(at('pinned.jsonl'), changedLines.map((record) => JSON.stringify(record)).join('\n'));
    // Members of two groups have changed places, and with them what was kept of the groups above.
    const groups = (await readFile(files.groups, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    [groups[0].instances, groups[1].instances] = [groups[1].instances, groups[0].instances];
    await writeFile(at('swapped.jsonl'), groups.map((group) => JSON.stringify(group)).join('\n'));
    await served.server.close();
    const changed = { name: 'pairs', ...files, evidence: at('pinned.jsonl') };
    const { client, server } = await house.start({}, { state: at('state'), groups: [changed] });
    expect(await client.groupSources()).toMatchObject([{ pairs: 99, missing: 1, corrected: 7, misfits: 0 }]);
    const exported = (await client.corrections('pairs'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(exported).toContainEqual({ group: pinned.group, label: pinned.label, instances: [] });
    await server.close();
    await expect(house.start({}, { groups: [{ ...changed, groups: at('swapped.jsonl') }] })).rejects.toThrow(
      /pinned.jsonl:\d+: instance must be a member of group g0/,
    );
  });

  it('can be looked at without a state, but not corrected', async () => {
    const { client } = await house.start({}, { groups: [{ name: 'pairs', ...files }] });
    expect((await client.group('pairs', 'g0')).labels).toHaveLength(4);
    expect(await failure(client.correct('pairs', 'g0', 'sky', []))).toMatchObject({ code: 'no-state' });
  });
});
