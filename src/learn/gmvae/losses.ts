// The terms of C-GMVAE's loss, as columns: one number per row of a batch. Rows without labels give finite numbers that
// mean nothing; whoever adds the rows up gives them no weight.
import type { Value } from '../../nn/graph.ts';
import { logSoftmax, logSumExp, softplus } from '../../nn/layers.ts';
import { add, clip, div, exp, greater, log, matmul, mul, neg, sub, sum, where } from '../../nn/ops.ts';

/** Diagonal Gaussians, one per row. */
export interface Gaussians {
  mean: Value;
  logVariance: Value;
}

/** Far below any density, and finite: what is infinite here would be NaN in the gradient. */
const never = -1e30;

const rowSums = (x: Value): Value => sum(x, [1], true);

/** How many labels each row has; 1 where it has none, so that nothing is divided by zero. */
export const labelCounts = (y: Value): Value => clip(rowSums(y), 1, y.shape[1]);

/** The log-density of mean + deviation * noise under its own Gaussian, up to the constant that all densities here lack. */
export const logPosterior = ({ logVariance }: Gaussians, noise: Value): Value =>
  mul(rowSums(add(logVariance, mul(noise, noise))), -0.5);

/**
 * The log-density of z under the mixture of its row's labels' Gaussians. The squares are multiplied out into matrix
 * products, because all pairs of rows and labels in all dimensions would not fit into memory.
 */
export function logMixture(z: Value, { mean, logVariance }: Gaussians, y: Value): Value {
  const precision = exp(neg(logVariance));
  const squares = matmul(mul(z, z), precision, { b: true });
  const cross = matmul(z, mul(mean, precision), { b: true });
  const own = sum(add(logVariance, mul(mul(mean, mean), precision)), [1]);
  const densities = mul(add(sub(squares, mul(cross, 2)), own), -0.5);
  const ofLabels = where(greater(y, 0), densities, never);
  return sub(logSumExp(ofLabels, [1], true), log(labelCounts(y)));
}

/** The Kullback-Leibler divergence of each row's `from` from its `to`. */
export function divergence(from: Gaussians, to: Gaussians): Value {
  const apart = sub(from.mean, to.mean);
  const spread = add(exp(from.logVariance), mul(apart, apart));
  const ratio = mul(spread, exp(neg(to.logVariance)));
  return mul(rowSums(add(sub(sub(to.logVariance, from.logVariance), 1), ratio)), 0.5);
}

/** The negative log-likelihood of the labels, each on its own. */
export const labelLoss = (logits: Value, y: Value): Value => rowSums(sub(softplus(logits), mul(y, logits)));

/** How far each row's labels are from having all of a softmax over the labels. */
export const contrastLoss = (logits: Value, y: Value): Value =>
  neg(rowSums(mul(div(y, labelCounts(y)), logSoftmax(logits))));

/** The sum of a column over the rows, each times its weight. */
export const weighted = (column: Value, weights: Value): Value => sum(mul(column, weights));
