// Where a model is good: label by label, by how often labels were seen in training, and by the score it gave.
import { badUsage } from '../errors.ts';
import { columnCounts, nnz, type Pattern, type Ranking } from '../math/csr.ts';
import { f1, hitFlags, labelSpace, ratio, sum } from './metric.ts';
import { idealRanking } from './ranking.ts';

/** Counts per label; index = label column. */
export interface LabelReport {
  k: number;
  /** Training rows with the label; 0 for labels never seen in training. */
  trained: Uint32Array;
  /** Test rows with the label. */
  positives: Uint32Array;
  /** Test rows with the label among their k best predictions. */
  predicted: Uint32Array;
  hits: Uint32Array;
  precision: Float64Array;
  recall: Float64Array;
  f1: Float64Array;
}

/** How each label fares in the k best predictions; `counts` are its training rows. */
export function labelReport(
  ranking: Pattern,
  truth: Pattern,
  { counts, k = 5 }: { counts: ArrayLike<number>; k?: number },
): LabelReport {
  const labels = Math.max(labelSpace(ranking, truth), counts.length);
  const flags = hitFlags(ranking, truth);
  const [trained, predicted, hits] = Array.from({ length: 3 }, () => new Uint32Array(labels));
  trained.set(counts);
  for (let row = 0; row < ranking.rows; row++) {
    const end = Math.min(ranking.indptr[row + 1], ranking.indptr[row] + k);
    for (let p = ranking.indptr[row]; p < end; p++) {
      predicted[ranking.indices[p]]++;
      hits[ranking.indices[p]] += flags[p];
    }
  }
  const positives = columnCounts({ ...truth, cols: labels });
  const each = (value: (hits: number, l: number) => number) => Float64Array.from(hits, value);
  return {
    k,
    trained,
    positives,
    predicted,
    hits,
    precision: each((found, l) => ratio(found, predicted[l])),
    recall: each((found, l) => ratio(found, positives[l])),
    f1: each((found, l) => f1(found, predicted[l], positives[l])),
  };
}

/** A bin holds the labels with at least `from` training rows that no earlier bin holds. */
export interface Bin {
  name: string;
  from: number;
}

/** A label with ten examples is hard for every method, one with a hundred is not; unseen ones are out of reach. */
export const frequencyBins: readonly Bin[] = [
  { name: 'head', from: 101 },
  { name: 'torso', from: 11 },
  { name: 'tail', from: 1 },
  { name: 'unseen', from: 0 },
];

export interface BinRow extends Bin {
  labels: number;
  /** True labels of this bin in the test rows. */
  positives: number;
  predicted: number;
  hits: number;
  /** Of the bin's positives, the share found in the top k. */
  recall: number;
  /** The bin's part of P@k: the bins add up to it. */
  precision: number;
  /** The bin's part of PSP@k: the bins add up to it. */
  psp: number;
}

/** The label report summed over bins of training frequency. */
export function binTable(
  ranking: Pattern,
  truth: Pattern,
  options: { counts: ArrayLike<number>; weights: Float64Array; k?: number; bins?: readonly Bin[] },
): BinRow[] {
  const { counts, weights, k = 5, bins = frequencyBins } = options;
  const wrong = bins.findIndex((bin, i) => (i > 0 ? bin.from >= bins[i - 1].from : !(bin.from >= 0)));
  if (wrong >= 0 || bins.at(-1)?.from !== 0)
    throw badUsage('bins must descend to 0', { value: bins.map((bin) => bin.from).join(', ') });
  const report = labelReport(ranking, truth, { counts, k });
  let best = 0;
  for (const label of idealRanking(truth, weights, k).indices) best += weights[label];
  const table = bins.map((bin) => ({
    ...bin,
    labels: 0,
    positives: 0,
    predicted: 0,
    hits: 0,
    psp: 0,
  }));
  for (let l = 0; l < report.trained.length; l++) {
    const row = table[bins.findIndex((bin) => report.trained[l] >= bin.from)];
    row.labels++;
    row.positives += report.positives[l];
    row.predicted += report.predicted[l];
    row.hits += report.hits[l];
    if (report.hits[l] > 0) row.psp += report.hits[l] * weights[l];
  }
  return table.map((row) => ({
    ...row,
    recall: ratio(row.hits, row.positives),
    precision: ratio(row.hits, k * truth.rows),
    psp: ratio(row.psp, best),
  }));
}

/** Predictions whose score lies in [from, to); the last bin holds 1 too. */
export interface ReliabilityBin {
  from: number;
  to: number;
  count: number;
  meanScore: number;
  hitRate: number;
}

export interface Calibration {
  /** Mean distance between score and hit rate over all listed predictions. */
  expectedError: number;
  /** Bins with at least one prediction. */
  bins: ReliabilityBin[];
}

/**
 * How far scores can be read as probabilities, or null when they are none (outside [0, 1]). Labels that are not
 * listed are not judged.
 */
export function calibration(ranking: Ranking, truth: Pattern, size = 10): Calibration | null {
  const flags = hitFlags(ranking, truth);
  const [counts, scores, hits] = Array.from({ length: 3 }, () => new Float64Array(size));
  for (let p = 0; p < flags.length; p++) {
    const score = ranking.values[p];
    if (!(score >= 0 && score <= 1)) return null;
    const bin = Math.min(size - 1, Math.floor(score * size));
    counts[bin]++;
    scores[bin] += score;
    hits[bin] += flags[p];
  }
  const gaps = scores.map((score, bin) => Math.abs(score - hits[bin]));
  const bins = Array.from(counts, (count, bin) => ({
    from: bin / size,
    to: (bin + 1) / size,
    count,
    meanScore: ratio(scores[bin], count),
    hitRate: ratio(hits[bin], count),
  }));
  return { expectedError: ratio(sum(gaps), nnz(ranking)), bins: bins.filter(({ count }) => count > 0) };
}
