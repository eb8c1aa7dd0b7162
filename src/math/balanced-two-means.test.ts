import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BalancedTwoMeans, balancedGroups } from './balanced-two-means.ts';
import { type Csr, CsrBuilder, unitRows } from './csr.ts';
import { type Dense, unitDenseRows } from './dense.ts';
import { Random } from './random.ts';

/** Unit rows without ties: every row has about a third of its columns set. */
function randomSparse(rows: number, cols: number, random: Random): Csr {
  const builder = new CsrBuilder('values');
  for (let row = 0; row < rows; row++) {
    const indices = Array.from({ length: cols }, (_, j) => j).filter(() => random.uniform() < 0.35);
    builder.add(
      indices,
      indices.map(() => random.normal()),
    );
  }
  return unitRows(builder.csr(cols));
}

function toDense(m: Csr): Dense {
  const values = new Float32Array(m.rows * m.cols);
  for (let row = 0; row < m.rows; row++) {
    for (let p = m.indptr[row]; p < m.indptr[row + 1]; p++) values[row * m.cols + m.indices[p]] = m.values[p];
  }
  return { rows: m.rows, cols: m.cols, values };
}

const rowsOf = (m: Dense): number[][] =>
  Array.from({ length: m.rows }, (_, i) => [...m.values.subarray(i * m.cols, (i + 1) * m.cols)]);
const dot = (a: number[], b: number[]) => a.reduce((sum, value, j) => sum + value * b[j], 0);
const centre = (rows: number[][]): number[] => {
  const sum = rows[0].map((_, j) => rows.reduce((total, row) => total + row[j], 0));
  const length = Math.sqrt(dot(sum, sum));
  return length > 1e-6 ? sum.map((value) => value / length) : sum.map(() => 0);
};

/** The definition, step by step, on plain arrays. */
function slowSplit(rows: number[][], items: number[], random: Random): number[][] {
  if (items.length < 2) return [[], items];
  const start = random.integer(items.length);
  const other = random.integer(items.length - 1);
  let centres = [start, other < start ? other : other + 1].map((i) => centre([rows[items[i]]]));
  let halves: number[][] = [];
  let similarity = Number.NEGATIVE_INFINITY;
  for (let iteration = 0; iteration < 20; iteration++) {
    const score = (item: number) => Math.fround(dot(rows[item], centres[0]) - dot(rows[item], centres[1]));
    const ordered = [...items].sort((a, b) => score(b) - score(a) || a - b);
    const size = Math.floor(items.length / 2);
    const found = [ordered.slice(0, size), ordered.slice(size)].map((half) => half.sort((a, b) => a - b));
    const total = found.map((half, h) => half.reduce((sum, item) => sum + dot(rows[item], centres[h]), 0));
    const average = (total[0] + total[1]) / items.length;
    const same = JSON.stringify(found) === JSON.stringify(halves);
    halves = found;
    if (same || average - similarity < 1e-4) break;
    similarity = average;
    centres = halves.map((half) => centre(half.map((item) => rows[item])));
  }
  return halves;
}

const everyItem = (rows: number) => Uint32Array.from({ length: rows }, (_, i) => i);
const sizesOf = (groups: Uint32Array, depth: number) => {
  const sizes = new Array<number>(2 ** depth).fill(0);
  for (const group of groups) sizes[group]++;
  return sizes;
};

describe('BalancedTwoMeans', () => {
  it('splits sparse, dense and mixed rows as the definition does', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 1, max: 40 }),
        // Wide enough that the two centres never coincide: then rounding alone would decide.
        fc.integer({ min: 8, max: 16 }),
        (seed, n, d) => {
          const random = new Random(seed, 'data');
          const sparse = randomSparse(n, d, random);
          const dense = toDense(sparse);
          const left = toDense(randomSparse(n, d, random));
          const joined = rowsOf(dense).map((row, i) => [...row, ...rowsOf(left)[i]]);
          const items = everyItem(n);
          const split = (points: { sparse?: Csr; dense?: Dense }) =>
            new BalancedTwoMeans(points).split(items, new Random(seed)).map((half) => [...half]);
          const expected = slowSplit(rowsOf(dense), [...items], new Random(seed));
          expect(split({ sparse })).toEqual(expected);
          expect(split({ dense })).toEqual(expected);
          expect(split({ sparse, dense: left })).toEqual(slowSplit(joined, [...items], new Random(seed)));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('leaves no trace of one node in the next', () => {
    const sparse = randomSparse(60, 12, new Random(1));
    const used = new BalancedTwoMeans({ sparse });
    used.split(everyItem(60), new Random(2));
    const items = Uint32Array.of(3, 9, 10, 22, 31, 44, 59);
    const fresh = new BalancedTwoMeans({ sparse }).split(items, new Random(3));
    expect(used.split(items, new Random(3))).toEqual(fresh);
  });

  it('splits identical rows, zero rows and rows that cancel out evenly', () => {
    const rows = (...values: number[]): Dense => ({
      rows: values.length,
      cols: 1,
      values: Float32Array.from(values),
    });
    for (const dense of [rows(1, 1, 1, 1, 1), rows(0, 0, 0, 0), rows(1, -1, 1, -1), rows(0, 1, 0)]) {
      const [first, second] = new BalancedTwoMeans({ dense }).split(everyItem(dense.rows), new Random(5));
      expect([first.length, second.length]).toEqual([dense.rows >> 1, dense.rows - (dense.rows >> 1)]);
      expect([...first, ...second].sort()).toEqual([...everyItem(dense.rows)]);
    }
  });

  it('finds two planted clusters of equal size from any start', () => {
    const random = new Random(11);
    const values = new Float32Array(200 * 10);
    for (let i = 0; i < 200; i++) {
      for (let j = 0; j < 10; j++) values[i * 10 + j] = 0.1 * random.normal() + (j === i % 2 ? 1 : 0);
    }
    const dense = unitDenseRows({ rows: 200, cols: 10, values });
    for (let seed = 0; seed < 20; seed++) {
      const [first] = new BalancedTwoMeans({ dense }).split(everyItem(200), new Random(seed));
      expect(new Set(Array.from(first, (item) => item % 2)).size).toBe(1);
    }
  });
});

describe('balancedGroups', () => {
  it('gives groups whose sizes differ by at most one at every level', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 1, max: 70 }),
        fc.integer({ min: 0, max: 5 }),
        (seed, n, depth) => {
          const groups = balancedGroups({ sparse: randomSparse(n, 6, new Random(seed)) }, depth, seed);
          for (let level = 0; level <= depth; level++) {
            const sizes = sizesOf(
              groups.map((group) => group >> (depth - level)),
              level,
            );
            expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
          }
        },
      ),
    );
  });

  it('refines: the groups of a smaller depth are unions of those of a larger one', () => {
    const sparse = randomSparse(100, 10, new Random(4));
    const deep = balancedGroups({ sparse }, 4, 7);
    expect(balancedGroups({ sparse }, 2, 7)).toEqual(deep.map((group) => group >> 2));
  });

  it('depends on the seed and on nothing else', () => {
    const sparse = randomSparse(100, 10, new Random(4));
    expect(balancedGroups({ sparse }, 3, 1)).toEqual(balancedGroups({ sparse }, 3, 1));
    expect(balancedGroups({ sparse }, 3, 1)).not.toEqual(balancedGroups({ sparse }, 3, 2));
  });
});
