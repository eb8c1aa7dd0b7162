// Label embeddings from bags: GRLR, as imputing has it (impute/reference.ts is the plain reference), but of dense rows,
// for all labels at once as matrix products, and kept: for every label a direction with a near instance in its bags.
import type { Csr, Pattern } from '../../math/csr.ts';
import { type Dense, denseRow } from '../../math/dense.ts';
import { Random } from '../../math/random.ts';
import { input } from '../../nn/graph.ts';
import { encodeModel } from '../../nn/onnx.ts';
import { matmul } from '../../nn/ops.ts';
import { type RuntimeOptions, Session } from '../../nn/session.ts';
import { pairsByLabel } from '../impute/assignment.ts';
import { randomStart } from '../impute/grlr.ts';

export interface EmbedOptions {
  /** Turns towards the nearest instances; 0 leaves the weighted mean of all. */
  iterations: number;
  step: number;
  seed: number;
  runtime: RuntimeOptions;
}

/** In 32 bits, equal rows may differ by this much, and sums this much shorter than their terms are only rounding. */
const [tie, cancelled] = [1e-6, 1e-6];
const chunkRows = 2048;

/**
 * labels x columns, rows of length one; zeros for a label without bags. `x` has rows of length one or zero; `labels` says
 * how often each bag carries each label.
 */
export async function labelEmbeddings(
  x: Dense,
  bags: Pattern,
  labels: Csr,
  { iterations, step, seed, runtime }: EmbedOptions,
): Promise<Dense> {
  const products = await openProducts(x, labels.cols, runtime);
  const shares = new Float32Array(x.rows * labels.cols);
  forPairs(bags, labels, (row, label, weight) => {
    shares[row * labels.cols + label] += weight;
  });
  const embeddings = { rows: labels.cols, cols: x.cols, values: await products.sums(shares) };
  for (const label of unitSums(embeddings, shares))
    await startAtRandom(label, embeddings, x, bags, labels, seed);
  for (let t = 0; t < iterations; t++) {
    shareNearest(await products.dots(embeddings.values), bags, labels, shares);
    const pulls = { ...embeddings, values: await products.sums(shares) };
    unitSums(pulls, shares);
    for (let i = 0; i < pulls.values.length; i++) embeddings.values[i] += step * pulls.values[i];
    for (let label = 0; label < labels.cols; label++) scaleToOne(denseRow(embeddings, label));
  }
  await products.close();
  return embeddings;
}

/** Calls back for every instance of a bag and every label of it. */
function forPairs(
  bags: Pattern,
  labels: Csr,
  take: (row: number, label: number, weight: number) => void,
): void {
  for (let bag = 0; bag < bags.rows; bag++) {
    for (let p = labels.indptr[bag]; p < labels.indptr[bag + 1]; p++) {
      for (let q = bags.indptr[bag]; q < bags.indptr[bag + 1]; q++)
        take(bags.indices[q], labels.indices[p], labels.values[p]);
    }
  }
}

/** Gives the weight of each bag and label to those of the bag's instances that are nearest to the label. */
function shareNearest(
  dots: Float32Array,
  bags: Pattern,
  { cols, indptr, indices, values }: Csr,
  shares: Float32Array,
) {
  shares.fill(0);
  for (let bag = 0; bag < bags.rows; bag++) {
    const own = bags.indices.subarray(bags.indptr[bag], bags.indptr[bag + 1]);
    for (let p = indptr[bag]; p < indptr[bag + 1]; p++) {
      const label = indices[p];
      let best = Number.NEGATIVE_INFINITY;
      for (const row of own) best = Math.max(best, dots[row * cols + label]);
      const enough = best - tie * Math.abs(best);
      for (const row of own) if (dots[row * cols + label] >= enough) shares[row * cols + label] += values[p];
    }
  }
}

/** Brings rows to length one; those that cancel out become zero and, where they had terms, are returned. */
function unitSums(sums: Dense, shares: Float32Array): number[] {
  const terms = new Float64Array(sums.rows);
  for (let i = 0; i < shares.length; i++) terms[i % sums.rows] += shares[i];
  return [...terms.keys()].filter((label) => {
    const row = denseRow(sums, label);
    if (terms[label] === 0 || scaleToOne(row) > cancelled * terms[label]) return false;
    row.fill(0);
    return true;
  });
}

/** Where all instances cancel out: one of each bag, or any direction they span. */
async function startAtRandom(
  label: number,
  embeddings: Dense,
  x: Dense,
  bags: Pattern,
  labels: Csr,
  seed: number,
): Promise<void> {
  const pairs = pairsByLabel(labels);
  const [from, to] = [pairs.starts[label], pairs.starts[label + 1]];
  const own = Array.from(pairs.groups.subarray(from, to), (bag) =>
    bags.indices.subarray(bags.indptr[bag], bags.indptr[bag + 1]),
  );
  const firsts = new Uint32Array(own.length + 1);
  own.forEach(({ length }, j) => {
    firsts[j + 1] = firsts[j] + length;
  });
  const places = own.flatMap((rows) => [...rows]);
  const shares = new Float64Array(places.length);
  const start = () => {
    const sum = new Float64Array(x.cols);
    places.forEach((row, place) => {
      const numbers = denseRow(x, row);
      for (let j = 0; j < sum.length; j++) sum[j] += shares[place] * numbers[j];
    });
    const terms = shares.reduce((total, share) => total + Math.abs(share), 0);
    if (!(scaleToOne(sum) > cancelled * terms)) return false;
    denseRow(embeddings, label).set(sum);
    return true;
  };
  randomStart(shares, firsts, pairs.weights.subarray(from, to), start, new Random(seed, 'impute', label));
}

/** In place; returns the length before. */
function scaleToOne(v: Float32Array | Float64Array): number {
  let sum = 0;
  for (let j = 0; j < v.length; j++) sum += v[j] * v[j];
  const length = Math.sqrt(sum);
  if (length > 0) for (let j = 0; j < v.length; j++) v[j] /= length;
  return length;
}

/** Products with all rows of x, a piece of it at a time. */
async function openProducts(x: Dense, labels: number, runtime: RuntimeOptions) {
  const rows = input('x', [chunkRows, x.cols]);
  const dot = matmul(rows, input('embeddings', [labels, x.cols]), { b: true });
  const sum = matmul(input('shares', [chunkRows, labels]), rows, { a: true });
  const dotting = await Session.open(encodeModel({ dots: dot }), runtime);
  const summing = await Session.open(encodeModel({ sums: sum }), runtime);
  const piece = (numbers: Float32Array, from: number, cols: number) => {
    const own = numbers.subarray(from * cols, (from + chunkRows) * cols);
    if (own.length === chunkRows * cols) return own;
    const filled = new Float32Array(chunkRows * cols);
    filled.set(own);
    return filled;
  };
  return {
    /** rows x labels. */
    async dots(embeddings: Float32Array): Promise<Float32Array> {
      const all = new Float32Array(x.rows * labels);
      for (let from = 0; from < x.rows; from += chunkRows) {
        const { dots } = await dotting.run({ x: piece(x.values, from, x.cols), embeddings });
        const size = Math.min(chunkRows, x.rows - from) * labels;
        all.set((dots as Float32Array).subarray(0, size), from * labels);
      }
      return all;
    },
    /** labels x columns: each label's rows, times their shares in it. */
    async sums(shares: Float32Array): Promise<Float32Array> {
      const all = new Float64Array(labels * x.cols);
      for (let from = 0; from < x.rows; from += chunkRows) {
        const feeds = { x: piece(x.values, from, x.cols), shares: piece(shares, from, labels) };
        const { sums } = await summing.run(feeds);
        for (let i = 0; i < all.length; i++) all[i] += Number(sums[i]);
      }
      return Float32Array.from(all);
    },
    async close(): Promise<void> {
      await dotting.close();
      await summing.close();
    },
  };
}
