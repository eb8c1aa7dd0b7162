import { describe, expect, it } from 'vitest';
import { inversePropensity } from '../data/propensity.ts';
import { columnCounts } from '../math/csr.ts';
import { bootstrap, compare } from './bootstrap.ts';
import { evaluate, rowMetrics } from './evaluate.ts';
import { denseRanking, denseSets, randomCase, toRanking, toTruth } from './reference.ts';

const dense = randomCase(11);
const [ranking, truth] = [toRanking(dense), toTruth(dense)];
const counts = columnCounts(truth).subarray(0, ranking.cols);
const training = { counts, rows: 50 };

describe('evaluate', () => {
  it('reports every metric under its plain name, as the definitions give it', () => {
    const propensity = { a: 0.5, b: 0.4 };
    const report = evaluate(ranking, truth, { ...training, propensity });
    const weights = inversePropensity(counts, 50, propensity, 20);
    for (const k of [1, 3, 5, 10]) {
      const expected = denseRanking(dense, k, weights);
      for (const family of ['P', 'R', 'nDCG', 'PSP', 'PSnDCG'] as const)
        expect(report[`${family}@${k}`]).toBeCloseTo(expected[`${family}@${k}`], 10);
    }
    const sets = denseSets(dense, Array(20).fill(0.5));
    for (const name of ['hammingAccuracy', 'exampleF1', 'microF1', 'macroF1'] as const)
      expect(report[name]).toBeCloseTo(sets[name], 12);
    expect(report).toMatchObject({ n: 50, labels: 20, propensity, thresholds: { protocol: 'fixed@.5' } });
    expect(report.emptyRows).toBe(dense.truth.filter((row) => !row.includes(true)).length);
    expect(report.bins.rows.map((row) => row.name)).toEqual(['head', 'torso', 'tail', 'unseen']);
  });

  it('survives JSON unchanged', () => {
    const report = evaluate(ranking, truth, { ...training, resamples: 20 });
    expect(JSON.parse(JSON.stringify(report))).toEqual(report);
  });

  it('chooses thresholds on validation rows when it has some', () => {
    const validation = { ranking, truth };
    const report = evaluate(ranking, truth, { ...training, validation, grid: [0.3, 0.6] });
    expect(report.thresholds.protocol).toBe('val');
    expect([0.3, 0.6]).toContain(report.thresholds.macroF1);
    const { protocols, microF1 } = report;
    expect(Object.keys(protocols)).toEqual(['oracle_test', 'val', 'per_label', 'fixed@.5']);
    expect(protocols.val?.microF1).toBe(microF1);
    expect(protocols.oracle_test?.microF1).toBe(microF1);
    expect(protocols['fixed@.5']).not.toEqual(protocols.val);
  });

  it('names the protocols that need no validation rows where it has none', () => {
    const { protocols, microF1 } = evaluate(ranking, truth, training);
    expect(Object.keys(protocols)).toEqual(['oracle_test', 'fixed@.5']);
    expect(protocols['fixed@.5']?.microF1).toBe(microF1);
    expect(protocols.oracle_test?.microF1).toBeGreaterThanOrEqual(microF1);
  });

  it('adds intervals around the values when asked to', () => {
    const { intervals = {}, ...report } = evaluate(ranking, truth, { ...training, resamples: 100, seed: 3 });
    expect(intervals).toEqual(bootstrap(rowMetrics(ranking, truth, training), { seed: 3, resamples: 100 }));
    expect(intervals['PSP@5'].value).toBe(report['PSP@5']);
    expect(intervals.microF1.value).toBe(report.microF1);
    expect(evaluate(ranking, truth, training)).not.toHaveProperty('intervals');
  });

  it('removes excluded pairs first', () => {
    const listed = ranking.indices.subarray(0, ranking.indptr[1]);
    const exclude = Array.from(listed, (label) => [0, label] as const);
    const without = { ...dense, scores: dense.scores.map((row, i) => (i === 0 ? row.map(() => 0) : row)) };
    expect(evaluate(ranking, truth, { ...training, exclude })).toEqual(
      evaluate(toRanking(without), truth, training),
    );
  });

  it('leaves calibration out when scores are no probabilities', () => {
    const margins = { ...ranking, values: ranking.values.map((score) => score * 8) };
    expect(evaluate(margins, truth, training).calibration).toBeNull();
    expect(evaluate(ranking, truth, training).calibration).not.toBeNull();
  });

  it('hands its rows to a paired comparison', () => {
    const rows = rowMetrics(ranking, truth, training);
    const result = compare(rows, rows, { seed: 1, resamples: 20 });
    expect(result['nDCG@5']).toMatchObject({ difference: 0, p: 1, ties: 50 });
  });

  it('refuses an empty test set and options that break their rule', () => {
    const empty = { rows: 0, cols: 3, indptr: new Uint32Array(1), indices: new Uint32Array(0) };
    expect(() => evaluate({ ...empty, values: new Float32Array(0) }, empty, training)).toThrow(
      'test data must have at least one row, got 0',
    );
    expect(() => evaluate(ranking, truth, { ...training, resamples: -1 })).toThrow(
      'resamples must be an integer >= 0, got -1',
    );
  });
});
