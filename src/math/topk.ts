// The k largest of a list of scores; ties go to the lowest index, everywhere in the house.

/** Indices of the k largest scores, best first. A binary heap of k, so O(n log k) with no allocation per item. */
export function topK(scores: ArrayLike<number>, k: number): Uint32Array {
  const size = Math.min(k, scores.length);
  const heap = new Uint32Array(size);
  // The root is the worst kept: `worse` orders by lower score, then by higher index.
  const worse = (a: number, b: number) => scores[a] < scores[b] || (scores[a] === scores[b] && a > b);
  const siftDown = (end: number, start: number) => {
    let parent = start;
    for (;;) {
      let child = 2 * parent + 1;
      if (child >= end) return;
      if (child + 1 < end && worse(heap[child + 1], heap[child])) child++;
      if (!worse(heap[child], heap[parent])) return;
      [heap[parent], heap[child]] = [heap[child], heap[parent]];
      parent = child;
    }
  };
  for (let i = 0; i < size; i++) heap[i] = i;
  for (let i = (size >> 1) - 1; i >= 0; i--) siftDown(size, i);
  for (let i = size; i < scores.length; i++) {
    if (size > 0 && worse(heap[0], i)) {
      heap[0] = i;
      siftDown(size, 0);
    }
  }
  for (let end = size - 1; end > 0; end--) {
    [heap[0], heap[end]] = [heap[end], heap[0]];
    siftDown(end, 0);
  }
  return heap;
}
