import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inversePropensity } from '../data/propensity.ts';
import { columnCounts } from '../math/csr.ts';
import { binTable, calibration, labelReport } from './bins.ts';
import { metricValue } from './metric.ts';
import { rankingMetrics } from './ranking.ts';
import { randomCase, toRanking, toTruth } from './reference.ts';

describe('the label report', () => {
  it('counts what each label has in training, in the test rows and in the top k', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const dense = randomCase(seed);
        const ranking = toRanking(dense);
        const report = labelReport(ranking, toTruth(dense), { counts: [4, 2], k: 3 });
        const inTop = (i: number, l: number) =>
          ranking.indices
            .subarray(ranking.indptr[i], ranking.indptr[i + 1])
            .slice(0, 3)
            .includes(l);
        for (let l = 0; l < 20; l++) {
          const positives = dense.truth.filter((row) => row[l]).length;
          const predicted = dense.truth.filter((_, i) => inTop(i, l)).length;
          const hits = dense.truth.filter((row, i) => row[l] && inTop(i, l)).length;
          expect([report.positives[l], report.predicted[l], report.hits[l]]).toEqual([
            positives,
            predicted,
            hits,
          ]);
          expect(report.precision[l]).toBe(predicted === 0 ? 0 : hits / predicted);
          expect(report.recall[l]).toBe(positives === 0 ? 0 : hits / positives);
          expect(report.f1[l]).toBe(positives + predicted === 0 ? 0 : (2 * hits) / (positives + predicted));
        }
        expect([...report.trained.subarray(0, 3)]).toEqual([4, 2, 0]);
      }),
      { numRuns: 20 },
    );
  });
});

describe('the bin table', () => {
  const counts = [500, 101, 100, 11, 10, 1, 0];

  it('adds up to P@k, PSP@k, all labels and all positives', () => {
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom(1, 5), (seed, k) => {
        const dense = randomCase(seed);
        const [ranking, truth] = [toRanking(dense), toTruth(dense)];
        const weights = inversePropensity(counts, 600, undefined, 20);
        const table = binTable(ranking, truth, { counts, weights, k });
        const total = (key: 'labels' | 'positives' | 'precision' | 'psp') =>
          table.reduce((sum, row) => sum + row[key], 0);
        const metrics = rankingMetrics(ranking, truth, { ks: [k], weights });
        const value = (name: string) => metrics.filter((m) => m.name === name).map(metricValue)[0];
        expect([total('labels'), total('positives')]).toEqual([20, truth.indices.length]);
        expect(total('precision')).toBeCloseTo(value(`P@${k}`), 12);
        expect(total('psp')).toBeCloseTo(value(`PSP@${k}`), 12);
      }),
      { numRuns: 20 },
    );
  });

  it('cuts at more than 100, more than 10 and at least one training row', () => {
    const dense = randomCase(1);
    const weights = inversePropensity(counts, 600, undefined, 20);
    const table = binTable(toRanking(dense), toTruth(dense), { counts, weights });
    expect(table.map((row) => [row.name, row.labels])).toEqual([
      ['head', 2],
      ['torso', 2],
      ['tail', 2],
      ['unseen', 14],
    ]);
    const positives = columnCounts(toTruth(dense));
    expect(table[0].positives).toBe(positives[0] + positives[1]);
    expect(table[0].recall).toBe(table[0].hits / table[0].positives);
  });

  it('refuses bins that leave labels out', () => {
    const dense = randomCase(1);
    const bins = [{ name: 'all', from: 1 }];
    const weights = inversePropensity(counts, 600, undefined, 20);
    expect(() => binTable(toRanking(dense), toTruth(dense), { counts, weights, bins })).toThrow(
      'bins must descend to 0, got "1"',
    );
  });
});

describe('calibration', () => {
  const rows = (scores: number[], truth: boolean[]) => {
    const dense = { scores: scores.map((s) => [s]), truth: truth.map((t) => [t]), known: 1 };
    return [toRanking(dense), toTruth(dense)] as const;
  };

  it('is perfect when scores are the hit rates', () => {
    const perfect = calibration(...rows([0.5, 0.5, 1], [true, false, true]));
    expect(perfect?.expectedError).toBe(0);
    expect(perfect?.bins).toEqual([
      { from: 0.5, to: 0.6, count: 2, meanScore: 0.5, hitRate: 0.5 },
      { from: 0.9, to: 1, count: 1, meanScore: 1, hitRate: 1 },
    ]);
  });

  it('weighs each bin by its predictions', () => {
    const judged = calibration(...rows([0.25, 0.25, 0.75, 0.75], [true, false, false, false]));
    expect(judged?.expectedError).toBe((2 * 0.25 + 2 * 0.75) / 4);
  });

  it('is null for scores that are no probabilities', () => {
    expect(calibration(...rows([0.5, 1.5], [true, true]))).toBeNull();
  });
});
