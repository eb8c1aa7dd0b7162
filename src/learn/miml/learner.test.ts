import { describe, expect, it } from 'vitest';
import { bagSamples, groupRows, randomGroups } from '../../data/group.ts';
import { Vocabulary } from '../../data/vocabulary.ts';
import { CsrBuilder, rowIndices } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { parseOptions } from '../../options.ts';
import type { Tensors } from '../../parts.ts';
import { quiet, type Step } from '../../progress.ts';
import { Classifier } from '../classifier.ts';
import type { Model, TrainContext, TrainingSet } from '../learner.ts';
import { fitInstances, Projector } from './instances.ts';
import { miml } from './learner.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

const labelCount = 4;

/** Instances of one label each, around their label's direction; a fifth label is nobody's. */
function planted(rows: number, key: string): TrainingSet {
  const random = new Random(3, key);
  const labels = new CsrBuilder('binary');
  const values = Float32Array.from({ length: rows * 6 }, () => 0.3 * random.normal());
  for (let row = 0; row < rows; row++) {
    const label = random.integer(labelCount);
    labels.add([label]);
    values[row * 6 + label] += 1;
  }
  return {
    rows,
    labels: labels.pattern(labelCount + 1),
    vocabulary: Vocabulary.numbered(labelCount + 1),
    features: { dense: { rows, cols: 6, values } },
  };
}

const [instances, test] = [planted(600, 'train'), planted(80, 'test')];
const groups = groupRows(randomGroups(600, 4, 1), instances.labels, 'list');
const bags = bagSamples(instances, groups);
const small = { hidden: 32, concepts: 2, epochs: 12, learningRate: 0.005, batch: 32, runtimeThreads: 1 };
const train = (options: Record<string, unknown> = {}, context: Partial<TrainContext> = {}, set = bags) =>
  miml.train(set, parseOptions(miml.options, { ...small, ...options }), {
    seed: 5,
    threads: 1,
    progress: quiet,
    ...context,
  });

async function topHits(model: Model, { features, labels }: TrainingSet): Promise<number> {
  const ranking = await model.predict(features, { top: 1 });
  expect(ranking.rows).toBe(labels.rows);
  const rows = [...Array(labels.rows).keys()];
  return (
    rows.filter((row) => rowIndices(labels, row).includes(rowIndices(ranking, row)[0])).length / labels.rows
  );
}

const scoresOf = async (model: Model) => (await model.predict(bags.features, { top: 5 })).values;

describe.runIf(runtime)('miml', () => {
  it.each([
    { attention: 'none' },
    { attention: 'eagle-0', tau: 1 },
    { attention: 'eagle', tau: 1 },
    { attention: 'none', head: 'bce-softmax' },
  ])('learns from the labels of bags what single instances are: %j', async (options) => {
    const model = await train(options);
    expect(await topHits(model, test)).toBeGreaterThan(0.8);
    expect(await topHits(model, bags)).toBeGreaterThan(0.9);
  });

  it('is plain Deep-MIML where tau is 0', async () => {
    const plain = await train({ attention: 'none', epochs: 2 });
    expect(await scoresOf(await train({ attention: 'eagle', tau: 0, epochs: 2 }))).toEqual(
      await scoresOf(plain),
    );
    expect(await scoresOf(await train({ attention: 'eagle', tau: 2, epochs: 2 }))).not.toEqual(
      await scoresOf(plain),
    );
  });

  it('chooses tau by validation data where it is asked to', async () => {
    const told: Step[] = [];
    const model = await train(
      { chooseTau: true, epochs: 1 },
      { validation: test, progress: (step) => told.push(step) },
    );
    const parts = { write: async () => {}, writeProgram: async () => {} };
    const { tau } = (await model.save(parts)) as { tau: number };
    expect([0, 0.5, 1, 2, 5, 10, 20]).toContain(tau);
    expect(told.at(-1)?.detail).toMatch(/^loss [\d.]+, R-precision [\d.]+, likelihood -[\d.]+$/);
    await expect(train({ chooseTau: true, validation: 0 })).rejects.toThrow(
      'chooseTau must have validation data',
    );
  });

  it('goes on after a cut as if there had been none', async () => {
    const pieces = new Map<string, Tensors>();
    const cut = new AbortController();
    const checkpoint = {
      load: async (name: string) => structuredClone(pieces.get(name)),
      save: async (name: string, tensors: Tensors) => {
        pieces.set(name, tensors);
        if (tensors.course.data[0] === 2) cut.abort();
      },
    };
    await expect(train({ epochs: 5 }, { checkpoint, signal: cut.signal })).rejects.toThrow('cancelled');
    const [[name, kept]] = pieces;
    expect(kept.course.data[0]).toBeLessThan(5);
    const resumed = await train({ epochs: 5 }, { checkpoint });
    expect([...pieces.keys()]).toEqual([name]);
    expect(await scoresOf(resumed)).toEqual(await scoresOf(await train({ epochs: 5 })));
  });

  it('refuses to go on when the loss is no number, and says what to lower', async () => {
    await expect(train({ learningRate: 1e30 })).rejects.toThrow(
      /the loss must be finite at step \d+, got \S+ \(lower the learning rate, now 1e\+30/,
    );
  });

  it('shows where labels lie, those that have bags', async () => {
    const places = (await train({ epochs: 1 })).labelVectors?.();
    expect([...(places?.labels ?? [])]).toEqual([0, 1, 2, 3]);
    const { rows = 0, cols = 0, values = new Float32Array() } = places?.vectors ?? {};
    // Each lies nearest to its own axis.
    for (let label = 0; label < rows; label++) {
      const own = [...values.subarray(label * cols, (label + 1) * cols)];
      expect(own.indexOf(Math.max(...own))).toBe(label);
    }
  });

  it('takes texts as bags of their sentences', async () => {
    const words = ['apples and pears', 'clouds and rain', 'iron and steel'];
    const random = new Random(1);
    const drawn = Array.from({ length: 90 }, () =>
      [...new Set([random.integer(3), random.integer(3)])].sort(),
    );
    const labels = new CsrBuilder('binary');
    for (const own of drawn) labels.add(own);
    const texts = drawn.map((own) => own.map((label) => `There are ${words[label]} here.`).join(' '));
    const set = { rows: 90, texts, labels: labels.pattern(3), vocabulary: Vocabulary.numbered(3) };
    const options = { ...small, epochs: 60, 'text.split': 'sentences' };
    const classifier = await Classifier.train(set, { learner: 'miml', options });
    const [both, one, none] = await classifier.suggest(['I like rain. Steel is hard!', 'Pears.', ''], {
      top: 3,
    });
    expect(new Set(both.slice(0, 2).map(({ label }) => label))).toEqual(new Set(['1', '2']));
    expect(one[0].label).toBe('0');
    expect(none).toEqual([]);
    await expect(
      Classifier.train(set, { learner: 'popular', options: { 'text.split': 'sentences' } }),
    ).rejects.toThrow('bags of instances must go to a learner that takes them, like miml, got "popular"');
  });
});

describe('instances', () => {
  it('keep, on average, their products when they are projected', () => {
    const rows = new CsrBuilder('values');
    const random = new Random(2);
    const columns = () => Array.from({ length: 20 }, () => random.integer(1000));
    for (let row = 0; row < 30; row++) {
      const own = [...new Set(columns())].sort((a, b) => a - b);
      rows.add(
        own,
        own.map(() => 1 + random.uniform()),
      );
    }
    const sparse = rows.csr(1000);
    const { cols, values } = new Projector(1000, { columns: 256, seed: 1 }).apply({ sparse });
    const row = (i: number) => values.subarray(i * cols, (i + 1) * cols);
    const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, j) => sum + value * b[j], 0);
    const lengths = Array.from({ length: 30 }, (_, i) => dot(row(i), row(i)));
    expect(lengths.reduce((sum, value) => sum + value, 0) / 30).toBeCloseTo(1, 1);
    // Random rows share next to nothing.
    for (let i = 1; i < 30; i++) expect(Math.abs(dot(row(0), row(i)))).toBeLessThan(0.4);
  });

  it('have mean zero, and one scale for all dense columns', () => {
    const values = Float32Array.of(0, 10, 2, 10, 4, 40, 6, 20);
    const { mean, scale } = fitInstances({ rows: 4, cols: 2, values }, 2);
    expect([...mean]).toEqual([3, 20]);
    expect(scale[0]).toBe(scale[1]);
    const squares = values.reduce((sum, value, i) => sum + ((value - mean[i % 2]) * scale[0]) ** 2, 0);
    expect(squares).toBeCloseTo(8, 4);
  });
});
