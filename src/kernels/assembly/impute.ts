// Which members of its groups a label belongs to (GRLR). A label's direction is a combination of rows, so it is never
// written down: its dot products with the members follow from those of the sums. The plain reference is
// learn/impute/reference.ts. A place is one member of one group of the label.

/** Gains below this, relative to the best, are rounding: the members are tied. */
const tie: f64 = 1e-9;
/** A sum this much shorter than its terms together is what rounding leaves of rows that cancel out. */
const cancelled: f64 = 1e-7;

/** Rows of all places, group after group; `bounds` gets where each group starts and ends. Returns the places. */
export function layPlaces(
  groups: usize,
  count: u32,
  memberStarts: usize,
  members: usize,
  rows: usize,
  bounds: usize,
): u32 {
  let places: u32 = 0;
  store<u32>(bounds, 0);
  for (let j: u32 = 0; j < count; j++) {
    const group = load<u32>(groups + (j << 2)) << 2;
    const start = load<u32>(memberStarts + group);
    const size = load<u32>(memberStarts + group, 4) - start;
    memory.copy(rows + (places << 2), members + (start << 2), size << 2);
    places += size;
    store<u32>(bounds + (j << 2), places, 4);
  }
  return places;
}

/**
 * The direction is the sum of the rows times `shares` (one per place): writes its dot products with the centred rows,
 * and returns its length, 0 where the rows cancel out. `meanDots` holds each row's dot product with the mean that is
 * subtracted, `meanSquare` that of the mean with itself. `sums` is zero on entry and on return.
 */
export function startDirection(
  rows: usize,
  places: u32,
  shares: usize,
  indptr: usize,
  indices: usize,
  values: usize,
  meanDots: usize,
  meanSquare: f64,
  sums: usize,
  dots: usize,
): f64 {
  let size: f64 = 0;
  for (let i: u32 = 0; i < places; i++) {
    const share = load<f64>(shares + (i << 3));
    size += Math.abs(share);
    if (share !== 0) addTo(sums, load<u32>(rows + (i << 2)), share, indptr, indices, values);
  }
  multiplySums(rows, places, shares, indptr, indices, values, meanDots, meanSquare, sums, dots);
  clear(sums, rows, places, indptr, indices);
  let square: f64 = 0;
  for (let i: u32 = 0; i < places; i++) {
    square += load<f64>(shares + (i << 3)) * load<f64>(dots + (i << 3));
  }
  const length = square > 0 ? Math.sqrt(square) : 0;
  if (length <= cancelled * size) return 0;
  for (let i: u32 = 0; i < places; i++) store<f64>(dots + (i << 3), load<f64>(dots + (i << 3)) / length);
  return length;
}

/**
 * `iterations` steps of the direction towards the sum of the groups' nearest members, each group times its weight.
 * `shares` becomes the weights of the nearest; `pulls` has 8 bytes per place. `sums` is zero on entry and on return.
 */
export function turnDirection(
  rows: usize,
  places: u32,
  bounds: usize,
  weights: usize,
  groups: u32,
  indptr: usize,
  indices: usize,
  values: usize,
  meanDots: usize,
  meanSquare: f64,
  iterations: u32,
  step: f64,
  sums: usize,
  dots: usize,
  shares: usize,
  pulls: usize,
): void {
  memory.fill(shares, 0, places << 3);
  for (let t: u32 = 0; t < iterations; t++) {
    const moved = nearest(rows, bounds, weights, groups, indptr, indices, values, sums, dots, shares);
    // The sum's dot products only change when another member has become the nearest.
    if (moved) multiplySums(rows, places, shares, indptr, indices, values, meanDots, meanSquare, sums, pulls);
    let square: f64 = 0;
    let agreement: f64 = 0;
    let size: f64 = 0;
    for (let i: u32 = 0; i < places; i++) {
      const share = load<f64>(shares + (i << 3));
      size += share;
      square += share * load<f64>(pulls + (i << 3));
      agreement += share * load<f64>(dots + (i << 3));
    }
    const length = square > 0 ? Math.sqrt(square) : 0;
    if (length <= cancelled * size) break;
    const pull = step / length;
    const scale = 1 / Math.sqrt(1 + 2 * pull * agreement + step * step);
    for (let i: u32 = 0; i < places; i++) {
      const dot = dots + (i << 3);
      store<f64>(dot, (load<f64>(dot) + pull * load<f64>(pulls + (i << 3))) * scale);
    }
  }
  clear(sums, rows, places, indptr, indices);
}

/** Gives every nearest member its group's weight in `shares` and moves it into `sums`; says whether any changed. */
function nearest(
  rows: usize,
  bounds: usize,
  weights: usize,
  groups: u32,
  indptr: usize,
  indices: usize,
  values: usize,
  sums: usize,
  dots: usize,
  shares: usize,
): bool {
  let moved = false;
  for (let j: u32 = 0; j < groups; j++) {
    const start = load<u32>(bounds + (j << 2));
    const end = load<u32>(bounds + (j << 2), 4);
    const weight: f64 = load<f32>(weights + (j << 2));
    let best = -Infinity;
    for (let i = start; i < end; i++) best = Math.max(best, load<f64>(dots + (i << 3)));
    const least = best - tie * Math.abs(best);
    for (let i = start; i < end; i++) {
      const share = load<f64>(dots + (i << 3)) >= least ? weight : 0;
      const change = share - load<f64>(shares + (i << 3));
      if (change === 0) continue;
      moved = true;
      store<f64>(shares + (i << 3), share);
      addTo(sums, load<u32>(rows + (i << 2)), change, indptr, indices, values);
    }
  }
  return moved;
}

/** The dot products of the centred sum with the centred rows. */
function multiplySums(
  rows: usize,
  places: u32,
  shares: usize,
  indptr: usize,
  indices: usize,
  values: usize,
  meanDots: usize,
  meanSquare: f64,
  sums: usize,
  dots: usize,
): void {
  let size: f64 = 0;
  let onMean: f64 = 0;
  for (let i: u32 = 0; i < places; i++) {
    const share = load<f64>(shares + (i << 3));
    size += share;
    onMean += share * load<f64>(meanDots + (load<u32>(rows + (i << 2)) << 3));
  }
  const constant = size * meanSquare - onMean;
  for (let i: u32 = 0; i < places; i++) {
    const row = load<u32>(rows + (i << 2));
    const end = load<u32>(indptr + (row << 2), 4) << 2;
    let dot: f64 = 0;
    for (let p = load<u32>(indptr + (row << 2)) << 2; p < end; p += 4) {
      dot += <f64>load<f32>(values + p) * load<f64>(sums + (load<u32>(indices + p) << 3));
    }
    store<f64>(dots + (i << 3), dot - size * load<f64>(meanDots + (row << 3)) + constant);
  }
}

/**
 * The best members of each group, as many as `counts` says: their rows, dot products, and how far the last of them is
 * ahead of the best that was left out (not a number where none was). Chosen ones lie at `starts`, by group's number.
 */
export function chooseMembers(
  rows: usize,
  bounds: usize,
  groups: u32,
  counts: usize,
  pairs: usize,
  starts: usize,
  dots: usize,
  chosen: usize,
  similarities: usize,
  margins: usize,
): void {
  for (let j: u32 = 0; j < groups; j++) {
    const start = load<u32>(bounds + (j << 2));
    const end = load<u32>(bounds + (j << 2), 4);
    const count = load<u32>(counts + (j << 2));
    const pair = load<u32>(pairs + (j << 2));
    const out = load<u32>(starts + (pair << 2)) << 2;
    let last: f64 = NaN;
    for (let rank: u32 = 0; rank < count; rank++) {
      const best = bestOf(dots, start, end);
      last = load<f64>(dots + (best << 3));
      store<u32>(chosen + out + (rank << 2), load<u32>(rows + (best << 2)));
      store<f32>(similarities + out + (rank << 2), <f32>last);
      store<f64>(dots + (best << 3), NaN);
    }
    const next = bestOf(dots, start, end);
    store<f32>(margins + (pair << 2), <f32>(next === end ? NaN : last - load<f64>(dots + (next << 3))));
  }
}

/** The first place of the largest dot product, `end` where all are taken (not a number). */
function bestOf(dots: usize, start: u32, end: u32): u32 {
  let best = end;
  let least = -Infinity;
  for (let i = start; i < end; i++) {
    const dot = load<f64>(dots + (i << 3));
    if (!(dot > least)) continue;
    best = i;
    least = dot + tie * Math.abs(dot);
  }
  return best;
}

function addTo(sums: usize, row: u32, share: f64, indptr: usize, indices: usize, values: usize): void {
  const end = load<u32>(indptr + (row << 2), 4) << 2;
  for (let p = load<u32>(indptr + (row << 2)) << 2; p < end; p += 4) {
    const sum = sums + (load<u32>(indices + p) << 3);
    store<f64>(sum, load<f64>(sum) + share * <f64>load<f32>(values + p));
  }
}

function clear(sums: usize, rows: usize, places: u32, indptr: usize, indices: usize): void {
  for (let i: u32 = 0; i < places; i++) {
    const row = load<u32>(rows + (i << 2)) << 2;
    const end = load<u32>(indptr + row, 4) << 2;
    for (let p = load<u32>(indptr + row) << 2; p < end; p += 4) {
      store<f64>(sums + (load<u32>(indices + p) << 3), 0);
    }
  }
}
