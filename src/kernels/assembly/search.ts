// Beam search of one input through the levels of a tree. The plain reference is learn/tree/explain.ts.
// A chunk is the weights of one parent's children. One 8-byte word covers 32 features: a bit for each that has
// weights, and above them the number of the first such row, so a lookup is one load and a popcount.

/** Fields of one level's header, in bytes. */
const wordsAt = 0;
const wordsPerChunkAt = 4;
const rowStartAt = 8;
const childrenAt = 12;
const valuesAt = 16;
const childStartAt = 20;
const childIdsAt = 24;
const rowFeaturesAt = 28;
const chunkStartAt = 32;
const headerBytes: u32 = 36;

const smallest: f32 = 1e-37;

/** Instead of the power of a hinge. */
const sigmoid: i32 = 0;
const ownMargin: i32 = -1;

/**
 * Searches from the root and leaves the best `top` as 8-byte (log score, label) pairs at `best`, best first; returns
 * how many. With `sums` given, all labels reached are added to their (sum, count) pair there instead, those
 * reached for the first time are appended to `reached`, and the new length of `reached` is returned.
 */
export function searchTree(
  header: usize,
  levels: u32,
  features: usize,
  values: usize,
  count: u32,
  beam: u32,
  top: u32,
  power: i32,
  excluded: usize,
  margins: usize,
  hits: usize,
  best: usize,
  spare: usize,
  sums: usize,
  reached: usize,
  reachedCount: u32,
): u32 {
  let from = levels & 1 ? spare : best;
  let to = levels & 1 ? best : spare;
  let kept: u32 = 1;
  let gathered = reachedCount;
  store<f32>(from, 0);
  store<u32>(from, 0, 4);
  for (let level: u32 = 1; level <= levels; level++) {
    const last = level === levels;
    const limit = last ? top : beam;
    const childStart: usize = load<u32>(header, childStartAt);
    const childIds: usize = load<u32>(header, childIdsAt);
    let size: u32 = 0;
    for (let k: u32 = 0; k < kept; k++) {
      const score = load<f32>(from + (k << 3));
      const chunk = load<u32>(from + (k << 3), 4);
      // Parents come best first and no child scores above its parent: the rest cannot enter.
      if (power >= 0 && !(last && sums !== 0) && size === limit && score < load<f32>(to)) break;
      const firstChild = load<u32>(childStart + (chunk << 2));
      const children = load<u32>(childStart + (chunk << 2), 4) - firstChild;
      multiplyChunk(header, chunk, children, features, values, count, margins, hits);
      scoreChildren(margins, children, score, power);
      if (last && sums !== 0) {
        const ids = childIds + (firstChild << 2);
        gathered = gather(margins, ids, children, power, excluded, sums, reached, gathered);
        continue;
      }
      for (let c: u32 = 0; c < children; c++) {
        // Most children are too unlikely, four at a time.
        if ((c & 3) === 0 && size === limit) {
          const four = v128.load(margins + (c << 2));
          if (!v128.any_true(f32x4.ge(four, v128.load32_splat(to)))) {
            c += 3;
            continue;
          }
        }
        const id = load<u32>(childIds + ((firstChild + c) << 2));
        if (last && excluded !== 0 && load<u8>(excluded + id) !== 0) continue;
        size = offer(to, size, limit, load<f32>(margins + (c << 2)), id);
      }
    }
    if (last && sums !== 0) return gathered;
    sortBest(to, size);
    kept = size;
    const swapped = from;
    from = to;
    to = swapped;
    header += headerBytes;
  }
  for (let k: u32 = 0; k < kept; k++) {
    let pair = from + (k << 3);
    store<f32>(pair, finalScore(load<f32>(pair), power));
    // Different logs can become one score: such ties go by id again.
    for (; pair > from && worse(pair - 8, pair); pair -= 8) swap(pair - 8, pair);
  }
  return kept;
}

/** The best of the labels gathered, by sum / divisor (or by mean where divisor is 0); clears what was gathered. */
export function rankGathered(
  sums: usize,
  reached: usize,
  count: u32,
  divisor: f32,
  top: u32,
  best: usize,
): u32 {
  let size: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const id = load<u32>(reached + (i << 2));
    const pair = sums + (id << 3);
    const score = load<f32>(pair) / (divisor > 0 ? divisor : <f32>load<u32>(pair, 4));
    size = offer(best, size, top, score, id);
    store<u64>(pair, 0);
  }
  sortBest(best, size);
  return size;
}

/**
 * The children's margins. Lookups, row bounds and first entries of all features are each read in a loop of their own,
 * so that their cache misses overlap. `hits` has room for 16 bytes per feature.
 */
function multiplyChunk(
  header: usize,
  chunk: u32,
  children: u32,
  features: usize,
  values: usize,
  count: u32,
  margins: usize,
  hits: usize,
): void {
  memory.fill(margins, 0, children << 2);
  const rowStart: usize = load<u32>(header, rowStartAt);
  const entryChildren: usize = load<u32>(header, childrenAt);
  const entryValues: usize = load<u32>(header, valuesAt);
  const end = load<u32>(header, wordsAt)
    ? lookUp(header, chunk, features, values, count, hits)
    : searchRows(header, chunk, features, values, count, hits);
  for (let hit = hits; hit < end; hit += 16) {
    const row = rowStart + (load<u32>(hit) << 2);
    store<u32>(hit, load<u32>(row));
    store<u32>(hit, load<u32>(row, 4), 4);
  }
  let touched: u32 = 0;
  for (let hit = hits; hit < end; hit += 16) {
    const entry = load<u32>(hit);
    touched += load<u16>(entryChildren + (entry << 1)) + load<u32>(entryValues + (entry << 2));
  }
  for (let hit = hits; hit < end; hit += 16) {
    const x = load<f32>(hit, 8);
    const stop = load<u32>(hit, 4);
    for (let entry = load<u32>(hit); entry < stop; entry++) {
      const margin = margins + ((<u32>load<u16>(entryChildren + (entry << 1))) << 2);
      store<f32>(margin, load<f32>(margin) + x * load<f32>(entryValues + (entry << 2)));
    }
  }
  // Only keeps the early reads alive.
  store<u32>(hits, touched);
}

/** Writes the row and the value of every feature the chunk has to `hits`; returns the end of the list. */
function lookUp(header: usize, chunk: u32, features: usize, values: usize, count: u32, hits: usize): usize {
  const words = <usize>load<u32>(header, wordsAt) + ((chunk * load<u32>(header, wordsPerChunkAt)) << 3);
  let end = hits;
  for (let p: u32 = 0; p < count; p++) {
    const feature = load<u32>(features + (p << 2));
    const word = load<u64>(words + ((feature >> 5) << 3));
    const bits = <u32>word;
    const place = feature & 31;
    store<u32>(end, <u32>(word >> 32) + popcnt(bits & (((<u32>1) << place) - 1)));
    store<u32>(end, load<u32>(values + (p << 2)), 8);
    end += ((bits >> place) & 1) << 4;
  }
  return end;
}

/** The same by binary search, for levels whose bitmaps would be far larger than their weights. */
function searchRows(
  header: usize,
  chunk: u32,
  features: usize,
  values: usize,
  count: u32,
  hits: usize,
): usize {
  const rowFeatures: usize = load<u32>(header, rowFeaturesAt);
  const bounds = <usize>load<u32>(header, chunkStartAt) + (chunk << 2);
  const stop = load<u32>(bounds, 4);
  let low = load<u32>(bounds);
  let end = hits;
  for (let p: u32 = 0; p < count; p++) {
    const feature = load<u32>(features + (p << 2));
    // Features ascend: the next one cannot lie before this one.
    let high = stop;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (load<u32>(rowFeatures + (middle << 2)) < feature) low = middle + 1;
      else high = middle;
    }
    if (low === stop) break;
    if (load<u32>(rowFeatures + (low << 2)) !== feature) continue;
    store<u32>(end, low);
    store<u32>(end, load<u32>(values + (p << 2)), 8);
    end += 16;
  }
  return end;
}

/** Margins become log scores: the parent's plus the log of the child's own factor. */
function scoreChildren(margins: usize, children: u32, parent: f32, power: i32): void {
  if (power === ownMargin) return;
  const end = margins + (children << 2);
  if (power === sigmoid) {
    for (let p = margins; p < end; p += 4) {
      const margin = load<f32>(p);
      const small = Mathf.log1p(Mathf.exp(-abs(margin)));
      store<f32>(p, parent - (margin < 0 ? small - margin : small));
    }
    return;
  }
  const parents = f32x4.splat(parent);
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  for (let p = margins; p < end; p += 16) {
    const missing = f32x4.pmax(zero, f32x4.sub(one, v128.load(p)));
    let product = missing;
    for (let i = 1; i < power; i++) product = f32x4.mul(product, missing);
    v128.store(p, f32x4.sub(parents, product));
  }
}

/** Adds the scores of a chunk's labels to their sums; returns how many labels have been reached in all. */
function gather(
  scores: usize,
  ids: usize,
  children: u32,
  power: i32,
  excluded: usize,
  sums: usize,
  reached: usize,
  reachedCount: u32,
): u32 {
  let gathered = reachedCount;
  for (let c: u32 = 0; c < children; c++) {
    const id = load<u32>(ids + (c << 2));
    if (excluded !== 0 && load<u8>(excluded + id) !== 0) continue;
    const pair = sums + (id << 3);
    const times = load<u32>(pair, 4);
    if (times === 0) {
      store<u32>(reached + (gathered << 2), id);
      gathered++;
    }
    store<f32>(pair, load<f32>(pair) + finalScore(load<f32>(scores + (c << 2)), power));
    store<u32>(pair, times + 1, 4);
  }
  return gathered;
}

/** In (0, 1]: what is too unlikely for a number stays a label that was reached. */
function finalScore(log: f32, power: i32): f32 {
  const score: f32 = power === ownMargin ? <f32>1 / (<f32>1 + Mathf.exp(-log)) : Mathf.exp(log);
  return score > smallest ? score : smallest;
}

/** Lower score, then higher id. */
function worse(a: usize, b: usize): bool {
  const x = load<f32>(a);
  const y = load<f32>(b);
  return x < y || (x === y && load<u32>(a, 4) > load<u32>(b, 4));
}

/** Adds a pair to a heap of at most `limit`, whose root is the worst kept. Returns the new size. */
function offer(heap: usize, size: u32, limit: u32, score: f32, id: u32): u32 {
  if (size < limit) {
    let at = size;
    let place = heap + (at << 3);
    store<f32>(place, score);
    store<u32>(place, id, 4);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap + (parent << 3);
      if (!worse(place, above)) break;
      swap(place, above);
      at = parent;
      place = above;
    }
    return size + 1;
  }
  const worst = load<f32>(heap);
  if (score < worst || (score === worst && id > load<u32>(heap, 4))) return size;
  store<f32>(heap, score);
  store<u32>(heap, id, 4);
  siftDown(heap, size);
  return size;
}

function siftDown(heap: usize, size: u32): void {
  let at: u32 = 0;
  for (;;) {
    let child: u32 = 2 * at + 1;
    if (child >= size) return;
    if (child + 1 < size && worse(heap + ((child + 1) << 3), heap + (child << 3))) child++;
    if (!worse(heap + (child << 3), heap + (at << 3))) return;
    swap(heap + (child << 3), heap + (at << 3));
    at = child;
  }
}

/** A heap becomes a list, best first. */
function sortBest(heap: usize, size: u32): void {
  for (let end = size; end > 1; ) {
    end--;
    swap(heap, heap + (end << 3));
    siftDown(heap, end);
  }
}

function swap(a: usize, b: usize): void {
  const pair = load<u64>(a);
  store<u64>(a, load<u64>(b));
  store<u64>(b, pair);
}
