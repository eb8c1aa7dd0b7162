// What training C-GMVAE lowers, for batches of a size. Rows that fill up a batch, and rows without labels where labels
// are needed, are given no weight.
import { input, noise, type Value } from '../../nn/graph.ts';
import { dropout } from '../../nn/layers.ts';
import { add, div, exp, matmul, mean, mul, reshape, slice, sqrt, sub, sum } from '../../nn/ops.ts';
import {
  contrastLoss,
  divergence,
  type Gaussians,
  labelCounts,
  labelLoss,
  logMixture,
  logPosterior,
} from './losses.ts';
import {
  type Drop,
  decode,
  decodeFeatures,
  encode,
  encodeLabels,
  logitsOf,
  type Network,
  productsOf,
  scaled,
} from './net.ts';

export interface Objective {
  loss: Value;
  terms: Record<string, Value>;
}

/**
 * Fed `x` and `y` (labels as 0 and 1), and what each row counts in means over all rows (`rows`) and over those with
 * labels (`labelled`).
 */
export function objectiveOf(net: Network, size: number): Objective {
  const { settings: o } = net;
  const [y, rows, labelled] = [
    input('y', [size, net.labels]),
    input('rows', [size, 1]),
    input('labelled', [size, 1]),
  ];
  const dropping =
    (rate: number): Drop =>
    (h, name) =>
      dropout(h, rate, name);
  const drop = dropping(o.dropout);
  const whole = scaled(net, input('x', [size, net.features]));
  const x = dropping(o.inputDropout)(whole, 'input mask');
  const posterior = encode(net, x, drop);
  const prior = encodeLabels(net, o.prior === 'mixture' ? net.embeddings : matmul(y, net.embeddings), drop);
  const [first, second] = [sample(posterior, 'noise 1').z, sample(posterior, 'noise 2').z];
  const codes = o.labelBranch ? [first, second, labelCode(net, prior, y)] : [first, second];
  const products = productsOf(net, decode(net, x, codes, dropping(o.decoderDropout)));
  const branches = codes.map((_, i) => slice(products, 0, i * size, (i + 1) * size));

  const [firstLoss, secondLoss, branchLoss] = branches.map((branch) => labelLoss(logitsOf(net, branch), y));
  const terms: [name: string, weight: number, term: Value][] = [
    ['likelihood', o.likelihoodWeight, weighted(add(firstLoss, secondLoss), rows)],
  ];
  if (o.labelBranch) terms.push(['label likelihood', o.likelihoodWeight, weighted(branchLoss, labelled)]);
  if (o.klWeight > 0)
    terms.push(['divergence', o.klWeight, weighted(fromPrior(net, posterior, prior, y), labelled)]);
  if (o.contrastWeight > 0) {
    const anchors = o.contrastAnchors === 'both' ? branches.toSpliced(1, 1) : [branches[0]];
    terms.push(['contrast', o.contrastWeight, weighted(contrast(net, anchors, y), labelled)]);
  }
  if (net.featureDecoder) {
    const apart = sub(decodeFeatures(first, net.featureDecoder), whole);
    terms.push(['reconstruction', 1, weighted(mean(mul(apart, apart), [1], true), rows)]);
  }
  return {
    loss: terms.map(([, weight, term]) => mul(term, weight)).reduce((total, term) => add(total, term)),
    terms: Object.fromEntries(terms.map(([name, , term]) => [name, term])),
  };
}

/** The sum of a column over the rows, each times its weight. */
const weighted = (column: Value, weights: Value): Value => sum(mul(column, weights));

function sample({ mean: center, logVariance }: Gaussians, name: string) {
  const random = noise(name, center.shape);
  return { random, z: add(center, mul(exp(mul(logVariance, 0.5)), random)) };
}

/** The code of each row's true labels: the middle of their Gaussians, or a draw from the one they share. */
const labelCode = ({ settings }: Network, prior: Gaussians, y: Value): Value =>
  settings.prior === 'mixture' ? div(matmul(y, prior.mean), labelCounts(y)) : sample(prior, 'label noise').z;

/** How far the features' Gaussian is from the labels'; of a mixture, an estimate from one draw that may be negative. */
function fromPrior({ settings }: Network, posterior: Gaussians, prior: Gaussians, y: Value): Value {
  if (settings.prior === 'single')
    return settings.divergence === 'q|p' ? divergence(posterior, prior) : divergence(prior, posterior);
  const { random, z } = sample(posterior, 'noise 3');
  return sub(logPosterior(posterior, random), logMixture(z, prior, y));
}

function contrast({ settings, embeddings, logitScale }: Network, anchors: readonly Value[], y: Value): Value {
  const { contrastLabels, temperature } = settings;
  // A product with an embedding, divided by its length, is the product with one of length one.
  const divisor =
    contrastLabels === 'unit'
      ? mul(reshape(sqrt(sum(mul(embeddings, embeddings), [1])), [1, y.shape[1]]), temperature * logitScale)
      : temperature;
  const losses = anchors.map((products) => contrastLoss(div(products, divisor), y));
  return mul(
    losses.reduce((total, loss) => add(total, loss)),
    1 / anchors.length,
  );
}
