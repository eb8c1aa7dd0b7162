// Linear classifiers of one cluster, eight labels at a time: every pass over a row's nonzeros serves eight labels.
// Addresses and integers only; the caller lays out all memory. The plain reference is learn/one-vs-rest.ts.
import { below, draw } from './random';

/** Weights of one local feature: eight lanes of four bytes. */
const stride: u32 = 32;

/**
 * Copies the cluster's rows with features renumbered by how often they occur (the most frequent share cache lines).
 * A row's header is 16 bytes: address of its first entry, address after its last, and room for two step sizes.
 * An entry is 8 bytes: the byte offset of the feature's weights and the value. Returns the number of local features.
 */
export function compact(
  rows: usize,
  count: u32,
  indptr: usize,
  indices: usize,
  values: usize,
  localRow: usize,
  localFeature: usize,
  ids: usize,
  spare: usize,
  headers: usize,
  entries: usize,
): u32 {
  let features: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(rows + (i << 2));
    store<u32>(localRow + (row << 2), i);
    const end = indices + (load<u32>(indptr + (row << 2), 4) << 2);
    for (let p = indices + (load<u32>(indptr + (row << 2)) << 2); p < end; p += 4) {
      const feature = load<u32>(p);
      const slot = localFeature + (feature << 2);
      const seen = load<u32>(slot);
      if (seen === 0) {
        store<u32>(spare + (features << 2), feature);
        features++;
      }
      store<u32>(slot, seen + 1);
    }
  }
  orderByFrequency(features, localFeature, spare, ids);
  for (let i: u32 = 0; i < features; i++) {
    store<u32>(localFeature + (load<u32>(ids + (i << 2)) << 2), i * stride);
  }
  let entry = entries;
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(rows + (i << 2));
    const start = load<u32>(indptr + (row << 2)) << 2;
    const end = load<u32>(indptr + (row << 2), 4) << 2;
    store<u32>(headers + (i << 4), <u32>entry);
    for (let p = start; p < end; p += 4) {
      store<u32>(entry, load<u32>(localFeature + (load<u32>(indices + p) << 2)));
      store<f32>(entry, load<f32>(values + p), 4);
      entry += 8;
    }
    store<u32>(headers + (i << 4), <u32>entry, 4);
  }
  for (let i: u32 = 0; i < features; i++) {
    store<u32>(localFeature + (load<u32>(ids + (i << 2)) << 2), 0);
  }
  return features;
}

/** Into classes of similar frequency, frequent first; the order of first occurrence within a class. */
function orderByFrequency(features: u32, frequency: usize, from: usize, to: usize): void {
  let next: u32 = 0;
  for (let zeros: u32 = 0; zeros < 32 && next < features; zeros++) {
    for (let i: u32 = 0; i < features; i++) {
      const feature = load<u32>(from + (i << 2));
      if (clz(load<u32>(frequency + (feature << 2))) === zeros) {
        store<u32>(to + (next << 2), feature);
        next++;
      }
    }
  }
}

/** Sets bit `lane` of the sign byte of each of the cluster's rows that carries the lane's label, clears the others. */
export function markPositives(
  rows: usize,
  count: u32,
  signs: usize,
  localRow: usize,
  labels: usize,
  lanes: u32,
  indptr: usize,
  labelRows: usize,
): void {
  memory.fill(signs, 0, count);
  for (let lane: u32 = 0; lane < lanes; lane++) {
    const label = load<u32>(labels + (lane << 2));
    const end = labelRows + (load<u32>(indptr + (label << 2), 4) << 2);
    for (let p = labelRows + (load<u32>(indptr + (label << 2)) << 2); p < end; p += 4) {
      const row = load<u32>(p);
      const local = load<u32>(localRow + (row << 2));
      // A row outside the cluster has whatever number it had in another one.
      if (local >= count || load<u32>(rows + (local << 2)) !== row) continue;
      store<u8>(signs + local, load<u8>(signs + local) | ((<u8>1) << (<u8>lane)));
    }
  }
}

/** Writes each row's step sizes, 1 / (|x|^2 + bias^2 + diagonal), for positives and for negatives. */
export function stepSizes(count: u32, headers: usize, bias: f32, positive: f32, negative: f32): void {
  for (let i: u32 = 0; i < count; i++) {
    const header = headers + (i << 4);
    const end: usize = load<u32>(header, 4);
    let sum = bias * bias;
    for (let p: usize = load<u32>(header); p < end; p += 8) {
      const value = load<f32>(p, 4);
      sum += value * value;
    }
    store<f32>(header, 1 / (sum + positive), 8);
    store<f32>(header, 1 / (sum + negative), 12);
  }
}

/** All bits set in each of four lanes whose bit is set. */
function laneMask(bits: u32): v128 {
  return i32x4.ne(v128.and(i32x4.splat(bits), i32x4(1, 2, 4, 8)), i32x4.splat(0));
}

/** Rows fetched together before they are visited. */
const aheadRows: u32 = 16;
/** A row whose gradients are all below this share of the tolerance stays as it is: fewer updates, as many passes. */
const settledShare: f32 = 0.2;
/** Marks a row in the visiting order that leaves the active set at the end of the pass. */
const leaving: u32 = 1 << 31;

/**
 * Draws the next rows of the visiting order and reads a little of each: their cache misses overlap instead of
 * stalling one visit after the other. The sum returned only keeps the reads alive.
 */
function fetchAhead(
  order: usize,
  from: u32,
  to: u32,
  active: u32,
  seed: u32,
  headers: usize,
  alphas: usize,
): u32 {
  let random = (seed * 0x9e3779b9) | 1;
  let touched: u32 = 0;
  for (let s = from; s < to; s++) {
    random = draw(random);
    const here = order + (s << 2);
    const there = here + (below(random, active - s) << 2);
    const i = load<u32>(there);
    store<u32>(there, load<u32>(here));
    store<u32>(here, i);
    touched += load<u32>(headers + (i << 4)) + load<u32>(alphas + (i << 5));
  }
  for (let s = from; s < to; s++) {
    const entries: usize = load<u32>(headers + (load<u32>(order + (s << 2)) << 4));
    touched += load<u32>(entries) + load<u32>(entries, 64);
  }
  return touched;
}

/** Takes the marked rows out of the visiting order; returns how many stay. */
function removeLeaving(order: usize, active: u32): u32 {
  let kept: u32 = 0;
  for (let s: u32 = 0; s < active; s++) {
    const i = load<u32>(order + (s << 2));
    if (i & leaving) continue;
    store<u32>(order + (kept << 2), i);
    kept++;
  }
  return kept;
}

function everyRow(order: usize, count: u32): void {
  for (let i: u32 = 0; i < count; i++) store<u32>(order + (i << 2), i);
}

/** Where a solver in progress keeps what it knows between passes, in bytes; the bias weights lie after the features'. */
const activeAt = 0;
const restingAt = 4;
const finishedAt = 8;
const randomAt = 12;
const limitsAt = 16;
const touchedAt = 48;
const everyLane: u32 = 0xff;

/** Begins to solve up to eight labels: all weights and dual variables are zero, all rows are active. */
export function startSquaredHinge(
  count: u32,
  alphas: usize,
  order: usize,
  weights: usize,
  features: u32,
  lanes: u32,
  seed: u32,
  state: usize,
): void {
  memory.fill(weights, 0, (features + 1) * stride);
  memory.fill(alphas, 0, count << 5);
  everyRow(order, count);
  const unused = everyLane & ~((1 << lanes) - 1);
  store<u32>(state, count, activeAt);
  store<u32>(state, unused, restingAt);
  store<u32>(state, unused, finishedAt);
  store<u32>(state, seed | 1, randomAt);
  v128.store(state, f32x4.splat(Infinity), limitsAt);
  v128.store(state, f32x4.splat(Infinity), limitsAt + 16);
}

/**
 * One pass of dual coordinate descent for the squared hinge loss with L2 regularisation, one dual variable per row and
 * lane; returns whether all lanes have converged. Rows are visited in random order; a row leaves the active set when
 * every unfinished lane would shrink it (with `shrink`, from the next pass on). A lane that converged on a shrunken set waits until all have, and is then
 * checked on all rows. Engines only swap in their best code between calls: that is why a pass is a call.
 */
export function passSquaredHinge(
  count: u32,
  headers: usize,
  signs: usize,
  alphas: usize,
  order: usize,
  weights: usize,
  features: u32,
  bias: f32,
  positive: f32,
  negative: f32,
  epsilon: f32,
  shrink: bool,
  state: usize,
): bool {
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const minusOne = f32x4.splat(-1);
  const infinity = f32x4.splat(Infinity);
  const biases = f32x4.splat(bias);
  const positives = f32x4.splat(positive);
  const negatives = f32x4.splat(negative);
  const tolerance = f32x4.splat(epsilon);
  const settled = f32x4.splat(epsilon * settledShare);
  const last = weights + features * stride;
  let bias0 = v128.load(last);
  let bias1 = v128.load(last, 16);
  const limit0 = v128.load(state, limitsAt);
  const limit1 = v128.load(state, limitsAt + 16);
  let active = load<u32>(state, activeAt);
  let resting = load<u32>(state, restingAt);
  let finished = load<u32>(state, finishedAt);
  let random = load<u32>(state, randomAt);
  const still0 = laneMask(resting);
  const still1 = laneMask(resting >> 4);
  let max0 = f32x4.splat(-Infinity);
  let max1 = max0;
  let min0 = infinity;
  let min1 = infinity;
  let touched: u32 = 0;
  let ready: u32 = 0;
  for (let s: u32 = 0; s < active; s++) {
    if (s === ready) {
      ready = min(s + aheadRows, active);
      touched += fetchAhead(order, s, ready, active, random, headers, alphas);
      random = draw(random);
    }
    const here = order + (s << 2);
    const i = load<u32>(here);
    const header = headers + (i << 4);
    const start: usize = load<u32>(header);
    const end: usize = load<u32>(header, 4);
    let margin0 = f32x4.mul(bias0, biases);
    let margin1 = f32x4.mul(bias1, biases);
    let other0 = zero;
    let other1 = zero;
    let p = start;
    if ((end - start) & 8) {
      const x = v128.load32_splat(p, 4);
      const w = weights + load<u32>(p);
      other0 = f32x4.mul(x, v128.load(w));
      other1 = f32x4.mul(x, v128.load(w, 16));
      p += 8;
    }
    while (p < end) {
      const x = v128.load32_splat(p, 4);
      const w = weights + load<u32>(p);
      margin0 = f32x4.add(margin0, f32x4.mul(x, v128.load(w)));
      margin1 = f32x4.add(margin1, f32x4.mul(x, v128.load(w, 16)));
      const y = v128.load32_splat(p, 12);
      const v = weights + load<u32>(p, 8);
      other0 = f32x4.add(other0, f32x4.mul(y, v128.load(v)));
      other1 = f32x4.add(other1, f32x4.mul(y, v128.load(v, 16)));
      p += 16;
    }
    margin0 = f32x4.add(margin0, other0);
    margin1 = f32x4.add(margin1, other1);

    const sign: u32 = load<u8>(signs + i);
    const is0 = laneMask(sign);
    const is1 = laneMask(sign >> 4);
    const sign0 = v128.bitselect(one, minusOne, is0);
    const sign1 = v128.bitselect(one, minusOne, is1);
    const alpha = alphas + (i << 5);
    const alpha0 = v128.load(alpha);
    const alpha1 = v128.load(alpha, 16);
    const gradient0 = f32x4.add(
      f32x4.sub(f32x4.mul(sign0, margin0), one),
      f32x4.mul(alpha0, v128.bitselect(positives, negatives, is0)),
    );
    const gradient1 = f32x4.add(
      f32x4.sub(f32x4.mul(sign1, margin1), one),
      f32x4.mul(alpha1, v128.bitselect(positives, negatives, is1)),
    );
    const bound0 = f32x4.eq(alpha0, zero);
    const bound1 = f32x4.eq(alpha1, zero);
    const shrunk0 = v128.or(v128.and(bound0, f32x4.gt(gradient0, limit0)), still0);
    const shrunk1 = v128.or(v128.and(bound1, f32x4.gt(gradient1, limit1)), still1);
    if (i32x4.all_true(v128.and(shrunk0, shrunk1))) {
      store<u32>(here, i | leaving);
      continue;
    }
    // At the bound only a negative gradient may move the variable; resting lanes do not move.
    const projected0 = v128.andnot(
      v128.andnot(gradient0, v128.and(bound0, f32x4.ge(gradient0, zero))),
      still0,
    );
    const projected1 = v128.andnot(
      v128.andnot(gradient1, v128.and(bound1, f32x4.ge(gradient1, zero))),
      still1,
    );
    max0 = f32x4.pmax(max0, projected0);
    max1 = f32x4.pmax(max1, projected1);
    min0 = f32x4.pmin(min0, projected0);
    min1 = f32x4.pmin(min1, projected1);
    const uneven0 = f32x4.gt(f32x4.abs(projected0), settled);
    const uneven1 = f32x4.gt(f32x4.abs(projected1), settled);
    if (!v128.any_true(v128.or(uneven0, uneven1))) continue;
    const stepPositive = v128.load32_splat(header, 8);
    const stepNegative = v128.load32_splat(header, 12);
    const step0 = v128.bitselect(stepPositive, stepNegative, is0);
    const step1 = v128.bitselect(stepPositive, stepNegative, is1);
    const next0 = f32x4.pmax(zero, f32x4.sub(alpha0, f32x4.mul(projected0, step0)));
    const next1 = f32x4.pmax(zero, f32x4.sub(alpha1, f32x4.mul(projected1, step1)));
    v128.store(alpha, next0);
    v128.store(alpha, next1, 16);
    const change0 = f32x4.mul(f32x4.sub(next0, alpha0), sign0);
    const change1 = f32x4.mul(f32x4.sub(next1, alpha1), sign1);
    bias0 = f32x4.add(bias0, f32x4.mul(change0, biases));
    bias1 = f32x4.add(bias1, f32x4.mul(change1, biases));
    for (p = start; p < end; p += 8) {
      const x = v128.load32_splat(p, 4);
      const w = weights + load<u32>(p);
      v128.store(w, f32x4.add(v128.load(w), f32x4.mul(x, change0)));
      v128.store(w, f32x4.add(v128.load(w, 16), f32x4.mul(x, change1)), 16);
    }
  }
  active = removeLeaving(order, active);
  resting |= i32x4.bitmask(f32x4.le(f32x4.sub(max0, min0), tolerance));
  resting |= i32x4.bitmask(f32x4.le(f32x4.sub(max1, min1), tolerance)) << 4;
  if (active === count) finished = resting;
  const recheck = resting === everyLane;
  if (recheck) {
    resting = finished;
    active = count;
    everyRow(order, count);
  }
  const all = i32x4.splat(recheck || !shrink ? -1 : 0);
  const open0 = v128.or(all, f32x4.le(max0, zero));
  const open1 = v128.or(all, f32x4.le(max1, zero));
  v128.store(state, v128.bitselect(infinity, max0, open0), limitsAt);
  v128.store(state, v128.bitselect(infinity, max1, open1), limitsAt + 16);
  v128.store(last, bias0);
  v128.store(last, bias1, 16);
  store<u32>(state, active, activeAt);
  store<u32>(state, resting, restingAt);
  store<u32>(state, finished, finishedAt);
  store<u32>(state, random, randomAt);
  store<u32>(state, touched, touchedAt);
  return finished === everyLane;
}

/**
 * Weights of features `from` to `to` that are not below the threshold, taken through `locals`, so in any order: the
 * features that keep any, how many each keeps, and for each weight the child within the cluster and the value. Returns
 * how many features there are.
 */
export function keepWeights(
  ids: usize,
  locals: usize,
  from: u32,
  to: u32,
  weights: usize,
  groups: u32,
  groupBytes: u32,
  firstChild: u32,
  threshold: f32,
  features: usize,
  counts: usize,
  children: usize,
  values: usize,
): u32 {
  const thresholds = f32x4.splat(threshold);
  const zero = f32x4.splat(0);
  let kept: u32 = 0;
  let rows: u32 = 0;
  for (let i = from; i < to; i++) {
    const before = kept;
    let w = weights + load<u32>(locals + (i << 2)) * stride;
    for (let group: u32 = 0; group < groups; group++) {
      for (let half: u32 = 0; half < 2; half++) {
        const four = v128.load(w + (half << 4));
        const wanted = v128.and(f32x4.ge(f32x4.abs(four), thresholds), f32x4.ne(four, zero));
        for (let bits = <u32>i32x4.bitmask(wanted); bits !== 0; bits &= bits - 1) {
          const lane = (half << 2) + ctz(bits);
          store<u16>(children + (kept << 1), <u16>(firstChild + (group << 3) + lane));
          store<f32>(values + (kept << 2), load<f32>(w + (lane << 2)));
          kept++;
        }
      }
      w += groupBytes;
    }
    if (kept === before) continue;
    store<u32>(features + (rows << 2), load<u32>(ids + (i << 2)));
    store<u32>(counts + (rows << 2), kept - before);
    rows++;
  }
  return rows;
}
