// A place is one member of one group of a label; groups follow each other. What is asked about places, and what is kept
// of the answers.

/** Bytes that memory brings at once. */
const line: usize = 64;
/** Of a cell: what is not the offset. */
const valueBits: u64 = 0xffffffff00000000;

/**
 * Lists the places of a label's groups. `cells` (8 bytes: the offset of the feature's sum, and its value) lie row after
 * row and group after group from `bounds` on. Per place: `spans`, where its cells begin and end (4 bytes each), and
 * `means`, its dot product with the mean that is subtracted, unless that is 0; `firsts` gets the groups' places.
 */
export function listPlaces(
  groups: usize,
  count: u32,
  bounds: usize,
  indptr: usize,
  cells: usize,
  meanDots: usize,
  firsts: usize,
  spans: usize,
  means: usize,
): void {
  let place: u32 = 0;
  store<u32>(firsts, 0);
  for (let j: u32 = 0; j < count; j++) {
    const group = load<u32>(groups + (j << 2)) << 2;
    const first = load<u32>(bounds + group);
    const rows = load<u32>(bounds + group, 4) - first;
    for (let i: u32 = 0; i < rows; i++) {
      const span = spans + ((place + i) << 3);
      const row = indptr + ((first + i) << 2);
      store<u32>(span, <u32>cells + (load<u32>(row) << 3));
      store<u32>(span, <u32>cells + (load<u32>(row, 4) << 3), 4);
    }
    if (means !== 0) memory.copy(means + (place << 3), meanDots + (first << 3), rows << 3);
    place += rows;
    store<u32>(firsts + (j << 2), place, 4);
  }
}

/**
 * Copies the rows side by side with features numbered as they come, so that their sums lie together: worth it for those
 * who come back often. Per place: `ends` of its `entries`. The feature `hidden` is left out. Returns the number of
 * features. `slots` is zero on entry and on return.
 */
export function gatherPlaces(
  groups: usize,
  count: u32,
  bounds: usize,
  indptr: usize,
  cells: usize,
  hidden: u32,
  slots: usize,
  ids: usize,
  firsts: usize,
  ends: usize,
  entries: usize,
): u32 {
  let features: u32 = 0;
  let entry = entries;
  let place: u32 = 0;
  store<u32>(firsts, 0);
  for (let j: u32 = 0; j < count; j++) {
    const group = load<u32>(groups + (j << 2)) << 2;
    let row = load<u32>(bounds + group);
    const last = load<u32>(bounds + group, 4);
    let cell = cells + (load<u32>(indptr + (row << 2)) << 3);
    // Asked for all at once, the lines of a group arrive together.
    let asked: u32 = 0;
    const groupEnd = cells + (load<u32>(indptr + (last << 2)) << 3);
    for (let p = cell; p < groupEnd; p += line) asked |= load<u32>(p);
    store<u32>(entry, asked);
    for (; row < last; row++, place++) {
      const end = cells + (load<u32>(indptr + (row << 2), 4) << 3);
      for (; cell < end; cell += 8) {
        const feature = load<u32>(cell) >> 3;
        if (feature === hidden) continue;
        const slot = slots + (feature << 2);
        const known = load<u32>(slot);
        // Without branches: whether a feature is new cannot be foreseen.
        store<u32>(ids + (features << 2), feature);
        const local = select<u32>(known, features + 1, known !== 0);
        features += <u32>(known === 0);
        store<u32>(slot, local);
        store<u64>(entry, (load<u64>(cell) & valueBits) | <u64>((local - 1) << 3));
        entry += 8;
      }
      store<u32>(ends + (place << 2), <u32>(entry - entries));
    }
    store<u32>(firsts + (j << 2), place, 4);
  }
  for (let i: u32 = 0; i < features; i++) store<u32>(slots + (load<u32>(ids + (i << 2)) << 2), 0);
  return features;
}

/** Keeps the dot products of each pair's places, from its offset on. */
export function keepScores(
  count: u32,
  firsts: usize,
  dots: usize,
  pairs: usize,
  offsets: usize,
  scores: usize,
): void {
  for (let j: u32 = 0; j < count; j++) {
    const last = load<u32>(firsts + (j << 2), 4);
    let out = scores + (load<u32>(offsets + (load<u32>(pairs + (j << 2)) << 2)) << 2);
    for (let i = load<u32>(firsts + (j << 2)); i < last; i++, out += 4) {
      store<f32>(out, <f32>load<f64>(dots + (i << 3)));
    }
  }
}

/**
 * Marks the best of each pair's places from its offset on: as many as `counts` says, or one where that is 0; the first
 * of equals, as scores are kept. Marks are zero on entry.
 */
export function markBest(
  count: u32,
  firsts: usize,
  dots: usize,
  pairs: usize,
  offsets: usize,
  counts: usize,
  marks: usize,
): void {
  for (let j: u32 = 0; j < count; j++) {
    const first = load<u32>(firsts + (j << 2));
    const size = load<u32>(firsts + (j << 2), 4) - first;
    const own = dots + (first << 3);
    const marked = marks + load<u32>(offsets + (load<u32>(pairs + (j << 2)) << 2));
    const wanted: u32 = counts === 0 ? 1 : <u32>load<f32>(counts + (j << 2));
    if (size > 0) store<u8>(marked + bestPlace(own, size), 1);
    for (let r: u32 = 1; r < min(wanted, size); r++) store<u8>(marked + bestUnmarked(own, size, marked), 1);
  }
}

function bestPlace(dots: usize, size: u32): u32 {
  let best: u32 = 0;
  let most = <f32>load<f64>(dots);
  for (let i: u32 = 1; i < size; i++) {
    const score = <f32>load<f64>(dots + (i << 3));
    const better = score > most;
    best = select(i, best, better);
    most = select(score, most, better);
  }
  return best;
}

function bestUnmarked(dots: usize, size: u32, marks: usize): u32 {
  let best = size;
  let most: f32 = 0;
  for (let i: u32 = 0; i < size; i++) {
    const score = <f32>load<f64>(dots + (i << 3));
    if (load<u8>(marks + i) !== 0 || (best !== size && score <= most)) continue;
    best = i;
    most = score;
  }
  return best;
}
