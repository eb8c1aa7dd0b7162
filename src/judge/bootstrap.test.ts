import { describe, expect, it } from 'vitest';
import { Random } from '../math/random.ts';
import { bootstrap, compare } from './bootstrap.ts';
import type { RowMetric } from './metric.ts';

const normalRows = (name: string, mean: number, rows: number, seed: number): RowMetric => {
  const random = new Random(seed, 'rows');
  return { name, numerator: Float64Array.from({ length: rows }, () => mean + random.normal()) };
};

describe('bootstrap intervals', () => {
  it('have the width theory gives for a mean', () => {
    const { x } = bootstrap([normalRows('x', 5, 400, 1)], { seed: 1, resamples: 2000 });
    expect(x.low).toBeLessThan(x.value);
    expect(x.high).toBeGreaterThan(x.value);
    expect(x.high - x.low).toBeGreaterThan(0.9 * 2 * 1.96 * (1 / 20));
    expect(x.high - x.low).toBeLessThan(1.1 * 2 * 1.96 * (1 / 20));
  });

  it('cover the truth about as often as they promise', () => {
    const covered = Array.from({ length: 300 }, (_, seed) => {
      const { x } = bootstrap([normalRows('x', 0, 100, seed)], { seed, resamples: 300, confidence: 0.9 });
      return x.low <= 0 && x.high >= 0 ? 1 : 0;
    }).reduce<number>((sum, hit) => sum + hit, 0);
    expect(covered / 300).toBeGreaterThan(0.84);
    expect(covered / 300).toBeLessThan(0.95);
  });

  it('resample both parts of a ratio together', () => {
    const denominator = normalRows('x', 10, 50, 2).numerator;
    const { x } = bootstrap([{ name: 'x', numerator: denominator.map((d) => d * 3), denominator }], {
      seed: 1,
    });
    expect([x.value, x.low, x.high].map((v) => v.toFixed(9))).toEqual(Array(3).fill('3.000000000'));
  });

  it('depend on the seed alone', () => {
    const metrics = [normalRows('x', 0, 30, 1), normalRows('y', 1, 30, 2)];
    expect(bootstrap(metrics, { seed: 7 })).toEqual(bootstrap(metrics, { seed: 7 }));
    expect(bootstrap(metrics, { seed: 7 })).not.toEqual(bootstrap(metrics, { seed: 8 }));
    expect(bootstrap(metrics.slice(1), { seed: 7 }).y).toEqual(bootstrap(metrics, { seed: 7 }).y);
  });

  it('refuse numbers that make no interval', () => {
    const metrics = [normalRows('x', 0, 3, 1)];
    expect(() => bootstrap(metrics, { seed: 1, resamples: 0 })).toThrow(
      'resamples must be a positive integer, got 0',
    );
    expect(() => bootstrap(metrics, { seed: 1, confidence: 1 })).toThrow('between 0 and 1, got 1');
  });
});

describe('paired comparison', () => {
  it('finds no difference between a run and itself', () => {
    const a = [normalRows('x', 0, 40, 1)];
    const { x } = compare(a, a, { seed: 1 });
    expect(x).toMatchObject({ difference: 0, low: 0, high: 0, p: 1, wins: 0, ties: 40, losses: 0 });
  });

  it('sees a small gain that every row shares, which unpaired intervals would hide', () => {
    const a = normalRows('x', 0, 200, 1);
    const b = { ...a, numerator: a.numerator.map((x, i) => x + (i % 10 === 0 ? -0.02 : 0.02)) };
    const { x } = compare([a], [b], { seed: 1 });
    expect(x.difference).toBeCloseTo(0.016, 10);
    expect(x.low).toBeGreaterThan(0);
    expect(x.p).toBeLessThan(0.002);
    expect([x.wins, x.ties, x.losses]).toEqual([180, 0, 20]);
  });

  it('is wrong about as often as its p-value says', () => {
    const alarms = Array.from({ length: 300 }, (_, seed) => {
      const [a, b] = [normalRows('x', 0, 30, seed), normalRows('x', 0, 30, seed + 1000)];
      return compare([a], [b], { seed, resamples: 199 }).x.p <= 0.1 ? 1 : 0;
    }).reduce<number>((sum, alarm) => sum + alarm, 0);
    expect(alarms / 300).toBeGreaterThan(0.05);
    expect(alarms / 300).toBeLessThan(0.16);
  });

  it('cannot be surer than the number of rows allows, whatever the rounding', () => {
    for (let seed = 0; seed < 20; seed++) {
      const { x } = compare([normalRows('x', 0, 3, seed)], [normalRows('x', 9, 3, seed + 50)], { seed });
      // Of the 8 ways to swap 3 rows, none and all differ as much.
      expect(x.p).toBeGreaterThan(0.2);
      expect(x.p).toBeLessThan(0.3);
    }
  });

  it('swaps both parts of a ratio: runs that differ by a swap alone do not differ', () => {
    const ratioRows = (numerator: number[], denominator: number[]): RowMetric[] => [
      { name: 'x', numerator: Float64Array.from(numerator), denominator: Float64Array.from(denominator) },
    ];
    const { x } = compare(ratioRows([1, 4], [2, 8]), ratioRows([4, 1], [8, 2]), { seed: 1 });
    expect(x).toMatchObject({ a: 0.5, b: 0.5, difference: 0, p: 1, ties: 2 });
  });

  it('compares only metrics both runs have, over the same rows', () => {
    const [a, b] = [normalRows('x', 0, 5, 1), normalRows('y', 0, 5, 2)];
    expect(Object.keys(compare([a, b], [b], { seed: 1 }))).toEqual(['y']);
    expect(() => compare([a], [normalRows('x', 0, 6, 1)], { seed: 1 })).toThrow('the same rows, 5, got 6');
  });
});
