import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inversePropensity, propensities } from '../data/propensity.ts';
import { columnCounts, type Pattern, type Ranking, rowIndices } from '../math/csr.ts';
import { metricValue } from './metric.ts';
import { type RankingOptions, rankingMetrics, withoutPairs } from './ranking.ts';
import { type DenseCase, denseRanking, randomCase, toRanking, toTruth } from './reference.ts';

const values = (ranking: Pattern, truth: Pattern, options: RankingOptions) =>
  Object.fromEntries(rankingMetrics(ranking, truth, options).map((m) => [m.name, metricValue(m)]));

const small: DenseCase = {
  scores: [
    [0.9, 0.5, 0.1],
    [0.8, 0.7, 0.2],
  ],
  truth: [
    [true, false, true],
    [false, true, false],
  ],
  known: 3,
};

describe('ranking metrics', () => {
  it('agree with the definitions on random matrices with ties, empty rows, short lists and unknown labels', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const dense = randomCase(seed);
        const [ranking, truth] = [toRanking(dense), toTruth(dense)];
        const weights = inversePropensity(columnCounts(truth), 50, propensities.wiki);
        const options = { ks: [3, 1, 25, 5], weights };
        const seen = values(ranking, truth, options);
        const raw = values(ranking, truth, { ...options, normalise: false, emptyRecall: 'skip' });
        for (const k of options.ks) {
          const expected = denseRanking(dense, k, weights);
          for (const family of ['P', 'R', 'nDCG', 'PSP', 'PSnDCG'])
            expect(seen[`${family}@${k}`]).toBeCloseTo(expected[`${family}@${k}`], 10);
          expect(raw[`R@${k}`]).toBeCloseTo(expected[`R@${k} of rows with truth`], 10);
          expect(raw[`PSP@${k}`]).toBeCloseTo(expected[`PSP@${k} unnormalised`], 10);
          expect(raw[`PSnDCG@${k}`]).toBeCloseTo(expected[`PSnDCG@${k} unnormalised`], 10);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('give the worked values of propensity-scored precision', () => {
    const options = { ks: [1, 2], weights: Float64Array.of(1.5, 4, 9) };
    const raw = values(toRanking(small), toTruth(small), { ...options, normalise: false });
    expect([raw['PSP@1'], raw['PSP@2']]).toEqual([0.75, 1.375]);
    const normalised = values(toRanking(small), toTruth(small), options);
    expect(normalised['PSP@1']).toBeCloseTo(0.115385, 6);
    expect(normalised['PSP@2']).toBeCloseTo(0.37931, 6);
  });

  it('divide precision by k even when fewer labels are predicted', () => {
    const dense = { ...small, scores: small.scores.map(([first]) => [first, 0, 0]) };
    expect(values(toRanking(dense), toTruth(dense), { ks: [5] })['P@5']).toBeCloseTo(0.1, 12);
  });

  it('are 1 for the best possible ranking, propensity-scored ones too', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const { truth } = randomCase(seed);
        truth[0][0] = true;
        const weights = inversePropensity([9, 4, 1], 100, propensities.default, 20);
        const scores = truth.map((row) => row.map((isTrue, l) => (isTrue ? weights[l] : 0)));
        const dense = { truth: truth.filter((row) => row.includes(true)), known: 20 };
        const ideal = { ...dense, scores: scores.filter((row) => row.some((score) => score > 0)) };
        const seen = values(toRanking(ideal), toTruth(ideal), { ks: [1, 5, 20], weights });
        for (const name of ['P@1', 'R@20', 'nDCG@5', 'PSP@1', 'PSP@5', 'PSnDCG@1', 'PSnDCG@20'])
          expect(seen[name]).toBeCloseTo(1, 12);
      }),
      { numRuns: 20 },
    );
  });

  it('leave propensity-scored metrics out when there are no weights', () => {
    expect(Object.keys(values(toRanking(small), toTruth(small), { ks: [1] }))).toEqual([
      'P@1',
      'R@1',
      'nDCG@1',
    ]);
  });

  it('refuse a depth that is no positive integer, weights that miss labels, and other rows', () => {
    const [ranking, truth] = [toRanking(small), toTruth(small)];
    expect(() => rankingMetrics(ranking, truth, { ks: [0] })).toThrow('k must be a positive integer, got 0');
    expect(() => rankingMetrics(ranking, truth, { weights: Float64Array.of(1) })).toThrow(
      'weights must cover all 3 labels, got 1',
    );
    const longer = { ...truth, rows: 3, indptr: Uint32Array.of(0, 2, 3, 3) };
    expect(() => rankingMetrics(ranking, longer)).toThrow('as many rows as the truth, 3, got 2');
  });
});

describe('inverse propensity', () => {
  it('gives the worked values', () => {
    const [one, ten, hundred] = inversePropensity([1, 10, 100], 15539, { a: 0.55, b: 1.5 });
    expect([one, ten, hundred].map((w) => w.toFixed(3))).toEqual(['9.651', '4.737', '2.128']);
  });

  it('falls with frequency towards 1, and labels never seen weigh most', () => {
    const weights = inversePropensity([1e12, 1000, 10, 1], 20_000, propensities.amazon, 5);
    for (let l = 1; l < weights.length; l++) expect(weights[l]).toBeGreaterThan(weights[l - 1]);
    expect(weights[0]).toBeGreaterThan(1);
    expect(weights[0]).toBeCloseTo(1, 4);
  });

  it('is 1 everywhere when there are too few training rows to estimate it', () => {
    expect([...inversePropensity([0, 1, 2], 2)]).toEqual([1, 1, 1]);
  });

  it('refuses constants outside the model', () => {
    expect(() => inversePropensity([1], 9, { a: 0.5, b: 0 })).toThrow('b must be a number > 0, got 0');
    expect(() => inversePropensity([1], 9, { a: -1, b: 1 })).toThrow('a must be a number >= 0, got -1');
  });
});

describe('the pair filter', () => {
  const labelsOf = (ranking: Ranking, row: number) => [...rowIndices(ranking, row)];

  it('removes listed predictions before the cut, so the next label moves up', () => {
    const filtered = withoutPairs(toRanking(small), [
      [1, 0],
      [0, 2],
      [0, 17],
    ]);
    expect([labelsOf(filtered, 0), labelsOf(filtered, 1)]).toEqual([
      [0, 1],
      [1, 2],
    ]);
    expect(values(filtered, toTruth(small), { ks: [1] })['P@1']).toBe(1);
  });

  it('refuses rows that do not exist', () => {
    expect(() => withoutPairs(toRanking(small), [[2, 0]])).toThrow('below 2, got 2');
  });
});
