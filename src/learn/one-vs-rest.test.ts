import { describe, expect, it } from 'vitest';
import { CsrBuilder } from '../math/csr.ts';
import { Random } from '../math/random.ts';
import { parseOptions } from '../options.ts';
import { oneVsRest, solveSvm } from './one-vs-rest.ts';

/** 200 x 20 rows whose label depends on a planted direction, with noise. */
function problem(seed: number) {
  const random = new Random(seed, 'svm');
  const builder = new CsrBuilder('values');
  const rows: number[][] = [];
  const positives: number[] = [];
  for (let i = 0; i < 200; i++) {
    const row = Array.from({ length: 20 }, () => random.normal() / 4);
    if (row[0] - row[1] + 0.3 * random.normal() > 0.1) positives.push(i);
    rows.push(row);
    builder.add(
      row.map((_, j) => j),
      row,
    );
  }
  return { x: builder.csr(), rows, positives };
}

/** An independent solver: Newton's method on the primal, which is piecewise quadratic. */
function newton(rows: number[][], positives: number[], cost: number): number[] {
  const isPositive = new Set(positives);
  const x = rows.map((row) => [...row, 1]);
  const sign = rows.map((_, i) => (isPositive.has(i) ? 1 : -1));
  const dot = (a: number[], b: number[]) => a.reduce((sum, value, j) => sum + value * b[j], 0);
  const size = x[0].length;
  let w = new Array<number>(size).fill(0);
  for (let pass = 0; pass < 50; pass++) {
    const active = x.map((_, i) => i).filter((i) => sign[i] * dot(w, x[i]) < 1);
    // (I + 2C sum x x') w = 2C sum s x over the active rows.
    const system = Array.from({ length: size }, (_, r) =>
      Array.from({ length: size + 1 }, (_, c) => {
        const sum = active.reduce((total, i) => total + x[i][r] * (c < size ? x[i][c] : sign[i]), 0);
        return 2 * cost * sum + (r === c ? 1 : 0);
      }),
    );
    w = solveLinear(system);
  }
  return w;
}

/** Gauss-Jordan elimination of an augmented, positive definite system. */
function solveLinear(system: number[][]): number[] {
  const a = system.map((row) => [...row]);
  for (let c = 0; c < a.length; c++) {
    const pivot = a[c][c];
    a[c] = a[c].map((value) => value / pivot);
    for (let r = 0; r < a.length; r++) {
      const factor = a[r][c];
      if (r !== c) a[r] = a[r].map((value, j) => value - factor * a[c][j]);
    }
  }
  return a.map((row) => row[row.length - 1]);
}

describe('solveSvm', () => {
  it.each([1, 2, 3])('agrees with an independent Newton solver (seed %i)', (seed) => {
    const { x, rows, positives } = problem(seed);
    const options = parseOptions(oneVsRest.options, { epsilon: 1e-6, iterations: 10_000 });
    const w = solveSvm(x, positives, options, new Random(seed));
    const expected = newton(rows, positives, 1);
    expect(Math.hypot(...expected.map((value, j) => value - w[j]))).toBeLessThan(1e-3);
  });

  it('pulls every margin below zero where no row is positive', () => {
    const { x, rows } = problem(4);
    const w = solveSvm(x, [], parseOptions(oneVsRest.options), new Random(1));
    for (const row of rows) expect(row.reduce((sum, value, j) => sum + value * w[j], w[20])).toBeLessThan(0);
  });
});
