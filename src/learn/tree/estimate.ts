// What training a tree will need, told before it starts: an upper bound for the kernels' memory, an informed guess
// (from real and synthetic sets, within about a factor of two) for the weights that stay above the threshold.
import { UmbelError } from '../../errors.ts';
import type { Pattern } from '../../math/csr.ts';
import type { Estimate } from '../learner.ts';

/** Of a label's features, the share that is its own in its label vector, and about the share that keeps a weight. */
const distinctShare = 0.6;
/** The runtime itself, with its threads. */
const baseBytes = 80e6;
/** Where the beam takes a row, for the placing of copies: a beam of ten, with scores. */
const reachedBytes = 120;
const kernelLimit = 2 ** 32;

/** `x` and `labels` have the same rows; only their offsets and sizes are looked at. */
export function estimateTree(
  x: Pattern,
  labels: Pattern,
  { trees, flat, copies }: { trees: number; flat: boolean; copies: number },
  threads: number,
): Estimate {
  const [entries, tags] = [x.indptr[x.rows], labels.indptr[labels.rows]];
  let pairs = 0;
  for (let row = 0; row < x.rows; row++) {
    pairs += (x.indptr[row + 1] - x.indptr[row]) * (labels.indptr[row + 1] - labels.indptr[row]);
  }
  const vectors = flat ? 0 : distinctShare * pairs;
  const weights = (flat ? 1 : copies) * Math.min(distinctShare * pairs, 0.5 * x.cols * labels.cols);
  const data = 8 * entries + 4 * x.rows + 24 * tags;
  const solving = threads * (8 * entries + 90 * x.rows + 64 * Math.min(x.cols, entries));
  const reached = copies > 1 && !flat ? reachedBytes * x.rows : 0;
  const kernels = data + Math.max(8 * vectors, solving);
  if (data + solving > kernelLimit) throw tooLarge(data + solving);
  return {
    memory: Math.round(baseBytes + kernels + reached + 12 * entries + trees * 20 * weights),
    disk: Math.round(trees * 5.5 * weights),
  };
}

const tooLarge = (bytes: number) =>
  new UmbelError('too-large', 'the rows and the working memory of all threads must fit into 4 GB', {
    value: `${(bytes / 2 ** 30).toFixed(1)} GB`,
    hint: 'use fewer threads, rows or features',
  });
