import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Csr, CsrBuilder, type Pattern, rowIndices, rowValues, transpose } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { chunkMargins, combine, searchChunks } from './explain.ts';
import { type Chunk, joinChunks, type Level } from './level.ts';
import { openForest, plantForest } from './search.ts';

const features = 70;

/** Random weights for a shape; the bias is the feature after the last. */
function randomLevel(shape: Pattern, random: Random): Level {
  const chunks = Array.from({ length: shape.rows }, (_, c): Chunk => {
    const width = shape.indptr[c + 1] - shape.indptr[c];
    const rows = [...Array(features + 1).keys()].filter(() => random.uniform() < 0.5);
    const children = rows.map(() =>
      [...Array(width).keys()].filter((i) => i === 0 || random.uniform() < 0.6),
    );
    return {
      features: Uint32Array.from(rows),
      counts: Uint32Array.from(children, (list) => list.length),
      children: Uint16Array.from(children.flat()),
      values: Float32Array.from(children.flat(), () => random.normal()),
    };
  });
  return joinChunks(shape, chunks);
}

/** 1 -> nodes -> labels, children dealt out in turn. */
function randomTree(nodes: number, labels: number, random: Random): Level[] {
  const order = random.permutation(labels);
  const bounds = Uint32Array.from({ length: nodes + 1 }, (_, i) => Math.round((i * labels) / nodes));
  const top = {
    rows: 1,
    cols: nodes,
    indptr: Uint32Array.of(0, nodes),
    indices: random.permutation(nodes).sort(),
  };
  const bottom = { rows: nodes, cols: labels, indptr: bounds, indices: order };
  return [randomLevel(top, random), randomLevel(bottom, random)];
}

function randomInput(random: Random) {
  const x = new CsrBuilder('values');
  const columns = [...Array(features).keys()].filter(() => random.uniform() < 0.2);
  x.add(
    columns,
    columns.map(() => random.normal()),
  );
  return x.csr(features);
}

const cases = fc.record({
  nodes: fc.integer({ min: 1, max: 9 }),
  labels: fc.integer({ min: 9, max: 60 }),
  beam: fc.integer({ min: 1, max: 10 }),
  top: fc.integer({ min: 1, max: 70 }),
  power: fc.constantFrom(-1, 0, 1, 2, 3),
  seed: fc.nat(),
  shared: fc.boolean(),
});

describe('beam search in the kernel', () => {
  it('finds what the plain search finds, in shared memory or not', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ nodes, labels, beam, top, power, seed, shared }) => {
        const random = new Random(seed);
        const levels = randomTree(nodes, labels, random);
        const scoring = { bias: 1, beam, power };
        const x = randomInput(random);
        const { forest } = plantForest([levels], { ...scoring, features, labels }, shared);
        const found = (await openForest(forest))(x, 0, 1, top);

        const expected = [...searchChunks(x, levels, scoring)].flatMap(([chunk, score]) => {
          const margins = chunkMargins(x, levels[1], chunk, 1);
          return Array.from(rowIndices(levels[1].shape, chunk), (label, i) => {
            const log = combine(score, margins[i], power);
            return { label, score: power < 0 ? 1 / (1 + Math.exp(-log)) : Math.exp(log) };
          });
        });
        const scoreOf = new Map(expected.map(({ label, score }) => [label, score]));
        if (rowValues(x, 0).length === 0) return expect(found.counts[0]).toBe(0);
        expect(found.counts[0]).toBe(Math.min(top, expected.length));
        const best = expected.map(({ score }) => score).sort((a, b) => b - a);
        found.labels.forEach((label, k) => {
          expect(found.scores[k]).toBeCloseTo(scoreOf.get(label) ?? -1, 4);
          expect(found.scores[k]).toBeCloseTo(best[k], 4);
        });
      }),
      { seed: 1, numRuns: 150 },
    );
  });

  it('averages over the trees, and counts a tree that does not reach a label as zero', async () => {
    const random = new Random(9);
    const trees = [randomTree(4, 20, random), randomTree(5, 20, random)];
    const scoring = { bias: 1, beam: 2, power: 2 };
    const x = randomInput(random);
    const { forest } = plantForest(trees, { ...scoring, features, labels: 20 }, false);
    const search = await openForest(forest);
    const found = search(x, 0, 1, 20);
    const sums = new Float64Array(20);
    for (const levels of trees) {
      for (const [chunk, score] of searchChunks(x, levels, scoring)) {
        chunkMargins(x, levels[1], chunk, 1).forEach((margin, i) => {
          sums[rowIndices(levels[1].shape, chunk)[i]] += Math.exp(combine(score, margin, 2)) / 2;
        });
      }
    }
    expect(found.counts[0]).toBe(sums.filter((sum) => sum > 0).length);
    found.labels.forEach((label, k) => {
      expect(found.scores[k]).toBeCloseTo(sums[label], 5);
    });
    expect(search(x, 0, 1, 20)).toEqual(found);
  });
});

/** 1 -> nodes -> labels, every label in one to three of the nodes (one of them perhaps empty). */
function overlappingTree(nodes: number, labels: number, random: Random): Level[] {
  const places = new CsrBuilder('binary');
  for (let label = 0; label < labels; label++) {
    const copies = 1 + random.integer(Math.min(3, nodes));
    places.add(random.permutation(nodes).subarray(0, copies).sort());
  }
  const [top] = randomTree(nodes, labels, random);
  return [top, randomLevel(transpose(places.pattern(nodes)), random)];
}

/** Scores of all copies of each label that the beam reaches. */
function copyScores(x: Csr, levels: Level[], scoring: { bias: number; beam: number; power: number }) {
  const scores = new Map<number, number[]>();
  for (const [chunk, score] of searchChunks(x, levels, scoring)) {
    const margins = chunkMargins(x, levels[1], chunk, 1);
    rowIndices(levels[1].shape, chunk).forEach((label, i) => {
      const log = combine(score, margins[i], scoring.power);
      const own = scoring.power < 0 ? 1 / (1 + Math.exp(-log)) : Math.exp(log);
      scores.set(label, [...(scores.get(label) ?? []), own]);
    });
  }
  return scores;
}

const merged = (scores: number[], merge: 'mean' | 'max') =>
  merge === 'max' ? Math.max(...scores) : scores.reduce((sum, score) => sum + score, 0) / scores.length;

describe('beam search where labels have copies', () => {
  it('merges the copies it reached, takes the best only then, and gives every label once', async () => {
    const merges = fc.constantFrom('mean' as const, 'max' as const);
    await fc.assert(
      fc.asyncProperty(cases, merges, fc.boolean(), async (given, merge, excluding) => {
        const random = new Random(given.seed);
        const levels = overlappingTree(given.nodes, given.labels, random);
        const scoring = { bias: 1, beam: given.beam, power: given.power };
        const x = randomInput(random);
        const { forest } = plantForest(
          [levels],
          { ...scoring, features, labels: given.labels, merge },
          given.shared,
        );
        const search = await openForest(forest);
        const excluded = excluding
          ? Uint8Array.from({ length: given.labels }, () => random.integer(2))
          : undefined;
        const found = search(x, 0, 1, given.top, excluded);
        if (rowValues(x, 0).length === 0) return expect(found.counts[0]).toBe(0);
        const scores = new Map(
          [...copyScores(x, levels, scoring)]
            .filter(([label]) => !excluded?.[label])
            .map(([label, all]) => [label, merged(all, merge)]),
        );
        const best = [...scores.values()].sort((a, b) => b - a);
        expect(found.counts[0]).toBe(Math.min(given.top, best.length));
        expect(new Set(found.labels).size).toBe(found.labels.length);
        found.labels.forEach((label, k) => {
          expect(found.scores[k]).toBeCloseTo(scores.get(label) ?? -1, 4);
          expect(found.scores[k]).toBeCloseTo(best[k], 4);
        });
        expect(search(x, 0, 1, given.top, excluded)).toEqual(found);
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it('averages over trees what it merged in each', async () => {
    const random = new Random(4);
    const trees = [overlappingTree(4, 20, random), overlappingTree(5, 20, random), randomTree(3, 20, random)];
    const scoring = { bias: 1, beam: 2, power: 3 };
    const x = randomInput(random);
    for (const merge of ['mean', 'max'] as const) {
      const { forest } = plantForest(trees, { ...scoring, features, labels: 20, merge }, false);
      const found = (await openForest(forest))(x, 0, 1, 20);
      const sums = new Float64Array(20);
      for (const levels of trees) {
        for (const [label, all] of copyScores(x, levels, scoring)) sums[label] += merged(all, merge) / 3;
      }
      expect(found.counts[0]).toBe(sums.filter((sum) => sum > 0).length);
      found.labels.forEach((label, k) => {
        expect(found.scores[k]).toBeCloseTo(sums[label], 5);
      });
    }
  });

  it('gives a label whose copies are alike the score of one of them', async () => {
    const random = new Random(8);
    const [top, bottom] = randomTree(1, 9, random);
    const two = { rows: 2, cols: 9, indptr: Uint32Array.of(0, 9, 18), indices: new Uint32Array(18) };
    two.indices.set(bottom.shape.indices);
    two.indices.set(bottom.shape.indices, 9);
    const chunk: Chunk = {
      features: bottom.features,
      counts: bottom.features.map((_, row) => bottom.rowStart[row + 1] - bottom.rowStart[row]),
      children: bottom.children,
      values: bottom.values,
    };
    const twins: Chunk = {
      features: top.features,
      counts: top.features.map(() => 2),
      children: Uint16Array.from(Array.from(top.features, () => [0, 1]).flat()),
      values: Float32Array.from(Array.from(top.values, (value) => [value, value]).flat()),
    };
    const pair = { rows: 1, cols: 2, indptr: Uint32Array.of(0, 2), indices: Uint32Array.of(0, 1) };
    const x = randomInput(random);
    const scoring = { bias: 1, beam: 5, power: 2, features, labels: 9 };
    const single = plantForest([[top, bottom]], scoring, false).forest;
    const alone = (await openForest(single))(x, 0, 1, 9);
    for (const merge of ['mean', 'max'] as const) {
      const levels = [joinChunks(pair, [twins]), joinChunks(two, [chunk, chunk])];
      const { forest } = plantForest([levels], { ...scoring, merge }, false);
      const found = (await openForest(forest))(x, 0, 1, 9);
      expect(found.labels).toEqual(alone.labels);
      found.scores.forEach((score, k) => {
        expect(score).toBeCloseTo(alone.scores[k], 6);
      });
    }
  });
});
