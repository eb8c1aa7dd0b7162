import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { planted, precision, quickPrime, words } from '../../../test/planted-texts.ts';
import { tinyBert, tinyDistilBert, writeCheckpoint } from '../../../test/tiny-bert.ts';
import { loadModel, saveModel } from '../../store/folder.ts';
import { trainSubwords } from '../../text/subword-trainer.ts';
import { Subwords } from '../../text/subwords.ts';
import { Classifier } from '../classifier.ts';
import type { TransformerShape } from '../encode/transformer.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);
const data = planted(200);
const synonyms = ['fiddle', 'port', 'ice', 'fair', 'spice', 'fort', 'globe', 'loom', 'storm', 'mail'];
let folder: string;
let shape: TransformerShape;

const train = (settings: Record<string, unknown>, seed = 1) =>
  Classifier.train(data, { learner: 'prime', seed, options: { ...quickPrime, ...settings } });
const fromFolder = (name: string, settings: Record<string, unknown> = {}, seed = 1) =>
  train({ encoder: 'pretrained', folder: join(folder, name), ...settings }, seed);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-pretrained-'));
  const tokenizer = trainSubwords(data.texts, { size: 120, minCount: 2, lowercase: true });
  const tokens = (await Subwords.from(tokenizer)).size;
  shape = {
    kind: 'transformer',
    tokens,
    width: 16,
    layers: 2,
    heads: 2,
    inner: 32,
    places: 20,
    activation: 'gelu',
    epsilon: 1e-5,
    dropout: 0.1,
  };
  await writeCheckpoint(join(folder, 'bert'), tokenizer, tinyBert(shape, 0.1));
  await writeCheckpoint(join(folder, 'distilbert'), tokenizer, tinyDistilBert(shape, 0.1));
  await writeCheckpoint(join(folder, 'few'), tokenizer, tinyBert({ ...shape, tokens: tokens - 1 }));
  const { config } = tinyBert({ ...shape, inner: 40 });
  await writeCheckpoint(join(folder, 'other'), tokenizer, { ...tinyBert(shape), config });
  const axis = (i: number) => words.map((_, j) => Number(i === j)).join(' ');
  const lines = words.map((word, i) => `${word} ${axis(i)}\n${synonyms[i]} ${axis(i)}\n`);
  await writeFile(join(folder, 'words.txt'), lines.join(''));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe.runIf(runtime)('prime with an encoder from a folder', () => {
  it.each(['bert', 'distilbert'])(
    'learns on from a checkpoint of %s, and keeps it in the model',
    async (family) => {
      const tuned = await fromFolder(family, { epochs: 15 });
      expect(await precision(tuned, data)).toBeGreaterThan(0.9);
      const saved = join(folder, `${family}-model`);
      await saveModel(tuned, saved);
      const model = await loadModel(saved);
      expect(await model.rank(data, { top: 3 })).toEqual(await tuned.rank(data, { top: 3 }));
    },
  );

  it('starts from the weights of the folder, whatever the seed', async () => {
    const still = { epochs: 1, learningRate: 1e-12, labels: 'text' };
    const scores = async (name: string, seed: number) =>
      (await (await fromFolder(name, still, seed)).rank(data, { top: 10 })).values;
    const [first, second] = [await scores('bert', 1), await scores('bert', 2)];
    second.forEach((score, i) => {
      expect(score).toBeCloseTo(first[i], 5);
    });
    expect((await scores('distilbert', 1)).some((score, i) => Math.abs(score - first[i]) > 1e-3)).toBe(true);
  });

  it('refuses tokens and places that the network does not have, and weights that do not fit, naming the folder', async () => {
    await expect(fromFolder('few')).rejects.toThrow(
      /few: tokenizer\.json must know at most the \d+ tokens of the network, got \d+/,
    );
    await expect(fromFolder('bert', { length: 21 })).rejects.toThrow(
      /length must be at most the 20 places of the network, got 21/,
    );
    await expect(fromFolder('other')).rejects.toThrow(
      /other: model\.safetensors: .*intermediate\.dense\.weight must have the shape .*\[40, 16\], got "\[32, 16\]"/,
    );
  });
});

describe.runIf(runtime)('prime with vectors of words to start from', () => {
  it('knows before it learns which words mean the same', async () => {
    // No text has a word of a label's name. Said twice, a name becomes a token.
    const renamed = planted(200, (id, i) => ({ id, name: `${synonyms[i]} ${synonyms[i]}` }));
    const still = { ...quickPrime, epochs: 1, learningRate: 1e-12, labels: 'text' };
    const started = async (settings: Record<string, unknown>) => {
      const options = { ...still, ...settings };
      return precision(await Classifier.train(renamed, { learner: 'prime', options }), renamed);
    };
    expect(await started({ wordVectors: join(folder, 'words.txt') })).toBeGreaterThan(0.7);
    expect(await started({})).toBeLessThan(0.4);
  });

  it('refuses what it cannot start from', async () => {
    const wordVectors = join(folder, 'words.txt');
    await expect(train({ wordVectors, width: 8 })).rejects.toThrow(/width must be at least .* 10, got 8/);
    await expect(train({ wordVectors, encoder: 'transformer' })).rejects.toThrow(
      'wordVectors must come with encoder=bag, got "transformer"',
    );
  });
});

describe.runIf(runtime)('texts that prime has not met the like of', () => {
  it('are cut off where they are longer than length', async () => {
    const model = await train({ length: 8, epochs: 1 });
    const start = 'the violin of some and the';
    const [cut, whole, shorter] = await model.suggest([
      `${start} ${'castle '.repeat(500)}`,
      start,
      'the violin of some',
    ]);
    expect(cut).toEqual(whole);
    expect(cut).not.toEqual(shorter);
  });

  it('get labels even where every token is unknown or there is none', async () => {
    const model = await train({ epochs: 1 });
    for (const labels of await model.suggest(['漢字 ☃', '', '   '], { top: 3 }))
      expect(labels).toHaveLength(3);
  });
});
