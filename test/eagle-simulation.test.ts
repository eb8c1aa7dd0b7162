import { describe, expect, it } from 'vitest';
import { predictedPenalty, simulateClassification, simulateRegression } from '../bench/eagle-simulation.ts';

const seeds = Array.from({ length: 12 }, (_, seed) => seed + 1);
const mean = (values: number[]) => values.reduce((sum, value) => sum + value) / values.length;

describe('the simulations of the EAGLE paper', () => {
  it.each([
    [0, 1, 1],
    [0.1, 1.01, 1.27],
    [1, 1.43, 1.93],
    [5, 2.96, 1.04],
    [10, 3.27, 1],
  ])(
    'regression with spread %d: assigning helps where groups are wide, harms where they are not',
    (spread, sums, assigned) => {
      const runs = seeds.map((seed) => simulateRegression(spread, seed));
      const close = (seen: number, wanted: number) => expect(Math.abs(seen / wanted - 1)).toBeLessThan(0.1);
      close(mean(runs.map(({ noAssignment }) => noAssignment)), sums);
      close(mean(runs.map(({ assignment }) => assignment)), assigned);
    },
  );

  it('theory predicts the penalty of regressing sums', () => {
    expect(predictedPenalty(1)).toBeCloseTo(1.43, 2);
    expect(predictedPenalty(5)).toBeCloseTo(2.89, 2);
    expect(predictedPenalty(10)).toBeCloseTo(3.21, 2);
  });

  it('classification: assigning removes most of the error where labels are mixed', () => {
    const runs = seeds.map((seed) => simulateClassification(0, seed, { tests: 2000 }));
    expect(mean(runs.map(({ noAssignment }) => noAssignment))).toBeCloseTo(0.153, 1);
    expect(mean(runs.map(({ assignment }) => assignment))).toBeCloseTo(0.043, 1);
  });
});
