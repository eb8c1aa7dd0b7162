// The nearest rows of a data set by Euclidean distance, exactly: every row is looked at. Runs here or on threads.
import { type Features, selectFeatures } from '../data/dataset.ts';
import type { Prepare, Task } from '../kernels/pool.ts';
import { type Csr, type Pattern, transpose } from '../math/csr.ts';
import { type Dense, denseRow } from '../math/dense.ts';
import { topK } from '../math/topk.ts';
import { breathe, type Context, checkCancelled } from '../progress.ts';
import { inputRows } from './features.ts';

/** Rows to be found, laid out for the search. */
export interface NeighbourIndex {
  rows: number;
  /** Sparse features x rows. */
  byFeature?: Csr;
  dense?: Dense;
  /** Half the square of each row's length: a.b minus it orders rows b by their distance from a. */
  halfSquares: Float64Array;
}

interface Job {
  inputs: Features;
  k: number;
  /** Where the inputs are rows of the index themselves: the number of the first. No row is its own neighbour. */
  first?: number;
}

const task: Task<NeighbourIndex, Job, Uint32Array> = { module: import.meta.url, name: 'prepareNeighbours' };
const batchRows = 64;

export function indexRows(features: Features): NeighbourIndex {
  const { sparse, dense } = features;
  const halfSquares = new Float64Array(inputRows(features));
  for (let row = 0; row < halfSquares.length; row++) {
    if (sparse)
      for (let p = sparse.indptr[row]; p < sparse.indptr[row + 1]; p++)
        halfSquares[row] += sparse.values[p] ** 2 / 2;
    if (dense) for (const value of denseRow(dense, row)) halfSquares[row] += value ** 2 / 2;
  }
  return { rows: halfSquares.length, byFeature: sparse && transpose(sparse), dense, halfSquares };
}

/**
 * inputs x rows: the k nearest (or all that there are) of every input, the nearest first, ties by lowest row. With `own`
 * the inputs are the indexed rows, each of which leaves itself out.
 */
export async function nearestRows(
  index: NeighbourIndex,
  inputs: Features,
  k: number,
  {
    own = false,
    threads,
    signal,
    progress,
  }: Pick<Context, 'threads' | 'signal' | 'progress'> & { own?: boolean },
): Promise<Pattern> {
  const rows = inputRows(inputs);
  let done = 0;
  const onResult = () => {
    done = Math.min(done + batchRows, rows);
    progress({ phase: 'neighbours', done, total: rows, unit: 'rows' });
  };
  function* jobs(): Generator<Job> {
    for (let from = 0; from < rows; from += batchRows) {
      const numbers = Array.from({ length: Math.min(batchRows, rows - from) }, (_, i) => from + i);
      yield { inputs: selectFeatures(inputs, numbers), k, first: own ? from : undefined };
    }
  }
  checkCancelled(signal);
  if (threads > 1 && rows > batchRows) {
    const { runJobs } = await import('../kernels/pool.ts');
    return joined(await runJobs(task, shareIndex(index), jobs(), { threads, signal, onResult }), rows, index);
  }
  const search = prepareNeighbours(index);
  const found: Uint32Array[] = [];
  for (const job of jobs()) {
    found.push(search(job));
    onResult();
    await breathe();
    checkCancelled(signal);
  }
  return joined(found, rows, index);
}

function joined(batches: readonly Uint32Array[], rows: number, index: NeighbourIndex): Pattern {
  const indices = new Uint32Array(batches.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const batch of batches) {
    indices.set(batch, at);
    at += batch.length;
  }
  const each = rows === 0 ? 0 : indices.length / rows;
  const indptr = Uint32Array.from({ length: rows + 1 }, (_, row) => row * each);
  return { rows, cols: index.rows, indptr, indices };
}

export const prepareNeighbours = ((index: NeighbourIndex) => {
  const scores = new Float64Array(index.rows);
  return ({ inputs, k, first }: Job) => {
    const size = Math.min(k, index.rows - (first === undefined ? 0 : 1));
    const found = new Uint32Array(inputRows(inputs) * size);
    for (let row = 0; row < inputRows(inputs); row++) {
      scoreRows(index, inputs, row, scores);
      if (first !== undefined) scores[first + row] = Number.NEGATIVE_INFINITY;
      found.set(topK(scores, size), row * size);
    }
    return found;
  };
}) satisfies Prepare<NeighbourIndex, Job, Uint32Array>;

function scoreRows(index: NeighbourIndex, { sparse, dense }: Features, row: number, scores: Float64Array) {
  for (let i = 0; i < scores.length; i++) scores[i] = -index.halfSquares[i];
  if (dense && index.dense) addDenseDots(index.dense, denseRow(dense, row), scores);
  const { byFeature } = index;
  if (!sparse || !byFeature) return;
  for (let p = sparse.indptr[row]; p < sparse.indptr[row + 1]; p++) {
    const [feature, value] = [sparse.indices[p], sparse.values[p]];
    for (let q = byFeature.indptr[feature]; q < byFeature.indptr[feature + 1]; q++)
      scores[byFeature.indices[q]] += value * byFeature.values[q];
  }
}

/** Four sums at a time: additions that wait for each other are the slow part. */
function addDenseDots({ cols, values }: Dense, x: Float32Array, scores: Float64Array): void {
  const whole = cols - (cols % 4);
  for (let row = 0, at = 0; row < scores.length; row++, at += cols) {
    let [a, b, c, d] = [0, 0, 0, 0];
    for (let j = 0; j < whole; j += 4) {
      a += x[j] * values[at + j];
      b += x[j + 1] * values[at + j + 1];
      c += x[j + 2] * values[at + j + 2];
      d += x[j + 3] * values[at + j + 3];
    }
    for (let j = whole; j < cols; j++) a += x[j] * values[at + j];
    scores[row] += a + b + (c + d);
  }
}

/** The index in memory that threads see without a copy each. */
function shareIndex({ rows, byFeature, dense, halfSquares }: NeighbourIndex): NeighbourIndex {
  return {
    rows,
    byFeature: byFeature && {
      ...byFeature,
      indptr: shared(byFeature.indptr),
      indices: shared(byFeature.indices),
      values: shared(byFeature.values),
    },
    dense: dense && { ...dense, values: shared(dense.values) },
    halfSquares: shared(halfSquares),
  };
}

function shared<T extends Uint32Array | Float32Array | Float64Array>(array: T): T {
  const copy = new (array.constructor as new (buffer: SharedArrayBuffer) => T)(
    new SharedArrayBuffer(array.byteLength),
  );
  copy.set(array);
  return copy;
}
