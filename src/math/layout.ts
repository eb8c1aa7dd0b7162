// Points in the plane from who is near whom, in the manner of UMAP with the curve 1 / (1 + distance^2): neighbours pull
// each other, others chosen at random push each other away. The start puts connected points beside each other, so that
// far apart means something too.

/** Neighbours of every point, as many places for each. */
export interface NearGraph {
  points: number;
  width: number;
  neighbours: Uint32Array;
  /** 0 to 1; 0 for places that are not used. */
  strengths: Float32Array;
}

/** Where random numbers come from: whole numbers below n, and fractions. */
interface Randomness {
  integer(n: number): number;
  uniform(): number;
}

const passes = 200;
const startPasses = 60;
/** Points pushed away for every neighbour pulled. */
const pushes = 4;
const mostStep = 4;

/** x and y of every point, from 0 to 1. `onPass` may wait, throw, or tell how far it is. */
export async function layOut(
  graph: NearGraph,
  random: Randomness,
  onPass: (done: number, total: number) => Promise<void>,
): Promise<{ x: Float32Array; y: Float32Array }> {
  const x = spread(graph, random);
  const y = spread(graph, random, x);
  const scale = 10;
  for (let i = 0; i < graph.points; i++) {
    x[i] = scale * x[i] + 1e-3 * random.uniform();
    y[i] = scale * y[i] + 1e-3 * random.uniform();
  }
  for (let pass = 0; pass < passes; pass++) {
    pullAndPush(graph, x, y, 1 - pass / passes, random);
    await onPass(pass + 1, passes);
  }
  return { x: toUnit(x), y: toUnit(y) };
}

/** A slowly varying function on the graph, the smoothest that is not constant (nor `other`), from 0 to 1 by rank. */
function spread(
  { points, width, neighbours, strengths }: NearGraph,
  random: Randomness,
  other?: Float32Array,
) {
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
  random: Randomness,
): void {
  const clip = (value: number) => Math.max(-mostStep, Math.min(mostStep, value));
  for (let i = 0; i < points; i++) {
    for (let p = i * width; p < (i + 1) * width; p++) {
      // A weak tie is followed less often, not less far.
      if (strengths[p] === 0 || random.uniform() > strengths[p]) continue;
      const j = neighbours[p];
      const [dx, dy] = [x[i] - x[j], y[i] - y[j]];
      const square = dx * dx + dy * dy;
      if (square > 0) {
        const pull = -2 / (1 + square);
        x[i] += step * clip(pull * dx);
        y[i] += step * clip(pull * dy);
        x[j] -= step * clip(pull * dx);
        y[j] -= step * clip(pull * dy);
      }
      for (let n = 0; n < pushes; n++) {
        const k = random.integer(points);
        if (k === i) continue;
        const [ex, ey] = [x[i] - x[k], y[i] - y[k]];
        const far = ex * ex + ey * ey;
        const push = 2 / ((0.001 + far) * (1 + far));
        x[i] += step * clip(push * ex);
        y[i] += step * clip(push * ey);
      }
    }
  }
}

function toUnit(values: Float32Array): Float32Array {
  // Single points far out must not shrink all others.
  const sorted = values.slice().sort();
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))];
  const [low, high] = [at(0.005), at(0.995)];
  return values.map((value) => Math.min(1, Math.max(0, (value - low) / (high - low || 1))));
}
