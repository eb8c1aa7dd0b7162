// Training from group labels on the command line: real processes on real files, from groups to suggestions.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Classifier, evidenceOf, imputeDataset, readGrouped, writeEvidence } from '../src/index.ts';

const main = join(import.meta.dirname, '..', 'dist', 'cli', 'main.js');
let folder: string;
const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

function umbel(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [main, ...args, '--threads', '1'],
      { cwd: folder },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      },
    );
  });
}

const lines = async (file: string) =>
  (await readFile(join(folder, file), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
const writeLines = (file: string, records: object[]) =>
  writeFile(join(folder, file), records.map((record) => `${JSON.stringify(record)}\n`).join(''));

const topics = ['apple pear', 'cloud sun', 'iron steel'];
const labelOf = (i: number) => ['fruit', 'sky', 'metal'][i % 3];
const groups = Array.from({ length: 20 }, (_, j) => {
  // Each leaves out one of three kinds: labels that always come together cannot be told apart.
  const instances = [0, 1, 2].filter((kind) => kind !== (j + 1) % 3).map((kind) => `s${3 * j + kind}`);
  return { group: `g${j}`, instances, labels: instances.map((id) => labelOf(Number(id.slice(1)))) };
});

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-groups-cli-'));
  const grouped = new Set(groups.flatMap(({ instances }) => instances));
  const samples = Array.from({ length: 60 }, (_, i) => ({
    id: `s${i}`,
    text: `${topics[i % 3]} ${i}`,
    labels: [],
  }));
  await writeLines(
    'instances.jsonl',
    samples.filter(({ id }) => grouped.has(id)),
  );
  await writeLines('groups.jsonl', groups);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const input = ['--train', 'instances.jsonl', '--groups', 'groups.jsonl'];

describe('umbel, where only groups carry labels', () => {
  it('knows labels that one group carries by the names in a file', async () => {
    const texts = ['fresh apple pear', 'iron steel beam', 'cloud and sun', 'copper wire', 'door', 'chair'];
    await writeLines(
      'few.jsonl',
      texts.map((text, i) => ({ id: `t${i}`, text, labels: [] })),
    );
    await writeLines('pairs.jsonl', [
      { group: 'a', instances: ['t0', 't1'], labels: ['c1', 'c2'] },
      { group: 'b', instances: ['t2', 't3'], labels: ['c3', 'c4'] },
      { group: 'c', instances: ['t4', 't5'], labels: ['c5', 'c5'] },
    ]);
    await writeFile(
      join(folder, 'names.tsv'),
      'c1\tSteel works\nc2\tPear tree\nc3\tCopper\nc4\tCloud\nc5\tWood\n',
    );
    const few = ['--train', 'few.jsonl', '--groups', 'pairs.jsonl', '--out', 'few-labelled.jsonl'];
    const how = ['--method', 'eagle-plus', '--labels', 'names.tsv', '--json'];
    const { code, stdout } = await umbel('impute', ...few, ...how);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).reasons).toEqual(['labels known by their names, too: 4']);
    const given = (await lines('few-labelled.jsonl')).map(({ labels }) => labels.join());
    expect(given).toEqual(['c2', 'c1', 'c4', 'c3', 'c5', 'c5']);
  });

  it('imputes labels, says why, and keeps to corrections', async () => {
    const why = ['--evidence', 'why.jsonl', '--method', 'eagle-plus', '--json'];
    const imputed = await umbel('impute', ...input, '--out', 'labelled.jsonl', ...why);
    expect(imputed.code).toBe(0);
    expect(JSON.parse(imputed.stdout)).toMatchObject({ n: 40, groups: 20, labels: 3, method: 'eagle-plus' });
    const wrong = (await lines('labelled.jsonl')).filter(
      ({ id, labels }) => labels.join() !== labelOf(Number(id.slice(1))),
    );
    expect(wrong).toEqual([]);
    const [one] = await lines('why.jsonl');
    expect(one).toMatchObject({ group: 'g0', instances: ['s0'], label: 'fruit' });
    expect(one.margin).toBeGreaterThan(0);

    await writeLines('mended.jsonl', [{ ...one, instances: ['s2'] }]);
    const mended = ['--corrections', 'mended.jsonl', '--evidence', 'again.jsonl'];
    expect((await umbel('impute', ...input, '--out', 'mended-labels.jsonl', ...mended)).code).toBe(0);
    const [s0, s2] = await lines('mended-labels.jsonl');
    expect(s0.labels).not.toContain('fruit');
    expect(s2.labels).toContain('fruit');
    const [first, ...others] = await lines('again.jsonl');
    expect(first).toEqual({ group: 'g0', label: 'fruit', instances: ['s2'], pinned: true });
    expect(others).toHaveLength(39);
  });

  it('trains any learner, with the seconds of imputing', async () => {
    const asked = ['--impute', 'eagle', '--set', 'impute.iterations=5', '--out', 'model', '--json'];
    const { code, stdout } = await umbel('train', ...input, ...asked);
    expect(code).toBe(0);
    const trained = JSON.parse(stdout);
    expect(trained.seconds.impute).toBeGreaterThan(0);
    expect(trained.imputation).toMatchObject({ method: 'eagle', groups: 20 });
    const suggested = await umbel(
      'predict',
      '--model',
      'model',
      '--text',
      'apple pear',
      '--top',
      '1',
      '--json',
    );
    expect(suggested.stdout).toContain('fruit');
  });

  it.runIf(runtime)('trains a network on groups as bags, and suggests labels for bags', async () => {
    const small = ['hidden=16', 'concepts=2', 'learningRate=0.02', 'epochs=20'].flatMap((set) => [
      '--set',
      set,
    ]);
    const { code, stderr } = await umbel('train', '--learner', 'miml', ...input, ...small, '--out', 'bags');
    expect(code, stderr).toBe(0);
    await writeLines('unlabelled.jsonl', [{ group: 'new', instances: ['s0', 's2'] }]);
    const asked = ['--model', 'bags', '--top', '2', '--json'];
    const bag = await umbel(
      'predict',
      ...asked,
      '--input',
      'instances.jsonl',
      '--groups',
      'unlabelled.jsonl',
    );
    const [answer] = JSON.parse(bag.stdout).predictions;
    expect(answer.id).toBe('new');
    expect(answer.labels.map(({ label }: { label: string }) => label).sort()).toEqual(['fruit', 'metal']);
    const drawn = await umbel('labels', 'picture', '--model', 'bags', '--out', 'labels.png', '--width', '1');
    expect([drawn.code, (await readFile(join(folder, 'labels.png'))).subarray(1, 4).toString()]).toEqual([
      0,
      'PNG',
    ]);
  });

  it('does the same from a program', async () => {
    const { dataset, grouped } = await readGrouped(join(folder, 'instances.jsonl'), {
      groups: join(folder, 'groups.jsonl'),
    });
    const imputed = await imputeDataset(dataset, grouped, { method: 'eagle-plus' });
    await writeEvidence(join(folder, 'program.jsonl'), evidenceOf(imputed, dataset, grouped));
    expect((await lines('program.jsonl')).length).toBe(40);
    const classifier = await Classifier.train(imputed.dataset);
    const [[best]] = await classifier.suggest(['apple pear'], { top: 1 });
    expect(best.label).toBe('fruit');
  });

  it('refuses options that the method does not know, and says what repeats are not given', async () => {
    const eagle = ['--out', 'repeated.jsonl', '--method', 'eagle'];
    const rounds = await umbel('impute', ...input, ...eagle, '--rounds', '2');
    expect([rounds.code, rounds.stderr]).toEqual([
      2,
      expect.stringContaining('rounds must come with the method eagle-plus, got "eagle"'),
    ]);
    await writeLines('twice.jsonl', [
      ...groups.slice(1),
      { ...groups[0], labels: ['fruit', 'fruit', 'metal'] },
    ]);
    const twice = ['--train', 'instances.jsonl', '--groups', 'twice.jsonl', ...eagle, '--json'];
    const best = JSON.parse((await umbel('impute', ...twice)).stdout);
    expect(best).toMatchObject({ assigned: 40, reasons: [expect.stringContaining('repeat labels 1 times')] });
    // Both labels of the first group go to one of its members: the other has none.
    await writeLines(
      'one.jsonl',
      ['fruit', 'metal'].map((label) => ({ group: 'g0', label, instances: ['s0'] })),
    );
    const one = [...input, ...eagle, '--corrections', 'one.jsonl', '--json'];
    expect(JSON.parse((await umbel('impute', ...one)).stdout)).toMatchObject({
      unlabelled: 1,
      dropped: 0,
      n: 40,
    });
    const left = JSON.parse((await umbel('impute', ...one, '--drop-unlabelled')).stdout);
    expect(left).toMatchObject({ unlabelled: 1, dropped: 1, n: 39 });
    const all = JSON.parse((await umbel('impute', ...twice, '--assign', 'top-r')).stdout);
    expect(all).toMatchObject({ assigned: 41, reasons: [], unlabelled: 0 });
  });

  it('says why it chose a method', async () => {
    const { stderr } = await umbel('impute', ...input, '--out', 'auto.jsonl', '--method', 'auto');
    expect(stderr).toMatch(/members of a group differ \d+% as much as random rows do/);
    expect(stderr).toMatch(/so (eagle|baseline)/);
  });

  it('knows instances without ids by their row numbers, whatever is left out', async () => {
    await writeFile(
      join(folder, 'numbered.csv'),
      'text\napple pear\ncloud sun\niron steel\nnever grouped\napple\nsun\n',
    );
    await writeLines('numbered.jsonl', [
      { group: 'a', instances: ['0', '1'], labels: ['fruit', 'sky'] },
      { group: 'b', instances: ['4', '5'], labels: ['fruit', 'sky'] },
      { group: 'c', instances: ['2'], labels: ['metal'] },
    ]);
    const given = [
      '--train',
      'numbered.csv',
      '--groups',
      'numbered.jsonl',
      '--columns',
      'text=text',
      '--skip-bad',
    ];
    const out = ['--out', 'numbered-labelled.jsonl', '--evidence', 'numbered-why.jsonl'];
    expect((await umbel('impute', ...given, ...out, '--method', 'eagle')).code).toBe(0);
    const ofB = (await lines('numbered-why.jsonl')).filter(({ group }) => group === 'b');
    expect(['4', '5']).toEqual(expect.arrayContaining(ofB.flatMap(({ instances }) => instances)));
    const corrected = [...out, '--corrections', 'right.jsonl', '--method', 'eagle'];
    await writeLines('right.jsonl', [{ group: 'b', label: 'sky', instances: ['4'] }]);
    const mended = await umbel('impute', ...given, ...corrected);
    expect(mended.stderr).toContain('kept as corrected: 1 of 5 pairs of group and label');
    expect((await lines('numbered-labelled.jsonl')).find(({ id }) => id === '4').labels).toContain('sky');
    await writeFile(join(folder, 'right.jsonl'), '');
    expect((await umbel('impute', ...given, ...corrected)).code).toBe(0);
    await writeFile(
      join(folder, 'numbered.csv'),
      'text\na,b,c\napple pear\ncloud sun\niron steel\napple\nsun\n',
    );
    const shifted = await umbel('impute', ...given, ...out);
    expect([shifted.code, shifted.stderr]).toEqual([
      2,
      expect.stringContaining('instances must have ids where bad ones'),
    ]);
  });

  it('refuses groups without any label, and evidence in the place of what is imputed', async () => {
    await writeLines(
      'silent.jsonl',
      groups.map(({ group, instances }) => ({ group, instances, labels: [] })),
    );
    const silent = ['--train', 'instances.jsonl', '--groups', 'silent.jsonl', '--out', 'x.jsonl'];
    expect((await umbel('impute', ...silent)).stderr).toContain('at least one group must carry a label');
    const both = await umbel('impute', ...input, '--out', 'x.jsonl', '--evidence', './x.jsonl');
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('another file than --out')]);
    const flag = await umbel(
      'impute',
      ...input,
      '--method',
      'eagle',
      '--drop-unlabelled',
      '--out',
      'x.jsonl',
    );
    expect(flag.code).toBe(0);
  });

  it('names what is wrong with the groups, or leaves it out and counts it', async () => {
    await writeLines('bad.jsonl', [
      ...groups.slice(0, 10),
      { group: 'none', instances: [], labels: ['fruit'] },
      { group: 'stranger', instances: ['s999'], labels: ['fruit'] },
    ]);
    const bad = [
      '--train',
      'instances.jsonl',
      '--groups',
      'bad.jsonl',
      '--out',
      'x.jsonl',
      '--method',
      'eagle',
    ];
    const refused = await umbel('impute', ...bad);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('bad.jsonl:11: instances must not be empty');
    const left = await umbel('impute', ...bad, '--skip-bad', '--json');
    // Two groups, and the instances of those that were not listed.
    expect(JSON.parse(left.stdout)).toMatchObject({ n: 20, groups: 10, skipped: 22 });
    expect(left.stderr).toContain('every instance must be in a group');
    expect(
      (await umbel('train', '--train', 'instances.jsonl', '--impute', 'eagle', '--out', 'm')).stderr,
    ).toContain('--impute must come with --groups');
  });

  it.each([
    ['impute', '--out', 'groups.jsonl', '--out must be another file than --groups'],
    ['impute', '--out', 'instances.jsonl', '--out must be another file than --train'],
    [
      'impute',
      '--out',
      'o.jsonl',
      '--evidence',
      'groups.jsonl',
      '--evidence must be another file than --groups',
    ],
    ['impute', '--out', 'o.jsonl', '--evidence', './o.jsonl', '--evidence must be another file than --out'],
    ['train', '--out', 'm', '--evidence', 'm/evidence.jsonl', '--evidence must be outside of --out'],
    [
      'train',
      '--out',
      'm',
      '--impute',
      'eagle',
      '--set',
      'impute.method=eagle-0',
      '--impute must be given instead',
    ],
  ])('refuses %s %s %s before any work, and nothing is lost', async (verb, ...args) => {
    const before = await Promise.all([lines('groups.jsonl'), lines('instances.jsonl')]);
    const message = args.pop() ?? '';
    const refused = await umbel(verb, ...input, ...args);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(await Promise.all([lines('groups.jsonl'), lines('instances.jsonl')])).toEqual(before);
  });

  it('groups that do not say what they carry are refused', async () => {
    await writeLines('unsaid.jsonl', [{ group: 'g', instances: ['s0', 's2'], label: ['fruit'] }]);
    const refused = await umbel('impute', ...input.slice(0, 3), 'unsaid.jsonl', '--out', 'o.jsonl');
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining('unsaid.jsonl:1: labels must be a list of ids'),
    ]);
  });

  it('says what was left out also where the rest is no use', async () => {
    await writeLines('useless.jsonl', [{ group: 'g', instances: ['nobody'], labels: ['fruit'] }]);
    const failed = await umbel(
      'impute',
      ...input.slice(0, 3),
      'useless.jsonl',
      '--skip-bad',
      '--out',
      'o.jsonl',
    );
    expect(failed.code).toBe(2);
    expect(failed.stderr).toContain('useless.jsonl:1: instance must be the id of a sample, got "nobody"');
  });

  it('does not group samples over the file they come from, or samples without labels', async () => {
    const over = await umbel('data', 'group', '--input', 'instances.jsonl', '--random', '2', '--out', '.');
    expect([over.code, over.stderr]).toEqual([
      2,
      expect.stringContaining('must be another file than --input'),
    ]);
    const bare = await umbel('data', 'group', '--input', 'instances.jsonl', '--random', '2', '--out', 'g');
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining('samples must have labels')]);
  });
});
