// The best of many (score, id) pairs of 8 bytes each: a heap whose root is the worst kept, and the list it becomes.

/** Lower score, then higher id. */
export function worse(a: usize, b: usize): bool {
  const x = load<f32>(a);
  const y = load<f32>(b);
  return x < y || (x === y && load<u32>(a, 4) > load<u32>(b, 4));
}

/** Adds a pair to a heap of at most `limit`, whose root is the worst kept. Returns the new size. */
export function offer(heap: usize, size: u32, limit: u32, score: f32, id: u32): u32 {
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

/** The same where ids may come again: each is kept once, with its best score. Walks through the heap. */
export function offerOnce(heap: usize, size: u32, limit: u32, score: f32, id: u32): u32 {
  if (size === limit && score < load<f32>(heap)) return size;
  for (let at: u32 = 0; at < size; at++) {
    const place = heap + (at << 3);
    if (load<u32>(place, 4) !== id) continue;
    if (score > load<f32>(place)) {
      store<f32>(place, score);
      siftDown(heap, size, at);
    }
    return size;
  }
  return offer(heap, size, limit, score, id);
}

function siftDown(heap: usize, size: u32, at: u32 = 0): void {
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
export function sortBest(heap: usize, size: u32): void {
  for (let end = size; end > 1; ) {
    end--;
    swap(heap, heap + (end << 3));
    siftDown(heap, end);
  }
}

export function swap(a: usize, b: usize): void {
  const pair = load<u64>(a);
  store<u64>(a, load<u64>(b));
  store<u64>(b, pair);
}
