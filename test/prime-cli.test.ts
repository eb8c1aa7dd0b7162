// PRIME on the command line: trained on labels with names, then taught one more and made to forget it.
import { execFile } from 'node:child_process';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Client } from '../src/client.ts';
import { parseOptions } from '../src/options.ts';
import { startServer } from '../src/server/app.ts';
import { limitOptions } from '../src/server/limits.ts';

const main = join(import.meta.dirname, '..', 'dist', 'cli', 'main.js');
const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);
let folder: string;

function umbel(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [main, ...args], { cwd: folder }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

const first = async (text: string): Promise<string> => {
  const { stdout } = await umbel('predict', '--model', 'model', '--text', text, '--top', '1', '--json');
  return /"label":\s*"([^"]+)"/.exec(stdout)?.[1] ?? stdout;
};

describe.runIf(runtime)('umbel with prime', () => {
  const words = ['harbour', 'glacier', 'market', 'pepper', 'castle', 'planet'];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'umbel-prime-cli-'));
    const sample = (i: number) => ({ text: `the ${words[i % 6]} of ${i % 4}`, labels: [`l${i % 6}`] });
    const lines = Array.from({ length: 90 }, (_, i) => `${JSON.stringify(sample(i))}\n`);
    await writeFile(join(folder, 'train.jsonl'), lines.join(''));
    await writeFile(join(folder, 'names.tsv'), words.map((word, i) => `l${i}\t${word}\n`).join(''));
    await writeFile(join(folder, 'examples.txt'), 'a violin\n\nthe violin of 3\n');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('needs the names of labels', async () => {
    const { code, stderr } = await umbel(
      'train',
      '--learner',
      'prime',
      '--train',
      'train.jsonl',
      '--out',
      'model',
    );
    expect(code).toBe(2);
    expect(stderr).toContain('labels must have names');
  });

  it('trains, takes a new label, suggests it, and forgets it', async () => {
    const set = ['epochs=8', 'batch=16', 'width=16', 'vocabulary=200', 'learningRate=0.01'];
    const settings = set.flatMap((setting) => ['--set', setting]);
    const train = [
      'train',
      '--learner',
      'prime',
      '--train',
      'train.jsonl',
      '--labels',
      'names.tsv',
      '--out',
      'model',
    ];
    expect((await umbel(...train, ...settings)).stderr).not.toContain('must');
    expect(await first('the pepper of 2')).toBe('l3');
    const add = ['labels', 'add', '--model', 'model', '--text', 'violin'];
    const added = await umbel(...add, '--id', 'v', '--examples', 'examples.txt', '--json');
    expect(JSON.parse(added.stdout)).toEqual({ label: 'v', name: 'violin', examples: 2, labels: 7 });
    expect(await first('some violin')).toBe('v');
    expect((await umbel(...add, '--id', 'v')).stderr).toContain('an id of its own');
    const tree = ['train', '--train', 'train.jsonl', '--out', 'tree'];
    expect((await umbel(...tree)).code).toBe(0);
    const ask = ['predict', '--model', 'tree', '--text', 'some violin', '--top', '7', '--json'];
    // The tree knows nothing of violins; labels of the other that it does not have are left out.
    const blended = await umbel(...ask, '--with', 'model', '--by', 'score', '--weight', '0.9');
    expect(JSON.parse(blended.stdout).predictions[0].labels).toHaveLength(6);
    const evaluated = await umbel(
      'evaluate',
      '--model',
      'tree',
      '--with',
      'model',
      '--test',
      'train.jsonl',
      '--json',
    );
    expect(JSON.parse(evaluated.stdout)['P@1']).toBe(1);
    expect((await umbel(...ask, '--by', 'rank')).stderr).toContain('--by must come with --with, got "rank"');
    const excluded = await umbel('labels', 'exclude', 'v', '--model', 'model', '--json');
    expect(JSON.parse(excluded.stdout)).toEqual({ labels: 7, excluded: ['v'] });
    expect(await first('some violin')).not.toBe('v');
    const removed = await umbel('labels', 'remove', 'v', '--model', 'model', '--json');
    expect(JSON.parse(removed.stdout)).toEqual({ removed: ['v'], labels: 6 });
    expect(await first('the pepper of 2')).toBe('l3');
  }, 300_000);

  it('lends its vectors to a tree, which then goes without it, also over HTTP', async () => {
    const lend = ['train', '--train', 'train.jsonl', '--vectors', 'model', '--out', 'both', '--json'];
    const { features } = JSON.parse((await umbel(...lend)).stdout);
    const alone = JSON.parse(
      (await umbel('train', '--train', 'train.jsonl', '--out', 'tree', '--json')).stdout,
    );
    expect(features).toBe(alone.features + 16);
    await rename(join(folder, 'model'), join(folder, 'moved'));
    const ask = ['predict', '--model', 'both', '--text', 'peppers of 2', '--json'];
    const [{ labels }] = JSON.parse((await umbel(...ask)).stdout).predictions;
    expect(labels[0].label).toBe('l3');
    const server = await startServer({
      models: [{ name: 'both', folder: join(folder, 'both') }],
      host: '127.0.0.1',
      port: 0,
      threads: 1,
      limits: parseOptions(limitOptions, {}),
      cors: [],
      trustProxy: false,
      log: { level: 'silent', write: () => {} },
    });
    try {
      const answer = await new Client(server.url).suggest('both', 'peppers of 2');
      expect(answer.map(({ label }) => label)).toEqual(labels.map(({ label }: { label: string }) => label));
    } finally {
      await server.close();
    }
    const wrong = await umbel('train', '--train', 'train.jsonl', '--vectors', 'tree', '--out', 'other');
    expect(wrong.stderr).toContain('vectors must come from a model that has them, like prime, got "tree"');
    expect(wrong.code).toBe(2);
  }, 300_000);
});
