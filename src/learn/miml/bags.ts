// From instances to bags, outside of programs: bags laid out for steps of a fixed shape, and the scores of instances
// brought together, as the program of network.ts does it.
import type { Csr, Pattern } from '../../math/csr.ts';
import { type Dense, denseRow } from '../../math/dense.ts';
import { Random } from '../../math/random.ts';
import type { Feeds } from '../../nn/train.ts';
import type { Head, InstanceScores } from './network.ts';

export interface BagSet {
  /** Instances, around the mean and scaled. */
  x: Dense;
  bags: Pattern;
  /** How often each bag carries each label. */
  labels: Csr;
}

/** Bags of one step: `size` places for instances in each of `count`. */
export interface Layout {
  size: number;
  count: number;
}

/** Instances of a step at most, so that a few large bags do not fill the memory. */
const roomRows = 1 << 14;
const layoutsAtMost = 4;

/**
 * Programs have fixed shapes: bags are laid out by size, those of a quarter of all alike, with places left empty where
 * they are smaller.
 */
export function layoutsOf({ indptr, rows }: Pattern, batch: number): Layout[] {
  const sizes = Uint32Array.from({ length: rows }, (_, bag) => indptr[bag + 1] - indptr[bag]).sort();
  const quantiles = Array.from(
    { length: layoutsAtMost },
    (_, i) => sizes[Math.ceil(((i + 1) * rows) / layoutsAtMost) - 1],
  );
  return [...new Set(quantiles)].map((size) => ({
    size,
    count: Math.min(batch, Math.max(1, Math.floor(roomRows / size))),
  }));
}

/** The steps of an epoch: all bags once, each with others of its layout, in an order of chance. */
export function drawBatches(bags: Pattern, layouts: readonly Layout[], ...key: (number | string)[]) {
  const random = new Random(...key);
  const waiting: number[][] = layouts.map(() => []);
  for (const bag of random.permutation(bags.rows)) {
    const size = bags.indptr[bag + 1] - bags.indptr[bag];
    waiting[layouts.findIndex((layout) => layout.size >= size)].push(bag);
  }
  const batches = waiting.flatMap((own, layout) => {
    const { count } = layouts[layout];
    return Array.from({ length: Math.ceil(own.length / count) }, (_, i) => ({
      layout,
      bags: own.slice(i * count, (i + 1) * count),
    }));
  });
  return random.shuffle(batches);
}

/** What a step is fed, in arrays that are used again and again. */
export function feeder({ x, bags, labels }: BagSet, { size, count }: Layout, head: Head) {
  const rows = new Float32Array(count * size * x.cols);
  const valid = new Float32Array(count * size);
  const targets = new Float32Array(count * labels.cols);
  const weights = new Float32Array(count);
  return (numbers: readonly number[]): Feeds => {
    for (const array of [rows, valid, targets, weights]) array.fill(0);
    numbers.forEach((bag, i) => {
      weights[i] = 1;
      for (let p = bags.indptr[bag], at = i * size; p < bags.indptr[bag + 1]; p++, at++) {
        rows.set(denseRow(x, bags.indices[p]), at * x.cols);
        valid[at] = 1;
      }
      const own = labels.values.subarray(labels.indptr[bag], labels.indptr[bag + 1]);
      const total = own.reduce((sum, count) => sum + count, 0);
      own.forEach((count, p) => {
        const label = labels.indices[labels.indptr[bag] + p];
        targets[i * labels.cols + label] = head === 'softmax' ? count / total : 1;
      });
    });
    return { x: rows, valid, targets, weights };
  };
}

/** The scores of one bag: each label's best instance, as the mask sees it. `own` are its instances' numbers. */
export function bagScore(
  { scores, similarities }: InstanceScores,
  own: Uint32Array,
  labels: number,
  tau: number,
): Float32Array {
  const best = new Float32Array(labels);
  for (let label = 0; label < labels; label++) {
    const at = (instance: number) => instance * labels + label;
    const largest = own.reduce((most, i) => Math.max(most, similarities[at(i)]), Number.NEGATIVE_INFINITY);
    const attention = (i: number) => Math.exp(tau * (similarities[at(i)] - largest));
    const total = own.reduce((sum, i) => sum + attention(i), 0);
    for (const i of own) {
      const seen = (scores[at(i)] * own.length * attention(i)) / total;
      if (seen > best[label]) best[label] = seen;
    }
  }
  return best;
}

/** What a bag's scores say of each label, from 0 to 1; 0 for labels that training never saw. */
export function chances(head: Head, scores: Float32Array, trained: Uint8Array): Float32Array {
  if (head === 'bce-softmax') return scores.map((score, label) => (trained[label] ? Math.min(score, 1) : 0));
  const largest = scores.reduce((most, score) => Math.max(most, score), 0);
  const exps = scores.map((score, label) => (trained[label] ? Math.exp(score - largest) : 0));
  const total = exps.reduce((sum, value) => sum + value, 0);
  return exps.map((value) => value / total);
}
