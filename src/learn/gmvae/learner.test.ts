import { describe, expect, it, vi } from 'vitest';
import { Vocabulary } from '../../data/vocabulary.ts';
import { CsrBuilder, rowIndices } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { parseOptions } from '../../options.ts';
import type { Json, Tensors } from '../../parts.ts';
import { quiet, type Step } from '../../progress.ts';
import type { Model, TrainContext, TrainingSet } from '../learner.ts';
import { gmvae } from './learner.ts';

// Seconds of training are minutes where many processes share two cores.
vi.setConfig({ testTimeout: 180_000 });

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

const labelCount = 6;

/** Each label adds its own direction to the features; labels 0 and 1 come together, the last row has none. */
function planted(rows: number, key: string): TrainingSet {
  const random = new Random(3, key);
  const labels = new CsrBuilder('binary');
  const width = 8;
  const values = Float32Array.from({ length: rows * width }, () => 0.3 * random.normal());
  for (let row = 0; row < rows; row++) {
    const first = random.integer(labelCount);
    const own = first < 2 ? [0, 1] : [first];
    labels.add(row === rows - 1 ? [] : own);
    for (const label of row === rows - 1 ? [] : own) values[row * width + label] += 2;
  }
  return {
    rows,
    labels: labels.pattern(labelCount + 1),
    vocabulary: Vocabulary.numbered(labelCount + 1),
    features: { dense: { rows, cols: width, values } },
  };
}

const [set, test] = [planted(150, 'train'), planted(60, 'test')];
const small = { embedding: 16, latent: 4, epochs: 15, dropout: 0.1, batch: 32, runtimeThreads: 1 };
const train = (options: Record<string, unknown> = {}, context: Partial<TrainContext> = {}) =>
  gmvae.train(set, parseOptions(gmvae.options, { ...small, ...options }), {
    seed: 5,
    threads: 1,
    progress: quiet,
    ...context,
  });

const topHits = async (model: Model): Promise<number> => {
  const ranking = await model.predict(test.features, { top: 1 });
  let hits = 0;
  for (let row = 0; row < test.rows; row++)
    hits += Number(rowIndices(test.labels, row).includes(rowIndices(ranking, row)[0]));
  return hits / test.rows;
};

const configOf = async (model: Model) =>
  (await model.save({ write: async () => {}, writeProgram: async () => {} })) as { [key: string]: Json };

/** A checkpoint in memory that counts what it is given. */
function memory() {
  const pieces = new Map<string, Tensors>();
  let saves = 0;
  return {
    pieces,
    get saves() {
      return saves;
    },
    load: async (name: string) => structuredClone(pieces.get(name)),
    save: async (name: string, tensors: Tensors) => {
      saves++;
      pieces.set(name, tensors);
    },
  };
}

describe.runIf(runtime)('gmvae', () => {
  it.each([
    {},
    // With its full weight the prior takes all there is of so few rows.
    { profile: 'paper', klWeight: 0.1 },
    { prior: 'single', contrastWeight: 0 },
    { contrastWeight: 0 },
    { klWeight: 0 },
    { emptyRows: 'drop', validation: 0 },
  ])('finds planted labels with %j', async (options) => {
    expect(await topHits(await train({ epochs: 25, ...options }))).toBeGreaterThan(0.85);
  });

  it('tells losses and scores as it goes, and takes the epoch that validated best', async () => {
    const steps: Step[] = [];
    const model = await train({}, { progress: (step) => steps.push(step), validation: test });
    expect(steps[0]).toMatchObject({ phase: 'train', done: 1, total: 15 * 5, unit: 'steps' });
    expect(steps[0].detail).toMatch(/^likelihood [\d.]+, .*contrast [\d.]+, loss [\d.]+$/);
    expect(steps.at(-1)?.detail).toMatch(/loss [\d.]+, macroF1 [\d.]+, .*P@1 [\d.]+, logLikelihood -[\d.]+$/);
    const { training } = await configOf(model);
    const { chosen, scores } = training as unknown as { chosen: number; scores: Record<string, number> };
    expect(await topHits(model)).toBeCloseTo(scores['P@1'], 6);
    expect(chosen).toBeLessThanOrEqual(15);
  });

  it('stops when validation has nothing better to say', async () => {
    const { training } = await configOf(await train({ epochs: 100, patience: 3, learningRate: 0.05 }));
    const { epochs, chosen } = training as { epochs: number; chosen: number };
    expect(epochs).toBeLessThan(100);
    expect(epochs - chosen).toBeGreaterThanOrEqual(3);
  });

  it('goes on from what a killed run left to the same model', async () => {
    const expected = await train();
    const checkpoint = memory();
    const cancel = new AbortController();
    const stopped = train(
      {},
      {
        checkpoint,
        signal: cancel.signal,
        progress: ({ done }) => {
          if (done === 5 * 4 + 2) cancel.abort();
        },
      },
    );
    await expect(stopped).rejects.toMatchObject({ code: 'cancelled' });
    const before = checkpoint.saves;
    expect(before).toBeGreaterThanOrEqual(4);
    expect(checkpoint.pieces.size).toBe(1);
    const steps: Step[] = [];
    const resumed = await train({}, { checkpoint, progress: (step) => steps.push(step) });
    expect(steps[0].done).toBe(before * 5 + 1);
    const written = async (model: Model) => {
      const programs: Buffer[] = [];
      const config = await model.save({
        write: async () => {},
        writeProgram: async (_, onnx) => void programs.push(Buffer.from(onnx)),
      });
      return { config, program: programs[0] };
    };
    const [after, whole] = [await written(resumed), await written(expected)];
    expect(after.config).toEqual(whole.config);
    expect(after.program.equals(whole.program)).toBe(true);
    const other = await train({ learningRate: 0.001, epochs: 1 }, { checkpoint });
    expect(await configOf(other)).toMatchObject({ training: { epochs: 1 } });
  });

  it('refuses losses that are not finite, naming the term, the step and what to lower', async () => {
    await expect(train({ learningRate: 1e30 })).rejects.toThrow(
      /^the loss term [a-z ]+ must be finite at step \d+, got (NaN|-?Infinity) \(lower the learning rate, now 1e\+30/,
    );
  });

  it('places labels that come together closer than others', async () => {
    const model = await train({ epochs: 25 });
    const { labels, vectors } = model.labelVectors?.() ?? {
      labels: [],
      vectors: { rows: 0, cols: 0, values: [] },
    };
    expect([...labels]).toEqual([0, 1, 2, 3, 4, 5]);
    expect([vectors.rows, vectors.cols]).toEqual([labelCount, 16]);
    const cosine = (a: number, b: number) => {
      const of = (i: number) => Array.from(vectors.values.slice(i * 16, (i + 1) * 16));
      const dot = of(a).reduce((total, x, i) => total + x * of(b)[i], 0);
      return dot / Math.hypot(...of(a)) / Math.hypot(...of(b));
    };
    for (let other = 2; other < labelCount; other++)
      expect(cosine(0, 1)).toBeGreaterThan(cosine(0, other) + 0.2);
  });

  it('refuses rows that teach nothing', async () => {
    const nothing = {
      ...set,
      labels: { ...set.labels, indptr: set.labels.indptr.map(() => 0), indices: new Uint32Array() },
    };
    const options = parseOptions(gmvae.options, { ...small, emptyRows: 'drop' });
    const training = gmvae.train(nothing, options, { seed: 1, threads: 1, progress: quiet });
    await expect(training).rejects.toThrow(/rows with labels/);
  });
});

describe('without onnxruntime-node', () => {
  it('a saved model opens, shows its labels and says what predictions need', async () => {
    vi.resetModules();
    vi.doMock('onnxruntime-node', () => {
      throw new Error('not found');
    });
    const { gmvaeModel } = await import('./model.ts');
    const { encodeModel } = await import('../../nn/onnx.ts');
    const { input } = await import('../../nn/graph.ts');
    const { matmul } = await import('../../nn/ops.ts');
    const w = input('labels', [2, 2]);
    const onnx = encodeModel(
      { probabilities: matmul(input('x', [1, 2]), w) },
      new Map([[w, Float32Array.of(1, 2, 3, 4)]]),
      'rows',
    );
    const config = { sparse: 0, dense: 2, labels: 2, threads: 1, training: null };
    const model = gmvaeModel(onnx, Uint32Array.of(0, 1), config);
    expect(model.labelVectors?.().vectors).toEqual({ rows: 2, cols: 2, values: Float32Array.of(1, 2, 3, 4) });
    const inputs = { dense: { rows: 1, cols: 2, values: Float32Array.of(1, 1) } };
    await expect(model.predict(inputs, { top: 1 })).rejects.toMatchObject({
      code: 'missing-package',
      message: expect.stringContaining('npm install onnxruntime-node'),
    });
    vi.doUnmock('onnxruntime-node');
    vi.resetModules();
  });
});
