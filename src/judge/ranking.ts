// Metrics of the order of predictions: P, R, nDCG and their propensity-scored forms. Scores themselves do not
// matter here; thresholds.ts judges those.
import { badUsage } from '../errors.ts';
import type { Pattern, Ranking } from '../math/csr.ts';
import { hitFlags, keepEntries, labelSpace, type RowMetric, ratio, rowCounts } from './metric.ts';

export interface RankingOptions {
  /** Depths to judge at. */
  ks?: readonly number[];
  /** 1/p of every label; without it there is no PSP and no PSnDCG. */
  weights?: Float64Array;
  /** Divide PSP and PSnDCG by those of the best possible ranking (the default, so that 1 is perfect). */
  normalise?: boolean;
  /** R@k of rows without any true label: zero (the default), or left out of the mean. */
  emptyRecall?: 'zero' | 'skip';
}

const defaultKs: readonly number[] = [1, 3, 5, 10];

/** `P@k`, `R@k`, `nDCG@k` and, with weights, `PSP@k` and `PSnDCG@k` for every k. */
export function rankingMetrics(
  ranking: Pattern,
  truth: Pattern,
  { ks: depths = defaultKs, weights, normalise = true, emptyRecall = 'zero' }: RankingOptions = {},
): RowMetric[] {
  const wrong = depths.find((k) => !(Number.isInteger(k) && k > 0));
  if (wrong !== undefined) throw badUsage('k must be a positive integer', { value: wrong });
  const ks = depths.toSorted((a, b) => a - b);
  const hits = hitFlags(ranking, truth);
  const counts = Float64Array.from(rowCounts(truth));
  const notEmpty = emptyRecall === 'skip' ? counts.map((count) => Math.min(count, 1)) : undefined;
  const found = topSums(ranking, ks, hits);
  const bestGains = discountedSums(truth, ks);
  const gains = discountedSums(ranking, ks, hits);
  const perK = ks.map((k, j): RowMetric[] => [
    { name: `P@${k}`, numerator: divide(found[j], k) },
    { name: `R@${k}`, numerator: divide(found[j], counts), denominator: notEmpty },
    { name: `nDCG@${k}`, numerator: divide(gains[j], bestGains[j]) },
  ]);
  if (!weights) return perK.flat();
  requireWeights(weights, labelSpace(ranking, truth));
  const scored = (of: Pattern, flags?: Uint8Array) => {
    const worth = new Float64Array(of.indices.length);
    for (let p = 0; p < worth.length; p++) worth[p] = (flags ? flags[p] : 1) * weights[of.indices[p]];
    return { sums: topSums(of, ks, worth), gains: discountedSums(of, ks, worth) };
  };
  const own = scored(ranking, hits);
  const best = normalise ? scored(idealRanking(truth, weights, ks.at(-1) ?? 0)) : undefined;
  return ks.flatMap((k, j) => [
    ...perK[j],
    { name: `PSP@${k}`, numerator: divide(own.sums[j], k), denominator: best && divide(best.sums[j], k) },
    {
      name: `PSnDCG@${k}`,
      numerator: divide(own.gains[j], bestGains[j]),
      denominator: best && divide(best.gains[j], bestGains[j]),
    },
  ]);
}

/**
 * The ranking without the given (row, label) pairs, for sets that list pairs which are true by construction
 * (an article and itself). Filter before cutting to the top k, so that the next label moves up.
 */
export function withoutPairs(
  ranking: Ranking,
  pairs: Iterable<readonly [row: number, label: number]>,
): Ranking {
  const labelsOf = new Map<number, Set<number>>();
  for (const [row, label] of pairs) {
    const labels = labelsOf.get(row);
    if (labels) labels.add(label);
    else labelsOf.set(row, new Set([label]));
  }
  const keep = new Uint8Array(ranking.indices.length).fill(1);
  for (const [row, labels] of labelsOf) {
    if (!(Number.isInteger(row) && row >= 0 && row < ranking.rows))
      throw badUsage(`a pair's row must be an integer >= 0 and below ${ranking.rows}`, { value: row });
    for (let p = ranking.indptr[row]; p < ranking.indptr[row + 1]; p++)
      if (labels.has(ranking.indices[p])) keep[p] = 0;
  }
  return keepEntries(ranking, keep);
}

/** Each row's true labels, the heaviest first, at most `depth` of them: the best propensity-scored ranking. */
export function idealRanking(truth: Pattern, weights: Float64Array, depth: number): Pattern {
  requireWeights(weights, truth.cols);
  const indptr = new Uint32Array(truth.rows + 1);
  const indices = new Uint32Array(truth.indices.length);
  for (let row = 0; row < truth.rows; row++) {
    const start = indptr[row];
    let end = start;
    // Insertion into the kept ones: rows have few true labels, and equal weights keep the lowest label first.
    for (let p = truth.indptr[row]; p < truth.indptr[row + 1]; p++) {
      const weight = weights[truth.indices[p]];
      let place = end;
      while (place > start && weights[indices[place - 1]] < weight) place--;
      if (place - start >= depth) continue;
      if (end - start < depth) end++;
      indices.copyWithin(place + 1, place, end - 1);
      indices[place] = truth.indices[p];
    }
    indptr[row + 1] = end;
  }
  return { rows: truth.rows, cols: truth.cols, indptr, indices: indices.slice(0, indptr[truth.rows]) };
}

function requireWeights(weights: Float64Array, labels: number): void {
  if (weights.length < labels)
    throw badUsage(`weights must cover all ${labels} labels`, { value: weights.length });
}

/** For every k (ascending), each row's sum of gains over its first k entries; discounts are by rank from 0. */
function topSums(
  m: Pattern,
  ks: readonly number[],
  gains?: ArrayLike<number>,
  discounts?: Float64Array,
): Float64Array[] {
  const sums = ks.map(() => new Float64Array(m.rows));
  for (let row = 0; row < m.rows; row++) {
    const [start, end] = [m.indptr[row], m.indptr[row + 1]];
    let total = 0;
    let p = start;
    for (let j = 0; j < ks.length; j++) {
      const stop = Math.min(end, start + ks[j]);
      for (; p < stop; p++) total += (gains ? gains[p] : 1) * (discounts ? discounts[p - start] : 1);
      sums[j][row] = total;
    }
  }
  return sums;
}

function discountedSums(m: Pattern, ks: readonly number[], gains?: ArrayLike<number>): Float64Array[] {
  const discounts = Float64Array.from({ length: Math.max(0, ...ks) }, (_, rank) => 1 / Math.log2(rank + 2));
  return topSums(m, ks, gains, discounts);
}

function divide(above: Float64Array, below: Float64Array | number): Float64Array {
  const quotients = new Float64Array(above.length);
  for (let i = 0; i < above.length; i++)
    quotients[i] = ratio(above[i], typeof below === 'number' ? below : below[i]);
  return quotients;
}
