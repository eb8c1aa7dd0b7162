import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { datasetOf, type PlainSample } from '../data/plain-samples.ts';
import { choice, integer } from '../options.ts';
import { planTrials, tune } from './tune.ts';

const table = { a: integer(1, ''), b: integer(1, ''), c: choice('x', ['x', 'y'], '') };

describe('planTrials', () => {
  it('begins with the defaults, then makes every combination once', () => {
    expect(planTrials(table, {}, { a: [1, 2], c: ['x', 'y'] }, 20, 1)).toEqual([
      {},
      { a: 2, c: 'x' },
      { a: 1, c: 'y' },
      { a: 2, c: 'y' },
    ]);
  });

  it('draws as many different combinations as are wanted, the same for the same seed', () => {
    const values = fc.uniqueArray(fc.integer({ min: 2, max: 50 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(values, values, fc.integer({ min: 1, max: 30 }), fc.nat(), (a, b, most, seed) => {
        const plan = planTrials(table, {}, { a, b }, most, seed);
        expect(plan).toHaveLength(Math.min(most, 1 + a.length * b.length));
        expect(new Set(plan.map((tried) => JSON.stringify(tried))).size).toBe(plan.length);
        expect(planTrials(table, {}, { a, b }, most, seed)).toEqual(plan);
      }),
    );
  });

  it('refuses a value that is not allowed before anything is trained', () => {
    expect(() => planTrials(table, {}, { c: ['x', 'z'] }, 20, 1)).toThrow(/c must be one of x, y/);
    expect(() => planTrials(table, {}, { d: [1] }, 20, 1)).toThrow(/unknown option/);
    expect(() => planTrials(table, { a: 3 }, { a: [1] }, 20, 1)).toThrow(/a must be either set or tried/);
    expect(() => planTrials(table, {}, { a: [] }, 20, 1)).toThrow(/a must be given values to try/);
    expect(() => planTrials(table, {}, {}, 0, 1)).toThrow(/trials must be a positive integer, got 0/);
  });
});

/** Samples whose label is told by the company of words, so that one neighbour misleads where many do not. */
function noisySamples(count: number, from: number): PlainSample[] {
  return Array.from({ length: count }, (_, i) => {
    const n = from + i;
    const warm = n % 2 === 0;
    const wrong = n % 5 === 0;
    return {
      text: `${warm ? 'sun summer' : 'snow winter'} word${n % 7}`,
      labels: [warm !== wrong ? 'warm' : 'cold'],
    };
  });
}

describe('tune', () => {
  it('finds the number of neighbours that noise asks for, and says how much it brings', async () => {
    const all = datasetOf(noisySamples(220, 0));
    const held = datasetOf(
      noisySamples(60, 1001).filter((_, i) => (1001 + i) % 5 !== 0),
      all.vocabulary.clone(),
    );
    const told: number[] = [];
    const found = await tune(all, held, {
      learner: 'ml-knn',
      options: { k: 1 },
      tries: { smoothing: [1] },
      metric: 'P@1',
      onTrial: ({ score }) => told.push(score),
    });
    expect(found.trials).toHaveLength(1);
    expect(told).toEqual([found.best.score]);
    expect(found.gain.difference).toBe(0);

    const wider = await tune(all, held, { learner: 'ml-knn', tries: { k: [1, 40] }, metric: 'P@1' });
    const score = (k: number) => wider.trials.find(({ tried }) => tried.k === k)?.score ?? 0;
    expect(wider.best.score).toBe(Math.max(...wider.trials.map((trial) => trial.score)));
    expect(score(40)).toBe(1);
    expect(score(1)).toBeLessThan(1);
  });

  it('refuses a metric it does not know', async () => {
    const set = datasetOf(noisySamples(10, 0));
    await expect(tune(set, set, { metric: 'F1' })).rejects.toThrow(/metric must be P, R, nDCG/);
  });
});
