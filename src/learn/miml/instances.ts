// What the network sees of an instance: sparse features projected to few columns, dense ones beside them, all around the
// training data's mean and on one scale. Knows nothing of bags and labels.
import type { Features } from '../../data/dataset.ts';
import { type Csr, unitRows } from '../../math/csr.ts';
import { type Dense, denseRow } from '../../math/dense.ts';
import { Random } from '../../math/random.ts';
import type { Scaling } from '../scaling.ts';

export interface Projection {
  /** Columns that sparse features become; fewer features are kept as they are. */
  columns: number;
  seed: number;
}

/** How many columns each feature is spread over; their signs make unlike features cancel out on average. */
const spread = 16;

/** Features as dense rows: products between rows stay, on average, what they were. */
export class Projector {
  readonly #places: Uint32Array | undefined;
  readonly #signs: Int8Array | undefined;
  readonly #columns: number;

  constructor(features: number, { columns, seed }: Projection) {
    this.#columns = Math.min(features, columns);
    if (features <= columns) return;
    this.#places = new Uint32Array(features * spread);
    this.#signs = new Int8Array(features * spread);
    const random = new Random(seed, 'projection');
    for (let i = 0; i < this.#places.length; i++) {
      const drawn = random.integer(2 * columns);
      this.#places[i] = drawn >> 1;
      this.#signs[i] = drawn & 1 ? 1 : -1;
    }
  }

  /** Sparse rows are brought to length one first. */
  apply({ sparse, dense }: Features): Dense {
    if (!sparse) return dense ?? { rows: 0, cols: 0, values: new Float32Array(0) };
    const cols = this.#columns + (dense?.cols ?? 0);
    const values = new Float32Array(sparse.rows * cols);
    const unit = unitRows(sparse);
    for (let row = 0; row < sparse.rows; row++) {
      const target = values.subarray(row * cols, (row + 1) * cols);
      this.#project(unit, row, target);
      if (dense) target.set(denseRow(dense, row), this.#columns);
    }
    return { rows: sparse.rows, cols, values };
  }

  #project({ indptr, indices, values }: Csr, row: number, target: Float32Array): void {
    const [places, signs] = [this.#places, this.#signs];
    for (let p = indptr[row]; p < indptr[row + 1]; p++) {
      if (!places || !signs) target[indices[p]] = values[p];
      else
        for (let i = indices[p] * spread; i < (indices[p] + 1) * spread; i++)
          target[places[i]] += (signs[i] * values[p]) / Math.sqrt(spread);
    }
  }
}

/**
 * The mean of every column, and one scale for all that came from sparse features and one for the dense, so that the
 * numbers' mean square is 1 but pixels that hardly vary stay as quiet as they are.
 */
export function fitInstances({ rows, cols, values }: Dense, denseColumns: number): Scaling {
  const mean = new Float64Array(cols);
  for (let i = 0; i < values.length; i++) mean[i % cols] += values[i] / rows;
  const squares = new Float64Array(cols);
  for (let i = 0; i < values.length; i++) squares[i % cols] += (values[i] - mean[i % cols]) ** 2;
  const scale = new Float32Array(cols);
  for (const [from, to] of [[0, cols - denseColumns] as const, [cols - denseColumns, cols] as const]) {
    const total = squares.subarray(from, to).reduce((sum, square) => sum + square, 0);
    scale.fill(total > 0 ? Math.sqrt((rows * (to - from)) / total) : 0, from, to);
  }
  return { mean: Float32Array.from(mean), scale };
}
