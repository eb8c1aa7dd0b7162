// The largest inner products of queries with many vectors, exactly. Whole numbers of 8 bits per vector give each product
// with a known error; only what could still be among the best is computed in full. The reference is search/reference.ts.
import { offer, sortBest } from './heap';

/** Of a vector: as whole numbers up to this. */
const vectorSteps: f32 = 127;
/** Of a query: finer, because one query meets many vectors. Products of up to 4,096 such numbers fit into 32 bits. */
const querySteps: f32 = 4095;
/** Bytes of what is known about four vectors: their scales, errors and lengths. */
const panelFacts: u32 = 48;

/**
 * Writes four vectors as a panel: eight numbers of the first, of the second, third and fourth, then the next eight. Of
 * each vector: what a whole number stands for, how far the whole numbers are from it, how long it is.
 */
export function encodeVectors(vectors: usize, count: u32, width: u32, codes: usize, facts: usize): void {
  for (let vector: u32 = 0; vector < count; vector++) {
    const from = vectors + ((vector * width) << 2);
    const panel = codes + (vector >> 2) * (width << 2) + ((vector & 3) << 3);
    const fact = facts + (vector >> 2) * panelFacts + ((vector & 3) << 2);
    const scale = largest(from, width) / vectorSteps;
    const steps: f32 = scale > 0 ? 1 / scale : 0;
    let missed: f64 = 0;
    let squares: f64 = 0;
    for (let i: u32 = 0; i < width; i++) {
      const x = load<f32>(from + (i << 2));
      const code = nearest<f32>(x * steps);
      store<i8>(panel + ((i >> 3) << 5) + (i & 7), <i8>code);
      missed += square(x - code * scale);
      squares += square(x);
    }
    const length = sqrt(squares);
    store<f32>(fact, scale);
    store<f32>(fact, <f32>(sqrt(missed) + length * rounding(width)), 16);
    store<f32>(fact, <f32>length, 32);
  }
}

/** Writes queries as panels of two; of each query its scale, its length and the error of its whole numbers. */
export function encodeQueries(queries: usize, count: u32, width: u32, codes: usize, facts: usize): void {
  for (let query: u32 = 0; query < count; query++) {
    const from = queries + ((query * width) << 2);
    const panel = codes + (query >> 1) * (width << 2) + ((query & 1) << 4);
    const scale = largest(from, width) / querySteps;
    const steps: f32 = scale > 0 ? 1 / scale : 0;
    let missed: f64 = 0;
    let squares: f64 = 0;
    for (let i: u32 = 0; i < width; i++) {
      const x = load<f32>(from + (i << 2));
      const code = nearest<f32>(x * steps);
      store<i16>(panel + ((i >> 3) << 5) + ((i & 7) << 1), <i16>code);
      missed += square(x - code * scale);
      squares += square(x);
    }
    const fact = facts + query * 12;
    store<f32>(fact, scale);
    store<f32>(fact, <f32>sqrt(squares), 4);
    store<f32>(fact, <f32>(sqrt(missed) * 1.01), 8);
  }
}

/** More than what rounding in 32 bits can do to a product of unit vectors, here and in `product`. */
function rounding(width: u32): f64 {
  return (<f64>width + 64) / 8388608;
}

function square(x: f32): f64 {
  return <f64>x * <f64>x;
}

function largest(from: usize, width: u32): f32 {
  let most: f32 = 0;
  for (let i: u32 = 0; i < width; i++) most = max<f32>(most, abs<f32>(load<f32>(from + (i << 2))));
  return most;
}

/**
 * For each query the `top` vectors with the largest products, best first, as (product, number) pairs of 8 bytes. `width`
 * is a multiple of 8; codes and facts are there for a multiple of four vectors and of two queries. `excluded`, unless 0,
 * has a byte per vector.
 */
export function findNearest(
  vectors: usize,
  codes: usize,
  facts: usize,
  count: u32,
  width: u32,
  excluded: usize,
  queries: usize,
  queryCodes: usize,
  queryFacts: usize,
  queryCount: u32,
  top: u32,
  heaps: usize,
  sizes: usize,
): void {
  memory.fill(sizes, 0, queryCount << 2);
  const panelBytes = width << 2;
  const heapBytes = top << 3;
  for (let first: u32 = 0; first < count; first += 4) {
    for (let query: u32 = 0; query < queryCount; query += 2) {
      let a = codes;
      let b = queryCodes + (query >> 1) * panelBytes;
      const end = a + panelBytes;
      let s0 = i32x4.splat(0);
      let s1 = i32x4.splat(0);
      let s2 = i32x4.splat(0);
      let s3 = i32x4.splat(0);
      let t0 = i32x4.splat(0);
      let t1 = i32x4.splat(0);
      let t2 = i32x4.splat(0);
      let t3 = i32x4.splat(0);
      for (; a < end; a += 32, b += 32) {
        const x = v128.load(b);
        const y = v128.load(b, 16);
        let four = v128.load8x8_s(a);
        s0 = i32x4.add(s0, i32x4.dot_i16x8_s(four, x));
        t0 = i32x4.add(t0, i32x4.dot_i16x8_s(four, y));
        four = v128.load8x8_s(a, 8);
        s1 = i32x4.add(s1, i32x4.dot_i16x8_s(four, x));
        t1 = i32x4.add(t1, i32x4.dot_i16x8_s(four, y));
        four = v128.load8x8_s(a, 16);
        s2 = i32x4.add(s2, i32x4.dot_i16x8_s(four, x));
        t2 = i32x4.add(t2, i32x4.dot_i16x8_s(four, y));
        four = v128.load8x8_s(a, 24);
        s3 = i32x4.add(s3, i32x4.dot_i16x8_s(four, x));
        t3 = i32x4.add(t3, i32x4.dot_i16x8_s(four, y));
      }
      const scales = v128.load(facts);
      const errors = v128.load(facts, 16);
      const lengths = v128.load(facts, 32);
      for (let other: u32 = 0; other < 2 && query + other < queryCount; other++) {
        const at = query + other;
        const sums = other === 0 ? totals(s0, s1, s2, s3) : totals(t0, t1, t2, t3);
        const fact = queryFacts + at * 12;
        const near = f32x4.mul(f32x4.convert_i32x4_s(sums), f32x4.mul(scales, v128.load_splat<f32>(fact)));
        const apart = f32x4.add(
          f32x4.mul(errors, v128.load_splat<f32>(fact, 4)),
          f32x4.mul(lengths, v128.load_splat<f32>(fact, 8)),
        );
        const heap = heaps + at * heapBytes;
        const size = load<u32>(sizes + (at << 2));
        const worst: f32 = size < top ? -Infinity : load<f32>(heap);
        const hopeful = i32x4.bitmask(f32x4.ge(f32x4.add(near, apart), f32x4.splat(worst)));
        if (hopeful === 0) continue;
        const grown = offerFour(
          hopeful,
          vectors,
          first,
          count,
          width,
          excluded,
          queries + ((at * width) << 2),
          heap,
          size,
          top,
        );
        store<u32>(sizes + (at << 2), grown);
      }
    }
    codes += panelBytes;
    facts += panelFacts;
  }
  for (let query: u32 = 0; query < queryCount; query++)
    sortBest(heaps + query * heapBytes, load<u32>(sizes + (query << 2)));
}

/** Computes the products of those of four vectors that could be among the best, and offers them to a query's heap. */
function offerFour(
  hopeful: i32,
  vectors: usize,
  first: u32,
  count: u32,
  width: u32,
  excluded: usize,
  query: usize,
  heap: usize,
  size: u32,
  top: u32,
): u32 {
  for (let i: u32 = 0; i < 4; i++) {
    const vector = first + i;
    if ((hopeful & (1 << i)) === 0 || vector >= count) continue;
    if (excluded !== 0 && load<u8>(excluded + vector) !== 0) continue;
    size = offer(heap, size, top, product(vectors + ((vector * width) << 2), query, width), vector);
  }
  return size;
}

/** The inner product, always summed in the same order. */
function product(a: usize, b: usize, width: u32): f32 {
  let even = f32x4.splat(0);
  let odd = f32x4.splat(0);
  const end = a + (width << 2);
  for (; a < end; a += 32, b += 32) {
    even = f32x4.add(even, f32x4.mul(v128.load(a), v128.load(b)));
    odd = f32x4.add(odd, f32x4.mul(v128.load(a, 16), v128.load(b, 16)));
  }
  const sum = f32x4.add(even, odd);
  return (
    f32x4.extract_lane(sum, 0) +
    f32x4.extract_lane(sum, 1) +
    (f32x4.extract_lane(sum, 2) + f32x4.extract_lane(sum, 3))
  );
}

/** Four vectors of four numbers become the vector of their sums. */
function totals(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return i32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}
