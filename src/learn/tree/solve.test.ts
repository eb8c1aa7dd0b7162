import { describe, expect, it } from 'vitest';
import { Arena, createMemory } from '../../kernels/memory.ts';
import { Pool } from '../../kernels/pool.ts';
import {
  type Csr,
  CsrBuilder,
  columnCounts,
  type Pattern,
  rowIndices,
  transpose,
  unitRows,
} from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { quiet } from '../../progress.ts';
import { solveSvm } from '../one-vs-rest.ts';
import { placeMatrix } from './chain.ts';
import { levelTasks } from './grow.ts';
import type { Level } from './level.ts';
import { type Passes, type SolveOptions, trainLevels } from './solve.ts';

const exact: SolveOptions = {
  loss: 'squared-hinge',
  costPositive: 1,
  costNegative: 1,
  epsilon: 1e-5,
  iterations: 5000,
  threshold: 0,
  bias: 1,
};

function randomSet(rows: number, features: number, labels: number, seed: number): { x: Csr; y: Pattern } {
  const random = new Random(seed, 'solve test');
  const [x, y] = [new CsrBuilder('values'), new CsrBuilder('binary')];
  for (let row = 0; row < rows; row++) {
    const columns = [...Array(features).keys()].filter(() => random.uniform() < 0.3);
    x.add(
      columns,
      columns.map(() => random.normal()),
    );
    y.add([...Array(labels).keys()].filter((l) => random.uniform() < (l === 0 ? 0.02 : 0.3)));
  }
  return { x: unitRows(x.csr(features)), y: y.pattern(labels) };
}

async function train(
  x: Csr,
  y: Pattern,
  chain: Pattern[],
  options: SolveOptions,
  threads = 1,
  passes?: Passes,
): Promise<Level[]> {
  const arena = new Arena(createMemory(1 << 16, true));
  const pool = new Pool(threads);
  const context = { seed: 0, threads, progress: quiet };
  try {
    return await trainLevels(
      arena,
      placeMatrix(arena, x),
      x.indptr,
      levelTasks(y, transpose(y), chain).map((task) => ({ ...task, passes })),
      options,
      '1',
      pool,
      context,
    );
  } finally {
    await pool.close();
  }
}

const flat = (labels: number): Pattern => ({
  rows: 1,
  cols: labels,
  indptr: Uint32Array.of(0, labels),
  indices: Uint32Array.from({ length: labels }, (_, l) => l),
});

/** Weights of one child as a plain list, the bias last. */
function weightsOf(
  { chunkStart, features, rowStart, children, values }: Level,
  chunk: number,
  child: number,
  cols: number,
) {
  const weights = new Float64Array(cols + 1);
  for (let row = chunkStart[chunk]; row < chunkStart[chunk + 1]; row++) {
    for (let e = rowStart[row]; e < rowStart[row + 1]; e++)
      if (children[e] === child) weights[features[row]] = values[e];
  }
  return weights;
}

const distance = (a: Float64Array, b: Float64Array) => Math.hypot(...a.map((value, i) => value - b[i]));

/** Sum over all rows of their pull times their features, the bias (of value one) last. */
function pulled(
  x: Csr,
  positive: Set<number>,
  w: Float64Array,
  pull: (sign: number, margin: number) => number,
): Float64Array {
  const sum = new Float64Array(x.cols + 1);
  for (let row = 0; row < x.rows; row++) {
    const entries = Array.from(rowIndices(x, row), (f, i) => [f, x.values[x.indptr[row] + i]]);
    entries.push([x.cols, 1]);
    const margin = entries.reduce((total, [f, value]) => total + w[f] * value, 0);
    const strength = pull(positive.has(row) ? 1 : -1, margin);
    for (const [f, value] of entries) sum[f] += strength * value;
  }
  return sum;
}

describe('the solver for eight labels at a time', () => {
  it('finds the weights of the exact one-label solver, whatever the number of labels', async () => {
    for (const labels of [1, 3, 8, 19]) {
      const { x, y } = randomSet(120, 25, labels, labels);
      const [level] = await train(x, y, [flat(labels)], exact);
      const positives = transpose(y);
      for (let label = 0; label < labels; label++) {
        const options = { cost: 1, epsilon: 1e-7, iterations: 5000, bias: 1, threshold: 0 };
        const expected = solveSvm(x, rowIndices(positives, label), options, new Random(2));
        expect(distance(weightsOf(level, 0, label, 25), expected)).toBeLessThan(1e-3);
      }
    }
  });

  it('weighs positives and negatives by their own cost', async () => {
    const { x, y } = randomSet(80, 10, 1, 5);
    const options = { ...exact, costPositive: 4, costNegative: 0.25 };
    const [level] = await train(x, y, [flat(1)], options);
    const w = weightsOf(level, 0, 0, 10);
    // At the optimum w equals the sum of 2 C max(0, 1 - s margin) s x over the rows.
    const pull = (sign: number, margin: number) =>
      2 * (sign > 0 ? 4 : 0.25) * Math.max(0, 1 - sign * margin) * sign;
    const sum = pulled(x, new Set(rowIndices(transpose(y), 0)), w, pull);
    expect(distance(w, sum)).toBeLessThan(1e-3);
  });

  it('finds the minimum of the logistic loss', async () => {
    const { x, y } = randomSet(80, 10, 11, 6);
    const options: SolveOptions = { ...exact, loss: 'logistic', costPositive: 2, epsilon: 1e-3 };
    const [level] = await train(x, y, [flat(11)], options);
    for (const label of [0, 4, 10]) {
      const w = weightsOf(level, 0, label, 10);
      const positive = new Set(rowIndices(transpose(y), label));
      // At the optimum w equals the sum of C s x / (1 + exp(s margin)) over the rows.
      const pull = (sign: number, margin: number) =>
        ((sign > 0 ? 2 : 1) * sign) / (1 + Math.exp(sign * margin));
      expect(distance(w, pulled(x, positive, w, pull))).toBeLessThan(0.01);
    }
  });

  it('drops weights below the threshold and no others', async () => {
    const { x, y } = randomSet(100, 20, 9, 3);
    const [all] = await train(x, y, [flat(9)], exact);
    const [some] = await train(x, y, [flat(9)], { ...exact, threshold: 0.3 });
    for (let label = 0; label < 9; label++) {
      const expected = weightsOf(all, 0, label, 20).map((w) => (Math.abs(w) >= Math.fround(0.3) ? w : 0));
      expect(weightsOf(some, 0, label, 20)).toEqual(expected);
    }
  });

  it('trains a node on the rows of its parent only', async () => {
    const { x, y } = randomSet(150, 12, 4, 9);
    const chain: Pattern[] = [
      flat(2),
      { rows: 2, cols: 4, indptr: Uint32Array.of(0, 2, 4), indices: Uint32Array.of(0, 2, 1, 3) },
    ];
    const levels = await train(x, y, chain, exact);
    const positives = transpose(y);
    const rows = [...new Set([...rowIndices(positives, 1), ...rowIndices(positives, 3)])].sort(
      (a, b) => a - b,
    );
    const { selectRows } = await import('../../math/csr.ts');
    const own = new Set(rowIndices(positives, 3));
    const options = { cost: 1, epsilon: 1e-7, iterations: 5000, bias: 1, threshold: 0 };
    const local = [...rows.keys()].filter((i) => own.has(rows[i]));
    const expected = solveSvm(selectRows(x, rows), local, options, new Random(2));
    expect(distance(weightsOf(levels[1], 1, 1, 12), expected)).toBeLessThan(1e-3);
  });

  it('takes one more pass for twice the rows of the first of eight labels, within bounds', async () => {
    const { x, y } = randomSet(900, 12, 16, 5);
    // The first label has the fewest rows, and leads the second eight here.
    const indices = Uint32Array.from([1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 10, 11, 12, 13, 14, 15]);
    const chain = [{ ...flat(16), indices }];
    const weights = async (iterations: number, passes?: Passes) => {
      const [level] = await train(x, y, chain, { ...exact, iterations }, 1, passes);
      return [0, 8].map((child) => weightsOf(level, 0, child, 12));
    };
    const counts = columnCounts(y);
    const [many, few] = [1, 0].map((label) => Math.round(Math.log2(counts[label])));
    expect(many).toBeGreaterThan(few);
    const [first, second] = await weights(30, { least: 1, most: 30 });
    expect(first).toEqual((await weights(many))[0]);
    expect(second).toEqual((await weights(few))[1]);
    expect(await weights(30, { least: 1, most: 2 })).toEqual(await weights(2));
    expect(await weights(30, { least: 12, most: 30 })).toEqual(await weights(12));
  });

  it('gives the same weights on one thread and on two', async () => {
    const { x, y } = randomSet(200, 30, 40, 4);
    const options = { ...exact, epsilon: 0.1, threshold: 0.1 };
    const [one, two] = [await train(x, y, [flat(40)], options), await train(x, y, [flat(40)], options, 2)];
    expect(two).toEqual(one);
  });
});
