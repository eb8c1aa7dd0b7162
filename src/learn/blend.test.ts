import { describe, expect, it } from 'vitest';
import { Vocabulary } from '../data/vocabulary.ts';
import { CsrBuilder, type Ranking, rowIndices, rowValues } from '../math/csr.ts';
import { blendRankings, inColumns, partnerOf } from './blend.ts';

const ranking = (...rows: [label: number, score: number][][]): Ranking => {
  const built = new CsrBuilder('values');
  for (const row of rows)
    built.add(
      row.map(([label]) => label),
      row.map(([, score]) => score),
    );
  return built.csr(9);
};

const a = ranking([
  [3, 0.9],
  [1, 0.8],
  [5, 0.1],
]);
const b = ranking([
  [1, 0.6],
  [7, 0.55],
  [3, 0.5],
]);

describe('a blend', () => {
  it('prefers labels that both have near the top', () => {
    for (const by of ['rank', 'score'] as const) {
      const blended = blendRankings(a, b, 4, { by, weight: 0.5 });
      expect(rowIndices(blended, 0)[0]).toBe(1);
      expect(new Set(blended.indices)).toEqual(new Set([1, 3, 5, 7]));
    }
  });

  it('is the one or the other at the ends of its weight', () => {
    for (const by of ['rank', 'score'] as const) {
      expect(blendRankings(a, b, 9, { by, weight: 0 }).indices).toEqual(a.indices);
      expect(blendRankings(a, b, 9, { by, weight: 1 }).indices).toEqual(b.indices);
    }
  });

  it('has scores in (0, 1], ties by lowest label, and as many labels as asked for', () => {
    const tied = blendRankings(ranking([[8, 0.5]]), ranking([[2, 0.5]]), 2, { by: 'rank', weight: 0.5 });
    expect([...tied.indices]).toEqual([2, 8]);
    const blended = blendRankings(a, b, 2, { by: 'score', weight: 0.3 });
    expect(blended.indices).toHaveLength(2);
    for (const score of rowValues(blended, 0)) expect(score > 0 && score <= 1).toBe(true);
    expect(blendRankings(ranking([]), ranking([]), 3, { by: 'score', weight: 0.5 }).indices).toHaveLength(0);
  });

  it('goes by the model that is sure, where scores count', () => {
    const sure = ranking([
      [3, 0.9],
      [1, 0.1],
      [5, 0],
    ]);
    const unsure = ranking([
      [7, 0.62],
      [1, 0.61],
      [2, 0.6],
      [3, 0.5],
    ]);
    const how = { by: 'score', weight: 0.5 } as const;
    expect(rowIndices(blendRankings(sure, unsure, 3, how), 0)[0]).toBe(3);
    expect(rowIndices(blendRankings(unsure, sure, 3, how), 0)[0]).toBe(3);
  });

  it('has shares of one as scores, where scores count', () => {
    const scores = rowValues(blendRankings(a, b, 9, { by: 'score', weight: 0.4 }), 0);
    expect(scores.reduce((sum, score) => sum + score, 0)).toBeCloseTo(1, 4);
  });

  it('is of models that have labels in common, by options that exist', () => {
    const ranker = (...ids: string[]) => ({
      vocabulary: new Vocabulary(ids.map((id) => ({ id }))),
      rank: async () => a,
    });
    const violin = ranker('violin', 'cello');
    expect(partnerOf(violin, ranker('cello'), {}).how).toEqual({ by: 'score', weight: 0.5 });
    expect(() => partnerOf(violin, ranker('p1'), {})).toThrow('must have labels in common, got "p1"');
    expect(() => partnerOf(violin, violin, { weight: 7 })).toThrow(
      'weight must be a number >= 0 and <= 1, got 7',
    );
  });

  it('knows labels by their columns in the first model', () => {
    const mapped = inColumns(a, Int32Array.of(0, 4, 0, 2, 0, -1), 6);
    expect([...mapped.indices]).toEqual([2, 4]);
    expect(mapped.cols).toBe(6);
  });
});
