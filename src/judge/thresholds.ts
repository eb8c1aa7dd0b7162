// Metrics of label sets: every label whose score reaches a threshold is predicted. Labels absent from a ranking row
// have score 0, so thresholds are > 0. Precision@1 needs no threshold: it is `P@1` of ranking.ts.
import { badUsage } from '../errors.ts';
import { columnCounts, type Pattern, type Ranking, transpose } from '../math/csr.ts';
import { f1, hitFlags, keepEntries, labelSpace, metricValue, type RowMetric, ratio } from './metric.ts';

export const setMetricNames = ['hammingAccuracy', 'exampleF1', 'microF1', 'macroF1'] as const;
export type PerSetMetric<T> = Record<(typeof setMetricNames)[number], T>;

/** Where thresholds come from: the metrics' best on the test set (as many papers do), on a validation set, or .5. */
export const protocols = ['oracle_test', 'val', 'per_label', 'fixed@.5'] as const;
export type Protocol = (typeof protocols)[number];
export const protocolsWithValidation: readonly Protocol[] = ['val', 'per_label'];

const hundredths = (from: number, to: number, step: number): number[] =>
  Array.from({ length: (to - from) / step + 1 }, (_, i) => (from + i * step) / 100);

/** The thresholds published systems try. */
export const grids = {
  cgmvae: hundredths(10, 90, 10),
  mpvae: [...hundredths(1, 10, 1), ...hundredths(15, 95, 5)],
} as const satisfies Record<string, readonly number[]>;

/** One threshold for all labels, or one per label (a label beyond the list is never predicted). */
export type Cut = number | ArrayLike<number>;

/** Example-F1 of rows with no true and no predicted label: left out of the mean (the default), or 1. */
export type EmptyF1 = 'drop' | 'one';

/** The label set of every row: labels whose score is at least the threshold. */
export function predictedLabels(ranking: Ranking, cut: Cut): Ranking {
  const cuts = typeof cut === 'number' ? floatCuts([cut]) : floatCuts(cut);
  const flags = new Uint8Array(ranking.indices.length);
  for (let p = 0; p < flags.length; p++) {
    const threshold = typeof cut === 'number' ? cuts[0] : cuts[ranking.indices[p]];
    if (ranking.values[p] >= threshold) flags[p] = 1;
  }
  return keepEntries(ranking, flags);
}

/** Judges label sets. Macro-F1 is a mean over labels, not rows, so it comes as a number. */
export function setMetrics(
  predicted: Pattern,
  truth: Pattern,
  emptyF1: EmptyF1 = 'drop',
): { rows: RowMetric[]; macroF1: number } {
  const labels = labelSpace(predicted, truth);
  const hits = hitFlags(predicted, truth);
  const [correct, example, exampleRows, twiceHits, sizes] = Array.from(
    { length: 5 },
    () => new Float64Array(truth.rows),
  );
  const labelHits = new Uint32Array(labels);
  for (let row = 0; row < truth.rows; row++) {
    let found = 0;
    for (let p = predicted.indptr[row]; p < predicted.indptr[row + 1]; p++) {
      found += hits[p];
      labelHits[predicted.indices[p]] += hits[p];
    }
    const size =
      predicted.indptr[row + 1] - predicted.indptr[row] + truth.indptr[row + 1] - truth.indptr[row];
    correct[row] = ratio(labels - (size - 2 * found), labels);
    [twiceHits[row], sizes[row]] = [2 * found, size];
    const empty = size === 0 && emptyF1 === 'one';
    example[row] = empty ? 1 : ratio(2 * found, size);
    exampleRows[row] = size > 0 || empty ? 1 : 0;
  }
  const [predictions, positives] = [columnCounts(predicted), columnCounts(truth)];
  let total = 0;
  for (let l = 0; l < labels; l++) total += f1(labelHits[l], predictions[l] ?? 0, positives[l] ?? 0);
  return {
    rows: [
      { name: 'hammingAccuracy', numerator: correct },
      { name: 'exampleF1', numerator: example, denominator: exampleRows },
      { name: 'microF1', numerator: twiceHits, denominator: sizes },
    ],
    macroF1: ratio(total, labels),
  };
}

/** Every set metric at every threshold of an ascending grid, in one pass over the rows and one over the labels. */
export function sweep(
  ranking: Ranking,
  truth: Pattern,
  grid: readonly number[],
  emptyF1: EmptyF1 = 'drop',
): PerSetMetric<Float64Array> {
  const cuts = ascending(floatCuts(grid));
  const labels = labelSpace(ranking, truth);
  const hits = hitFlags(ranking, truth);
  const column = () => new Float64Array(cuts.length);
  const [found, sizes, example, exampleRows] = [column(), column(), column(), column()];
  for (let row = 0; row < truth.rows; row++) {
    const [start, end] = [ranking.indptr[row], ranking.indptr[row + 1]];
    const positives = truth.indptr[row + 1] - truth.indptr[row];
    let p = start;
    let rowHits = 0;
    for (let j = cuts.length - 1; j >= 0; j--) {
      for (; p < end && ranking.values[p] >= cuts[j]; p++) rowHits += hits[p];
      const size = p - start + positives;
      found[j] += rowHits;
      sizes[j] += size;
      const empty = size === 0 && emptyF1 === 'one';
      example[j] += empty ? 1 : ratio(2 * rowHits, size);
      exampleRows[j] += size > 0 || empty ? 1 : 0;
    }
  }
  const cells = truth.rows * labels;
  return {
    hammingAccuracy: sizes.map((size, j) => ratio(cells - (size - 2 * found[j]), cells)),
    exampleF1: example.map((total, j) => ratio(total, exampleRows[j])),
    microF1: sizes.map((size, j) => ratio(2 * found[j], size)),
    macroF1: sweepLabels(ranking, truth, cuts),
  };
}

function sweepLabels(ranking: Ranking, truth: Pattern, cuts: Float32Array): Float64Array {
  const { byLabel, positives, hits } = labelColumns(ranking, truth);
  const totals = new Float64Array(cuts.length);
  const [foundAt, predictedAt] = [new Uint32Array(cuts.length), new Uint32Array(cuts.length)];
  for (let l = 0; l < byLabel.rows; l++) {
    if (byLabel.indptr[l] === byLabel.indptr[l + 1]) continue;
    foundAt.fill(0);
    predictedAt.fill(0);
    for (let p = byLabel.indptr[l]; p < byLabel.indptr[l + 1]; p++) {
      const highest = countReached(cuts, byLabel.values[p]) - 1;
      if (highest < 0) continue;
      predictedAt[highest]++;
      foundAt[highest] += hits[p];
    }
    let [found, predicted] = [0, 0];
    for (let j = cuts.length - 1; j >= 0; j--) {
      found += foundAt[j];
      predicted += predictedAt[j];
      totals[j] += f1(found, predicted, positives[l]);
    }
  }
  return totals.map((total) => ratio(total, byLabel.rows));
}

/** For each label the threshold of its best F1, the highest of equals; labels without a hit get the fallback. */
export function labelThresholds(ranking: Ranking, truth: Pattern, fallback = 0.5): Float32Array {
  const { byLabel, positives, hits } = labelColumns(ranking, truth);
  const thresholds = new Float32Array(byLabel.rows).fill(floatCuts([fallback])[0]);
  for (let l = 0; l < byLabel.rows; l++) {
    const [start, end] = [byLabel.indptr[l], byLabel.indptr[l + 1]];
    const scores = byLabel.values.slice(start, end).sort();
    const hitScores = byLabel.values.slice(start, end).filter((_, i) => hits[start + i] === 1);
    hitScores.sort();
    let best = 0;
    let below = scores.length;
    // A threshold between two scores decides like the upper one, and only a hit's score can raise F1.
    for (let h = hitScores.length - 1; h >= 0 && hitScores[h] > 0; h--) {
      while (below > 0 && scores[below - 1] >= hitScores[h]) below--;
      const value = f1(hitScores.length - h, scores.length - below, positives[l]);
      if (value <= best) continue;
      best = value;
      thresholds[l] = between(hitScores[h], below > 0 ? Math.max(0, scores[below - 1]) : 0);
    }
  }
  return thresholds;
}

export interface ThresholdOptions {
  protocol: Protocol;
  /** Thresholds to try, ascending; the MPVAE grid (a superset of C-GMVAE's) unless given. */
  grid?: readonly number[];
  /** Predictions on rows used neither for training nor for testing; `val` and `per_label` choose on them. */
  validation?: { ranking: Ranking; truth: Pattern };
  emptyF1?: EmptyF1;
}

export interface ThresholdReport {
  values: PerSetMetric<number>;
  /** The threshold each metric was computed at; null when every label has its own. */
  thresholds: PerSetMetric<number | null>;
  rows: RowMetric[];
}

/** The set metrics under a threshold protocol. */
export function thresholdReport(
  ranking: Ranking,
  truth: Pattern,
  options: ThresholdOptions,
): ThresholdReport {
  const cuts = chosenCuts(ranking, truth, options);
  const judged = new Map<Cut, ReturnType<typeof setMetrics>>();
  for (const cut of new Set(Object.values(cuts)))
    judged.set(cut, setMetrics(predictedLabels(ranking, cut), truth, options.emptyF1));
  const rows = setMetricNames.flatMap(
    (name) => judged.get(cuts[name])?.rows.filter((metric) => metric.name === name) ?? [],
  );
  const value = (name: string) => rows.filter((metric) => metric.name === name).map(metricValue)[0];
  const values = perMetric((name) => value(name) ?? judged.get(cuts[name])?.macroF1 ?? 0);
  return { values, thresholds: perMetric((name) => shownCut(cuts[name])), rows };
}

function chosenCuts(ranking: Ranking, truth: Pattern, options: ThresholdOptions): PerSetMetric<Cut> {
  switch (options.protocol) {
    case 'fixed@.5':
      return perMetric(() => 0.5);
    case 'oracle_test':
      return bestThresholds({ ranking, truth }, options);
    case 'val':
      return bestThresholds(validationOf(options), options);
    case 'per_label': {
      const validation = validationOf(options);
      const fallback = bestThresholds(validation, options).microF1;
      const cuts = labelThresholds(validation.ranking, validation.truth, fallback);
      return perMetric(() => cuts);
    }
    default:
      return options.protocol satisfies never;
  }
}

const shownCut = (cut: Cut): number | null => (typeof cut === 'number' ? cut : null);

function validationOf({ validation, protocol }: ThresholdOptions) {
  if (validation) return validation;
  throw badUsage(`threshold protocol ${protocol} needs validation predictions`, {
    hint: 'give a validation set, or choose fixed@.5',
  });
}

function bestThresholds(
  { ranking, truth }: { ranking: Ranking; truth: Pattern },
  { grid = grids.mpvae, emptyF1 }: ThresholdOptions,
): PerSetMetric<number> {
  const values = sweep(ranking, truth, grid, emptyF1);
  return perMetric((name) => grid[values[name].indexOf(Math.max(...values[name]))]);
}

const perMetric = <T>(value: (name: (typeof setMetricNames)[number]) => T): PerSetMetric<T> => ({
  hammingAccuracy: value('hammingAccuracy'),
  exampleF1: value('exampleF1'),
  microF1: value('microF1'),
  macroF1: value('macroF1'),
});

/** Predictions and truth seen label by label. */
function labelColumns(ranking: Ranking, truth: Pattern) {
  const labels = labelSpace(ranking, truth);
  const byLabel = transpose({ ...ranking, cols: labels });
  const truthByLabel = transpose({ ...truth, cols: labels });
  const positives = columnCounts({ ...truth, cols: labels });
  return { byLabel, positives, hits: hitFlags(byLabel, truthByLabel) };
}

/** Scores are 32-bit: .7 as a score must reach .7 as a threshold. */
function floatCuts(thresholds: ArrayLike<number>): Float32Array {
  const cuts = Float32Array.from(thresholds);
  const wrong = cuts.findIndex((cut) => !(cut > 0));
  if (wrong >= 0)
    throw badUsage('a threshold must be > 0, because labels that are not listed have score 0', {
      value: thresholds[wrong],
    });
  return cuts;
}

function ascending(cuts: Float32Array): Float32Array {
  if (cuts.length === 0) throw badUsage('a threshold grid must hold at least one value', { value: 'none' });
  const wrong = cuts.findIndex((cut, j) => j > 0 && cut <= cuts[j - 1]);
  if (wrong >= 0) throw badUsage('a threshold grid must ascend', { value: cuts.join(', ') });
  return cuts;
}

/** How many of the ascending cuts a score reaches. */
function countReached(cuts: Float32Array, score: number): number {
  let [low, high] = [0, cuts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (score >= cuts[middle]) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The middle of two scores as a 32-bit number, or the upper one where no number lies between. */
function between(upper: number, lower: number): number {
  const middle = Math.fround((upper + lower) / 2);
  return middle > lower ? middle : upper;
}
