// The logistic twin of solve.ts: dual coordinate descent where each step of each lane is a small Newton search. The
// passes over a row's nonzeros still serve eight labels; the logarithms between them do not.
import { below, draw } from './random';

const stride: u32 = 32;
/** How far a Newton step may overshoot zero before it is cut. */
const shrink: f32 = 0.1;
const firstAlpha: f32 = 1e-6;
const maxNewton = 100;

/**
 * Same layout as solveSquaredHinge, but `alphas` has 64 bytes per row (each lane's alpha, then each lane's cost minus
 * alpha), `positive` and `negative` are the costs themselves, and step sizes were written with diagonals of zero.
 */
export function solveLogistic(
  count: u32,
  headers: usize,
  signs: usize,
  alphas: usize,
  order: usize,
  weights: usize,
  features: u32,
  lanes: u32,
  bias: f32,
  positive: f32,
  negative: f32,
  epsilon: f32,
  iterations: u32,
  seed: u32,
): u32 {
  memory.fill(weights, 0, (features + 1) * stride);
  const last = weights + features * stride;
  for (let i: u32 = 0; i < count; i++) {
    store<u32>(order + (i << 2), i);
    const sign: u32 = load<u8>(signs + i);
    for (let lane: u32 = 0; lane < 8; lane++) {
      const cost = (sign >> lane) & 1 ? positive : negative;
      const alpha = alphas + (i << 6) + (lane << 2);
      store<f32>(alpha, firstAlpha * cost);
      store<f32>(alpha, cost - firstAlpha * cost, 32);
    }
  }
  let random = seed | 1;
  let resting: u32 = 0xff & ~((1 << lanes) - 1);
  let iteration: u32 = 0;
  while (iteration < iterations && resting !== 0xff) {
    let violating: u32 = 0;
    for (let s: u32 = 0; s < count; s++) {
      random = draw(random);
      const here = order + (s << 2);
      const there = here + (below(random, count - s) << 2);
      const i = load<u32>(there);
      store<u32>(there, load<u32>(here));
      store<u32>(here, i);
      violating |= visit(
        headers + (i << 4),
        load<u8>(signs + i),
        alphas + (i << 6),
        weights,
        last,
        resting,
        bias,
        positive,
        negative,
        epsilon,
      );
    }
    resting |= 0xff & ~violating;
    iteration++;
  }
  return iteration;
}

/** One step of every lane that does not rest; returns the lanes that were further than epsilon from their optimum. */
function visit(
  header: usize,
  sign: u32,
  alphas: usize,
  weights: usize,
  last: usize,
  resting: u32,
  bias: f32,
  positive: f32,
  negative: f32,
  epsilon: f32,
): u32 {
  const biases = f32x4.splat(bias);
  const end: usize = load<u32>(header, 4);
  const curvature: f32 = <f32>1 / load<f32>(header, 8);
  let margin0 = f32x4.mul(v128.load(last), biases);
  let margin1 = f32x4.mul(v128.load(last, 16), biases);
  for (let p: usize = load<u32>(header); p < end; p += 8) {
    const x = v128.load32_splat(p, 4);
    const w = weights + load<u32>(p);
    margin0 = f32x4.add(margin0, f32x4.mul(x, v128.load(w)));
    margin1 = f32x4.add(margin1, f32x4.mul(x, v128.load(w, 16)));
  }
  // The margins pass through the last weights' place plus one: written and read back, lane by lane.
  const changes = last + stride;
  v128.store(changes, margin0);
  v128.store(changes, margin1, 16);
  let violating: u32 = 0;
  for (let lane: u32 = 0; lane < 8; lane++) {
    const at = changes + (lane << 2);
    const margin = load<f32>(at);
    store<f32>(at, 0);
    if ((resting >> lane) & 1) continue;
    const isPositive = (sign >> lane) & 1;
    const cost = isPositive ? positive : negative;
    const side: f32 = isPositive ? 1 : -1;
    const pull = side * margin;
    const alpha = alphas + (lane << 2);
    // Work on whichever of alpha and cost - alpha is the smaller at the optimum: logarithms stay exact.
    const mirrored = <f32>0.5 * curvature * (load<f32>(alpha, 32) - load<f32>(alpha)) + pull < 0;
    const chosen = mirrored ? alpha + 32 : alpha;
    const direction: f32 = mirrored ? -1 : 1;
    const old = load<f32>(chosen);
    let z = cost - old < <f32>0.5 * cost ? shrink * old : old;
    let gradient = curvature * (z - old) + direction * pull + Mathf.log(z / (cost - z));
    if (abs(gradient) > epsilon) violating |= 1 << lane;
    let steps = 0;
    while (abs(gradient) > <f32>0.1 * epsilon && steps < maxNewton) {
      const next = z - gradient / (curvature + cost / (cost - z) / z);
      z = next > 0 ? next : z * shrink;
      gradient = curvature * (z - old) + direction * pull + Mathf.log(z / (cost - z));
      steps++;
    }
    if (steps === 0) continue;
    store<f32>(chosen, z);
    store<f32>(mirrored ? alpha : alpha + 32, cost - z);
    store<f32>(at, direction * (z - old) * side);
  }
  const change0 = v128.load(changes);
  const change1 = v128.load(changes, 16);
  if (!v128.any_true(v128.or(change0, change1))) return violating;
  v128.store(last, f32x4.add(v128.load(last), f32x4.mul(change0, biases)));
  v128.store(last, f32x4.add(v128.load(last, 16), f32x4.mul(change1, biases)), 16);
  for (let p: usize = load<u32>(header); p < end; p += 8) {
    const x = v128.load32_splat(p, 4);
    const w = weights + load<u32>(p);
    v128.store(w, f32x4.add(v128.load(w), f32x4.mul(x, change0)));
    v128.store(w, f32x4.add(v128.load(w, 16), f32x4.mul(x, change1)), 16);
  }
  return violating;
}
