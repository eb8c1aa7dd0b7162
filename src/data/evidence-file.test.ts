import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CsrBuilder } from '../math/csr.ts';
import { readEvidence, writeEvidence } from './evidence-file.ts';
import { groupRows } from './group.ts';
import { Skipped } from './skipped.ts';
import { Vocabulary } from './vocabulary.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-evidence-'));
});
afterAll(() => rm(folder, { recursive: true }));

function zoo() {
  const [members, labels] = [new CsrBuilder('binary'), new CsrBuilder('binary')];
  members.add([0, 1]);
  members.add([2]);
  for (const row of [[0], [0, 1], [1]]) labels.add(row);
  const vocabulary = new Vocabulary([{ id: 'pet' }, { id: 'small' }, { id: 'wild' }]);
  const dataset = { rows: 3, ids: ['cat', 'dog', 'ant'], vocabulary };
  return { dataset, groups: groupRows(members.pattern(3), labels.pattern(3), 'list') };
}

async function read(lines: object[] | string, skipped?: Skipped) {
  const path = join(folder, 'corrections.jsonl');
  const text = typeof lines === 'string' ? lines : lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  await writeFile(path, text);
  const { dataset, groups } = zoo();
  return readEvidence(path, groups, dataset, { skipped });
}

describe('evidence and corrections', () => {
  it('lines of the evidence are corrections', async () => {
    const path = join(folder, 'evidence.jsonl');
    const records = [
      { group: '0', label: 'pet', instances: ['dog', 'cat'], similarities: [0.5, 0.25], margin: null },
      { group: '1', label: 'small', instances: [] },
    ];
    expect(await writeEvidence(path, records)).toBe(2);
    expect(await read(await readFile(path, 'utf8'))).toEqual([
      { group: 0, label: 0, rows: [1, 0], record: records[0] },
      { group: 1, label: 1, rows: [], record: records[1] },
    ]);
  });

  it.each([
    [{ group: '7', label: 'pet', instances: [] }, 'group must be one of the groups file, got "7"'],
    [{ group: '0', label: 'wild', instances: [] }, 'label must be one that group 0 carries, got "wild"'],
    [{ group: '0', label: 'tree', instances: [] }, 'label must be one that group 0 carries, got "tree"'],
    [{ group: '0', label: 'pet', instances: ['ant'] }, 'instance must be a member of group 0, got "ant"'],
    [{ group: '0', label: 'pet' }, 'instances must be a list of ids'],
    [{ label: 'pet', instances: [] }, 'group and label must be strings'],
  ])('%j is refused with its line, or left out and counted', async (line, message) => {
    await expect(read([line])).rejects.toThrow(`corrections.jsonl:1: ${message}`);
    const skipped = new Skipped();
    expect(await read([line, { group: '0', label: 'pet', instances: ['cat'] }], skipped)).toHaveLength(1);
    expect(skipped.count).toBe(1);
  });

  it('a pair has one line', async () => {
    const line = { group: '0', label: 'pet', instances: ['cat'] };
    await expect(read([line, line])).rejects.toThrow('must have one line');
  });
});
