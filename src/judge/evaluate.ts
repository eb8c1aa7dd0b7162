// Everything the house says about a set of predictions, as one plain report that JSON can hold.

import { inversePropensity, type Propensity, propensities } from '../data/propensity.ts';
import { badInput } from '../errors.ts';
import type { Pattern, Ranking } from '../math/csr.ts';
import { choice, integer, number, type OptionsOf, type OptionTable, parseOptions } from '../options.ts';
import { type BinRow, binTable, type Calibration, calibration } from './bins.ts';
import { bootstrap, type Interval } from './bootstrap.ts';
import { labelSpace, metricValue, type RowMetric, rowCounts } from './metric.ts';
import { rankingMetrics, withoutPairs } from './ranking.ts';
import {
  type PerSetMetric,
  type Protocol,
  protocols,
  protocolsWithValidation,
  type ThresholdOptions,
  thresholdReport,
} from './thresholds.ts';

/** What a user sets; the command line and the server make their flags and forms from it. */
export const evaluateOptions = {
  a: number(propensities.default.a, 'propensity constant A (Wikipedia .5, Amazon .6)', { min: 0 }),
  b: number(propensities.default.b, 'propensity constant B (Wikipedia .4, Amazon 2.6)', { min: 1e-9 }),
  protocol: choice(
    'auto',
    ['auto', ...protocols],
    'where thresholds come from; auto: val with validation data, else fixed@.5',
  ),
  emptyRecall: choice(
    'zero',
    ['zero', 'skip'],
    'R@k of rows without true labels: 0, or left out of the mean',
  ),
  emptyF1: choice('drop', ['drop', 'one'], 'example-F1 of rows with no label on either side: left out, or 1'),
  resamples: integer(0, 'bootstrap resamples for confidence intervals; 0 gives none', { min: 0 }),
  confidence: number(0.95, 'confidence of the intervals', { min: 0.01, max: 0.999 }),
} satisfies OptionTable;

type Settings = Omit<OptionsOf<typeof evaluateOptions>, 'a' | 'b'>;

export interface EvaluateOptions extends Partial<Settings>, Pick<ThresholdOptions, 'grid' | 'validation'> {
  /** Training rows with each label; labels beyond the list were never seen in training. */
  counts: ArrayLike<number>;
  /** Number of training rows. */
  rows: number;
  propensity?: Propensity;
  /** Depths of the ranking metrics. */
  ks?: readonly number[];
  /** (row, label) predictions to remove before anything is judged. */
  exclude?: Iterable<readonly [row: number, label: number]>;
  /** Seed of the bootstrap. */
  seed?: number;
}

/** Depth at which the table of frequency bins is made. */
const binDepth = 5;

type RankingKey = `${'P' | 'R' | 'nDCG' | 'PSP' | 'PSnDCG'}@${number}`;

export type Report = Record<RankingKey, number> &
  PerSetMetric<number> & {
    n: number;
    /** Labels of the model and the test rows together. */
    labels: number;
    /** Test rows without any true label: they count 0 in the ranking metrics. */
    emptyRows: number;
    /** The longest list of predictions: a metric at a larger k only sees this many. */
    depth: number;
    propensity: Propensity;
    /** The thresholds the set metrics were computed at; null when every label has its own. */
    thresholds: { protocol: Protocol } & PerSetMetric<number | null>;
    /** The set metrics under every protocol that the data allow, to compare with other reports. */
    protocols: Partial<Record<Protocol, PerSetMetric<number>>>;
    bins: { k: number; rows: BinRow[] };
    /** Null when scores are not in [0, 1]. */
    calibration: Calibration | null;
    intervals?: Record<string, Interval>;
  };

/** Judges predictions against the truth. */
export function evaluate(ranking: Ranking, truth: Pattern, options: EvaluateOptions): Report {
  const { settings, predictions, weights, protocol, sets, others, rows } = judge(ranking, truth, options);
  const { resamples, confidence, a, b } = settings;
  const { counts, seed = 0 } = options;
  return {
    n: truth.rows,
    labels: labelSpace(predictions, truth),
    emptyRows: rowCounts(truth).filter((count) => count === 0).length,
    depth: rowCounts(predictions).reduce((most, count) => Math.max(most, count), 0),
    ...(Object.fromEntries(rows.map((metric) => [metric.name, metricValue(metric)])) as Record<
      RankingKey,
      number
    >),
    ...sets.values,
    propensity: { a, b },
    thresholds: { protocol, ...sets.thresholds },
    protocols: others,
    bins: { k: binDepth, rows: binTable(predictions, truth, { counts, weights, k: binDepth }) },
    calibration: calibration(predictions, truth),
    ...(resamples > 0 ? { intervals: bootstrap(rows, { seed, resamples, confidence }) } : {}),
  };
}

/** The metrics row by row (all but macro-F1, a mean over labels): what `compare` takes for each of two runs. */
export const rowMetrics = (ranking: Ranking, truth: Pattern, options: EvaluateOptions): RowMetric[] =>
  judge(ranking, truth, options).rows;

function judge(ranking: Ranking, truth: Pattern, options: EvaluateOptions) {
  if (truth.rows === 0) throw badInput('test data must have at least one row', { value: 0 });
  const { propensity, emptyRecall, emptyF1, resamples, confidence, counts, grid, validation } = options;
  const settings = parseOptions(evaluateOptions, {
    a: propensity?.a,
    b: propensity?.b,
    protocol: options.protocol,
    emptyRecall,
    emptyF1,
    resamples,
    confidence,
  });
  const predictions = options.exclude ? withoutPairs(ranking, options.exclude) : ranking;
  const labels = Math.max(labelSpace(predictions, truth), counts.length);
  const weights = inversePropensity(counts, options.rows, settings, labels);
  const auto = validation ? 'val' : 'fixed@.5';
  const protocol: Protocol = settings.protocol === 'auto' ? auto : settings.protocol;
  const under = (name: Protocol) =>
    thresholdReport(predictions, truth, { protocol: name, grid, validation, emptyF1: settings.emptyF1 });
  const sets = under(protocol);
  const possible = protocols.filter((name) => validation || !protocolsWithValidation.includes(name));
  const others = Object.fromEntries(
    possible.map((name) => [name, (name === protocol ? sets : under(name)).values]),
  );
  const ranks = rankingMetrics(predictions, truth, {
    ks: options.ks,
    weights,
    emptyRecall: settings.emptyRecall,
  });
  return { settings, predictions, weights, protocol, sets, others, rows: [...ranks, ...sets.rows] };
}
