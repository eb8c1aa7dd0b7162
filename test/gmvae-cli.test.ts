// Networks on the command line: training with validation data, an interrupted run that goes on, what labels have in
// common as numbers and as pictures.
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Random } from '../src/math/random.ts';

// Seconds of training are minutes where many processes share two cores.
vi.setConfig({ testTimeout: 180_000 });

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);
const main = join(import.meta.dirname, '..', 'dist', 'cli', 'main.js');
let folder: string;

function start(...args: string[]) {
  const child = spawn(process.execPath, [main, ...args, '--threads', '1', '--json'], { cwd: folder });
  const code = new Promise<number | null>((resolve) => child.on('close', resolve));
  const ended = Promise.all([code, text(child.stdout), text(child.stderr)]);
  return { child, ended: ended.then(([status, stdout, stderr]) => ({ code: status, stdout, stderr })) };
}

async function umbel(...args: string[]) {
  const { code, stdout, stderr } = await start(...args).ended;
  return { code, answer: stdout ? JSON.parse(stdout) : undefined, stderr };
}

/** Words by label: fruit and sweet come together. */
function samples(rows: number, key: string): string {
  const random = new Random(1, key);
  const words = { fruit: 'apple pear', sky: 'cloud sun', metal: 'iron steel' };
  const lines = Array.from({ length: rows }, () => {
    const [label, own] = Object.entries(words)[random.integer(3)];
    const labels = label === 'fruit' ? ['fruit', 'sweet'] : [label];
    return `${JSON.stringify({ text: `${own} ${random.integer(5)}`, labels })}\n`;
  });
  return lines.join('');
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-gmvae-cli-'));
  for (const [name, rows] of Object.entries({ train: 150, valid: 40, test: 40 }))
    await writeFile(join(folder, `${name}.jsonl`), samples(rows, name));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const settings = ['embedding=16', 'latent=4', 'batch=32', 'runtimeThreads=1'].flatMap((s) => ['--set', s]);
const training = [
  'train',
  '--learner',
  'gmvae',
  '--train',
  'train.jsonl',
  '--valid',
  'valid.jsonl',
  ...settings,
];

describe.runIf(runtime)('umbel with gmvae', () => {
  it('trains, judges by every protocol of thresholds, and shows which labels are alike', async () => {
    expect((await umbel(...training, '--set', 'epochs=25', '--out', 'model')).code).toBe(0);
    expect(await readdir(join(folder, 'model'))).toContain('model-network.onnx');
    const { answer } = await umbel(
      'evaluate',
      '--model',
      'model',
      '--test',
      'test.jsonl',
      '--valid',
      'valid.jsonl',
    );
    expect(answer['P@1']).toBe(1);
    expect(Object.keys(answer.protocols)).toEqual(['oracle_test', 'val', 'per_label', 'fixed@.5']);
    const map = (out: string) => umbel('labels', 'map', '--model', 'model', '--out', out);
    const { answer: told } = await map('map.json');
    expect(told.closest[0].labels.sort()).toEqual(['fruit', 'sweet']);
    const { labels, similarities } = JSON.parse(await readFile(join(folder, 'map.json'), 'utf8'));
    expect(labels).toHaveLength(4);
    expect(similarities.map((row: number[], i: number) => row[i])).toEqual([0, 0, 0, 0]);
    await map('map.csv');
    const lines = (await readFile(join(folder, 'map.csv'), 'utf8')).trim().split('\n');
    expect(lines[0].split(',').slice(1)).toEqual(labels.map(({ label }: { label: string }) => label));
    await map('map.png');
    const png = await readFile(join(folder, 'map.png'));
    expect([png.subarray(1, 4).toString(), png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([
      'PNG',
      800,
      800,
    ]);
    await map('map.html');
    const page = await readFile(join(folder, 'map.html'), 'utf8');
    expect(page).toContain(`src="data:image/png;base64,${png.toString('base64').slice(0, 40)}`);
    expect((await map('map.gif')).answer.error.message).toMatch(/--out must end in .html, .png, .json, .csv/);
  });

  it('goes on after an interruption to the same model', async () => {
    const whole = ['--set', 'epochs=60', '--set', 'patience=0'];
    const { child, ended } = start(...training, ...whole, '--out', 'resumed');
    // Once there is something to go on from.
    while (!(await readdir(folder)).includes('resumed.checkpoint'))
      await new Promise((next) => setTimeout(next, 20));
    child.kill('SIGINT');
    expect((await ended).code).toBe(130);
    expect(await readdir(folder)).not.toContain('resumed');
    const resumed = await umbel(...training, ...whole, '--resume', '--out', 'resumed');
    expect(resumed).toMatchObject({ code: 0, stderr: expect.stringContaining('found 1 finished piece') });
    expect((await umbel(...training, ...whole, '--out', 'unbroken')).code).toBe(0);
    for (const file of await readdir(join(folder, 'unbroken'))) {
      const [a, b] = await Promise.all(
        ['unbroken', 'resumed'].map((name) => readFile(join(folder, name, file))),
      );
      expect(a.equals(b)).toBe(true);
    }
    expect(await readdir(folder)).not.toContain('resumed.checkpoint');
  });

  it('refuses validation data for learners that have nothing to choose, and maps of models without places', async () => {
    const tree = await umbel('train', '--train', 'train.jsonl', '--valid', 'valid.jsonl', '--out', 'tree');
    expect(tree.answer.error.message).toBe(
      'validation data must go to a learner that chooses by it, got "tree"',
    );
    await umbel('train', '--train', 'train.jsonl', '--out', 'tree');
    const map = await umbel('labels', 'map', '--model', 'tree');
    expect(map).toMatchObject({ code: 2, stderr: expect.stringContaining('model must give labels a place') });
  });
});
