// A moving mean of the vectors of the queries that carry each label. Not trained: it follows what training does to them.
import { type Pattern, rowIndices } from '../../math/csr.ts';
import type { Dense } from '../../math/dense.ts';

export class Centroids {
  /** Labels x width. */
  readonly values: Float32Array;
  readonly #width: number;
  /** How much of a centroid stays when queries of its label come. */
  readonly #momentum: number;

  constructor(values: Float32Array, width: number, momentum: number) {
    this.values = values;
    this.#width = width;
    this.#momentum = momentum;
  }

  /** Moves the centroids of these labels towards the mean of the queries that carry them; order does not matter. */
  update(labels: ArrayLike<number>, carriers: readonly number[][], queries: Float32Array): void {
    const width = this.#width;
    const mean = new Float64Array(width);
    for (let i = 0; i < labels.length; i++) {
      const rows = carriers[i];
      if (rows.length === 0) continue;
      mean.fill(0);
      for (const row of rows) for (let j = 0; j < width; j++) mean[j] += queries[row * width + j];
      const at = labels[i] * width;
      for (let j = 0; j < width; j++)
        this.values[at + j] =
          this.#momentum * this.values[at + j] + (1 - this.#momentum) * (mean[j] / rows.length);
    }
  }

  /** Writes centroids of length one, one after the other. */
  write(labels: ArrayLike<number>, into: Float32Array): void {
    const width = this.#width;
    for (let i = 0; i < labels.length; i++) {
      const from = this.values.subarray(labels[i] * width, (labels[i] + 1) * width);
      const length = lengthOf(from) || 1;
      for (let j = 0; j < width; j++) into[i * width + j] = from[j] / length;
    }
  }
}

const lengthOf = (x: Float32Array): number => Math.sqrt(x.reduce((total, xi) => total + xi * xi, 0));

/** The mean of the queries of each label, of length one; of labels without queries that of their text. */
export function meanOfQueries(labels: Pattern, queries: Dense, texts: Dense): Float32Array {
  const { cols: width } = queries;
  const means = new Float32Array(labels.cols * width);
  for (let row = 0; row < labels.rows; row++)
    for (const label of rowIndices(labels, row))
      for (let j = 0; j < width; j++) means[label * width + j] += queries.values[row * width + j];
  for (let label = 0; label < labels.cols; label++) {
    const mean = means.subarray(label * width, (label + 1) * width);
    let length = lengthOf(mean);
    if (length === 0) {
      mean.set(texts.values.subarray(label * width, (label + 1) * width));
      length = lengthOf(mean) || 1;
    }
    for (let j = 0; j < width; j++) mean[j] /= length;
  }
  return means;
}
