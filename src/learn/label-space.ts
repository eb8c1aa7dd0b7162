// Labels as vectors of what speaks for them: who is near whom, and how near. For pictures and neighbours, not for
// predicting.
import { type Csr, CsrBuilder, rowIndices, rowValues, transpose, unitRows } from '../math/csr.ts';
import { type Dense, denseRow } from '../math/dense.ts';
import { topK } from '../math/topk.ts';

/** The strongest features of a label; the rest hardly changes who is near. */
const mostFeatures = 48;

export interface Near {
  label: number;
  /** Cosine, from 0 to 1. */
  similarity: number;
}

export class LabelSpace {
  readonly #vectors: Csr;
  readonly #byFeature: Csr;
  readonly #sums: Float64Array;

  /** `weights` is labels x features; only what speaks for a label counts. */
  constructor(weights: Csr) {
    this.#vectors = unitRows(strongest(weights));
    this.#byFeature = transpose(this.#vectors);
    this.#sums = new Float64Array(weights.rows);
  }

  /** One row for each label, of length one; empty where nothing speaks for it. */
  get vectors(): Csr {
    return this.#vectors;
  }

  /** Labels with anything in common, the nearest first. */
  neighbours(label: number, most: number): Near[] {
    const { indptr, indices, values } = this.#byFeature;
    const sums = this.#sums;
    const met: number[] = [];
    const [features, weights] = [rowIndices(this.#vectors, label), rowValues(this.#vectors, label)];
    for (let i = 0; i < features.length; i++) {
      for (let p = indptr[features[i]]; p < indptr[features[i] + 1]; p++) {
        if (sums[indices[p]] === 0) met.push(indices[p]);
        sums[indices[p]] += weights[i] * values[p];
      }
    }
    const others = Uint32Array.from(met)
      .sort()
      .filter((other) => other !== label);
    const similarities = Float64Array.from(others, (other) => sums[other]);
    for (const other of met) sums[other] = 0;
    return Array.from(topK(similarities, most), (i) => {
      return { label: others[i], similarity: Math.min(1, similarities[i]) };
    });
  }

  similarity(a: number, b: number): number {
    const [features, weights] = [rowIndices(this.#vectors, b), rowValues(this.#vectors, b)];
    const other = new Map(Array.from(features, (feature, i) => [feature, weights[i]]));
    const own = rowValues(this.#vectors, a);
    return rowIndices(this.#vectors, a).reduce((sum, feature, i) => {
      return Math.min(1, sum + own[i] * (other.get(feature) ?? 0));
    }, 0);
  }
}

/** Places of labels as weights: every dimension speaks for a label in one of two ways. */
export function signedParts(
  places: { labels: Uint32Array; vectors: Dense } | undefined,
  labels: number,
): Csr | undefined {
  if (!places) return undefined;
  const { vectors } = places;
  const rowOf = new Map(Array.from(places.labels, (label, row) => [label, row]));
  const weights = new CsrBuilder('values');
  for (let label = 0; label < labels; label++) {
    const row = rowOf.get(label);
    const values = row === undefined ? new Float32Array(0) : denseRow(vectors, row);
    const columns = Uint32Array.from(values, (value, i) => 2 * i + (value < 0 ? 1 : 0));
    weights.add(columns, values.map(Math.abs));
  }
  return weights.csr(2 * vectors.cols);
}

function strongest(weights: Csr): Csr {
  const kept = new CsrBuilder('values');
  for (let label = 0; label < weights.rows; label++) {
    const [features, values] = [rowIndices(weights, label), rowValues(weights, label)];
    const best = topK(values, mostFeatures)
      .filter((i) => values[i] > 0)
      .sort();
    kept.add(
      best.map((i) => features[i]),
      Float32Array.from(best, (i) => values[i]),
    );
  }
  return kept.csr(weights.cols);
}
