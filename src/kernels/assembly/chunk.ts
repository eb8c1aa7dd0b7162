// The scores of one parent's children for one input. A chunk is the weights of these children. One 8-byte word covers 32
// features: a bit for each that has weights, and above them the number of the first such row, so a lookup is one load and
// a popcount.

/** Fields of a level's header, in bytes; search.ts reads the others. */
const wordsAt = 0;
const wordsPerChunkAt = 4;
const rowStartAt = 8;
const childrenAt = 12;
const valuesAt = 16;
const rowFeaturesAt = 28;
const chunkStartAt = 32;

/** Instead of the power of a hinge. */
const sigmoid: i32 = 0;
export const ownMargin: i32 = -1;

/**
 * The children's margins. Lookups, row bounds and first entries of all features are each read in a loop of their own,
 * so that their cache misses overlap. `hits` has room for 16 bytes per feature.
 */
export function multiplyChunk(
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
export function scoreChildren(margins: usize, children: u32, parent: f32, power: i32): void {
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
