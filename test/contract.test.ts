// One suite for every learner in the registry: what DESIGN promises of each.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Dataset } from '../src/data/dataset.ts';
import { Vocabulary } from '../src/data/vocabulary.ts';
import { Classifier, type TrainOptions } from '../src/learn/classifier.ts';
import { findLearner, learnerNames } from '../src/learn/registry.ts';
import { CsrBuilder, rowIndices, rowValues } from '../src/math/csr.ts';
import { Random } from '../src/math/random.ts';
import { loadModel, saveModel } from '../src/store/folder.ts';

/** Texts drawn from label-specific words, beside dense features that also tell the label; the last label is unused. */
function plantedData(rows: number, labelCount: number): Required<Pick<Dataset, 'texts'>> & Dataset {
  const random = new Random(7, 'planted');
  const labels = new CsrBuilder('binary');
  const texts: string[] = [];
  const values = new Float32Array(rows * labelCount);
  for (let row = 0; row < rows; row++) {
    const own = [...new Set([random.integer(labelCount), random.integer(labelCount)])].sort((a, b) => a - b);
    labels.add(own);
    const words = own.flatMap((label) => [`word${label}a`, `word${label}b`, `common${random.integer(3)}`]);
    texts.push(words.join(' '));
    for (const label of own) values[row * labelCount + label] = 1 + 0.1 * random.normal();
  }
  const vocabulary = Vocabulary.numbered(labelCount + 1);
  vocabulary.describe(Array.from(vocabulary, ({ id }) => ({ id, name: `word${id}a` })));
  const features = { dense: { rows, cols: labelCount, values } };
  return { rows, texts, features, labels: labels.pattern(labelCount + 1), vocabulary };
}

const both = plantedData(240, 130);
const textOnly: Dataset = { ...both, features: undefined };
const unused = String(130);
const top = 4;

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);
/** Learners that need the optional runtime. */
const neural = ['gmvae', 'miml', 'prime', 'prime-lite', 'prime-w'];
/** What makes a learner quick enough for many trainings. */
const quick: Record<string, Record<string, unknown>> = {
  gmvae: { embedding: 16, latent: 8, epochs: 2 },
  miml: { hidden: 16, concepts: 2, columns: 32, iterations: 2, epochs: 2 },
  prime: { epochs: 1, batch: 64, width: 16, vocabulary: 500 },
  'prime-w': { epochs: 1, batch: 64, width: 16, vocabulary: 500, classifierEpochs: 1 },
  'prime-lite': { epochs: 1, batch: 64, width: 16, vocabulary: 500 },
};

/** Settings under which a learner is another machine. */
const variants = [
  ...learnerNames
    .filter((learner) => runtime || !neural.includes(learner))
    .map((learner) => ({ name: learner, learner, settings: quick[learner] ?? {} })),
  {
    name: 'tree with overlap',
    learner: 'tree',
    settings: { flatSize: 1, leafSize: 8, branching: 4, overlap: true, 'overlap.lambda': 3 },
  },
];

describe.each(variants)('$name', ({ learner, settings }) => {
  let folder: string;
  let classifier: Classifier;
  const train = (data: Dataset, options: Partial<TrainOptions> = {}) =>
    Classifier.train(data, { learner, ...options, options: { ...settings, ...options.options } });
  const ranked = async (model: Classifier, threads = 1) => {
    const { indptr, indices, values } = await model.rank(textOnly, { top, threads });
    return { indptr, indices, values };
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'umbel-contract-'));
    classifier = await train(textOnly);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('gives the same result for the same seed and any number of threads', async () => {
    const again = await train(textOnly, { threads: 3 });
    expect(await ranked(again, 3)).toEqual(await ranked(classifier));
  });

  it('predicts identically after save and load, and saves identical bytes again', async () => {
    const [first, second] = [join(folder, 'first'), join(folder, 'second')];
    await saveModel(classifier, first);
    const loaded = await loadModel(first);
    expect(await ranked(loaded)).toEqual(await ranked(classifier));
    await saveModel(loaded, second);
    for (const file of await readdir(first)) {
      expect((await readFile(join(second, file))).equals(await readFile(join(first, file)))).toBe(true);
    }
  });

  it('orders labels by score in (0, 1], ties by lowest column', async () => {
    const ranking = await classifier.rank(textOnly, { top: 200 });
    for (let row = 0; row < ranking.rows; row++) {
      const [labels, scores] = [rowIndices(ranking, row), rowValues(ranking, row)];
      expect(new Set(labels).size).toBe(labels.length);
      scores.forEach((score, i) => {
        expect(score).toBeGreaterThan(0);
        expect(score).toBeLessThanOrEqual(1);
        if (i === 0) return;
        const ordered = scores[i - 1] > score || (scores[i - 1] === score && labels[i - 1] < labels[i]);
        expect(ordered).toBe(true);
      });
    }
  });

  it('never predicts a label without positives, nor an excluded one', async () => {
    const all = (await classifier.suggest(textOnly, { top: 200 })).flat().map(({ label }) => label);
    expect(all).not.toContain(unused);
    const excluding = await train(textOnly);
    excluding.vocabulary.exclude([all[0]]);
    const rest = (await excluding.suggest(textOnly, { top })).flat().map(({ label }) => label);
    expect(rest).not.toContain(all[0]);
    expect(rest.length).toBeGreaterThan(0);
  });

  it('takes empty and unknown inputs without crashing', async () => {
    const answers = await classifier.suggest(['', 'nothing known here', '\u0000 \ud83c\udf3c'], { top });
    expect(answers).toHaveLength(3);
    expect(await classifier.suggest([], { top })).toEqual([]);
  });

  it('learns from dense features, and from dense beside text', async () => {
    const dense: Dataset = { ...both, texts: undefined };
    const { readsText } = await findLearner(learner);
    if (readsText) await expect(train(dense)).rejects.toThrow(/must have text/);
    for (const data of readsText ? [both] : [dense, both]) {
      const ranking = await (await train(data)).rank(data, { top });
      expect(ranking.rows).toBe(data.rows);
    }
    await expect(classifier.rank(dense, { top })).rejects.toThrow(/must have text/);
  });

  it('refuses an unknown option and a wrong value, naming them', async () => {
    await expect(train(textOnly, { options: { nonsense: 1 } })).rejects.toThrow(
      /unknown option, got "nonsense"/,
    );
    const { options } = await findLearner(learner);
    for (const [name, option] of Object.entries(options)) {
      const nonsense = { flag: 'perhaps', text: 7 }[String(option.kind)] ?? 'no such value';
      const wrong = train(textOnly, { options: { [name]: nonsense } });
      await expect(wrong).rejects.toThrow(new RegExp(`${name} must be`));
    }
  });

  it('stops when cancelled', async () => {
    const cancel = new AbortController();
    cancel.abort();
    const { readsText } = await findLearner(learner);
    for (const data of readsText ? [textOnly] : [textOnly, { ...both, texts: undefined }]) {
      await expect(train(data, { signal: cancel.signal })).rejects.toThrow('cancelled');
    }
  });

  it('explains scores as a product of factors whose margins add up, or says that it cannot', async () => {
    if (neural.includes(learner))
      return expect(classifier.explain(both.texts, '0')).rejects.toThrow('learner must be able to explain');
    const ranking = await classifier.rank(textOnly, { top });
    for (let row = 0; row < 20; row++) {
      const text = both.texts[row];
      const scores = rowValues(ranking, row);
      for (const [rank, column] of rowIndices(ranking, row).entries()) {
        const explanation = await classifier.explain([text], classifier.vocabulary.label(column).id);
        expect(explanation?.score).toBeCloseTo(scores[rank], 5);
        for (const step of explanation?.steps ?? []) {
          const sum = step.contributions.reduce((total, { value }) => total + value, step.bias);
          expect(step.margin).toBeCloseTo(sum, 5);
        }
      }
    }
    expect(await classifier.explain([both.texts[0]], unused)).toBeUndefined();
  });
});
