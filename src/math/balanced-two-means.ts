// Balanced spherical 2-means, and the hierarchy of halves it gives. Plain and exact: any faster kernel is tested
// against this file.
import type { Csr } from './csr.ts';
import type { Dense } from './dense.ts';
import { Random } from './random.ts';

/** Points as sparse rows, dense rows, or both side by side. Rows have length one or zero. */
export interface Points {
  sparse?: Csr;
  dense?: Dense;
}

const maxIterations = 20;
const minImprovement = 1e-4;
/** A sum this short is a rounding error of rows that cancel out, not a direction. */
const minSquaredLength = 1e-12;
const neither = 2;

export const pointCount = ({ sparse, dense }: Points): number => sparse?.rows ?? dense?.rows ?? 0;

/**
 * Halves all points `depth` times; the answer is each point's group, 0 to 2^depth - 1. Each node draws from a stream
 * named by its path, so the groups depend on the seed and not on the order in which nodes are split.
 */
export function balancedGroups(points: Points, depth: number, seed: number): Uint32Array {
  const twoMeans = new BalancedTwoMeans(points);
  const groups = new Uint32Array(pointCount(points));
  const halve = (items: Uint32Array, level: number, path: number): void => {
    if (level === depth) {
      for (const item of items) groups[item] = path;
      return;
    }
    const [first, second] = twoMeans.split(items, new Random(seed, 'two-means', level, path));
    halve(first, level + 1, 2 * path);
    halve(second, level + 1, 2 * path + 1);
  };
  halve(Uint32Array.from(groups.keys()), 0, 0);
  return groups;
}

/** Splits one node after another in the same working memory. */
export class BalancedTwoMeans {
  readonly #points: Points;
  /** Sums of the rows of both halves, side by side per column (one cache line serves both); zero between calls. */
  readonly #sparseSums: Float64Array;
  readonly #denseSums: Float64Array;
  /** By position in the node: half (0, 1 or neither), dot products with both sums, their scaled difference. */
  readonly #halves: Uint8Array;
  readonly #dots: Float64Array[];
  readonly #scores: Float32Array;

  constructor(points: Points) {
    const rows = pointCount(points);
    const pair = (length: number) => [new Float64Array(length), new Float64Array(length)];
    this.#points = points;
    this.#sparseSums = new Float64Array(2 * (points.sparse?.cols ?? 0));
    this.#denseSums = new Float64Array(2 * (points.dense?.cols ?? 0));
    this.#halves = new Uint8Array(rows);
    this.#dots = pair(rows);
    this.#scores = new Float32Array(rows);
  }

  /** The floor(q / 2) items nearer to the first centre, and the rest; both in the order of `items`. */
  split(items: Uint32Array, random: Random): [Uint32Array, Uint32Array] {
    const q = items.length;
    if (q < 2) return [items.subarray(0, 0), items];
    const start = random.integer(q);
    const other = random.integer(q - 1);
    this.#halves.fill(neither, 0, q);
    this.#halves[start] = 0;
    this.#halves[other < start ? other : other + 1] = 1;
    let similarity = Number.NEGATIVE_INFINITY;
    for (let iteration = 0; iteration < maxIterations; iteration++) {
      this.#sumHalves(items);
      this.#multiply(items);
      this.#clearSums(items);
      const before = similarity;
      const { changed, average } = this.#assign(q);
      similarity = average;
      if (!changed || similarity - before < minImprovement) break;
    }
    return this.#collect(items);
  }

  #sumHalves(items: Uint32Array): void {
    const { sparse, dense } = this.#points;
    if (sparse) addSparse(sparse, items, this.#halves, this.#sparseSums);
    if (dense) addDense(dense, items, this.#halves, this.#denseSums);
  }

  /** Dot products of every item with both sums. */
  #multiply(items: Uint32Array): void {
    const { sparse, dense } = this.#points;
    for (const dots of this.#dots) dots.fill(0, 0, items.length);
    if (sparse) multiplySparse(sparse, items, this.#sparseSums, this.#dots);
    if (dense) multiplyDense(dense, items, this.#denseSums, this.#dots);
  }

  #clearSums(items: Uint32Array): void {
    const { sparse } = this.#points;
    this.#denseSums.fill(0);
    if (sparse) clearSparse(sparse, items, this.#sparseSums);
  }

  /** Moves the best-scored floor(q / 2) positions into half 0, the others into half 1; ties by position. */
  #assign(q: number): { changed: boolean; average: number } {
    const [dots0, dots1] = this.#dots;
    const [scale0, scale1] = this.#inverseLengths(q);
    const scores = this.#scores.subarray(0, q);
    for (let i = 0; i < q; i++) scores[i] = dots0[i] * scale0 - dots1[i] * scale1;
    const size = q >> 1;
    const lowest = kthSmallest(scores.slice(), q - size);
    let tied = size;
    for (let i = 0; i < q; i++) if (scores[i] > lowest) tied--;
    let changed = false;
    let similarity = 0;
    for (let i = 0; i < q; i++) {
      const half = scores[i] > lowest || (scores[i] === lowest && tied-- > 0) ? 0 : 1;
      similarity += half === 0 ? dots0[i] * scale0 : dots1[i] * scale1;
      changed ||= this.#halves[i] !== half;
      this.#halves[i] = half;
    }
    return { changed, average: similarity / q };
  }

  /** Of the two sums: a sum's squared length is the total of its own rows' dot products with it. */
  #inverseLengths(q: number): number[] {
    const squares = [0, 0];
    for (let i = 0; i < q; i++) {
      const half = this.#halves[i];
      if (half !== neither) squares[half] += this.#dots[half][i];
    }
    return squares.map((square) => (square > minSquaredLength ? 1 / Math.sqrt(square) : 0));
  }

  #collect(items: Uint32Array): [Uint32Array, Uint32Array] {
    const size = items.length >> 1;
    const halves: [Uint32Array, Uint32Array] = [new Uint32Array(size), new Uint32Array(items.length - size)];
    const next = [0, 0];
    for (let i = 0; i < items.length; i++) {
      const half = this.#halves[i];
      halves[half][next[half]++] = items[i];
    }
    return halves;
  }
}

/** Quickselect; reorders `values`. */
function kthSmallest(values: Float32Array, k: number): number {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const pivot = values[(low + high) >> 1];
    let [i, j] = [low, high];
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i > j) break;
      const value = values[i];
      values[i++] = values[j];
      values[j--] = value;
    }
    if (k <= j) high = j;
    else if (k >= i) low = i;
    else break;
  }
  return values[k];
}

function addSparse(
  { indptr, indices, values }: Csr,
  items: Uint32Array,
  halves: Uint8Array,
  sums: Float64Array,
) {
  for (let i = 0; i < items.length; i++) {
    const half = halves[i];
    if (half === neither) continue;
    const end = indptr[items[i] + 1];
    for (let p = indptr[items[i]]; p < end; p++) sums[2 * indices[p] + half] += values[p];
  }
}

function addDense({ cols, values }: Dense, items: Uint32Array, halves: Uint8Array, sums: Float64Array) {
  for (let i = 0; i < items.length; i++) {
    const half = halves[i];
    if (half === neither) continue;
    const offset = items[i] * cols;
    for (let j = 0; j < cols; j++) sums[2 * j + half] += values[offset + j];
  }
}

function multiplySparse(
  { indptr, indices, values }: Csr,
  items: Uint32Array,
  sums: Float64Array,
  [dots0, dots1]: Float64Array[],
) {
  for (let i = 0; i < items.length; i++) {
    let dot0 = 0;
    let dot1 = 0;
    const end = indptr[items[i] + 1];
    for (let p = indptr[items[i]]; p < end; p++) {
      const column = 2 * indices[p];
      dot0 += values[p] * sums[column];
      dot1 += values[p] * sums[column + 1];
    }
    dots0[i] += dot0;
    dots1[i] += dot1;
  }
}

function multiplyDense(
  { cols, values }: Dense,
  items: Uint32Array,
  sums: Float64Array,
  [dots0, dots1]: Float64Array[],
) {
  for (let i = 0; i < items.length; i++) {
    let dot0 = 0;
    let dot1 = 0;
    const offset = items[i] * cols;
    for (let j = 0; j < cols; j++) {
      dot0 += values[offset + j] * sums[2 * j];
      dot1 += values[offset + j] * sums[2 * j + 1];
    }
    dots0[i] += dot0;
    dots1[i] += dot1;
  }
}

/** By way of the items' own columns where they are few: a deep node must not pay for the width of the matrix. */
function clearSparse({ cols, indptr, indices }: Csr, items: Uint32Array, sums: Float64Array) {
  if (items.length >= cols) {
    sums.fill(0);
    return;
  }
  for (let i = 0; i < items.length; i++) {
    const end = indptr[items[i] + 1];
    for (let p = indptr[items[i]]; p < end; p++) {
      sums[2 * indices[p]] = 0;
      sums[2 * indices[p] + 1] = 0;
    }
  }
}
