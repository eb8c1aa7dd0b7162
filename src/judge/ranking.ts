// Metrics of the order of predictions: P, R, nDCG and their propensity-scored forms. Scores themselves do not
// matter here; thresholds.ts judges those.
import { badUsage } from '../errors.ts';
import { type Pattern, type Ranking, rowIndices } from '../math/csr.ts';
import { topK } from '../math/topk.ts';
import { hitFlags, keepEntries, labelSpace, type RowMetric, ratio } from './metric.ts';

/** The two constants of the propensity model of Jain et al. 2016. */
export interface Propensity {
  a: number;
  b: number;
}

/** Publications disagree on some sets, so reports print the constants they used. */
export const propensities = {
  default: { a: 0.55, b: 1.5 },
  /** Wikipedia and WikiLSHTC. */
  wiki: { a: 0.5, b: 0.4 },
  /** Amazon products: 670K, 3M, 131K, 1.3M. */
  amazon: { a: 0.6, b: 2.6 },
} as const satisfies Record<string, Propensity>;

/**
 * 1/p of every label from its count in the `n` training rows: large for rare labels, falling towards 1.
 * Labels from `counts.length` up to `labels` were never seen in training. Below three training rows ln n - 1 is
 * negative and the model means nothing: all weights are then 1.
 */
export function inversePropensity(
  counts: ArrayLike<number>,
  n: number,
  { a, b }: Propensity = propensities.default,
  labels: number = counts.length,
): Float64Array {
  if (!(a >= 0)) throw badUsage('propensity constant a must be a number >= 0', { value: a });
  if (!(b > 0)) throw badUsage('propensity constant b must be a number > 0', { value: b });
  const c = Math.max(0, Math.log(n) - 1) * (b + 1) ** a;
  return Float64Array.from({ length: labels }, (_, l) => {
    const count = l < counts.length ? counts[l] : 0;
    return 1 + c * (count + b) ** -a;
  });
}

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

export const defaultKs: readonly number[] = [1, 3, 5, 10];

/** `P@k`, `R@k`, `nDCG@k` and, with weights, `PSP@k` and `PSnDCG@k` for every k. */
export function rankingMetrics(
  ranking: Pattern,
  truth: Pattern,
  { ks = defaultKs, weights, normalise = true, emptyRecall = 'zero' }: RankingOptions = {},
): RowMetric[] {
  const hits = hitFlags(ranking, truth);
  const counts = Float64Array.from({ length: truth.rows }, (_, i) => truth.indptr[i + 1] - truth.indptr[i]);
  const notEmpty = emptyRecall === 'skip' ? counts.map((count) => Math.min(count, 1)) : undefined;
  const ideal = weights && idealRanking(truth, covering(weights, ranking, truth), Math.max(...ks));
  return ks.flatMap((k) => {
    const found = topSums(ranking, k, (p) => hits[p]);
    const gains = topSums(ranking, k, (p, rank) => hits[p] * discount(rank));
    const bestGains = topSums(truth, k, (_, rank) => discount(rank));
    const metrics: RowMetric[] = [
      { name: `P@${k}`, numerator: found.map((x) => x / k) },
      { name: `R@${k}`, numerator: divide(found, counts), denominator: notEmpty },
      { name: `nDCG@${k}`, numerator: divide(gains, bestGains) },
    ];
    if (!weights || !ideal) return metrics;
    const scored = (of: Pattern, flag: (p: number) => number) => ({
      psp: topSums(of, k, (p) => flag(p) * weights[of.indices[p]]).map((x) => x / k),
      psndcg: divide(
        topSums(of, k, (p, rank) => flag(p) * weights[of.indices[p]] * discount(rank)),
        bestGains,
      ),
    });
    const own = scored(ranking, (p) => hits[p]);
    const best = normalise ? scored(ideal, () => 1) : undefined;
    metrics.push({ name: `PSP@${k}`, numerator: own.psp, denominator: best?.psp });
    metrics.push({ name: `PSnDCG@${k}`, numerator: own.psndcg, denominator: best?.psndcg });
    return metrics;
  });
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

const discount = (rank: number): number => 1 / Math.log2(rank + 1);

/** Per row, Σ gain(position in `indices`, rank from 1) over its first k entries. */
function topSums(m: Pattern, k: number, gain: (position: number, rank: number) => number): Float64Array {
  if (!(Number.isInteger(k) && k > 0)) throw badUsage('k must be a positive integer', { value: k });
  const sums = new Float64Array(m.rows);
  for (let row = 0; row < m.rows; row++) {
    const start = m.indptr[row];
    const end = Math.min(m.indptr[row + 1], start + k);
    let total = 0;
    for (let p = start; p < end; p++) total += gain(p, p - start + 1);
    sums[row] = total;
  }
  return sums;
}

const divide = (above: Float64Array, below: Float64Array): Float64Array =>
  above.map((x, i) => ratio(x, below[i]));

/** Each row's true labels, the heaviest first. */
function idealRanking(truth: Pattern, weights: Float64Array, depth: number): Pattern {
  const indptr = new Uint32Array(truth.rows + 1);
  const indices = new Uint32Array(truth.indices.length);
  for (let row = 0; row < truth.rows; row++) {
    const labels = rowIndices(truth, row);
    const best = topK(
      Float64Array.from(labels, (l) => weights[l]),
      depth,
    );
    for (let r = 0; r < best.length; r++) indices[indptr[row] + r] = labels[best[r]];
    indptr[row + 1] = indptr[row] + best.length;
  }
  return { rows: truth.rows, cols: truth.cols, indptr, indices };
}

function covering(weights: Float64Array, ranking: Pattern, truth: Pattern): Float64Array {
  const labels = labelSpace(ranking, truth);
  if (weights.length >= labels) return weights;
  throw badUsage(`weights must cover all ${labels} labels`, { value: weights.length });
}
