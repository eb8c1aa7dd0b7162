import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsrBuilder, type Pattern, rowIndices, rowValues } from '../../math/csr.ts';
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
