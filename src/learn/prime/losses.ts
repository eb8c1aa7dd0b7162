// The losses of PRIME: triplets whose margin follows the pair, and the regulariser that keeps prototypes better than
// texts. Similarities in, one number out; what they are similarities of is the network's business.
import type { Value } from '../../nn/graph.ts';
import { softmax } from '../../nn/layers.ts';
import {
  abs,
  add,
  clip,
  div,
  equal,
  greater,
  mul,
  neg,
  relu,
  reshape,
  stopGradient,
  sub,
  sum,
  toFloat,
  topK,
  where,
  withGradient,
} from '../../nn/ops.ts';

export interface MarginOptions {
  /**
   * How far a positive must be above a negative: `derived` by the size of their distance, between two bounds; `inverted`
   * the same but with the sign that the paper prints for small distances; `fixed` the upper bound.
   */
  margin: 'derived' | 'inverted' | 'fixed';
  marginLow: number;
  marginHigh: number;
  /** Of distances at which the loss is exactly its corner, as all are between the bounds: 0, 0.5 or 1. */
  tieGradient: number;
}

export interface TripletOptions extends MarginOptions {
  /** The hardest of each anchor: its least similar positives, its most similar negatives. */
  positives: number;
  negatives: number;
  /** Of an anchor's triplets: the hardest negatives, weighted; the mean of those that cost something; all. */
  aggregate: 'hardest' | 'active' | 'all';
}

/** The loss of each distance: similarity of the positive less that of the negative. */
export function marginLoss(distance: Value, o: MarginOptions): Value {
  if (o.margin === 'fixed') return cornered(sub(o.marginHigh, distance), o.tieGradient);
  const margin = stopGradient(clip(abs(distance), o.marginLow, o.marginHigh));
  const loss = cornered(sub(margin, distance), o.tieGradient);
  if (o.margin === 'derived') return loss;
  const small = both(greater(distance, 0), greater(o.marginLow, distance));
  return where(greater(small, 0), add(distance, o.marginLow), loss);
}

/** relu, with this gradient where its argument is exactly 0. */
function cornered(x: Value, atCorner: number): Value {
  const slope = add(toFloat(greater(x, 0)), mul(toFloat(equal(x, 0)), atCorner));
  return withGradient(relu(x), [x], (gradient) => [mul(gradient, slope)]);
}

const both = (a: Value, b: Value): Value => mul(toFloat(a), toFloat(b));

/** More than any similarity can be from 0. */
const beyond = 4;

/**
 * The loss of anchors (rows) and what they are compared with (columns), by their similarities. `positive` is 1 where a
 * column belongs to an anchor; pairs where `usable` is 0 are neither positive nor negative.
 */
export function tripletLoss(similarities: Value, positive: Value, usable: Value, o: TripletOptions): Value {
  const [anchors, others] = similarities.shape;
  const isPositive = mul(positive, usable);
  const isNegative = mul(sub(1, positive), usable);
  const hardest = (sign: 1 | -1, among: Value, count: number) => {
    const scores = where(greater(among, 0), sign === 1 ? similarities : neg(similarities), -beyond);
    const { values } = topK(scores, Math.min(count, others));
    return { values, there: toFloat(greater(values, 1 - beyond)) };
  };
  const positives = hardest(-1, isPositive, o.positives);
  const negatives =
    o.aggregate === 'hardest'
      ? hardest(1, isNegative, o.negatives)
      : { values: similarities, there: isNegative };
  const [p, n] = [positives.values.shape[1], negatives.values.shape[1]];
  const down = (x: Value) => reshape(x, [anchors, p, 1]);
  const across = (x: Value) => reshape(x, [anchors, 1, n]);
  const distance = sub(neg(down(positives.values)), across(negatives.values));
  const there = mul(down(positives.there), across(negatives.there));
  const loss = mul(marginLoss(distance, o), there);
  if (o.aggregate === 'all') return sum(loss);
  const active = toFloat(greater(loss, 0));
  if (o.aggregate === 'active') return ratio(sum(loss), sum(active));
  // Of negatives that cost nothing the weight is nothing.
  const weights = softmax(where(greater(active, 0), loss, -100));
  return ratio(sum(mul(weights, loss)), sum(there));
}

/** a / b, or 0 where b counts nothing. */
const ratio = (a: Value, b: Value): Value => div(a, add(b, toFloat(equal(b, 0))));

export interface RegulariserOptions {
  regulariser: 'hinge' | 'linear';
  /** By how much prototypes are to do better. */
  slack: number;
}

/** What it costs where prototypes tell positives from negatives no better than texts; texts themselves do not move. */
export function regulariser(
  byPrototype: Value,
  byText: Value,
  positive: Value,
  usable: Value,
  o: RegulariserOptions,
): Value {
  const behind = sub(stopGradient(byText), byPrototype);
  const cost = (sign: 1 | -1) => {
    const short = add(mul(behind, sign), o.slack);
    return o.regulariser === 'hinge' ? relu(short) : short;
  };
  const mean = (values: Value, among: Value) => ratio(sum(mul(values, among)), sum(among));
  const ofPositives = mean(cost(1), mul(positive, usable));
  const ofNegatives = mean(cost(-1), mul(sub(1, positive), usable));
  return mul(add(ofPositives, ofNegatives), 0.5);
}
