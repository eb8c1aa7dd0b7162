// Points in the plane from who is near whom, in the manner of UMAP with the curve 1 / (1 + distance^2): neighbours pull
// each other, others chosen at random push each other away. The start puts connected points beside each other, so that
// far apart means something too.

import type { Random } from './random.ts';

/** Neighbours of every point, as many places for each, the nearest first. */
export interface NearGraph {
  points: number;
  width: number;
  neighbours: Uint32Array;
  /** 0 to 1; 0 for places that are not used, which come last. */
  strengths: Float32Array;
}

const startPasses = 60;
/** Many points hold each other in place sooner. */
const passesFor = (points: number) => (points > 10_000 ? 100 : 200);
/** Points pushed away for every neighbour pulled. */
const pushes = 4;
const mostStep = 4;
const margin = 0.04;

/** x and y of every point, from 0 to 1. */
export function layOut(
  graph: NearGraph,
  random: Random,
  onPass: (done: number, total: number) => void,
): { x: Float32Array; y: Float32Array } {
  const passes = passesFor(graph.points);
  const x = spread(graph, random);
  const y = spread(graph, random, x);
  const scale = 10;
  for (let i = 0; i < graph.points; i++) {
    x[i] = scale * x[i] + 1e-3 * random.uniform();
    y[i] = scale * y[i] + 1e-3 * random.uniform();
  }
  for (let pass = 0; pass < passes; pass++) {
    pullAndPush(graph, x, y, 1 - pass / passes, random);
    onPass(pass + 1, passes);
  }
  return { x: toUnit(x), y: toUnit(y) };
}

/** A slowly varying function on the graph, the smoothest that is not constant (nor `other`), from 0 to 1 by rank. */
function spread({ points, width, neighbours, strengths }: NearGraph, random: Random, other?: Float32Array) {
  let values: Float32Array = Float32Array.from({ length: points }, () => random.uniform() - 0.5);
  const next = new Float32Array(points);
  for (let pass = 0; pass < startPasses; pass++) {
    next.fill(0);
    for (let i = 0; i < points; i++) {
      let [sum, total] = [values[i], 1];
      for (let p = i * width; p < (i + 1) * width; p++) {
        sum += strengths[p] * values[neighbours[p]];
        total += strengths[p];
      }
      next[i] = sum / total;
    }
    values = standardised(next, other);
  }
  return byRank(values);
}

/** Mean 0, length 1, and nothing in common with `other`. */
function standardised(values: Float32Array, other?: Float32Array): Float32Array {
  const mean = (list: Float32Array) => list.reduce((sum, value) => sum + value, 0) / list.length;
  const middle = mean(values);
  const centred = values.map((value) => value - middle);
  if (other) {
    const otherMiddle = mean(other);
    let [product, square] = [0, 0];
    for (let i = 0; i < other.length; i++) {
      product += centred[i] * (other[i] - otherMiddle);
      square += (other[i] - otherMiddle) ** 2;
    }
    for (let i = 0; i < other.length; i++) centred[i] -= (product / (square || 1)) * (other[i] - otherMiddle);
  }
  const length = Math.sqrt(centred.reduce((sum, value) => sum + value * value, 0)) || 1;
  return centred.map((value) => value / length);
}

function byRank(values: Float32Array): Float32Array {
  const order = Uint32Array.from(values.keys()).sort((a, b) => values[a] - values[b] || a - b);
  const ranks = new Float32Array(values.length);
  order.forEach((point, rank) => {
    ranks[point] = rank / Math.max(1, values.length - 1);
  });
  return ranks;
}

function pullAndPush(
  { points, width, neighbours, strengths }: NearGraph,
  x: Float32Array,
  y: Float32Array,
  step: number,
  random: Random,
): void {
  for (let i = 0; i < points; i++) {
    for (let p = i * width; p < (i + 1) * width && strengths[p] > 0; p++) {
      // A weak tie is followed less often, not less far.
      if (random.uint32() > strengths[p] * 2 ** 32) continue;
      const j = neighbours[p];
      const dx = x[i] - x[j];
      const dy = y[i] - y[j];
      const pull = -2 / (1 + dx * dx + dy * dy);
      const ax = step * clip(pull * dx);
      const ay = step * clip(pull * dy);
      x[i] += ax;
      y[i] += ay;
      x[j] -= ax;
      y[j] -= ay;
      for (let n = 0; n < pushes; n++) {
        // A point does not push itself: the difference is zero.
        const k = Math.floor((random.uint32() / 2 ** 32) * points);
        const ex = x[i] - x[k];
        const ey = y[i] - y[k];
        const far = ex * ex + ey * ey;
        const push = 2 / ((0.001 + far) * (1 + far));
        x[i] += step * clip(push * ex);
        y[i] += step * clip(push * ey);
      }
    }
  }
}

const clip = (value: number) => (value > mostStep ? mostStep : value < -mostStep ? -mostStep : value);

/** From 0 to 1. Single points far out must not shrink all others: the margins hold them, the farthest outermost. */
function toUnit(values: Float32Array): Float32Array {
  const sorted = values.slice().sort();
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))];
  const [low, high] = [at(0.005), at(0.995)];
  const within = (beyond: number) => margin * (1 - beyond / (beyond + 0.2));
  return values.map((value) => {
    const share = (value - low) / (high - low || 1);
    if (share < 0) return within(-share);
    return share > 1 ? 1 - within(share - 1) : margin + (1 - 2 * margin) * share;
  });
}
