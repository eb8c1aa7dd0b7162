// The command line as people use it: real processes on real files, from data to explanation.
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const main = join(import.meta.dirname, '..', 'dist', 'cli', 'main.js');
let folder: string;

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

function umbel(...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, ...args], { cwd: folder }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
    child.stdin?.end('red apple\nblue sky\n');
  });
}

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await umbel(...args, '--json');
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-cli-'));
  const rows = Array.from({ length: 60 }, (_, i) => {
    return i % 2 ? `${i},"red apple, number ${i}",fruit|red` : `${i},blue sky number ${i},sky|blue`;
  });
  await writeFile(join(folder, 'all.csv'), `id,title,tags\n${rows.join('\n')}\n`);
  await writeFile(join(folder, 'names.tsv'), 'fruit\tFruits and berries\nsky\tThe sky\n');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const delimiter = ['--label-delimiter', '|'];

describe('umbel', () => {
  it('tries options on rows held back, and says which suit the data', async () => {
    const tries = ['--try', 'cost=0.5,1', '--try', 'bias=0,1', '--metric', 'P@1'];
    const found = await umbel(
      'tune',
      '--train',
      'all.csv',
      '--learner',
      'one-vs-rest',
      ...tries,
      ...delimiter,
      '--json',
    );
    expect(found.code).toBe(0);
    const { trials, best, train, held, gain } = JSON.parse(found.stdout);
    expect([train, held, trials.length]).toEqual([54, 6, 4]);
    expect(trials[0].tried).toEqual({});
    expect(best.score).toBe(1);
    expect(gain.difference).toBe(0);
    const wrong = await umbel('tune', '--train', 'all.csv', '--try', 'cost', ...delimiter);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--try must have the form')]);
  });

  it('goes from a table to a model, suggestions, an evaluation and an explanation', async () => {
    const stats = await json('data', 'stats', 'all.csv', ...delimiter);
    expect((stats.files as object[])[0]).toMatchObject({ rows: 60 });

    const split = ['--input', 'all.csv', '--out', 'parts', '--rule', 'stratified', '--test', '0.2'];
    expect(await json('data', 'split', ...split, ...delimiter)).toMatchObject({ train: 48, test: 12 });

    const train = [
      '--train',
      'parts/train.csv',
      '--labels',
      'names.tsv',
      '--learner',
      'one-vs-rest',
      '--out',
      'model',
    ];
    const trained = await json('train', ...train, ...delimiter);
    expect(trained).toMatchObject({ learner: 'one-vs-rest', n: 48, labels: 4, model: 'model' });
    expect(Object.keys(trained.seconds as object)).toEqual(
      expect.arrayContaining(['read', 'vectorise', 'train', 'total']),
    );

    const predicted = await json('predict', '--model', 'model', '--top', '2');
    expect(predicted).toMatchObject({ n: 2 });
    const [first] = predicted.predictions as { labels: { label: string; name: string }[] }[];
    expect(first.labels.map(({ label }) => label).sort()).toEqual(['fruit', 'red']);
    expect(first.labels.find(({ label }) => label === 'fruit')?.name).toBe('Fruits and berries');

    const report = await json('evaluate', '--model', 'model', '--test', 'parts/test.csv', ...delimiter);
    expect(report).toMatchObject({ n: 12, labels: 4, 'P@1': 1, 'P@3': 2 / 3, 'R@10': 1, microF1: 1 });

    const why = await json('explain', '--model', 'model', '--text', 'a red apple', '--label', 'fruit');
    const [step] = why.steps as { contributions: { feature: string }[] }[];
    expect(step.contributions.map(({ feature }) => feature)).toEqual(
      expect.arrayContaining(['apple', 'red']),
    );

    await json('labels', 'exclude', 'fruit', '--model', 'model');
    const { predictions } = await json('predict', '--model', 'model', '--text', 'red apple', '--top', '4');
    expect(JSON.stringify(predictions)).not.toContain('fruit');
  });

  it('compares two models on the same rows', async () => {
    for (const learner of ['popular', 'one-vs-rest']) {
      await json('train', '--train', 'all.csv', '--learner', learner, '--out', learner, ...delimiter);
    }
    const models = ['--model', 'one-vs-rest', '--against', 'popular', '--test', 'all.csv'];
    const { comparison } = await json('evaluate', ...models, ...delimiter);
    const { difference, p } = (comparison as Record<string, { difference: number; p: number }>)['P@1'];
    expect(difference).toBeGreaterThan(0);
    expect(p).toBeLessThan(0.05);
  });

  it('writes suggestions as a table a librarian can open', async () => {
    await json('train', '--train', 'all.csv', '--learner', 'popular', '--out', 'floor', ...delimiter);
    await json(
      'predict',
      '--model',
      'floor',
      '--input',
      'all.csv',
      '--out',
      'out.csv',
      '--top',
      '2',
      ...delimiter,
    );
    const lines = (await readFile(join(folder, 'out.csv'), 'utf8')).trim().split('\n');
    expect(lines[0]).toBe('row,id,text,rank,label,name,score');
    expect(lines).toHaveLength(1 + 60 * 2);
  });

  it('groups samples and keeps labels for the groups only', async () => {
    const group = ['--input', 'all.csv', '--out', 'groups', '--random', '4', '--to', '.jsonl'];
    expect(await json('data', 'group', ...group, ...delimiter)).toMatchObject({ n: 60, groups: 15 });
    const [line] = (await readFile(join(folder, 'groups', 'groups.jsonl'), 'utf8')).split('\n');
    const { instances, labels } = JSON.parse(line);
    expect([instances.length, labels.length]).toEqual([4, 8]);
  });

  it.each([
    [['train', '--train', 'missing.csv', '--out', 'm'], /missing\.csv: file must exist/],
    [['train', '--train', 'all.csv', '--out', 'm', '--learner', 'poplar'], /did you mean popular\?/],
    [['train', '--train', 'all.csv', '--out', 'm', '--set', 'cost=1'], /did you mean costPositive\?/],
    [['train', '--train', 'all.csv', '--out', 'm', '--set', 'text.ngram=1'], /did you mean/],
    [['train', '--train', 'all.csv', '--out', 'm', '--set', 'ngrams=2'], /did you mean text\.ngrams\?/],
    [['train', '--train', 'all.csv', '--train', 'all.csv', '--out', 'm'], /--train must be given once/],
    [['train', '--train', 'all.xyz', '--out', 'm'], /--format/],
    [['train', '--train', 'all.csv', '--out', 'm', '--lerner', 'x'], /did you mean --learner/i],
    [['trian'], /did you mean train/i],
    [
      ['predict', '--model', 'parts', '--text', 'x', '--top', '0'],
      /--top must be a positive integer, got "0"/,
    ],
    [
      ['data', 'split', '--input', 'all.csv', '--out', 'p', '--test', '1.5'],
      /--test must be between 0 and 1/,
    ],
    [['data', 'group', '--input', 'all.csv', '--out', 'p'], /either --random or --depth/],
    [
      ['data', 'group', '--input', 'all.csv', '--out', 'p', '--random', '5', '--noise', '1'],
      /--noise must come with --depth/,
    ],
  ])('%j ends with one sentence and code 2', async (args, message) => {
    const { code, stderr, stdout } = await umbel(...args);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });

  it('notices labels that the model has never heard of, and names that no label has', async () => {
    const train = ['--train', 'all.csv', '--learner', 'popular', '--out', 'known', ...delimiter];
    const named = await umbel('train', ...train, '--labels', 'names.tsv');
    expect(named.stdout).toMatch(/described 2 of 4 labels \(not \w+, \w+\)\n/);
    await writeFile(join(folder, 'foreign.tsv'), 'a\tA\nb\tB\n');
    const foreign = await umbel('train', ...train, '--labels', 'foreign.tsv');
    expect(foreign.stderr).toMatch(/described 0 of 4 labels; 2 more labels are only in foreign\.tsv/);
    const { stderr, stdout } = await umbel('evaluate', '--model', 'known', '--test', 'all.csv', '--json');
    expect(stderr).toMatch(/100\.00% of the labels .* first is "sky\|blue": are --label-delimiter/);
    expect(JSON.parse(stdout)).toMatchObject({ unknownLabels: 1 });
  });

  it('refuses features of another width, and numbers the rows of those that fit', async () => {
    const rows = Array.from({ length: 12 }, (_, i) => `${i % 3} ${i % 3}:1 ${3 + (i % 5)}:0.5`).join('\n');
    await writeFile(join(folder, 'wide.xmc'), `12 20 3\n${rows}\n`);
    await writeFile(join(folder, 'narrow.xmc'), `12 15 3\n${rows}\n`);
    const trained = await umbel('train', '--train', 'wide.xmc', '--learner', 'one-vs-rest', '--out', 'wide');
    expect(trained.stdout).toContain('umbel predict --model wide --input FILE');
    for (const flags of [
      ['evaluate', '--test'],
      ['predict', '--input'],
    ]) {
      const { code, stderr } = await umbel(flags[0], '--model', 'wide', flags[1], 'narrow.xmc');
      expect(stderr).toMatch(/the model knows 20 sparse features, these inputs have 15 sparse ones/);
      expect(code).toBe(2);
    }
    const { stdout } = await umbel('predict', '--model', 'wide', '--input', 'wide.xmc', '--top', '1');
    expect(stdout).toMatch(/^row 1\n(.*\n)*row 12\n/);
  });

  it('takes a label by its name, and suggests the closest one', async () => {
    const named = ['--learner', 'one-vs-rest', '--labels', 'names.tsv', '--out', 'named', ...delimiter];
    await json('train', '--train', 'all.csv', ...named);
    const explain = ['explain', '--model', 'named', '--text', 'blue sky', '--label'];
    expect(await json(...explain, 'the SKY')).toMatchObject({ label: 'sky', name: 'The sky' });
    expect((await umbel(...explain, 'The ski')).stderr).toMatch(/did you mean The sky\?/);
  });

  it('tells the senses of a label that lies in several clusters', async () => {
    const parts = ['engine', 'wheel', 'brake', 'gear', 'clutch', 'pump', 'valve', 'piston'];
    const clothes = ['skirt', 'shirt', 'scarf', 'glove', 'hat', 'sock', 'coat', 'shoe'];
    const lines = Array.from({ length: 320 }, (_, i) => {
      const [words, place] = i % 2 ? [parts, 'car'] : [clothes, 'fashion'];
      const [word, other] = [words[(i >> 1) % 8], words[(i >> 2) % 8]];
      const labels = i % 4 < 2 ? [word, 'belt'] : [word];
      return JSON.stringify({
        id: `t${i}`,
        text: `${i % 4 < 2 ? 'belt ' : ''}${word} ${other} ${place}`,
        labels,
      });
    });
    await writeFile(join(folder, 'belts.jsonl'), lines.join('\n'));
    const settings = ['flatSize=1', 'leafSize=5', 'branching=4', 'beam=2', 'overlap=true'];
    const set = settings.flatMap((setting) => ['--set', setting]);
    await json('train', '--train', 'belts.jsonl', '--out', 'belts', ...set);

    const { label, senses } = await json('senses', '--model', 'belts', '--label', 'BELT');
    expect(label).toBe('belt');
    const told = senses as { share: number; words: { word: string }[]; examples: string[] }[];
    expect(told).toHaveLength(2);
    expect(told.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    for (const { examples } of told) expect(examples).toHaveLength(3);
    const places = told.map(({ examples }) => [...new Set(examples.map((text) => text.split(' ').at(-1)))]);
    expect(places.sort()).toEqual([['car'], ['fashion']]);

    const { labels } = await json('senses', '--model', 'belts', '--top', '3');
    expect((labels as { label: string }[])[0].label).toBe('belt');
    const ranked = await umbel('senses', '--model', 'belts', '--top', '1', '--words', '1');
    expect(ranked.stdout).toMatch(/belt +\w+ \| \w+\n$/);
    const shown = await umbel('senses', '--model', 'belts', '--label', 'belt');
    expect(shown.stdout).toMatch(/^belt {2}2 senses\n\n1\. \d+\.\d\d% of its samples/);
    expect(shown.stdout).toMatch(/\nwords {3}.*\nbeside {2}.*\ntexts {3}belt .* (car|fashion)\n/);

    const few = ['--train', 'all.csv', '--set', 'overlap=true', '--out', 'flat', ...delimiter];
    expect((await umbel('train', ...few)).stderr).toMatch(/overlap changes nothing: \d+ labels have no tree/);
    await json('train', '--train', 'all.csv', '--learner', 'popular', '--out', 'senseless', ...delimiter);
    for (const [args, message] of [
      [['--model', 'belts', '--label', 'bell'], /did you mean belt\?/],
      [['--model', 'belts'], /one of --label and --top must be given, and not both/],
      [['--model', 'senseless', '--top', '5'], /must have labels in several clusters.*overlap=true/],
      [['--model', 'senseless', '--label', 'sky'], /must have labels in several clusters/],
    ] as const) {
      const { code, stderr } = await umbel('senses', ...args);
      expect(stderr).toMatch(message);
      expect(code).toBe(2);
    }
  });

  it('names the depth of label reports, and shows none beyond --top', async () => {
    await json('train', '--train', 'all.csv', '--learner', 'popular', '--out', 'deep', ...delimiter);
    const flags = ['--model', 'deep', '--test', 'all.csv', '--top', '1', '--against', 'deep', ...delimiter];
    const { stdout } = await umbel('evaluate', ...flags, '--per-label', 'deep.csv', '--confidence', '0.9');
    expect(stdout).toContain('90% interval');
    expect(stdout).not.toMatch(/@(3|5|10)/);
    const [head] = (await readFile(join(folder, 'deep.csv'), 'utf8')).split('\n');
    expect(head).toBe('id,name,trained,positives,predicted@1,hits@1,precision@1,recall@1,f1@1');
  });

  it.each([
    [['train'], /required option '--train/],
    [['predict', '--model', 'm', '--top', '2.5'], /--top must be a positive integer/],
    [['trian'], /Did you mean train/],
  ])('%j --json prints the mistake as JSON', async (args, message) => {
    const { code, stdout } = await umbel(...args, '--json');
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error).toMatchObject({
      code: 'usage',
      message: expect.stringMatching(message),
    });
  });

  it('counts the bad records it left out', async () => {
    await writeFile(join(folder, 'bad.jsonl'), '{"text":"red","labels":["a"]}\n{"text":1}\n');
    const train = ['--train', 'bad.jsonl', '--learner', 'popular', '--out', 'bad', '--skip-bad', '--json'];
    expect(JSON.parse((await umbel('train', ...train)).stdout)).toMatchObject({ n: 1, skipped: 1 });
  });

  it('prints errors as JSON too, and a damaged model ends with code 1', async () => {
    await writeFile(join(folder, 'model.json'), '{');
    const { code, stdout } = await umbel('predict', '--model', '.', '--text', 'x', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout).error).toMatchObject({ code: 'model' });
  });

  it('explains every verb with an example', async () => {
    for (const verb of ['train', 'predict', 'explain', 'senses', 'evaluate']) {
      const { code, stdout } = await umbel(verb, '--help');
      expect(code).toBe(0);
      expect(stdout).toMatch(/Examples?:\n {2}/);
    }
    expect((await umbel('options', 'one-vs-rest')).stdout).toMatch(/cost .*price of a violated margin/);
  });

  it('leaves no half-written model when interrupted', async () => {
    const lines = Array.from(
      { length: 3000 },
      (_, i) => `${i % 997},${i % 613}\tword${i} word${i % 50} word${i % 7}`,
    );
    await writeFile(join(folder, 'many.txt'), lines.join('\n'));
    const args = ['train', '--train', 'many.txt', '--learner', 'one-vs-rest', '--out', 'interrupted'];
    const interrupted = (afterMs: number) => {
      const child = spawn(process.execPath, [main, ...args], { cwd: folder });
      setTimeout(() => child.kill('SIGINT'), afterMs);
      return new Promise((resolve) => child.on('exit', resolve));
    };
    // Null where the machine was so busy that the program had not begun to listen for signals.
    expect((await interrupted(1500)) ?? (await interrupted(10_000))).toBe(130);
    expect((await readdir(folder)).filter((name) => name.includes('interrupted'))).toEqual([]);
  });
});
