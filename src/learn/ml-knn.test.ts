import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Features } from '../data/dataset.ts';
import { CsrBuilder, type Pattern, rowIndices } from '../math/csr.ts';
import { quiet } from '../progress.ts';
import { joinFeatures } from './features.ts';
import { fitPosteriors, mlKnn } from './ml-knn.ts';
import { indexRows, nearestRows } from './neighbours.ts';

/** Small integers, so that ties between distances are frequent and exact. */
const cell = fc.integer({ min: -2, max: 2 });
const table = (rows: number, cols: number) =>
  fc.array(fc.array(cell, { minLength: cols, maxLength: cols }), { minLength: rows, maxLength: rows });

const featuresOf = (sparse: number[][], dense: number[][]): Features => {
  const builder = new CsrBuilder('values');
  for (const row of sparse) {
    const indices = [...row.keys()].filter((column) => row[column] !== 0);
    builder.add(
      indices,
      indices.map((column) => row[column]),
    );
  }
  const values = Float32Array.from(dense.flat());
  return { sparse: builder.csr(3), dense: { rows: dense.length, cols: 2, values } };
};

const drawn = fc.integer({ min: 1, max: 9 }).chain((rows) =>
  fc.record({
    sparse: table(rows, 3),
    dense: table(rows, 2),
    labels: fc.array(fc.subarray([0, 1, 2]), { minLength: rows, maxLength: rows }),
    k: fc.integer({ min: 1, max: 4 }),
  }),
);

/** All distances, sorted. */
function slowNeighbours(points: number[][], from: number[], k: number, self?: number): number[] {
  const distance = (to: number[]) => from.reduce((sum, value, j) => sum + (value - to[j]) ** 2, 0);
  return [...points.keys()]
    .filter((row) => row !== self)
    .sort((a, b) => distance(points[a]) - distance(points[b]) || a - b)
    .slice(0, k);
}

/** The formulas of the paper, label by label and count by count. */
function slowPosterior(neighbours: number[][], labels: number[][], label: number, count: number, k: number) {
  const counts = neighbours.map((own) => own.filter((row) => labels[row].includes(label)).length);
  const side = (has: boolean) => {
    const rows = labels.flatMap((own, row) => (own.includes(label) === has ? [row] : []));
    const prior = (1 + rows.length) / (2 + labels.length);
    const same = rows.filter((row) => counts[row] === count).length;
    return (prior * (1 + same)) / (k + 1 + rows.length);
  };
  return side(true) / (side(true) + side(false));
}

const patternOf = (rows: number[][], cols: number): Pattern => {
  const builder = new CsrBuilder('binary');
  for (const row of rows) builder.add(row);
  return builder.pattern(cols);
};
const options = { k: 3, smoothing: 1, unit: false };

describe('nearest rows', () => {
  it('are those of the smallest Euclidean distance, ties by lowest row', async () => {
    await fc.assert(
      fc.asyncProperty(drawn, fc.boolean(), async ({ sparse, dense, k }, own) => {
        const features = featuresOf(sparse, dense);
        const found = await nearestRows(indexRows(features), features, k, {
          threads: 1,
          progress: quiet,
          own,
        });
        const points = sparse.map((row, i) => [...row, ...dense[i]]);
        const expected = points.map((point, i) => slowNeighbours(points, point, k, own ? i : undefined));
        expect(points.map((_, row) => [...rowIndices(found, row)])).toEqual(expected);
      }),
    );
  });

  it('are the same on several threads', async () => {
    const rows = Array.from({ length: 200 }, (_, i) => [(i * 7) % 5, (i * 11) % 3, i % 2]);
    const features = featuresOf(
      rows,
      rows.map(([a, b]) => [b, a]),
    );
    const find = (threads: number) =>
      nearestRows(indexRows(features), features, 5, { threads, progress: quiet, own: true });
    expect(await find(2)).toEqual(await find(1));
  });
});

describe('ML-kNN', () => {
  it('has the probabilities of the formulas', () => {
    fc.assert(
      fc.property(drawn, ({ sparse, labels, k }) => {
        const neighbours = sparse.map((point, row) => slowNeighbours(sparse, point, k, row));
        const posteriors = fitPosteriors(patternOf(neighbours, sparse.length), patternOf(labels, 3), {
          ...options,
          k,
        });
        posteriors.forEach((posterior, at) => {
          const [label, count] = [Math.floor(at / (k + 1)), at % (k + 1)];
          const known = labels.some((own) => own.includes(label));
          const expected = known ? slowPosterior(neighbours, labels, label, count, k) : 0;
          expect(posterior).toBeCloseTo(expected, 6);
        });
      }),
    );
  });

  it('finds the labels of two clouds of points, whichever way they are stored', async () => {
    const points = Array.from({ length: 40 }, (_, i) => [
      i % 2 ? 5 + (i % 3) : -5,
      i % 2 ? 0 : 4 + (i % 5),
      1,
    ]);
    const labels = patternOf(
      points.map((_, i) => [i % 2]),
      2,
    );
    const dense = { rows: 40, cols: 3, values: Float32Array.from(points.flat()) };
    const sparse = joinFeatures({ dense });
    for (const features of [{ dense }, { sparse }]) {
      const set = { rows: 40, labels, features } as Parameters<typeof mlKnn.train>[0];
      const model = await mlKnn.train(set, options, { seed: 1, threads: 1, progress: quiet });
      const ranking = await model.predict(features, { top: 1 });
      expect([...ranking.indices]).toEqual(points.map((_, i) => i % 2));
      expect(Math.min(...ranking.values)).toBeGreaterThan(0.9);
    }
  });
});
