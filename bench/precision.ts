// P@1, P@3 and P@5 of a ranking, by the package's own judge.
import type * as judged from '../src/judge/metric.ts';
import type * as ranked from '../src/judge/ranking.ts';
import type { Pattern, Ranking } from '../src/math/csr.ts';
import { built } from './built.ts';

const [{ rankingMetrics }, { metricValue }] = await Promise.all([
  built<typeof ranked>('judge/ranking.js'),
  built<typeof judged>('judge/metric.js'),
]);

const depths = [1, 3, 5];

/** By depth, from 0 to 1. */
export function precision(ranking: Ranking, truth: Pattern): Record<number, number> {
  const metrics = rankingMetrics(ranking, truth, { ks: depths });
  const at = (k: number) => metrics.find(({ name }) => name === `P@${k}`);
  return Object.fromEntries(
    depths.map((k) => {
      const metric = at(k);
      return [k, metric ? metricValue(metric) : Number.NaN];
    }),
  );
}

/** In percent, named `P@1`, `P@3` and `P@5`. */
export const percentages = (ranking: Ranking, truth: Pattern): Record<string, number> =>
  Object.fromEntries(Object.entries(precision(ranking, truth)).map(([k, value]) => [`P@${k}`, 100 * value]));
