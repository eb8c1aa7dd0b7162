// How likely it is that a label that belongs to a sample is there at all: rare ones are missing more often.
import { badUsage } from '../errors.ts';

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
