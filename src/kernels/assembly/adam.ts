// What a training step does outside the runtime: Adam over parameters in place, rows of embedding tables, dropout
// masks. Addresses and numbers only; the plain reference is in nn/adam.test.ts.

/** The sum of squares, in double precision. */
export function sumOfSquares(numbers: usize, count: u32): f64 {
  let sums = f64x2.splat(0);
  const end = numbers + (count << 2);
  const whole = numbers + ((count & ~3) << 2);
  for (let p = numbers; p < whole; p += 16) {
    const four = v128.load(p);
    const low = f64x2.promote_low_f32x4(four);
    const high = f64x2.promote_low_f32x4(v128.shuffle<u64>(four, four, 1, 1));
    sums = f64x2.add(sums, f64x2.add(f64x2.mul(low, low), f64x2.mul(high, high)));
  }
  let sum = f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1);
  for (let p = whole; p < end; p += 4) {
    const x = <f64>load<f32>(p);
    sum += x * x;
  }
  return sum;
}

/**
 * One step of Adam. Gradients are scaled and get `l2` times the parameter added; parameters shrink by `keep` first
 * (decoupled decay). `rate` and `spread` hold the corrections for the moments' start at zero.
 */
export function stepAdam(
  parameters: usize,
  gradients: usize,
  first: usize,
  second: usize,
  count: u32,
  scale: f32,
  l2: f32,
  keep: f32,
  beta1: f32,
  beta2: f32,
  rate: f32,
  spread: f32,
  epsilon: f32,
): void {
  const scales = f32x4.splat(scale);
  const l2s = f32x4.splat(l2);
  const keeps = f32x4.splat(keep);
  const beta1s = f32x4.splat(beta1);
  const beta2s = f32x4.splat(beta2);
  const other1s = f32x4.splat(1 - beta1);
  const other2s = f32x4.splat(1 - beta2);
  const rates = f32x4.splat(rate);
  const spreads = f32x4.splat(spread);
  const epsilons = f32x4.splat(epsilon);
  const bytes = count << 2;
  const whole = (count & ~3) << 2;
  for (let i: usize = 0; i < whole; i += 16) {
    const parameter = v128.load(parameters + i);
    const gradient = f32x4.add(f32x4.mul(v128.load(gradients + i), scales), f32x4.mul(parameter, l2s));
    const m = f32x4.add(f32x4.mul(v128.load(first + i), beta1s), f32x4.mul(gradient, other1s));
    const squares = f32x4.mul(f32x4.mul(gradient, gradient), other2s);
    const v = f32x4.add(f32x4.mul(v128.load(second + i), beta2s), squares);
    const size = f32x4.add(f32x4.mul(f32x4.sqrt(v), spreads), epsilons);
    v128.store(first + i, m);
    v128.store(second + i, v);
    const change = f32x4.div(f32x4.mul(m, rates), size);
    v128.store(parameters + i, f32x4.sub(f32x4.mul(parameter, keeps), change));
  }
  for (let i: usize = whole; i < bytes; i += 4) {
    const parameter = load<f32>(parameters + i);
    const gradient = load<f32>(gradients + i) * scale + parameter * l2;
    const m = load<f32>(first + i) * beta1 + gradient * (1 - beta1);
    const v = load<f32>(second + i) * beta2 + gradient * gradient * (1 - beta2);
    store<f32>(first + i, m);
    store<f32>(second + i, v);
    store<f32>(parameters + i, parameter * keep - (m * rate) / (sqrt<f32>(v) * spread + epsilon));
  }
}

/** One step of Adam over some rows of a table; their gradients lie one after the other. */
export function stepAdamRows(
  table: usize,
  gradients: usize,
  first: usize,
  second: usize,
  rows: usize,
  count: u32,
  width: u32,
  scale: f32,
  l2: f32,
  keep: f32,
  beta1: f32,
  beta2: f32,
  rate: f32,
  spread: f32,
  epsilon: f32,
): void {
  for (let i: u32 = 0; i < count; i++) {
    const row = (load<u32>(rows + (i << 2)) * width) << 2;
    const gradient = gradients + ((i * width) << 2);
    stepAdam(
      table + row,
      gradient,
      first + row,
      second + row,
      width,
      scale,
      l2,
      keep,
      beta1,
      beta2,
      rate,
      spread,
      epsilon,
    );
  }
}

/** Copies some rows of a table, one after the other. */
export function gatherRows(table: usize, rows: usize, count: u32, width: u32, out: usize): void {
  const bytes = width << 2;
  for (let i: u32 = 0; i < count; i++)
    memory.copy(out + i * bytes, table + load<u32>(rows + (i << 2)) * bytes, bytes);
}

/** Zeros with a chance of threshold in 2^32, else `kept`: four streams of math/random.ts's generator side by side. */
export function drawMask(mask: usize, count: u32, threshold: u32, kept: f32, a: u32, b: u32, c: u32): void {
  const thresholds = i32x4.splat(threshold);
  const kepts = f32x4.splat(kept);
  let as = i32x4(a, a ^ 0x9e3779b9, a ^ 0x7f4a7c15, a ^ 0x85ebca6b);
  let bs = i32x4(b, b ^ 0xc2b2ae35, b ^ 0x27d4eb2f, b ^ 0x165667b1);
  let cs = i32x4(c, c ^ 0xd3a2646c, c ^ 0xfd7046c5, c ^ 0xb55a4f09);
  let counter = i32x4.splat(1);
  const end = mask + (count << 2);
  // The first rounds only mix the seeds.
  for (let p = mask - 16 * 16; p < end; p += 16) {
    const drawn = i32x4.add(i32x4.add(as, bs), counter);
    counter = i32x4.add(counter, i32x4.splat(1));
    as = v128.xor(bs, i32x4.shr_u(bs, 9));
    bs = i32x4.add(cs, i32x4.shl(cs, 3));
    cs = i32x4.add(v128.or(i32x4.shl(cs, 21), i32x4.shr_u(cs, 11)), drawn);
    if (p < mask) continue;
    const four = v128.and(i32x4.ge_u(drawn, thresholds), kepts);
    if (p + 16 <= end) v128.store(p, four);
    else storePart(p, end, four);
  }
}

function storePart(from: usize, end: usize, four: v128): void {
  store<f32>(from, f32x4.extract_lane(four, 0));
  if (from + 4 < end) store<f32>(from, f32x4.extract_lane(four, 1), 4);
  if (from + 8 < end) store<f32>(from, f32x4.extract_lane(four, 2), 8);
}
