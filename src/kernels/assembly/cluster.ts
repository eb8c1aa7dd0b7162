// Label features and balanced spherical 2-means over them. The plain reference is math/balanced-two-means.ts.

/** How many different features the given rows hold together. `slots` is zero on entry and on return. */
export function countFeatures(
  rows: usize,
  count: u32,
  indptr: usize,
  indices: usize,
  slots: usize,
  touched: usize,
): u32 {
  let features: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(rows + (i << 2)) << 2;
    const end = indices + (load<u32>(indptr + row, 4) << 2);
    for (let p = indices + (load<u32>(indptr + row) << 2); p < end; p += 4) {
      const feature = load<u32>(p);
      if (load<u32>(slots + (feature << 2)) !== 0) continue;
      store<u32>(slots + (feature << 2), 1);
      store<u32>(touched + (features << 2), feature);
      features++;
    }
  }
  for (let i: u32 = 0; i < features; i++) store<u32>(slots + (load<u32>(touched + (i << 2)) << 2), 0);
  return features;
}

/** The sum of the given rows, each times its weight, scaled to length one. `slots` is zero on entry and on return. */
export function sumRows(
  rows: usize,
  count: u32,
  rowWeights: usize,
  indptr: usize,
  indices: usize,
  values: usize,
  slots: usize,
  outIndices: usize,
  outValues: usize,
): void {
  let features: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(rows + (i << 2)) << 2;
    const weight = load<f32>(rowWeights + row);
    const end = load<u32>(indptr + row, 4) << 2;
    for (let p = load<u32>(indptr + row) << 2; p < end; p += 4) {
      const feature = load<u32>(indices + p);
      const value = load<f32>(values + p) * weight;
      const slot = load<u32>(slots + (feature << 2));
      if (slot !== 0) {
        const sum = outValues + ((slot - 1) << 2);
        store<f32>(sum, load<f32>(sum) + value);
      } else {
        store<u32>(outIndices + (features << 2), feature);
        store<f32>(outValues + (features << 2), value);
        features++;
        store<u32>(slots + (feature << 2), features);
      }
    }
  }
  let square: f64 = 0;
  for (let i: u32 = 0; i < features; i++) {
    const value: f64 = load<f32>(outValues + (i << 2));
    square += value * value;
  }
  const scale = <f32>(square > 0 ? 1 / Math.sqrt(square) : 0);
  for (let i: u32 = 0; i < features; i++) {
    const value = outValues + (i << 2);
    store<f32>(value, load<f32>(value) * scale);
    store<u32>(slots + (load<u32>(outIndices + (i << 2)) << 2), 0);
  }
}

const maxIterations = 20;
const minImprovement: f64 = 1e-4;
/** A sum this short is a rounding error of rows that cancel out, not a direction. */
const minSquaredLength: f64 = 1e-12;
const neither: u32 = 2;

/**
 * Reorders `items` so that the floor(q / 2) nearer to the first centre come first, each half in its former order.
 * `sums` holds a pair of 8-byte sums per feature, zero on entry and on return; `work` has 32 bytes per item.
 */
export function splitInTwo(
  items: usize,
  q: u32,
  first: u32,
  second: u32,
  indptr: usize,
  indices: usize,
  values: usize,
  sums: usize,
  work: usize,
): void {
  const dots = work;
  const scores = dots + (q << 4);
  const ranked = scores + (q << 2);
  const spare = ranked + (q << 2);
  const halves = spare + (q << 2);
  memory.fill(halves, <u8>neither, q);
  store<u8>(halves + first, 0);
  store<u8>(halves + second, 1);
  addRow(load<u32>(items + (first << 2)), 0, 1, indptr, indices, values, sums);
  addRow(load<u32>(items + (second << 2)), 1, 1, indptr, indices, values, sums);
  let similarity = -Infinity;
  for (let iteration = 0; iteration < maxIterations; iteration++) {
    multiply(items, q, indptr, indices, values, sums, dots);
    const scale0 = inverseLength(q, 0, halves, dots);
    const scale1 = inverseLength(q, 1, halves, dots);
    const before = similarity;
    similarity = 0;
    for (let i: u32 = 0; i < q; i++) {
      const dot = dots + (i << 4);
      store<f32>(scores + (i << 2), <f32>(load<f64>(dot) * scale0 - load<f64>(dot, 8) * scale1));
      store<u32>(ranked + (i << 2), i);
    }
    selectBest(scores, ranked, q, q >> 1);
    let moved: u32 = 0;
    for (let rank: u32 = 0; rank < q; rank++) {
      const i = load<u32>(ranked + (rank << 2));
      const half: u32 = rank < q >> 1 ? 0 : 1;
      similarity += load<f64>(dots + (i << 4) + (half << 3)) * (half === 0 ? scale0 : scale1);
      const old: u32 = load<u8>(halves + i);
      if (old === half) continue;
      store<u8>(halves + i, <u8>half);
      // The dot products of this item are used up: remember where it came from until the sums are moved.
      store<u32>(spare + (moved << 2), i | (old << 30));
      moved++;
    }
    similarity /= q;
    if (moved === 0 || similarity - before < minImprovement) break;
    // Items that stay need not be added again: only the moved ones change the sums.
    for (let m: u32 = 0; m < moved; m++) {
      const packed = load<u32>(spare + (m << 2));
      const i = packed & 0x3fffffff;
      const item = load<u32>(items + (i << 2));
      const old = packed >> 30;
      if (old !== neither) addRow(item, old, -1, indptr, indices, values, sums);
      addRow(item, load<u8>(halves + i), 1, indptr, indices, values, sums);
    }
  }
  clearSums(items, q, indptr, indices, sums);
  separate(items, q, halves, spare);
}

function addRow(
  item: u32,
  half: u32,
  sign: f64,
  indptr: usize,
  indices: usize,
  values: usize,
  sums: usize,
): void {
  const end = load<u32>(indptr + (item << 2), 4) << 2;
  const side = sums + (half << 3);
  for (let p = load<u32>(indptr + (item << 2)) << 2; p < end; p += 4) {
    const sum = side + (load<u32>(indices + p) << 4);
    store<f64>(sum, load<f64>(sum) + sign * <f64>load<f32>(values + p));
  }
}

function multiply(
  items: usize,
  q: u32,
  indptr: usize,
  indices: usize,
  values: usize,
  sums: usize,
  dots: usize,
): void {
  for (let i: u32 = 0; i < q; i++) {
    const item = load<u32>(items + (i << 2)) << 2;
    const end = load<u32>(indptr + item, 4) << 2;
    let total = f64x2.splat(0);
    for (let p = load<u32>(indptr + item) << 2; p < end; p += 4) {
      const value = f64x2.splat(<f64>load<f32>(values + p));
      total = f64x2.add(total, f64x2.mul(value, v128.load(sums + (load<u32>(indices + p) << 4))));
    }
    v128.store(dots + (i << 4), total);
  }
}

/** Of one half's sum, whose squared length is the total of its own rows' dot products with it. */
function inverseLength(q: u32, half: u32, halves: usize, dots: usize): f64 {
  let square: f64 = 0;
  for (let i: u32 = 0; i < q; i++) {
    if (load<u8>(halves + i) === half) square += load<f64>(dots + (i << 4) + (half << 3));
  }
  return square > minSquaredLength ? 1 / Math.sqrt(square) : 0;
}

/** Higher scores first, ties by position. */
function better(scores: usize, a: u32, b: u32): bool {
  const x = load<f32>(scores + (a << 2));
  const y = load<f32>(scores + (b << 2));
  return x > y || (x === y && a < b);
}

/** Puts the `size` best positions in front, in any order. */
function selectBest(scores: usize, ranked: usize, q: u32, size: u32): void {
  let low: i32 = 0;
  let high: i32 = <i32>q - 1;
  while (low < high) {
    const pivot = load<u32>(ranked + ((low + ((high - low) >> 1)) << 2));
    let i = low;
    let j = high;
    while (i <= j) {
      while (better(scores, load<u32>(ranked + (i << 2)), pivot)) i++;
      while (better(scores, pivot, load<u32>(ranked + (j << 2)))) j--;
      if (i > j) break;
      const swapped = load<u32>(ranked + (i << 2));
      store<u32>(ranked + (i << 2), load<u32>(ranked + (j << 2)));
      store<u32>(ranked + (j << 2), swapped);
      i++;
      j--;
    }
    if (<i32>size <= j) high = j;
    else if (<i32>size >= i) low = i;
    else return;
  }
}

function clearSums(items: usize, q: u32, indptr: usize, indices: usize, sums: usize): void {
  for (let i: u32 = 0; i < q; i++) {
    const item = load<u32>(items + (i << 2)) << 2;
    const end = load<u32>(indptr + item, 4) << 2;
    for (let p = load<u32>(indptr + item) << 2; p < end; p += 4) {
      v128.store(sums + (load<u32>(indices + p) << 4), i32x4.splat(0));
    }
  }
}

function separate(items: usize, q: u32, halves: usize, spare: usize): void {
  let left: u32 = 0;
  let right: u32 = 0;
  for (let i: u32 = 0; i < q; i++) {
    const item = load<u32>(items + (i << 2));
    if (load<u8>(halves + i) === 0) store<u32>(items + (left++ << 2), item);
    else store<u32>(spare + (right++ << 2), item);
  }
  memory.copy(items + (left << 2), spare, right << 2);
}
