import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { metricValue } from './metric.ts';
import { type DenseCase, denseSets, randomCase, toRanking, toTruth } from './reference.ts';
import {
  grids,
  labelThresholds,
  predictedLabels,
  setMetricNames,
  setMetrics,
  sweep,
  thresholdReport,
} from './thresholds.ts';

const everywhere = (cut: number) => Array.from({ length: 20 }, () => Math.fround(cut));
const seeds = fc.integer();
const sparse: DenseCase = {
  scores: [
    [0.7, 0.2, 0],
    [0, 0, 0],
    [0.6, 0.6, 0],
  ],
  truth: [
    [true, false, false],
    [false, false, false],
    [true, false, false],
  ],
  known: 3,
};

describe('set metrics', () => {
  it('agree with the definitions at any thresholds, shared or per label', () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom('drop', 'one'), (seed, emptyF1) => {
        const dense = randomCase(seed);
        const [ranking, truth] = [toRanking(dense), toTruth(dense)];
        const perLabel = Array.from({ length: 20 }, (_, l) => Math.fround((1 + ((l * 7) % 20)) / 20));
        for (const [cut, cuts] of [
          [0.35, everywhere(0.35)],
          [perLabel, perLabel],
        ] as const) {
          const { rows, macroF1 } = setMetrics(predictedLabels(ranking, cut), truth, emptyF1);
          const expected = denseSets(dense, cuts, emptyF1);
          expect(macroF1).toBeCloseTo(expected.macroF1, 12);
          for (const metric of rows)
            expect(metricValue(metric)).toBeCloseTo(expected[metric.name as 'microF1'], 12);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('are 1 when the prediction is perfect and every label occurs', () => {
    const truth = Array.from({ length: 20 }, (_, i) => Array.from({ length: 20 }, (_, l) => i === l));
    const dense = { truth, scores: truth.map((row) => row.map(Number)), known: 20 };
    const { rows, macroF1 } = setMetrics(toRanking(dense), toTruth(dense));
    expect([...rows.map(metricValue), macroF1]).toEqual([1, 1, 1, 1]);
  });

  it('keep a label with no truth and no prediction in macro-F1 as 0, and drop empty rows from example-F1', () => {
    const [predicted, truth] = [predictedLabels(toRanking(sparse), 0.65), toTruth(sparse)];
    const value = (emptyF1: 'drop' | 'one') => setMetrics(predicted, truth, emptyF1).rows.map(metricValue);
    expect(setMetrics(predicted, truth).macroF1).toBeCloseTo(2 / 3 / 3, 12);
    expect(value('drop')).toEqual([8 / 9, 1 / 2, 2 / 3]);
    expect(value('one')[1]).toBeCloseTo(2 / 3, 12);
  });

  it('predict a label whose score is exactly the threshold, in 32 bits', () => {
    expect([...predictedLabels(toRanking(sparse), 0.7).indptr]).toEqual([0, 1, 1, 1]);
  });
});

describe('the sweep', () => {
  it('gives at every threshold what judging the label sets gives', () => {
    fc.assert(
      fc.property(seeds, fc.constantFrom('drop', 'one'), (seed, emptyF1) => {
        const dense = randomCase(seed);
        const seen = sweep(toRanking(dense), toTruth(dense), grids.mpvae, emptyF1);
        grids.mpvae.forEach((cut, j) => {
          const expected = denseSets(dense, everywhere(cut), emptyF1);
          for (const name of setMetricNames) expect(seen[name][j]).toBeCloseTo(expected[name], 12);
        });
      }),
      { numRuns: 15 },
    );
  });

  it('knows the published grids', () => {
    expect(grids.cgmvae).toEqual([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]);
    expect(grids.mpvae).toHaveLength(27);
    expect([grids.mpvae[0], grids.mpvae[9], grids.mpvae[10], grids.mpvae[26]]).toEqual([
      0.01, 0.1, 0.15, 0.95,
    ]);
  });

  it('refuses thresholds that are not positive or do not ascend', () => {
    const [ranking, truth] = [toRanking(sparse), toTruth(sparse)];
    expect(() => sweep(ranking, truth, [0, 0.5])).toThrow('a threshold must be > 0');
    expect(() => predictedLabels(ranking, -1)).toThrow('a threshold must be > 0');
    expect(() => sweep(ranking, truth, [0.5, 0.5])).toThrow('must ascend, got "0.5, 0.5"');
    expect(() => sweep(ranking, truth, [])).toThrow('at least one value');
  });
});

describe('thresholds per label', () => {
  it('reach the best F1 any threshold can give each label', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const dense = randomCase(seed);
        const [ranking, truth] = [toRanking(dense), toTruth(dense)];
        const chosen = denseSets(dense, labelThresholds(ranking, truth));
        const label = (l: number, cut: number) => {
          const column = (rows: number[][]) => rows.map((row) => [row[l]]);
          const only = { truth: dense.truth.map((row) => [row[l]]), scores: column(dense.scores) };
          return denseSets({ ...only, known: l < dense.known ? 1 : 0 }, [cut]).microF1;
        };
        const best = Array.from({ length: 20 }, (_, l) =>
          Math.max(...Array.from({ length: 20 }, (_, s) => label(l, Math.fround((s + 1) / 20)))),
        );
        expect(chosen.macroF1).toBeCloseTo(best.reduce((x, y) => x + y) / 20, 12);
      }),
      { numRuns: 10 },
    );
  });

  it('lie between the last score kept and the next, and fall back where there is no hit to learn from', () => {
    const [first, second, third] = labelThresholds(toRanking(sparse), toTruth(sparse), 0.25);
    expect([first, second, third]).toEqual([Math.fround(0.3), 0.25, 0.25]);
  });

  it('are the highest of those with equal F1', () => {
    const scores = [[1], [0.75], [0.5], [0.25]];
    const dense = { scores, truth: [[true], [false], [false], [true]], known: 1 };
    expect([...labelThresholds(toRanking(dense), toTruth(dense))]).toEqual([0.875]);
  });
});

describe('protocols', () => {
  it('take the best threshold of each metric on the test rows, on validation rows, or .5', () => {
    fc.assert(
      fc.property(seeds, seeds, (seed, other) => {
        const [test, valid] = [randomCase(seed), randomCase(other)];
        const [ranking, truth] = [toRanking(test), toTruth(test)];
        const validation = { ranking: toRanking(valid), truth: toTruth(valid) };
        const report = (protocol: 'oracle_test' | 'val' | 'fixed@.5') =>
          thresholdReport(ranking, truth, { protocol, grid: grids.cgmvae, validation });
        const [oracle, honest, fixed] = [report('oracle_test'), report('val'), report('fixed@.5')];
        const onTest = sweep(ranking, truth, grids.cgmvae);
        const onValidation = sweep(validation.ranking, validation.truth, grids.cgmvae);
        for (const name of setMetricNames) {
          const best = (values: Float64Array) => values.indexOf(Math.max(...values));
          expect(oracle.values[name]).toBeCloseTo(Math.max(...onTest[name]), 12);
          expect(honest.thresholds[name]).toBe(grids.cgmvae[best(onValidation[name])]);
          expect(honest.values[name]).toBeCloseTo(onTest[name][best(onValidation[name])], 12);
          expect(fixed.values[name]).toBeCloseTo(onTest[name][4], 12);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('judge per-label thresholds chosen on validation rows', () => {
    const dense = randomCase(3);
    const [ranking, truth] = [toRanking(dense), toTruth(dense)];
    const options = { protocol: 'per_label', validation: { ranking, truth } } as const;
    const report = thresholdReport(ranking, truth, options);
    const fallback = thresholdReport(ranking, truth, { protocol: 'oracle_test' }).thresholds.microF1 ?? 0;
    const expected = denseSets(dense, labelThresholds(ranking, truth, fallback));
    for (const name of setMetricNames) expect(report.values[name]).toBeCloseTo(expected[name], 12);
    expect(report.thresholds.microF1).toBeNull();
  });

  it('that choose on validation rows refuse to work without them', () => {
    expect(() => thresholdReport(toRanking(sparse), toTruth(sparse), { protocol: 'val' })).toThrow(
      'threshold protocol val needs validation predictions',
    );
  });
});
