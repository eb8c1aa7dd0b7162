import { beforeAll, describe, expect, it } from 'vitest';
import { Vocabulary } from '../../data/vocabulary.ts';
import { CsrBuilder, rowIndices, rowValues } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { parseOptions } from '../../options.ts';
import type { Json, PartReader, Tensors } from '../../parts.ts';
import { quiet } from '../../progress.ts';
import type { Model, TrainingSet } from '../learner.ts';
import { tree } from './learner.ts';

const labels = 60;
const features = 80;

/** Every label has three features of its own; the last label never occurs; the first row is empty. */
function plantedSet(rows: number, seed: number): TrainingSet {
  const random = new Random(seed, 'tree test');
  const [x, y] = [new CsrBuilder('values'), new CsrBuilder('binary')];
  for (let row = 0; row < rows; row++) {
    const own = [...new Set([row % (labels - 1), random.integer(labels - 1)])].sort((a, b) => a - b);
    const columns = [...new Set([...own.flatMap((l) => [l, (l * 7) % features]), random.integer(features)])];
    columns.sort((a, b) => a - b);
    x.add(
      row === 0 ? [] : columns,
      columns.map(() => 0.5 + random.uniform()),
    );
    y.add(own);
  }
  const vocabulary = Vocabulary.numbered(labels);
  return { rows, labels: y.pattern(labels), vocabulary, features: { sparse: x.csr(features) } };
}

const small = { flatSize: 1, leafSize: 8, branching: 3 };
const train = (set: TrainingSet, options: Record<string, unknown>, threads = 1, signal?: AbortSignal) =>
  tree.train(set, parseOptions(tree.options, { ...small, ...options }), {
    seed: 5,
    threads,
    progress: quiet,
    signal,
  });

const noPrograms = () => Promise.reject(new Error('trees have no programs'));
const readerOf = (parts: Map<string, Tensors>): PartReader => ({
  read: async (name) => parts.get(name) ?? {},
  readProgram: noPrograms,
});

async function saved(model: Model): Promise<{ config: Json; parts: Map<string, Tensors> }> {
  const parts = new Map<string, Tensors>();
  const config = await model.save({
    async write(name, tensors) {
      parts.set(name, tensors);
    },
    writeProgram: noPrograms,
  });
  return { config: JSON.parse(JSON.stringify(config)), parts };
}

const set = plantedSet(600, 1);
const test = plantedSet(50, 2);
let model: Model;
beforeAll(async () => {
  model = await train(set, {});
});

describe('the tree learner', () => {
  it('finds the labels that were planted', async () => {
    const ranking = await model.predict(test.features, { top: 1 });
    let right = 0;
    for (let row = 1; row < test.rows; row++) {
      if (rowIndices(test.labels, row).includes(rowIndices(ranking, row)[0])) right++;
    }
    expect(right / (test.rows - 1)).toBeGreaterThan(0.9);
  });

  it('ranks by descending score in (0, 1], ties by lowest label, and never predicts a label without positives', async () => {
    const ranking = await model.predict(test.features, { top: labels });
    expect(ranking.indices).not.toContain(labels - 1);
    for (let row = 0; row < ranking.rows; row++) {
      const [ids, scores] = [rowIndices(ranking, row), rowValues(ranking, row)];
      for (let k = 0; k < ids.length; k++) {
        expect(scores[k]).toBeGreaterThan(0);
        expect(scores[k]).toBeLessThanOrEqual(1);
        if (k > 0)
          expect(scores[k] < scores[k - 1] || (scores[k] === scores[k - 1] && ids[k] > ids[k - 1])).toBe(
            true,
          );
      }
    }
  });

  it('predicts nothing for an empty input', async () => {
    const ranking = await model.predict(test.features, { top: 5 });
    expect(ranking.indptr[1]).toBe(0);
  });

  it('keeps excluded labels out and fills their places', async () => {
    const before = await model.predict(test.features, { top: 3 });
    const excluded = new Uint8Array(labels);
    const best = rowIndices(before, 1)[0];
    excluded[best] = 1;
    const after = await model.predict(test.features, { top: 3, excluded });
    expect(after.indices).not.toContain(best);
    expect(rowIndices(after, 1).length).toBe(3);
    expect(rowIndices(after, 1)[0]).toBe(rowIndices(before, 1)[1]);
    expect(await model.predict(test.features, { top: 3 })).toEqual(before);
  });

  it('gives the same ranking after saving and loading', async () => {
    const { config, parts } = await saved(model);
    const loaded = await tree.load(config, readerOf(parts));
    const options = { top: 7 };
    expect(await loaded.predict(test.features, options)).toEqual(await model.predict(test.features, options));
    expect(loaded.width).toEqual({ sparse: features, dense: 0 });
  });

  it('learns and predicts the same on one thread and on two', async () => {
    const two = await train(set, {}, 2);
    expect((await saved(two)).parts).toEqual((await saved(model)).parts);
    const alone = await model.predict(set.features, { top: 5 });
    expect(await model.predict(set.features, { top: 5, threads: 2 })).toEqual(alone);
  });

  it('learns from the rows its own beam brings, alone or beside the true ones', async () => {
    const plain = (await saved(model)).parts.get('tree-1-level-3');
    for (const negatives of ['man', 'tfn+man']) {
      const other = await train(set, { negatives, beam: 4 });
      expect((await saved(other)).parts.get('tree-1-level-3')).not.toEqual(plain);
      const ranking = await other.predict(test.features, { top: 1 });
      const right = [...Array(test.rows).keys()].filter((row) =>
        rowIndices(test.labels, row).includes(rowIndices(ranking, row)[0]),
      );
      expect(right.length / (test.rows - 1)).toBeGreaterThan(0.9);
    }
  });

  it('explains every score as the product of its steps, for each post-processor', async () => {
    for (const postProcessor of ['l2-hinge', 'l3-hinge', 'sigmoid', 'none']) {
      const other = await train(set, { postProcessor });
      await expectExplained(other, 1);
    }
  });

  it('averages the trees of an ensemble, and explains the average', async () => {
    await expectExplained(await train(set, { preset: 'parabel', branching: 0 }), 3);
  });

  it('with a beam as wide as the tree scores every label as an exhaustive search does', async () => {
    const wide = await train(set, { beam: 1000 });
    const ranking = await wide.predict(test.features, { top: labels });
    for (let row = 1; row < 10; row++) {
      expect(rowIndices(ranking, row).length).toBe(labels - 1);
      const scores = new Map(Array.from(rowIndices(ranking, row), (l, k) => [l, rowValues(ranking, row)[k]]));
      for (const label of [0, 17, 42]) {
        const explained = await wide.explain?.(oneRow(row), label);
        expect(scores.get(label)).toBeCloseTo(explained?.score ?? -1, 5);
      }
    }
  });

  it('reaches the same labels through a narrow beam as the plain search', async () => {
    const narrow = await train(set, { beam: 2 });
    const ranking = await narrow.predict(test.features, { top: labels });
    for (let row = 1; row < 10; row++) {
      const reached = new Set(rowIndices(ranking, row));
      expect(reached.size).toBeLessThanOrEqual(16);
      for (let label = 0; label < labels; label++) {
        const explained = await narrow.explain?.(oneRow(row), label);
        expect(explained !== undefined).toBe(reached.has(label));
      }
    }
  });

  it('predicts the same where the features are too many for bitmaps', async () => {
    const spread = (rows: TrainingSet): TrainingSet => {
      const x = rows.features.sparse;
      const sparse = x && { ...x, cols: features << 14, indices: x.indices.map((f) => f << 14) };
      return { ...rows, features: { sparse } };
    };
    const other = await train(spread(set), {});
    const [a, b] = [
      await model.predict(test.features, { top: 5 }),
      await other.predict(spread(test).features, { top: 5 }),
    ];
    expect(b).toEqual(a);
  });

  it('with few labels has no tree and one step', async () => {
    const flat = await train(set, { flatSize: 1000 });
    const explained = await flat.explain?.(oneRow(1), 3);
    expect(explained?.steps.map(({ what }) => what)).toEqual(['label']);
  });

  it('takes dense columns beside sparse ones', async () => {
    const both = (rows: TrainingSet) => {
      const random = new Random(3);
      const values = Float32Array.from({ length: rows.rows * 2 }, () => random.normal());
      return { ...rows, features: { ...rows.features, dense: { rows: rows.rows, cols: 2, values } } };
    };
    const wide = await train(both(set), {});
    expect(wide.width).toEqual({ sparse: features, dense: 2 });
    expect((await wide.predict(both(test).features, { top: 2 })).rows).toBe(test.rows);
  });

  it('goes on from the levels a killed run left, to the same model', async () => {
    const kept = new Map<string, Tensors>();
    const stop = new AbortController();
    const checkpoint = {
      load: async (name: string) => kept.get(name),
      async save(name: string, tensors: Tensors) {
        kept.set(name, tensors);
        if (kept.size === 2) stop.abort();
      },
    };
    const context = { seed: 5, threads: 1, progress: quiet, checkpoint };
    const options = parseOptions(tree.options, small);
    const killed = tree.train(set, options, { ...context, signal: stop.signal });
    await expect(killed).rejects.toMatchObject({ code: 'cancelled' });
    expect(kept.size).toBe(2);
    const resumed = await tree.train(set, options, context);
    expect(kept.size).toBe(3);
    expect((await saved(resumed)).parts).toEqual((await saved(model)).parts);
    await tree.train(set, { ...options, epsilon: 0.3 }, context);
    expect(kept.size).toBe(6);
  });

  it('stops when cancelled', async () => {
    for (const threads of [1, 2]) {
      const stop = new AbortController();
      const training = train(set, { epsilon: 1e-9, iterations: 100000 }, threads, stop.signal);
      setTimeout(() => stop.abort(), 5);
      await expect(training).rejects.toMatchObject({ code: 'cancelled' });
    }
  });
});

describe('the tree learner with overlap', () => {
  const overlap = { overlap: true, beam: 4 };
  const leavesOf = async (trained: Model, tree = 1) => {
    const { config, parts } = await saved(trained);
    const depth = (config as { levels: number[] }).levels[tree - 1];
    const { 'node-start': start, nodes } = parts.get(`tree-${tree}-level-${depth}`) ?? {};
    return { bounds: Array.from(start.data), labels: Array.from(nodes.data) };
  };
  const right = async (trained: Model) => {
    const ranking = await trained.predict(test.features, { top: 1 });
    const hits = [...Array(test.rows).keys()].filter((row) =>
      rowIndices(test.labels, row).includes(rowIndices(ranking, row)[0]),
    );
    return hits.length / (test.rows - 1);
  };

  it('finds the planted labels, whatever its settings, in up to lambda leaves each', async () => {
    for (const options of [
      {},
      { 'overlap.lambda': 3, 'overlap.rounds': 2 },
      { 'overlap.positives': 'matched', 'overlap.balance': 'capped' },
      { 'overlap.update': 'ranker-only', 'overlap.merge': 'mean' },
      { negatives: 'tfn+man', 'overlap.positives': 'matched' },
      { preset: 'parabel', branching: 0, loss: 'logistic' },
      { 'overlap.placement': 'random' },
    ]) {
      const trained = await train(set, { ...overlap, ...options });
      expect(await right(trained)).toBeGreaterThan(0.85);
      const { labels: copies } = await leavesOf(trained);
      expect(new Set(copies).size).toBe(labels - 1);
      const most = options['overlap.lambda'] ?? 2;
      for (const label of copies)
        expect(copies.filter((copy) => copy === label).length).toBeLessThanOrEqual(most);
      expect(copies.length).toBeGreaterThan(labels);
    }
  });

  it('explains every score by the copies it reached', async () => {
    for (const options of [{}, { 'overlap.merge': 'mean' }, { trees: 3 }, { postProcessor: 'none' }]) {
      const trained = await train(set, { ...overlap, 'overlap.lambda': 3, ...options });
      for (let row = 1; row < 8; row++) {
        const ranking = await trained.predict(oneRow(row), { top: labels });
        const reached = new Map(Array.from(ranking.indices, (label, k) => [label, ranking.values[k]]));
        for (let label = 0; label < labels; label++) {
          const explained = await trained.explain?.(oneRow(row), label);
          expect(explained !== undefined).toBe(reached.has(label));
          if (explained) expect(explained.score).toBeCloseTo(reached.get(label) ?? -1, 4);
        }
      }
    }
  });

  it('is the same on any number of threads, and after saving and loading', async () => {
    const options = { ...overlap, 'overlap.rounds': 2, 'overlap.positives': 'matched' };
    const [one, two] = [await train(set, options), await train(set, options, 2)];
    expect((await saved(two)).parts).toEqual((await saved(one)).parts);
    const alone = await one.predict(set.features, { top: 5 });
    expect(await two.predict(set.features, { top: 5, threads: 2 })).toEqual(alone);
    const { config, parts } = await saved(one);
    const loaded = await tree.load(config, readerOf(parts));
    expect(await loaded.predict(set.features, { top: 5 })).toEqual(alone);
  });

  it('goes on from what a killed run left, in any round, to the same model', async () => {
    const options = parseOptions(tree.options, { ...small, ...overlap, 'overlap.rounds': 2 });
    const whole = await tree.train(set, options, { seed: 5, threads: 1, progress: quiet });
    const kept = new Map<string, Tensors>();
    const keep = (pieces: number) => {
      const stop = new AbortController();
      const checkpoint = {
        load: async (name: string) => kept.get(name),
        async save(name: string, tensors: Tensors) {
          kept.set(name, tensors);
          if (kept.size === pieces) stop.abort();
        },
      };
      return tree.train(set, options, {
        seed: 5,
        threads: 1,
        progress: quiet,
        checkpoint,
        signal: stop.signal,
      });
    };
    for (const pieces of [1, 3, 5, 6]) {
      await expect(keep(pieces)).rejects.toMatchObject({ code: 'cancelled' });
    }
    expect((await saved(await keep(8))).parts).toEqual((await saved(whole)).parts);
    expect(kept.size).toBe(7);
  });

  it('changes nothing where there is no tree', async () => {
    const flat = { flatSize: 1000 };
    const [plain, other] = [await train(set, flat), await train(set, { ...flat, ...overlap, beam: 10 })];
    expect((await saved(other)).parts).toEqual((await saved(plain)).parts);
  });

  it('tells the senses of its labels, also after saving and loading', async () => {
    const named = { ...set, ids: Array.from({ length: set.rows }, (_, row) => `id ${row}`) };
    const trained = await train(named, { ...overlap, trees: 2, 'overlap.examples': 2 });
    const { config, parts } = await saved(trained);
    const loaded = await tree.load(config, readerOf(parts));
    expect(loaded.sensesApart?.()).toEqual(trained.sensesApart?.());
    const [{ label }] = trained.sensesApart?.() ?? [];
    const senses = trained.senses?.(label) ?? [];
    expect(loaded.senses?.(label)).toEqual(senses);
    expect(new Set(senses.map((sense) => sense.tree)).size).toBe(2);
    for (const { examples, words, rows } of senses.filter((sense) => sense.rows > 1)) {
      expect(examples).toHaveLength(2);
      for (const id of examples) expect(rowIndices(set.labels, Number(id.slice(3)))).toContain(label);
      expect(words.length).toBeGreaterThan(0);
      expect(rows).toBeLessThanOrEqual(set.rows);
    }
    expect(model.senses).toBeUndefined();
    expect(model.sensesApart).toBeUndefined();
  });

  it('may move labels with one copy each', async () => {
    const unsure = { beam: 1, leafSize: 3, costPositive: 0.01, costNegative: 0.01 };
    const plain = await leavesOf(await train(set, unsure));
    const moved = await leavesOf(await train(set, { ...unsure, overlap: true, 'overlap.lambda': 1 }));
    expect(moved.labels.toSorted()).toEqual(plain.labels.toSorted());
    expect(moved).not.toEqual(plain);
  });

  it('keeps the levels above the labels where only the last is trained again', async () => {
    const upper = async (options: object) =>
      (await saved(await train(set, { beam: 4, iterations: 20, ...options }))).parts.get('tree-1-level-1');
    const plain = await upper({});
    expect(await upper({ ...overlap, 'overlap.update': 'ranker-only' })).toEqual(plain);
    expect(await upper(overlap)).not.toEqual(plain);
  });

  it('refuses its options where it is off, and rounds that would repeat themselves', async () => {
    for (const [name, value] of Object.entries({
      'overlap.lambda': 3,
      'overlap.merge': 'max',
      'overlap.placement': 'random',
    })) {
      await expect(train(set, { [name]: value })).rejects.toThrow(
        `${name} must be left alone without overlap, got ${JSON.stringify(value)} (set overlap=true)`,
      );
    }
    await train(set, { 'overlap.lambda': 2 });
    const frozen = { ...overlap, 'overlap.update': 'ranker-only', 'overlap.rounds': 2 };
    await expect(train(set, frozen)).rejects.toThrow(/overlap\.rounds must be 1/);
  });
});

function oneRow(row: number) {
  const { sparse } = test.features;
  const x = new CsrBuilder('values');
  if (sparse) x.add(rowIndices(sparse, row), rowValues(sparse, row));
  return { sparse: x.csr(features) };
}

async function expectExplained(explained: Model, trees: number) {
  for (let row = 1; row < 6; row++) {
    const ranking = await explained.predict(oneRow(row), { top: 2 });
    for (let k = 0; k < 2; k++) {
      const found = await explained.explain?.(oneRow(row), ranking.indices[k]);
      expect(found?.score).toBeCloseTo(ranking.values[k], 4);
      const steps = found?.steps ?? [];
      for (const step of steps) {
        const sum = step.contributions.reduce((total, { value }) => total + value, step.bias);
        expect(step.margin).toBeCloseTo(sum, 6);
      }
      if (trees === 1)
        expect(steps.reduce((product, { factor }) => product * factor, 1)).toBeCloseTo(found?.score ?? -1, 6);
      else expect(new Set(steps.map(({ what }) => what.split(',')[0])).size).toBe(trees);
    }
  }
}
