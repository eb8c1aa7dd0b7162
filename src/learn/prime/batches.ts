// Which queries and labels meet in a step: NGAME's batches of queries that are alike, positives drawn by how easily they
// are missed, and the labels of one batch as each other's negatives.

import { balancedGroups } from '../../math/balanced-two-means.ts';
import { type Pattern, rowIndices } from '../../math/csr.ts';
import type { Dense } from '../../math/dense.ts';
import type { Random } from '../../math/random.ts';

/** The epochs of the published schedule, of 300, at which queries are first grouped and groups then double. */
const published = { epochs: 300, doublings: [10, 25, 50, 75, 100, 125, 150, 200], firstSize: 4 };

/** Queries in one group of this epoch, or 0: order is chance alone. */
export function groupSize(epoch: number, epochs: number): number {
  const scale = epochs / published.epochs;
  const reached = published.doublings.filter((at) => epoch >= Math.max(1, Math.round(at * scale))).length;
  return reached === 0 ? 0 : published.firstSize * 2 ** (reached - 1);
}

/** Groups of about `size` queries each that are alike. */
export function groupQueries(queries: Dense, size: number, seed: number): Uint32Array {
  const depth = Math.max(0, Math.floor(Math.log2(queries.rows / size)));
  return balancedGroups({ dense: queries }, depth, seed);
}

/** All rows in an order in which those of a group follow each other; without groups any order. */
export function drawOrder(rows: number, groups: Uint32Array | undefined, random: Random): Uint32Array {
  const order = random.permutation(rows);
  if (!groups) return order;
  const count = groups.reduce((most, group) => Math.max(most, group + 1), 0);
  const rank = random.permutation(count);
  // Sorting keeps the order of equals: within a group rows stay shuffled.
  return order.sort((a, b) => rank[groups[a]] - rank[groups[b]]);
}

/** Up to `count` of the labels, each round with chances in proportion to their weights. */
export function drawPositives(
  labels: Uint32Array,
  weights: ArrayLike<number>,
  count: number,
  random: Random,
): Uint32Array {
  if (labels.length <= count) return labels;
  // The largest of u^(1/w) are a draw without replacement (Efraimidis and Spirakis 2006).
  const keys = Array.from(labels, (label) => ({
    label,
    key: Math.log(1 - random.uniform()) / weights[label],
  }));
  return Uint32Array.from(keys.sort((a, b) => b.key - a.key).slice(0, count), ({ label }) => label);
}

/** Labels of a batch of queries, in ascending order: the drawn positives of all. */
export function drawPool(
  rows: Uint32Array,
  labels: Pattern,
  weights: ArrayLike<number>,
  positives: number,
  random: Random,
): Uint32Array {
  const pool = new Set<number>();
  for (const row of rows)
    for (const label of drawPositives(rowIndices(labels, row), weights, positives, random)) pool.add(label);
  return Uint32Array.from(pool).sort();
}

/** Rows whose text others have too share a number; -1 where there is none. */
export function sameTexts(texts: readonly (string | null)[]): Int32Array {
  const numbers = new Map<string, number>();
  return Int32Array.from(texts, (text) => {
    if (text === null) return -1;
    const known = numbers.get(text) ?? numbers.size;
    numbers.set(text, known);
    return known;
  });
}

/** What the losses are told of a batch, in matrices of queries x labels that are used again and again. */
export class Truth {
  readonly positive: Float32Array;
  readonly usable: Float32Array;
  readonly usableText: Float32Array;
  /** By place in the pool, the queries of the batch that carry the label. */
  readonly carriers: number[][] = [];
  readonly #width: number;
  readonly #labels: Pattern;
  /** By label, a number that labels with the same text share; -1 without a text. */
  readonly #texts: Int32Array;

  constructor(queries: number, pool: number, labels: Pattern, texts: Int32Array) {
    this.#width = pool;
    this.#labels = labels;
    this.#texts = texts;
    this.positive = new Float32Array(queries * pool);
    this.usable = new Float32Array(queries * pool);
    this.usableText = new Float32Array(queries * pool);
  }

  /** Every label of the pool that a query carries is its positive, drawn for it or not. */
  fill(rows: Uint32Array, pool: Uint32Array): void {
    const { positive, usable, usableText, carriers } = this;
    const texts = this.#texts;
    const place = new Map(Array.from(pool, (label, i) => [label, i]));
    for (const matrix of [positive, usable, usableText]) matrix.fill(0);
    carriers.length = 0;
    for (let i = 0; i < pool.length; i++) carriers.push([]);
    rows.forEach((row, i) => {
      const at = i * this.#width;
      const own = rowIndices(this.#labels, row);
      const ownTexts = new Set(Array.from(own, (label) => texts[label]));
      usable.fill(1, at, at + pool.length);
      // A label that reads like a positive cannot be told from it by its text.
      pool.forEach((label, j) => {
        usableText[at + j] = texts[label] >= 0 && !ownTexts.has(texts[label]) ? 1 : 0;
      });
      for (const label of own) {
        const j = place.get(label);
        if (j === undefined) continue;
        positive[at + j] = 1;
        usableText[at + j] = texts[label] >= 0 ? 1 : 0;
        carriers[j].push(i);
      }
    });
  }
}
