import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { planted, precision, quickPrime, words } from '../../test/planted-texts.ts';
import { rowIndices, rowValues } from '../math/csr.ts';
import { loadModel, saveModel } from '../store/folder.ts';
import { Classifier } from './classifier.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);
const data = planted(200);
const dense = { rows: 200, cols: 3, values: Float32Array.from({ length: 600 }, (_, i) => i % 7) };
let folder: string;
let prime: Classifier;

describe.runIf(runtime)('vectors of texts as features', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'umbel-vectors-'));
    prime = await Classifier.train(data, { learner: 'prime', options: quickPrime });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('stand beside TF-IDF, are made of every input, and are saved with the model', async () => {
    const [plain, both] = [await Classifier.train(data), await Classifier.train(data, { vectors: prime })];
    expect(both.features).toBe(plain.features + 16);
    expect(await precision(both, data)).toBeGreaterThan(0.95);
    expect((await both.rank(data)).values).not.toEqual((await plain.rank(data)).values);
    await saveModel(both, join(folder, 'both'));
    const loaded = await loadModel(join(folder, 'both'));
    expect(await loaded.rank(data)).toEqual(await both.rank(data));
    expect(await loaded.suggest(['the violin'])).toEqual(await both.suggest(['the violin']));
  });

  it('tell labels of words that TF-IDF has never seen', async () => {
    // "violins" is not a word of the training texts, but begins with a subword that is.
    const right = async (model: Classifier) => {
      const answers = await model.suggest(
        words.map((word) => `${word}s`),
        { top: 1 },
      );
      return answers.filter(([first], i) => first?.label === words[i]).length;
    };
    expect(await right(await Classifier.train(data))).toBe(0);
    expect(await right(await Classifier.train(data, { vectors: prime }))).toBeGreaterThan(4);
  });

  it('follow dense columns, and are named in explanations that add up', async () => {
    const both = await Classifier.train({ ...data, features: { dense } }, { vectors: prime });
    const width = both.features;
    expect(both.featureName(width - 1)).toBe('vector 16');
    expect(both.featureName(width - 16)).toBe('vector 1');
    expect(both.featureName(width - 17)).toBe(`feature ${width - 17}`);
    const input = {
      texts: ['the violin of old'],
      features: { dense: { ...dense, rows: 1, values: dense.values.slice(0, 3) } },
    };
    const ranking = await both.rank(input, { top: 1 });
    const explained = await both.explain(input, both.vocabulary.label(rowIndices(ranking, 0)[0]).id);
    expect(explained?.score).toBeCloseTo(rowValues(ranking, 0)[0], 5);
    const [step] = explained?.steps ?? [];
    const sum = step.contributions.reduce((total, { value }) => total + value, step.bias);
    expect(sum).toBeCloseTo(step.margin, 4);
    await expect(both.rank(['the violin'])).rejects.toThrow('must have the features of the training data');
  });

  it('go with features of any kind, as long as there are texts', async () => {
    const { sparse } = {
      sparse: { ...data.labels, values: new Float32Array(data.labels.indices.length).fill(1) },
    };
    const both = await Classifier.train({ ...data, features: { sparse } }, { vectors: prime });
    expect(both.features).toBe(10 + 16);
    await expect(both.rank({ features: { sparse } })).rejects.toThrow('inputs must have text');
    await expect(
      Classifier.train({ ...data, texts: undefined, features: { sparse } }, { vectors: prime }),
    ).rejects.toThrow('inputs must have text');
  });

  it('come from a model that has them and go to one that takes them', async () => {
    const tree = await Classifier.train(data);
    await expect(Classifier.train(data, { vectors: tree })).rejects.toThrow(
      'vectors must come from a model that has them, like prime, got "tree"',
    );
    await expect(Classifier.train(data, { learner: 'prime', vectors: prime })).rejects.toThrow(
      'vectors must go to a learner that takes features, got "prime"',
    );
  });
});
