import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CsrBuilder, type Pattern } from '../math/csr.ts';
import { groupRows } from './group.ts';
import { leaveOutUngrouped, readGroups, writeGroups } from './groups-file.ts';
import { datasetOf } from './plain-samples.ts';
import { Skipped } from './skipped.ts';
import { Vocabulary } from './vocabulary.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-groups-'));
});
afterAll(() => rm(folder, { recursive: true }));

function pattern(rows: readonly number[][], cols: number): Pattern {
  const builder = new CsrBuilder('binary');
  for (const row of rows) builder.add(row);
  return builder.pattern(cols);
}
const matrix = (rows: number, cols: number, least: number) =>
  fc
    .array(fc.subarray([...Array(cols).keys()], { minLength: least }), { minLength: rows, maxLength: rows })
    .map((m) => pattern(m, cols));

const animals = () => ({
  rows: 3,
  ids: ['cat', 'dog', 'ant'],
  vocabulary: new Vocabulary([{ id: 'pet' }, { id: 'small' }]),
});

async function read(text: string, options = {}) {
  const path = join(folder, 'groups.jsonl');
  await writeFile(path, text);
  return readGroups(path, animals(), options);
}
const line = (record: object) =>
  `${JSON.stringify({ group: 'g', instances: ['cat'], labels: ['pet'], ...record })}\n`;

describe('the groups file', () => {
  it('gives back what was written, ids or row numbers, list or set, overlapping or not', async () => {
    await fc.assert(
      fc.asyncProperty(
        matrix(4, 6, 1),
        matrix(6, 5, 0),
        fc.constantFrom('list' as const, 'set' as const),
        fc.boolean(),
        fc.constantFrom('g.jsonl', 'g.jsonl.gz'),
        async (members, labels, merge, named, name) => {
          const groups = groupRows(members, labels, merge);
          const ids = named ? ['a', 'b', 'ü "x"', '\u2028', '0', 'row 5'] : undefined;
          const vocabulary = Vocabulary.numbered(5);
          await writeGroups(join(folder, name), groups, { ids, vocabulary });
          expect(await readGroups(join(folder, name), { rows: 6, ids, vocabulary })).toEqual(groups);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('is one readable line per group, with repeated labels repeated', async () => {
    const dataset = animals();
    const groups = groupRows(pattern([[0, 1], [2]], 3), pattern([[0], [0], [1]], 2), 'list');
    await writeGroups(join(folder, 'g.jsonl'), groups, dataset);
    expect(await readFile(join(folder, 'g.jsonl'), 'utf8')).toBe(
      '{"group":"0","instances":["cat","dog"],"labels":["pet","pet"]}\n' +
        '{"group":"1","instances":["ant"],"labels":["small"]}\n',
    );
  });

  it('adds labels it does not know to the vocabulary', async () => {
    const path = join(folder, 'new.jsonl');
    await writeFile(path, line({ labels: ['insect', 'pet', 'insect'] }));
    const dataset = animals();
    const { labels } = await readGroups(path, dataset);
    expect(dataset.vocabulary.column('insect')).toBe(2);
    expect({ cols: labels.cols, indices: [...labels.indices], counts: [...labels.values] }).toEqual({
      cols: 3,
      indices: [0, 2],
      counts: [1, 2],
    });
  });

  it('names the file, the line, the rule and the value of what is wrong', async () => {
    const wrong: [string, string][] = [
      ['{"group"', 'line must be valid JSON, got "{\\"group\\""'],
      ['[1]', 'line must be an object, got "[1]"'],
      ['null', 'line must be an object, got "null"'],
      [line({ group: 7.5 }), 'group must be a string that is not empty, or a whole number, got 7.5'],
      [
        line({ group: undefined }),
        'group must be a string that is not empty, or a whole number, got nothing',
      ],
      [line({ instances: 'cat' }), 'instances must be a list of ids, got "cat"'],
      [line({ instances: undefined }), 'instances must be a list of ids, got nothing'],
      [line({ instances: [] }), 'instances must not be empty'],
      [
        line({ instances: [true] }),
        'instances must hold ids: strings that are not empty, or whole numbers, got true',
      ],
      [line({ instances: ['cow'] }), 'instance must be the id of a sample, got "cow"'],
      [line({ instances: ['cat', 'cat'] }), 'instance must appear once in a group, got "cat"'],
      [line({ labels: [''] }), 'labels must hold ids: strings that are not empty'],
      [line({ group: 'first' }), 'group must appear once, got "first"'],
    ];
    for (const [text, message] of wrong) {
      const whole = `${line({ group: 'first' })}\n${text}`;
      await expect(read(whole)).rejects.toThrow(`${join(folder, 'groups.jsonl')}:3: ${message}`);
    }
  });

  it('under skip-bad leaves bad groups out, and their labels too', async () => {
    const skipped = new Skipped();
    const groups = await read(`{\n${line({ labels: ['x'], instances: ['cow'] })}${line({})}`, { skipped });
    expect([skipped.count, groups.names, groups.labels.cols]).toEqual([2, ['g'], 2]);
  });

  it('under skip-bad leaves out bad members alone where others are right', async () => {
    const skipped = new Skipped();
    const { members } = await read(line({ instances: ['cat', 'cow', 'cat', 'dog'] }), { skipped });
    expect(members.indices).toHaveLength(2);
    expect(skipped.first).toEqual([
      expect.stringMatching(/groups.jsonl:1: instance must be the id of a sample, got "cow"$/),
      expect.stringMatching(/groups.jsonl:1: instance must appear once in a group, got "cat"$/),
    ]);
  });

  it('may lack labels where groups are to be predicted, but not where they teach', async () => {
    const text = line({ labels: undefined });
    expect((await read(text)).labels.indices).toHaveLength(0);
    await expect(read(text, { labelled: true })).rejects.toThrow('labels must be a list of ids');
    expect((await read(line({ labels: [] }), { labelled: true })).labels.indices).toHaveLength(0);
  });

  it('takes row numbers only as they are written', async () => {
    const path = join(folder, 'rows.jsonl');
    for (const [id, fine] of [
      ['0', true],
      ['2', true],
      ['3', false],
      ['01', false],
      ['-0', false],
      ['1e0', false],
    ] as const) {
      await writeFile(path, line({ instances: [id] }));
      const reading = readGroups(path, { rows: 3, vocabulary: new Vocabulary() });
      if (fine) expect([...(await reading).members.indices]).toEqual([Number(id)]);
      else await expect(reading).rejects.toThrow('instance must be the id of a sample');
    }
  });

  it('refuses sample ids that are not unique, and leaves no file behind', async () => {
    const groups = groupRows(pattern([[0, 1]], 2), pattern([[], []], 0), 'list');
    const out = join(folder, 'empty');
    const dataset = { ids: ['a', 'a'], vocabulary: new Vocabulary() };
    await expect(writeGroups(join(out, 'g.jsonl'), groups, dataset)).rejects.toThrow(
      'sample ids must be unique',
    );
    await expect(readdir(out)).rejects.toThrow();
  });
});

describe('groups that do not fit their samples', () => {
  it('a label outside a complete vocabulary is refused, or left out and counted', async () => {
    const text = line({ labels: ['pet', 'wild'] });
    await expect(read(text, { closed: true })).rejects.toThrow('label must be in the vocabulary, got "wild"');
    const skipped = new Skipped();
    const groups = await read(text, { closed: true, skipped });
    expect([...groups.labels.indices]).toEqual([0]);
    expect(skipped.count).toBe(1);
  });

  it('a sample in no group is refused, or left out and counted', () => {
    const groups = groupRows(pattern([[2, 3]], 4), pattern([[], [], [0], []], 1), 'list');
    const dataset = { ...datasetOf(['a', 'b', 'c', 'd'].map((text) => ({ text, labels: [] }))) };
    expect(() => leaveOutUngrouped(dataset, groups)).toThrow(
      'every instance must be in a group, got "0 and 1 more"',
    );
    const skipped = new Skipped();
    const left = leaveOutUngrouped(dataset, groups, { skipped });
    expect(skipped.count).toBe(2);
    expect(left.dataset.texts).toEqual(['c', 'd']);
    expect([...left.groups.members.indices]).toEqual([0, 1]);
  });
});
