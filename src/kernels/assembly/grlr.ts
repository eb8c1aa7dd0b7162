// Which members of its groups a label belongs to (GRLR). A label's direction is a combination of rows, so it is never
// written down: its dot products with the members follow from those of the sums. The plain reference is
// learn/impute/reference.ts; places are listed by places.ts.

/** Gains below this, relative to the best, are rounding: the members are tied. */
const tie: f64 = 1e-9;
/** A sum this much shorter than its terms together is what rounding leaves of rows that cancel out. */
const cancelled: f64 = 1e-7;

/** Every place gets its group's weight. */
export function shareWeights(count: u32, firsts: usize, weights: usize, shares: usize): void {
  for (let j: u32 = 0; j < count; j++) {
    const weight: f64 = load<f32>(weights + (j << 2));
    const end = load<u32>(firsts + (j << 2), 4);
    for (let i = load<u32>(firsts + (j << 2)); i < end; i++) store<f64>(shares + (i << 3), weight);
  }
}

/**
 * The direction is the sum of the places' rows times their `shares`: writes its dot products with the centred rows, and
 * returns its length, 0 where the rows cancel out. `meanSquare` is the mean's dot product with itself. `sums` are zero on
 * entry; what is left in them is the caller's to clear.
 */
export function startDirection(
  places: u32,
  spans: usize,
  means: usize,
  meanSquare: f64,
  sums: usize,
  shares: usize,
  dots: usize,
): f64 {
  for (let i: u32 = 0; i < places; ) {
    const share = load<f64>(shares + (i << 3));
    const begin = load<u32>(spans + (i << 3));
    let end: u32;
    do end = load<u32>(spans + (i++ << 3), 4);
    while (i < places && load<u32>(spans + (i << 3)) === end && load<f64>(shares + (i << 3)) === share);
    if (share !== 0) addCells(begin, end, share, sums);
  }
  multiplySums(places, spans, means, meanSquare, sums, shares, dots);
  const length = lengthOfSum(places, shares, dots);
  if (length === 0) return 0;
  for (let i: u32 = 0; i < places; i++) store<f64>(dots + (i << 3), load<f64>(dots + (i << 3)) / length);
  return length;
}

/**
 * `iterations` steps of the direction towards the sum of the groups' nearest members, each group times its weight.
 * `shares` becomes the weights of the nearest; `pulls` has 8 bytes per place, `nearest` 4 per group. `sums` are zero on
 * entry; what is left in them is the caller's to clear.
 */
export function turnDirection(
  places: u32,
  spans: usize,
  means: usize,
  meanSquare: f64,
  sums: usize,
  shares: usize,
  dots: usize,
  pulls: usize,
  count: u32,
  firsts: usize,
  weights: usize,
  nearest: usize,
  iterations: u32,
  step: f64,
): void {
  memory.fill(shares, 0, places << 3);
  memory.fill(pulls, 0, places << 3);
  memory.fill(nearest, 0xff, count << 2);
  let pull: f64 = 0;
  let scale: f64 = 1;
  let length: f64 = 0;
  let left = iterations;
  for (;;) {
    agreement = 0;
    const moved = turn(count, firsts, weights, nearest, spans, sums, shares, dots, pulls, pull, scale);
    if (left === 0) break;
    // The sum's dot products only change when another member has become the nearest.
    if (moved) {
      multiplySums(places, spans, means, meanSquare, sums, shares, pulls);
      length = lengthOfSum(places, shares, pulls);
      if (length === 0) break;
    }
    const part = step / length;
    const bound = overtaken(count, firsts, nearest, dots, pulls, part);
    // Steps towards the same sum are one: the direction becomes `scale` times itself plus `pull` times the sum.
    pull = 0;
    scale = 1;
    let along = agreement;
    do {
      const shrink = 1 / Math.sqrt(1 + 2 * part * along + step * step);
      along = (along + part * length * length) * shrink;
      pull += part / scale;
      scale *= shrink;
    } while (--left > 0 && pull <= bound);
  }
}

/**
 * How much of the sum can be added to the direction before another member becomes the nearest of its group; where that
 * is less than `enough`, how much less does not matter.
 */
function overtaken(count: u32, firsts: usize, nearest: usize, dots: usize, pulls: usize, enough: f64): f64 {
  let bound = Infinity;
  for (let j: u32 = 0; j < count; j++) {
    const first = load<u32>(firsts + (j << 2));
    const last = load<u32>(firsts + (j << 2), 4);
    if (first === last) continue;
    const winner = load<u32>(nearest + (j << 2));
    // Members that are tied may part at the next step.
    if (winner === several) return 0;
    const dot = load<f64>(dots + (winner << 3));
    const pull = load<f64>(pulls + (winner << 3));
    // What is nearly level is tied.
    const ahead = dot - tie * Math.abs(dot);
    const pulled = pull - tie * Math.abs(pull);
    bound = passing(first, winner, ahead, pulled, dots, pulls, bound);
    bound = passing(winner + 1, last, ahead, pulled, dots, pulls, bound);
    if (bound < enough) break;
  }
  return bound;
}

/** The least pull, `bound` at most, that brings one of the places level with who is `ahead` and `pulled` itself. */
function passing(first: u32, last: u32, ahead: f64, pulled: f64, dots: usize, pulls: usize, bound: f64): f64 {
  for (let i = first; i < last; i++) {
    const gain = load<f64>(pulls + (i << 3)) - pulled;
    const lead = ahead - load<f64>(dots + (i << 3));
    if (lead < bound * gain) bound = lead / gain;
  }
  return bound;
}

/** The dot product of the direction with the sum of its nearest members, as `turn` found it. */
let agreement: f64 = 0;
const several: u32 = 0xffffffff;

/**
 * One step: adds `pull` times the pulls to the dot products, times `scale`. Then every nearest member gets its group's
 * weight in `shares` and is moved into `sums`; says whether any changed.
 */
function turn(
  count: u32,
  firsts: usize,
  weights: usize,
  nearest: usize,
  spans: usize,
  sums: usize,
  shares: usize,
  dots: usize,
  pulls: usize,
  pull: f64,
  scale: f64,
): bool {
  let moved = false;
  for (let j: u32 = 0; j < count; j++) {
    const first = load<u32>(firsts + (j << 2));
    const last = load<u32>(firsts + (j << 2), 4);
    const weight: f64 = load<f32>(weights + (j << 2));
    const least = nearlyBest(moveDots(first, last, dots, pulls, pull, scale));
    // Without branches: which members are the best cannot be foreseen.
    let hits: u32 = 0;
    let winner: u32 = 0;
    for (let i = first; i < last; i++) {
      const hit = u32(load<f64>(dots + (i << 3)) >= least);
      hits += hit;
      winner += hit * i;
    }
    if (hits !== 1) winner = several;
    if (winner !== several && winner === load<u32>(nearest + (j << 2))) {
      agreement += weight * load<f64>(dots + (winner << 3));
      continue;
    }
    store<u32>(nearest + (j << 2), winner);
    for (let i = first; i < last; i++) {
      const dot = load<f64>(dots + (i << 3));
      const share = dot >= least ? weight : 0;
      agreement += share * dot;
      const change = share - load<f64>(shares + (i << 3));
      if (change === 0) continue;
      moved = true;
      store<f64>(shares + (i << 3), share);
      addCells(load<u32>(spans + (i << 3)), load<u32>(spans + (i << 3), 4), change, sums);
    }
  }
  return moved;
}

/** Of dot products from this one on, all are tied with the best. */
function nearlyBest(best: f64): f64 {
  return best - tie * Math.abs(best);
}

/** Adds `pull` times the pulls to the dot products, times `scale`; returns the largest. */
function moveDots(first: u32, last: u32, dots: usize, pulls: usize, pull: f64, scale: f64): f64 {
  let at = dots + (first << 3);
  let from = pulls + (first << 3);
  const end = dots + (last << 3);
  const pullTwice = f64x2.splat(pull);
  const scaleTwice = f64x2.splat(scale);
  let best = f64x2.splat(-Infinity);
  for (; at + 8 < end; at += 16, from += 16) {
    const sum = f64x2.add(v128.load(at), f64x2.mul(pullTwice, v128.load(from)));
    const dot = f64x2.mul(sum, scaleTwice);
    v128.store(at, dot);
    best = f64x2.pmax(best, dot);
  }
  const most = f64x2.pmax(best, v128.shuffle<f64>(best, best, 1, 0));
  let largest = f64x2.extract_lane(most, 0);
  if (at < end) {
    const dot = (load<f64>(at) + pull * load<f64>(from)) * scale;
    store<f64>(at, dot);
    if (dot > largest) largest = dot;
  }
  return largest;
}

/** Adds cells that lie side by side, of one row or of several, `times` their values. */
function addCells(cell: usize, end: usize, times: f64, sums: usize): void {
  for (; cell < end; cell += 8) {
    const sum = sums + load<u32>(cell);
    store<f64>(sum, load<f64>(sum) + times * <f64>load<f32>(cell, 4));
  }
}

/** Sets both sums, of `width` features each, to zero again. */
export function clearSums(places: u32, spans: usize, width: u32, sums: usize, others: usize): void {
  // One sweep over everything is quicker than finding so many places.
  if (places > width >> 5) {
    memory.fill(sums, 0, width << 3);
    memory.fill(others, 0, width << 3);
    return;
  }
  for (let i: u32 = 0; i < places; ) {
    let cell: usize = load<u32>(spans + (i << 3));
    let end: u32;
    do end = load<u32>(spans + (i++ << 3), 4);
    while (i < places && load<u32>(spans + (i << 3)) === end);
    for (; cell < end; cell += 8) {
      const offset = load<u32>(cell);
      store<f64>(sums + offset, 0);
      store<f64>(others + offset, 0);
    }
  }
}

/** 0 where the rows of the sum cancel out. */
function lengthOfSum(places: u32, shares: usize, dots: usize): f64 {
  let square: f64 = 0;
  let size: f64 = 0;
  for (let i: u32 = 0; i < places; i++) {
    const share = load<f64>(shares + (i << 3));
    size += Math.abs(share);
    square += share * load<f64>(dots + (i << 3));
  }
  const length = square > 0 ? Math.sqrt(square) : 0;
  return length <= cancelled * size ? 0 : length;
}

/** The dot products of the sum with the rows, both centred where there are `means`. */
function multiplySums(
  places: u32,
  spans: usize,
  means: usize,
  meanSquare: f64,
  sums: usize,
  shares: usize,
  dots: usize,
): void {
  for (let i: u32 = 0; i < places; i++) {
    let cell: usize = load<u32>(spans + (i << 3));
    const end: usize = load<u32>(spans + (i << 3), 4);
    let dot: f64 = 0;
    // Two sums that do not wait for each other.
    let other: f64 = 0;
    for (; cell + 8 < end; cell += 16) {
      dot += <f64>load<f32>(cell, 4) * load<f64>(sums + load<u32>(cell));
      other += <f64>load<f32>(cell, 12) * load<f64>(sums + load<u32>(cell, 8));
    }
    if (cell < end) dot += <f64>load<f32>(cell, 4) * load<f64>(sums + load<u32>(cell));
    store<f64>(dots + (i << 3), dot + other);
  }
  if (means !== 0) centreProducts(places, means, meanSquare, shares, dots);
}

function centreProducts(places: u32, means: usize, meanSquare: f64, shares: usize, dots: usize): void {
  let size: f64 = 0;
  let onMean: f64 = 0;
  for (let i: u32 = 0; i < places; i++) {
    const share = load<f64>(shares + (i << 3));
    size += share;
    onMean += share * load<f64>(means + (i << 3));
  }
  const constant = size * meanSquare - onMean;
  for (let i: u32 = 0; i < places; i++) {
    const at = dots + (i << 3);
    store<f64>(at, load<f64>(at) - size * load<f64>(means + (i << 3)) + constant);
  }
}
