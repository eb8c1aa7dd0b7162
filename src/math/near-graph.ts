// Who is nearest to whom among many sparse rows: exactly where there are few; else nearly, by comparing everyone within
// clusters of several random trees, then with the neighbours of neighbours. For pictures, not for answers.
import { BalancedTwoMeans } from './balanced-two-means.ts';
import type { Csr } from './csr.ts';
import type { NearGraph } from './layout.ts';
import { Random } from './random.ts';

/** Rows up to which everyone is compared with everyone. */
const exactRows = 2048;
const [trees, leafRows, refinements] = [4, 256, 2];
/** Rows of a node that decide where it is cut, at most. */
const sampleRows = 256;

/** Rows have length one or zero. Strengths are cosines, as shares of the largest of their row; none is negative. */
export function nearGraph(
  rows: Csr,
  width: number,
  seed: number,
  onStep: (done: number, total: number) => void,
): NearGraph {
  const near = new Neighbours(rows, width);
  const everyone = Uint32Array.from({ length: rows.rows }, (_, row) => row);
  if (rows.rows <= exactRows) {
    near.compareAll(everyone);
  } else {
    const steps = trees + refinements;
    const forest = new Forest(rows, (leaf) => near.compareAll(leaf));
    for (let tree = 0; tree < trees; tree++) {
      forest.grow(everyone, new Random(seed, 'near', tree));
      onStep(tree + 1, steps);
    }
    for (let round = 1; round <= refinements; round++) {
      near.compareWithNext();
      onStep(trees + round, steps);
    }
  }
  return near.graph();
}

/** The best neighbours of every row so far, the nearest first. */
class Neighbours {
  readonly #rows: Csr;
  readonly #width: number;
  readonly #neighbours: Uint32Array;
  readonly #strengths: Float32Array;
  /** One row spread over all columns; zero between calls. */
  readonly #spread: Float32Array;

  constructor(rows: Csr, width: number) {
    this.#rows = rows;
    this.#width = width;
    this.#neighbours = new Uint32Array(rows.rows * width);
    this.#strengths = new Float32Array(rows.rows * width);
    this.#spread = new Float32Array(rows.cols);
  }

  graph(): NearGraph {
    const strengths = this.#strengths;
    const width = this.#width;
    const shares = strengths.map((strength, p) => (strength > 0 ? strength / strengths[p - (p % width)] : 0));
    return { points: this.#rows.rows, width, neighbours: this.#neighbours, strengths: shares };
  }

  compareAll(items: Uint32Array): void {
    for (let i = 0; i < items.length; i++) this.#compare(items[i], items, i + 1, items.length);
  }

  /** Everyone with the neighbours of their neighbours. */
  compareWithNext(): void {
    const [width, neighbours, strengths] = [this.#width, this.#neighbours, this.#strengths];
    const seenBy = new Uint32Array(this.#rows.rows);
    const candidates = new Uint32Array(width * width);
    for (let row = 0; row < this.#rows.rows; row++) {
      let count = 0;
      for (let p = row * width; p < (row + 1) * width && strengths[p] > 0; p++) {
        const from = neighbours[p] * width;
        for (let q = from; q < from + width && strengths[q] > 0; q++) {
          const other = neighbours[q];
          if (other === row || seenBy[other] === row + 1) continue;
          seenBy[other] = row + 1;
          candidates[count++] = other;
        }
      }
      this.#compare(row, candidates, 0, count);
    }
  }

  #compare(row: number, items: Uint32Array, from: number, to: number): void {
    const { indptr, indices, values } = this.#rows;
    const spread = this.#spread;
    const [start, end] = [indptr[row], indptr[row + 1]];
    for (let p = start; p < end; p++) spread[indices[p]] = values[p];
    for (let i = from; i < to; i++) {
      const other = items[i];
      const stop = indptr[other + 1];
      let dot = 0;
      for (let p = indptr[other]; p < stop; p++) dot += spread[indices[p]] * values[p];
      if (dot <= 0) continue;
      this.#offer(row, other, dot);
      this.#offer(other, row, dot);
    }
    for (let p = start; p < end; p++) spread[indices[p]] = 0;
  }

  #offer(row: number, other: number, strength: number): void {
    const [neighbours, strengths] = [this.#neighbours, this.#strengths];
    const from = row * this.#width;
    let at = from + this.#width - 1;
    if (strength <= strengths[at]) return;
    for (let p = from; p <= at && strengths[p] > 0; p++) if (neighbours[p] === other) return;
    for (; at > from && strengths[at - 1] < strength; at--) {
      neighbours[at] = neighbours[at - 1];
      strengths[at] = strengths[at - 1];
    }
    neighbours[at] = other;
    strengths[at] = strength;
  }
}

/** Halves rows again and again, each time between two clusters that a sample of them shows. */
class Forest {
  readonly #rows: Csr;
  readonly #twoMeans: BalancedTwoMeans;
  readonly #direction: Float32Array;
  readonly #onLeaf: (items: Uint32Array) => void;

  constructor(rows: Csr, onLeaf: (items: Uint32Array) => void) {
    this.#rows = rows;
    this.#twoMeans = new BalancedTwoMeans({ sparse: rows });
    this.#direction = new Float32Array(rows.cols);
    this.#onLeaf = onLeaf;
  }

  grow(items: Uint32Array, random: Random): void {
    if (items.length <= leafRows) this.#onLeaf(items);
    else for (const half of this.#halve(items, random)) this.grow(half, random);
  }

  #halve(items: Uint32Array, random: Random): [Uint32Array, Uint32Array] {
    const length = Math.min(sampleRows, items.length >> 1);
    const sample = Uint32Array.from({ length }, () => items[random.integer(items.length)]);
    const [first, second] = this.#twoMeans.split(sample, random);
    this.#add(first, 1);
    this.#add(second, -1);
    const scores = this.#multiply(items);
    this.#add(first, 0);
    this.#add(second, 0);
    const middle = scores.slice().sort()[items.length >> 1];
    // Many rows have nothing in common with either side: chance deals them out, another way in every tree.
    let tied = (items.length >> 1) - scores.reduce((below, score) => below + (score < middle ? 1 : 0), 0);
    let ties = scores.reduce((same, score) => same + (score === middle ? 1 : 0), 0);
    const isFirst = Array.from(scores, (score) => {
      if (score !== middle) return score < middle;
      const taken = random.integer(ties--) < tied;
      if (taken) tied--;
      return taken;
    });
    return [items.filter((_, i) => isFirst[i]), items.filter((_, i) => !isFirst[i])];
  }

  /** Adds rows so many times to the direction; zero times takes them out of it. */
  #add(items: Uint32Array, times: number): void {
    const { indptr, indices, values } = this.#rows;
    for (const item of items) {
      for (let p = indptr[item]; p < indptr[item + 1]; p++)
        this.#direction[indices[p]] = times === 0 ? 0 : this.#direction[indices[p]] + times * values[p];
    }
  }

  #multiply(items: Uint32Array): Float32Array {
    const { indptr, indices, values } = this.#rows;
    const direction = this.#direction;
    return Float32Array.from(items, (item) => {
      let dot = 0;
      for (let p = indptr[item]; p < indptr[item + 1]; p++) dot += direction[indices[p]] * values[p];
      return dot;
    });
  }
}
