// What groups of rows, those that the copies of a label draw, have each to itself. Sums lie beside one another for all
// groups: `sums` and `telling` hold `stride` bytes for each feature.

/** Keeps the few best of many, which come one by one, best first; of equals the first. Returns how many it holds. */
function keepBest(items: usize, scores: usize, size: u32, most: u32, item: u32, score: f64): u32 {
  let at = size;
  while (at > 0 && score > load<f64>(scores + ((at - 1) << 3))) at--;
  if (at === most) return size;
  const kept = min(size + 1, most);
  for (let i = kept - 1; i > at; i--) {
    store<u32>(items + (i << 2), load<u32>(items + ((i - 1) << 2)));
    store<f64>(scores + (i << 3), load<f64>(scores + ((i - 1) << 3)));
  }
  store<u32>(items + (at << 2), item);
  store<f64>(scores + (at << 3), score);
  return kept;
}

/** Adds up the rows of one group; features not `seen` with this number yet are listed. Returns how many are. */
export function addGroup(
  rows: usize,
  count: u32,
  indptr: usize,
  indices: usize,
  values: usize,
  sums: usize,
  stride: u32,
  seen: usize,
  number: u32,
  found: usize,
  size: u32,
): u32 {
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(rows + (i << 2)) << 2;
    const end = load<u32>(indptr + row, 4) << 2;
    for (let p = load<u32>(indptr + row) << 2; p < end; p += 4) {
      const feature = load<u32>(indices + p);
      const sum = sums + feature * stride;
      store<f32>(sum, load<f32>(sum) + load<f32>(values + p));
      if (load<u32>(seen + (feature << 2)) === number) continue;
      store<u32>(seen + (feature << 2), number);
      store<u32>(found + (size << 2), feature);
      size++;
    }
  }
  return size;
}

/**
 * How much more each feature is in a group's mean row than in any other's (`telling`), and for this group the words
 * that are most; returns how many.
 */
export function findWords(
  found: usize,
  size: u32,
  sums: usize,
  telling: usize,
  stride: u32,
  group: u32,
  groups: u32,
  shares: usize,
  most: u32,
  items: usize,
  scores: usize,
): u32 {
  const own = load<f64>(shares + (group << 3));
  let kept: u32 = 0;
  for (let i: u32 = 0; i < size; i++) {
    const feature = load<u32>(found + (i << 2));
    const at = sums + feature * stride;
    let elsewhere: f64 = 0;
    for (let g: u32 = 0; g < groups; g++) {
      if (g !== group)
        elsewhere = max(elsewhere, <f64>load<f32>(at + (g << 2)) * load<f64>(shares + (g << 3)));
    }
    const more = <f64>load<f32>(at + (group << 2)) * own - elsewhere;
    store<f32>(telling + feature * stride + (group << 2), <f32>more);
    if (more > 0) kept = keepBest(items, scores, kept, most, feature, more);
  }
  return kept;
}

/** The product of the sums of two groups. */
export function groupProduct(found: usize, size: u32, a: usize, b: usize, stride: u32): f64 {
  let product: f64 = 0;
  for (let i: u32 = 0; i < size; i++) {
    const at = load<u32>(found + (i << 2)) * stride;
    product += <f64>load<f32>(a + at) * <f64>load<f32>(b + at);
  }
  return product;
}

/** Sets the sums of all groups to zero again. */
export function clearGroups(found: usize, size: u32, sums: usize, stride: u32): void {
  for (let i: u32 = 0; i < size; i++) memory.fill(sums + load<u32>(found + (i << 2)) * stride, 0, stride);
}

/** Rows that have most of what tells their group; returns how many. */
export function findTypical(
  rows: usize,
  count: u32,
  indptr: usize,
  indices: usize,
  values: usize,
  telling: usize,
  stride: u32,
  most: u32,
  items: usize,
  scores: usize,
): u32 {
  let kept: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(rows + (i << 2));
    const end = load<u32>(indptr + (row << 2), 4) << 2;
    let sum: f64 = 0;
    for (let p = load<u32>(indptr + (row << 2)) << 2; p < end; p += 4)
      sum += <f64>load<f32>(values + p) * <f64>load<f32>(telling + load<u32>(indices + p) * stride);
    kept = keepBest(items, scores, kept, most, row, sum);
  }
  return kept;
}
