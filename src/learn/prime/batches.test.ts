import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsrBuilder, type Pattern, rowIndices } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { drawOrder, drawPool, drawPositives, groupQueries, groupSize, sameTexts, Truth } from './batches.ts';
import { Centroids, meanOfQueries } from './centroids.ts';
import { freeVectorCount } from './options.ts';

const patternOf = (rows: number[][], cols: number): Pattern => {
  const labels = new CsrBuilder('binary');
  for (const row of rows) labels.add(row);
  return labels.pattern(cols);
};

const random = new Random('batches');
const queries = { rows: 50, cols: 4, values: Float32Array.from({ length: 200 }, () => random.normal()) };

describe('the order of an epoch', () => {
  it('has every query once, with groups and without', () => {
    const groups = groupQueries(queries, 4, 1);
    for (const some of [undefined, groups]) {
      const order = drawOrder(50, some, new Random(1));
      expect(Array.from(order).sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i));
      expect(drawOrder(50, some, new Random(1))).toEqual(order);
      expect(drawOrder(50, some, new Random(2))).not.toEqual(order);
    }
  });

  it('keeps the queries of a group together', () => {
    const groups = groupQueries(queries, 4, 1);
    const inOrder = Array.from(drawOrder(50, groups, new Random(1)), (row) => groups[row]);
    const changes = inOrder.filter((group, i) => group !== inOrder[i - 1]).length;
    expect(changes).toBe(new Set(groups).size);
    expect(new Set(groups).size).toBe(8);
  });

  it('groups no queries at first, then ever larger groups', () => {
    const sizes = Array.from({ length: 30 }, (_, epoch) => groupSize(epoch, 30));
    expect(sizes[0]).toBe(0);
    expect(sizes[1]).toBe(4);
    expect(sizes.every((size, i) => i === 0 || size >= sizes[i - 1])).toBe(true);
    expect(sizes[29]).toBe(4 * 2 ** 7);
    expect([9, 10, 24, 25, 299].map((epoch) => groupSize(epoch, 300))).toEqual([0, 4, 4, 8, 512]);
  });
});

describe('drawn positives', () => {
  it('come as often as their weights say', () => {
    const weights = [1, 2, 4, 8];
    const counts = [0, 0, 0, 0];
    const draws = 20_000;
    const stream = new Random('draws');
    for (let i = 0; i < draws; i++)
      counts[drawPositives(Uint32Array.of(0, 1, 2, 3), weights, 1, stream)[0]]++;
    const chi2 = counts.reduce((total, count, i) => {
      const wanted = (draws * weights[i]) / 15;
      return total + (count - wanted) ** 2 / wanted;
    }, 0);
    // Three degrees of freedom: a fair draw exceeds this once in ten thousand times.
    expect(chi2).toBeLessThan(21.1);
  });

  it('are different labels, and all where there are no more than asked for', () => {
    const own = Uint32Array.of(3, 5, 9);
    const two = drawPositives(own, new Float64Array(10).fill(1), 2, new Random(1));
    expect(new Set(two).size).toBe(2);
    expect(two.every((label) => own.includes(label))).toBe(true);
    expect(drawPositives(own, [], 3, new Random(1))).toEqual(own);
  });
});

describe('the labels of a batch', () => {
  const labels = patternOf([[0, 2], [1], [2, 3, 4], []], 6);
  // Label 4 has no text; 1 and 3 have the same.
  const texts = sameTexts(['a', 'b', 'c', 'b', null, 'd']);

  it('are positives wherever a query carries them, drawn for it or not', () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const rows = Uint32Array.of(0, 1, 2, 3);
        const pool = drawPool(rows, labels, new Float64Array(6).fill(1), 1, new Random(seed));
        expect([...pool]).toEqual([...new Set(pool)].sort((a, b) => a - b));
        const truth = new Truth(5, 6, labels, texts);
        truth.fill(rows, pool);
        for (let i = 0; i < 5; i++)
          for (let j = 0; j < 6; j++) {
            const there = i < 4 && j < pool.length;
            const carried = there && rowIndices(labels, i).includes(pool[j]);
            expect(truth.positive[i * 6 + j]).toBe(Number(carried));
            expect(truth.usable[i * 6 + j]).toBe(Number(there));
            if (there) expect(truth.carriers[j].includes(i)).toBe(carried);
          }
      }),
      { numRuns: 20 },
    );
  });

  it('are no negatives of a query by their text where a positive of it reads the same, or without a text', () => {
    const truth = new Truth(3, 4, labels, texts);
    truth.fill(Uint32Array.of(1, 2, 0), Uint32Array.of(1, 2, 3, 4));
    // Query 1 carries label 1, which reads like label 3; nobody knows how label 4 reads.
    expect([...truth.usableText.subarray(0, 4)]).toEqual([1, 1, 0, 0]);
    expect([...truth.usableText.subarray(4, 8)]).toEqual([0, 1, 1, 0]);
    expect([...truth.usableText.subarray(8, 12)]).toEqual([1, 1, 1, 0]);
  });
});

describe('centroids', () => {
  const start = () => Float32Array.of(1, 0, 0, 1);

  it('without momentum are the mean of the batch, with all of it stay, and others are left alone', () => {
    const vectors = Float32Array.of(2, 2, 4, 0);
    const none = new Centroids(start(), 2, 0);
    none.update([1], [[0, 1]], vectors);
    expect([...none.values]).toEqual([1, 0, 3, 1]);
    const all = new Centroids(start(), 2, 1);
    all.update([0, 1], [[0], []], vectors);
    expect(all.values).toEqual(start());
  });

  it('reach a query that stays the same step by step', () => {
    const centroids = new Centroids(start(), 2, 0.9);
    for (let step = 1; step <= 30; step++) {
      centroids.update([0], [[0]], Float32Array.of(0, 5));
      expect(centroids.values[1]).toBeCloseTo(5 * (1 - 0.9 ** step), 4);
    }
  });

  it('are fed with length one, and do not depend on the order of queries', () => {
    const [one, other] = [new Centroids(start(), 2, 0.5), new Centroids(start(), 2, 0.5)];
    const vectors = Float32Array.of(1, 2, 3, 4, 5, 6);
    one.update([0], [[0, 1, 2]], vectors);
    other.update([0], [[2, 0, 1]], vectors);
    expect(one.values).toEqual(other.values);
    const fed = new Float32Array(2);
    one.write([0], fed);
    expect(Math.hypot(...fed)).toBeCloseTo(1, 6);
  });

  it('start as the mean of their queries, or as their text', () => {
    const labels = patternOf([[0], [0]], 2);
    const vectors = { rows: 2, cols: 2, values: Float32Array.of(1, 0, 0, 1) };
    const texts = { rows: 2, cols: 2, values: Float32Array.of(9, 9, 0, 2) };
    const [a, b, c, d] = meanOfQueries(labels, vectors, texts);
    expect([a, b, c, d].map((x) => x.toFixed(4))).toEqual(['0.7071', '0.7071', '0.0000', '1.0000']);
  });
});

describe('free vectors', () => {
  it('are a power of two, or one for each label', () => {
    expect([24382, 5, 2, 1].map((labels) => freeVectorCount(-1, labels))).toEqual([8192, 2, 2, 1]);
    expect([0, 1, 100, 600, 5000].map((asked) => freeVectorCount(asked, 1000))).toEqual([
      0, 1, 64, 512, 1000,
    ]);
  });
});
