import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../math/random.ts';
import { gradients } from '../../nn/gradient.ts';
import { input, type Value } from '../../nn/graph.ts';
import { sub, sum } from '../../nn/ops.ts';
import { evaluate } from '../../nn/reference.ts';
import { type MarginOptions, marginLoss, regulariser, type TripletOptions, tripletLoss } from './losses.ts';

const derived: MarginOptions = { margin: 'derived', marginLow: 0.1, marginHigh: 0.3, tieGradient: 0 };

/** Zeros without a sign. */
const unsigned = (x: number): number => x + 0;

/** The loss of one pair and its slopes by both similarities. */
function lossAt(positive: number, negative: number, o: MarginOptions) {
  const [p, n] = [input('p', [1]), input('n', [1])];
  const loss = sum(marginLoss(sub(p, n), o));
  const given = new Map<Value, number[]>([
    [p, [positive]],
    [n, [negative]],
  ]);
  const [[value], [byPositive], [byNegative]] = evaluate([loss, ...gradients(loss, [p, n])], given);
  return { value, slopes: [byPositive, byNegative].map(unsigned) };
}

/** The table of the four regions. */
function expected(distance: number): { value: number; slopes: number[] } {
  if (distance >= 0.1) return { value: 0, slopes: [0, 0] };
  const slopes = [-1, 1];
  if (distance > 0) return { value: 0.1 - distance, slopes };
  if (distance >= -0.3) return { value: -distance + Math.max(-distance, 0.1), slopes };
  return { value: -distance + 0.3, slopes };
}

describe('the margin that follows the distance', () => {
  it('has the value and the slopes of its four regions', () => {
    fc.assert(
      fc.property(fc.double({ min: -1, max: 1, noNaN: true }), (distance) => {
        fc.pre([0.1, 0.3, -0.3].every((corner) => Math.abs(distance - corner) > 1e-6));
        const { value, slopes } = lossAt(distance, 0, derived);
        expect(value).toBeCloseTo(expected(distance).value, 9);
        expect(slopes).toEqual(expected(distance).slopes);
      }),
    );
  });

  it('has the slope of its own differences, the margin held still, away from the corner', () => {
    for (const distance of [-0.7, -0.25, -0.05, 0.04, 0.6]) {
      const margin = Math.min(0.3, Math.max(0.1, Math.abs(distance)));
      const frozen = (d: number) => Math.max(margin - d, 0);
      const slope = (frozen(distance + 1e-5) - frozen(distance - 1e-5)) / 2e-5;
      expect(lossAt(distance, 0, derived).slopes[0]).toBeCloseTo(slope, 6);
    }
  });

  it('does not jump at 0 and at the least margin', () => {
    for (const at of [0, 0.1])
      expect(lossAt(at - 1e-9, 0, derived).value).toBeCloseTo(lossAt(at + 1e-9, 0, derived).value, 6);
  });

  it('has the slope it is told in the band where its argument is exactly 0', () => {
    for (const [tieGradient, slope] of [
      [0, 0],
      [0.5, 0.5],
      [1, 1],
    ])
      for (const positive of [0.11, 0.2, 0.29])
        expect(lossAt(positive, 0, { ...derived, tieGradient }).slopes.map(Math.abs)).toEqual([slope, slope]);
    // Beyond the band nothing ties.
    expect(lossAt(0.4, 0, { ...derived, tieGradient: 1 }).slopes.map(Math.abs)).toEqual([0, 0]);
  });

  it('is a hinge where both bounds are one', () => {
    for (const distance of [-0.9, -0.2, 0.05, 0.19, 0.21, 0.8])
      expect(lossAt(distance, 0, { ...derived, marginLow: 0.2, marginHigh: 0.2 }).value).toBeCloseTo(
        Math.max(0.2 - distance, 0),
        9,
      );
  });

  it('as printed has the other sign for small distances, and fixed is a hinge of the upper bound', () => {
    expect(lossAt(0.04, 0, { ...derived, margin: 'inverted' })).toEqual({ value: 0.14, slopes: [1, -1] });
    expect(lossAt(-0.2, 0, { ...derived, margin: 'inverted' })).toEqual(lossAt(-0.2, 0, derived));
    expect(lossAt(0.2, 0, { ...derived, margin: 'fixed' }).value).toBeCloseTo(0.1, 9);
  });

  it('pulls pair by pair like a hinge of the least margin', () => {
    const hinge = { ...derived, marginLow: 0.1, marginHigh: 0.1 };
    for (const distance of [-0.8, -0.2, -0.01, 0.05, 0.2, 0.5])
      expect(lossAt(distance, 0, derived).slopes).toEqual(lossAt(distance, 0, hinge).slopes);
  });
});

const triplets: TripletOptions = { ...derived, positives: 2, negatives: 3, aggregate: 'hardest' };

interface Case {
  similarities: number[][];
  positive: number[][];
  usable: number[][];
}

function drawCase(seed: number, anchors: number, others: number): Case {
  const random = new Random(seed, 'triplets');
  const matrix = (draw: () => number) =>
    Array.from({ length: anchors }, () => Array.from({ length: others }, draw));
  return {
    similarities: matrix(() => 2 * random.uniform() - 1),
    positive: matrix(() => Number(random.uniform() < 0.3)),
    usable: matrix(() => Number(random.uniform() < 0.8)),
  };
}

function lossOf({ similarities, positive, usable }: Case, o: TripletOptions): number {
  const shape = [similarities.length, similarities[0].length];
  const [s, p, u] = ['s', 'p', 'u'].map((name) => input(name, shape));
  const given = new Map<Value, number[]>([
    [s, similarities.flat()],
    [p, positive.flat()],
    [u, usable.flat()],
  ]);
  return evaluate([tripletLoss(s, p, u, o)], given)[0][0];
}

/** Anchor by anchor, pair by pair. */
function slowLoss({ similarities, positive, usable }: Case, o: TripletOptions): number {
  let [total, pairs, active, all] = [0, 0, 0, 0];
  similarities.forEach((row, i) => {
    const among = (wanted: number) => row.filter((_, j) => usable[i][j] === 1 && positive[i][j] === wanted);
    const positives = among(1)
      .sort((a, b) => a - b)
      .slice(0, o.positives);
    const sorted = among(0).sort((a, b) => b - a);
    const negatives = o.aggregate === 'hardest' ? sorted.slice(0, o.negatives) : sorted;
    for (const p of positives) {
      const losses = negatives.map((n) => lossAt(p, n, o).value);
      const weights = losses.map((loss) => (loss > 0 ? Math.exp(loss) : 0));
      const sumOf = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
      if (sumOf(weights) > 0) total += sumOf(losses.map((loss, j) => loss * weights[j])) / sumOf(weights);
      pairs += losses.length;
      active += losses.filter((loss) => loss > 0).length;
      all += sumOf(losses);
    }
  });
  if (o.aggregate === 'all') return all;
  return o.aggregate === 'active' ? all / Math.max(active, 1) : total / Math.max(pairs, 1);
}

describe('the loss of triplets', () => {
  it.each(['hardest', 'active', 'all'] as const)('is what going through all pairs gives: %s', (aggregate) => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 7 }), (seed, a, n) => {
        const drawn = drawCase(seed, a, n);
        const o = { ...triplets, aggregate };
        expect(lossOf(drawn, o)).toBeCloseTo(slowLoss(drawn, o), 6);
      }),
      { numRuns: 40 },
    );
  });

  it('is nothing for anchors without negatives, and without positives', () => {
    const one = { similarities: [[0.1, 0.2]], usable: [[1, 1]] };
    expect(lossOf({ ...one, positive: [[1, 1]] }, triplets)).toBe(0);
    expect(lossOf({ ...one, positive: [[0, 0]] }, triplets)).toBe(0);
    expect(lossOf({ ...one, positive: [[1, 0]], usable: [[1, 0]] }, triplets)).toBe(0);
  });
});

describe('the regulariser', () => {
  it('costs where prototypes are behind texts, and leaves texts alone', () => {
    const [b, s, y] = ['b', 's', 'y'].map((name) => input(name, [1, 3]));
    const usable = input('u', [1, 3]);
    const given = new Map<Value, number[]>([
      [b, [0.5, 0.2, 0.9]],
      [s, [0.7, 0.1, 0]],
      [y, [1, 0, 0]],
      [usable, [1, 1, 0]],
    ]);
    const cost = regulariser(b, s, y, usable, { regulariser: 'hinge', slack: 0.05 });
    const [[value], ofPrototypes, ofTexts] = evaluate([cost, ...gradients(cost, [b, s])], given);
    expect(value).toBeCloseTo((0.7 - 0.5 + 0.05 + (0.2 - 0.1 + 0.05)) / 2, 9);
    expect(Array.from(ofPrototypes, unsigned)).toEqual([-0.5, 0.5, 0]);
    expect(Array.from(ofTexts, unsigned)).toEqual([0, 0, 0]);
    const linear = regulariser(b, s, y, usable, { regulariser: 'linear', slack: -1 });
    expect(evaluate([linear], given)[0][0]).toBeCloseTo((0.2 - 1 + (0.1 - 1)) / 2, 9);
  });
});
