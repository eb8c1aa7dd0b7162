// Linear classifiers for one label among the members of its groups and of others: dual coordinate descent for the
// squared hinge, on rows as gatherPlaces of places.ts lays them. `sums` are the weights, that of the bias last.
import { below, draw } from './random';

/** Four classifiers are learnt together, each without the groups of its own fold: its lane of 16 bytes. */
const lanes: v128 = i32x4(0, 1, 2, 3);
/** Rows whose gradients are all below this share of the tolerance stay as they are. */
const settledShare: f32 = 0.2;

/** Copies the marks of each pair's places, which lie from its offset on. */
export function takeMarks(
  count: u32,
  firsts: usize,
  pairs: usize,
  offsets: usize,
  chosen: usize,
  marks: usize,
): void {
  for (let j: u32 = 0; j < count; j++) {
    const first = load<u32>(firsts + (j << 2));
    const from = chosen + load<u32>(offsets + (load<u32>(pairs + (j << 2)) << 2));
    memory.copy(marks + first, from, load<u32>(firsts + (j << 2), 4) - first);
  }
}

/** Of every place, twice the fold of its group, and one more where it is marked; groups from `count` on never are. */
export function takeSides(
  count: u32,
  groups: u32,
  firsts: usize,
  folds: usize,
  marks: usize,
  sides: usize,
): void {
  for (let j: u32 = 0; j < groups; j++) {
    const fold = load<u8>(folds + j) << 1;
    const last = load<u32>(firsts + (j << 2), 4);
    for (let i = load<u32>(firsts + (j << 2)); i < last; i++)
      store<u8>(sides + i, fold | u8(j < count && load<u8>(marks + i) !== 0));
  }
}

/** Lists all rows, those of a group together, groups in random order. */
function shuffleGroups(groups: u32, firsts: usize, shuffled: usize, order: usize, seed: u32): void {
  let random = seed | 1;
  for (let j: u32 = 0; j < groups; j++) {
    random = draw(random);
    const drawn = shuffled + (below(random, j + 1) << 2);
    store<u32>(shuffled + (j << 2), load<u32>(drawn));
    store<u32>(drawn, j);
  }
  for (let j: u32 = 0; j < groups; j++) {
    const first = firsts + (load<u32>(shuffled + (j << 2)) << 2);
    for (let i = load<u32>(first); i < load<u32>(first, 4); i++, order += 4) store<u32>(order, i);
  }
}

/** Writes 1 / (|x|^2 + constant) of each row. */
function stepSizes(places: u32, ends: usize, entries: usize, constant: f32, steps: usize): void {
  let p = entries;
  for (let i: u32 = 0; i < places; i++) {
    let square = constant;
    for (const end = entries + load<u32>(ends + (i << 2)); p < end; p += 8) {
      const value = load<f32>(p, 4);
      square += value * value;
    }
    store<f32>(steps + (i << 2), 1 / square);
  }
}

/**
 * Minimises 1/2 |w|^2 + cost sum max(0, 1 - sign w.x)^2 over the rows outside of each of the `folds` (four at most).
 * Rows that no fold would move are left out until the others have converged. `alphas` has 16 bytes per place, `order`
 * and `steps` 4.
 */
export function solveFolds(
  groups: u32,
  firsts: usize,
  ends: usize,
  entries: usize,
  features: u32,
  sums: usize,
  folds: u32,
  sides: usize,
  alphas: usize,
  shuffled: usize,
  order: usize,
  steps: usize,
  cost: f32,
  bias: f32,
  epsilon: f32,
  passes: u32,
  seed: u32,
): void {
  const diagonal: f32 = 0.5 / cost;
  const places = load<u32>(firsts + (groups << 2));
  memory.fill(sums, 0, (features + 1) << 4);
  memory.fill(alphas, 0, places << 4);
  shuffleGroups(groups, firsts, shuffled, order, seed);
  stepSizes(places, ends, entries, bias * bias + diagonal, steps);
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const infinity = f32x4.splat(Infinity);
  const diagonals = f32x4.splat(diagonal);
  const biases = f32x4.splat(bias);
  const settled = f32x4.splat(epsilon * settledShare);
  const used = i32x4.lt_s(lanes, i32x4.splat(folds));
  const last = sums + (features << 4);
  let biasSums = zero;
  let active = places;
  let limit = infinity;
  for (let pass: u32 = 0; pass < passes; pass++) {
    let largest = f32x4.splat(-Infinity);
    let smallest = infinity;
    let kept: u32 = 0;
    for (let s: u32 = 0; s < active; s++) {
      const here = order + (s << 2);
      const i = load<u32>(here);
      const from = entries + (i === 0 ? 0 : load<u32>(ends + ((i - 1) << 2)));
      const end = entries + load<u32>(ends + (i << 2));
      let margin = f32x4.mul(biasSums, biases);
      for (let p = from; p < end; p += 8) {
        const sum = v128.load(sums + (load<u32>(p) << 1));
        margin = f32x4.add(margin, f32x4.mul(v128.load32_splat(p, 4), sum));
      }
      const side: u32 = load<u8>(sides + i);
      const learns = v128.and(used, i32x4.ne(lanes, i32x4.splat(side >> 1)));
      const sign = f32x4.splat(side & 1 ? 1 : -1);
      const alpha = v128.load(alphas + (i << 4));
      const gradient = f32x4.add(f32x4.sub(f32x4.mul(sign, margin), one), f32x4.mul(alpha, diagonals));
      const bound = f32x4.eq(alpha, zero);
      if (!v128.any_true(v128.andnot(learns, v128.and(bound, f32x4.gt(gradient, limit))))) continue;
      store<u32>(here, load<u32>(order + (kept << 2)));
      store<u32>(order + (kept++ << 2), i);
      // At the bound only a negative gradient may move the variable.
      const moves = v128.andnot(learns, v128.and(bound, f32x4.ge(gradient, zero)));
      const projected = v128.and(gradient, moves);
      largest = f32x4.pmax(largest, projected);
      smallest = f32x4.pmin(smallest, projected);
      if (!v128.any_true(f32x4.gt(f32x4.abs(projected), settled))) continue;
      const step = f32x4.mul(projected, v128.load32_splat(steps + (i << 2)));
      const next = f32x4.pmax(zero, f32x4.sub(alpha, step));
      v128.store(alphas + (i << 4), next);
      const change = f32x4.mul(f32x4.sub(next, alpha), sign);
      biasSums = f32x4.add(biasSums, f32x4.mul(change, biases));
      for (let p = from; p < end; p += 8) {
        const sum = sums + (load<u32>(p) << 1);
        v128.store(sum, f32x4.add(v128.load(sum), f32x4.mul(v128.load32_splat(p, 4), change)));
      }
    }
    active = kept;
    limit = v128.bitselect(largest, infinity, f32x4.gt(largest, zero));
    const open = f32x4.gt(f32x4.sub(largest, smallest), f32x4.splat(epsilon));
    if (v128.any_true(open)) continue;
    if (active === places) break;
    active = places;
    limit = infinity;
  }
  v128.store(last, biasSums);
}

/** Of the label's own places, the margins by the classifier that has not learnt from their fold. */
export function scoreFolds(
  count: u32,
  firsts: usize,
  folds: usize,
  ends: usize,
  entries: usize,
  features: u32,
  sums: usize,
  bias: f32,
  dots: usize,
): void {
  for (let j: u32 = 0; j < count; j++) {
    const own = sums + (load<u8>(folds + j) << 2);
    const constant = load<f32>(own + (features << 4)) * bias;
    const last = load<u32>(firsts + (j << 2), 4);
    for (let i = load<u32>(firsts + (j << 2)); i < last; i++) {
      const end = entries + load<u32>(ends + (i << 2));
      let margin: f64 = constant;
      for (let p = entries + (i === 0 ? 0 : load<u32>(ends + ((i - 1) << 2))); p < end; p += 8)
        margin += load<f32>(p, 4) * load<f32>(own + (load<u32>(p) << 1));
      store<f64>(dots + (i << 3), margin);
    }
  }
}
