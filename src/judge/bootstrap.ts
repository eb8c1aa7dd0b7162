// How sure a number is: confidence intervals by resampling rows, and paired comparison of two runs on the same rows.
import { badUsage } from '../errors.ts';
import { Random } from '../math/random.ts';
import { metricValue, type RowMetric, ratio, sum } from './metric.ts';

export interface ResampleOptions {
  seed: number;
  resamples?: number;
  /** Share of resamples inside the interval. */
  confidence?: number;
}

export interface Interval {
  value: number;
  low: number;
  high: number;
}

/** Percentile bootstrap over rows; ratio metrics are resampled jointly, above and below the line. */
export function bootstrap(
  metrics: readonly RowMetric[],
  { seed, resamples = 1000, confidence = 0.95 }: ResampleOptions,
): Record<string, Interval> {
  const drawn = metrics.map(() => new Float64Array(resamples));
  resample(metrics, seed, resamples, (m, draw, value) => {
    drawn[m][draw] = value;
  });
  return Object.fromEntries(
    metrics.map((metric, m) => [
      metric.name,
      { value: metricValue(metric), ...percentiles(drawn[m], confidence) },
    ]),
  );
}

export interface Comparison {
  a: number;
  b: number;
  /** b - a, with its confidence interval. */
  difference: number;
  low: number;
  high: number;
  /** Two-sided: how often runs whose rows are swapped at random differ at least as much. */
  p: number;
  /** Rows where b is better, equal, worse. A row that does not count in one of the runs is a tie. */
  wins: number;
  ties: number;
  losses: number;
}

/** Compares run b with run a, metric by metric (paired by name, over the same rows). */
export function compare(
  a: readonly RowMetric[],
  b: readonly RowMetric[],
  { seed, resamples = 1000, confidence = 0.95 }: ResampleOptions,
): Record<string, Comparison> {
  const pairs = a.flatMap((first) => {
    const second = b.find((metric) => metric.name === first.name);
    return second ? [[first, second] as const] : [];
  });
  const drawn = pairs.map(() => new Float64Array(resamples));
  resample(pairs.flat(), seed, resamples, (m, draw, value) => {
    drawn[m >> 1][draw] += m % 2 === 0 ? -value : value;
  });
  const p = swapTest(pairs, seed, resamples);
  return Object.fromEntries(
    pairs.map(([first, second], m) => {
      const [valueA, valueB] = [metricValue(first), metricValue(second)];
      const values = { a: valueA, b: valueB, difference: valueB - valueA };
      return [
        first.name,
        { ...values, ...percentiles(drawn[m], confidence), p: p[m], ...outcomes(first, second) },
      ];
    }),
  );
}

/** Calls `take(metric, draw, value)` for every metric in every resample; one draw of rows serves all metrics. */
function resample(
  metrics: readonly RowMetric[],
  seed: number,
  resamples: number,
  take: (metric: number, draw: number, value: number) => void,
): void {
  const rows = sameRows(metrics);
  if (!(Number.isInteger(resamples) && resamples > 0))
    throw badUsage('resamples must be a positive integer', { value: resamples });
  const random = new Random(seed, 'bootstrap');
  const times = new Float64Array(rows);
  for (let draw = 0; draw < resamples; draw++) {
    times.fill(0);
    // Scaling 32 bits is biased by at most rows / 2^32, far below the noise of resampling, and much faster.
    for (let i = 0; i < rows; i++) times[Math.floor((random.uint32() / 4294967296) * rows)]++;
    for (let m = 0; m < metrics.length; m++) {
      const { numerator, denominator } = metrics[m];
      take(m, draw, ratio(dot(times, numerator), denominator ? dot(times, denominator) : rows));
    }
  }
}

/** Permutation test: if the runs were alike, swapping them in any row would change nothing. */
function swapTest(
  pairs: readonly (readonly [RowMetric, RowMetric])[],
  seed: number,
  resamples: number,
): number[] {
  const rows = sameRows(pairs.flat());
  const sides = pairs.map(([a, b]) => ({
    above: difference(a.numerator, b.numerator),
    below: a.denominator || b.denominator ? difference(belowLine(a), belowLine(b)) : undefined,
    a: { above: sum(a.numerator), below: sum(belowLine(a)) },
    b: { above: sum(b.numerator), below: sum(belowLine(b)) },
    seen: Math.abs(metricValue(b) - metricValue(a)),
  }));
  const asLarge = pairs.map(() => 0);
  const random = new Random(seed, 'swap');
  const swapped = new Float64Array(rows);
  for (let draw = 0; draw < resamples; draw++) {
    for (let i = 0, bits = 0; i < rows; i++, bits >>>= 1) {
      if (i % 32 === 0) bits = random.uint32();
      swapped[i] = bits & 1;
    }
    sides.forEach(({ above, below, a, b, seen }, m) => {
      const moved = dot(swapped, above);
      const movedBelow = below ? dot(swapped, below) : 0;
      const valueA = ratio(a.above + moved, a.below + movedBelow);
      const valueB = ratio(b.above - moved, b.below - movedBelow);
      // Sums in another order differ in the last bits; such a difference is still as large.
      if (Math.abs(valueB - valueA) >= seen - 1e-12) asLarge[m]++;
    });
  }
  return asLarge.map((count) => (count + 1) / (resamples + 1));
}

const belowLine = ({ numerator, denominator }: RowMetric): Float64Array =>
  denominator ?? new Float64Array(numerator.length).fill(1);

const difference = (a: Float64Array, b: Float64Array): Float64Array => b.map((x, i) => x - a[i]);

function outcomes(a: RowMetric, b: RowMetric): Pick<Comparison, 'wins' | 'ties' | 'losses'> {
  const count = { wins: 0, ties: 0, losses: 0 };
  for (let i = 0; i < a.numerator.length; i++) {
    const valueA = a.numerator[i] * (b.denominator?.[i] ?? 1);
    const valueB = b.numerator[i] * (a.denominator?.[i] ?? 1);
    count[valueB > valueA ? 'wins' : valueB < valueA ? 'losses' : 'ties']++;
  }
  return count;
}

/** Four sums at once: the additions do not wait for each other. */
function dot(a: Float64Array, b: Float64Array): number {
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  const whole = a.length - (a.length % 4);
  for (let i = 0; i < whole; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (let i = whole; i < a.length; i++) s0 += a[i] * b[i];
  return s0 + s1 + s2 + s3;
}

function percentiles(values: Float64Array, confidence: number): { low: number; high: number } {
  if (!(confidence > 0 && confidence < 1))
    throw badUsage('confidence must lie between 0 and 1', { value: confidence });
  const sorted = values.slice().sort();
  const at = (share: number) => {
    const place = share * (sorted.length - 1);
    const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
    return low + (high - low) * (place - Math.floor(place));
  };
  return { low: at((1 - confidence) / 2), high: at((1 + confidence) / 2) };
}

function sameRows(metrics: readonly RowMetric[]): number {
  const rows = metrics[0]?.numerator.length ?? 0;
  const other = metrics.find((metric) => metric.numerator.length !== rows);
  if (other)
    throw badUsage(`metrics compared must have the same rows, ${rows}`, { value: other.numerator.length });
  return rows;
}
