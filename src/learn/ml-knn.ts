// ML-kNN (Zhang and Zhou 2007): how many of the k nearest training rows carry a label, and how often rows with and
// without the label had so many, give the label's probability. A baseline that keeps its training data.
import type { Features } from '../data/dataset.ts';
import { CsrBuilder, columnCounts, type Pattern, rowIndices } from '../math/csr.ts';
import { denseRow } from '../math/dense.ts';
import { topK } from '../math/topk.ts';
import { flag, integer, number, type OptionsOf } from '../options.ts';
import { type Tensors, vector } from '../parts.ts';
import { quiet } from '../progress.ts';
import { unitFeatures, widthOf } from './features.ts';
import type { Learner, Model, Width } from './learner.ts';
import { indexRows, nearestRows } from './neighbours.ts';

const options = {
  k: integer(10, 'how many neighbours decide', { min: 1 }),
  smoothing: number(1, 'added to every count: larger trusts the counts less', { min: 1e-6 }),
  unit: flag(true, 'bring rows to length one first, so that the angle between them decides'),
};
type Options = OptionsOf<typeof options>;

/** What a model is made of. */
interface Known {
  width: Width;
  unit: boolean;
  k: number;
  /** Training rows, as the options have them. */
  points: Features;
  labels: Pattern;
  /** labels x (k + 1): the probability of a label by how many neighbours carry it; 0 for one without positives. */
  posteriors: Float32Array;
}

/** How many of a row's neighbours carry each label: told row by row, and forgotten after. */
function countLabels(
  neighbours: Pattern,
  labels: Pattern,
  take: (counts: Uint32Array, row: number) => void,
): void {
  const counts = new Uint32Array(labels.cols);
  for (let row = 0; row < neighbours.rows; row++) {
    const own = rowIndices(neighbours, row);
    for (const neighbour of own) for (const label of rowIndices(labels, neighbour)) counts[label]++;
    take(counts, row);
    for (const neighbour of own) for (const label of rowIndices(labels, neighbour)) counts[label] = 0;
  }
}

/** Bayes' rule from the training rows' own neighbours. */
export function fitPosteriors(neighbours: Pattern, labels: Pattern, { k, smoothing }: Options): Float32Array {
  const width = k + 1;
  // How many rows with the label, and without it, have j neighbours with it.
  const [having, lacking] = [new Float64Array(labels.cols * width), new Float64Array(labels.cols * width)];
  countLabels(neighbours, labels, (counts, row) => {
    for (let label = 0; label < labels.cols; label++) lacking[label * width + counts[label]]++;
    for (const label of rowIndices(labels, row)) {
      having[label * width + counts[label]]++;
      lacking[label * width + counts[label]]--;
    }
  });
  const positives = columnCounts(labels);
  const posteriors = new Float32Array(labels.cols * width);
  for (let label = 0; label < labels.cols; label++) {
    if (positives[label] === 0) continue;
    const negatives = labels.rows - positives[label];
    for (let at = label * width; at < (label + 1) * width; at++) {
      const yes = joint(having[at], positives[label], smoothing, width);
      posteriors[at] = yes / (yes + joint(lacking[at], negatives, smoothing, width));
    }
  }
  return posteriors;
}

/** Proportional to the chance of a side (with the label, or without) times that of the count on this side. */
const joint = (count: number, rows: number, smoothing: number, counts: number) =>
  ((smoothing + rows) * (smoothing + count)) / (smoothing * counts + rows);

function model(known: Known): Model {
  const { width, unit, k, points, labels, posteriors } = known;
  const index = indexRows(points);
  const prepared = (inputs: Features) => (unit ? unitFeatures(inputs) : inputs);
  return {
    width,
    async predict(inputs, { top, excluded, threads = 1, signal, progress = quiet }) {
      const x = prepared(inputs);
      const neighbours = await nearestRows(index, x, k, { threads, signal, progress });
      const scores = new Float32Array(labels.cols);
      const ranking = new CsrBuilder('values');
      countLabels(neighbours, labels, (counts, row) => {
        // Without a direction no row is nearer than another.
        if (unit && isEmpty(x, row)) return ranking.add([]);
        for (let label = 0; label < scores.length; label++)
          scores[label] = excluded?.[label] ? 0 : posteriors[label * (k + 1) + counts[label]];
        const best = topK(scores, top).filter((label) => scores[label] > 0);
        ranking.add(
          best,
          Array.from(best, (label) => scores[label]),
        );
      });
      return ranking.csr(labels.cols);
    },
    async explain(input, label) {
      const x = prepared(input);
      if (posteriors[label * (k + 1)] === 0 || (unit && isEmpty(x, 0))) return undefined;
      const neighbours = await nearestRows(index, x, k, { threads: 1, progress: quiet });
      const count = rowIndices(neighbours, 0).filter((row) => rowIndices(labels, row).includes(label)).length;
      const score = posteriors[label * (k + 1) + count];
      const what = `${count} of the ${neighbours.indices.length} nearest training samples have this label`;
      return { score, steps: [{ what, margin: score, bias: score, factor: score, contributions: [] }] };
    },
    async save(parts) {
      const { sparse, dense } = points;
      const tensors: Tensors = { posteriors: { shape: [labels.cols, k + 1], data: posteriors } };
      if (dense) tensors.dense = { shape: [dense.rows, dense.cols], data: dense.values };
      for (const [name, matrix] of Object.entries({ labels, ...(sparse && { sparse }) })) {
        tensors[`${name}.indptr`] = vector(matrix.indptr);
        tensors[`${name}.indices`] = vector(matrix.indices);
      }
      if (sparse) tensors['sparse.values'] = vector(sparse.values);
      await parts.write('neighbours', tensors);
      return { unit, k, ...width };
    },
  };
}

const isEmpty = ({ sparse, dense }: Features, row: number): boolean =>
  (!sparse || sparse.indptr[row] === sparse.indptr[row + 1]) &&
  (!dense || denseRow(dense, row).every((value) => value === 0));

export const mlKnn: Learner<typeof options> = {
  name: 'ml-knn',
  summary:
    'the labels of the nearest training samples, with their probabilities (ML-kNN); keeps all of the data',
  options,
  tries: { k: [5, 10, 20, 40], smoothing: [0.1, 1] },
  async train({ features, labels }, o, context) {
    const points = o.unit ? unitFeatures(features) : features;
    const neighbours = await nearestRows(indexRows(points), points, o.k, { ...context, own: true });
    const posteriors = fitPosteriors(neighbours, labels, o);
    return model({ width: widthOf(features), unit: o.unit, k: o.k, points, labels, posteriors });
  },
  async load(config, parts) {
    const { unit, k, ...width } = config as { unit: boolean; k: number; sparse: number; dense: number };
    const tensors = await parts.read('neighbours');
    const pattern = (name: string, cols: number): Pattern => {
      const indptr = tensors[`${name}.indptr`].data as Uint32Array;
      const indices = tensors[`${name}.indices`].data as Uint32Array;
      return { rows: indptr.length - 1, cols, indptr, indices };
    };
    const posteriors = tensors.posteriors.data as Float32Array;
    const labels = pattern('labels', posteriors.length / (k + 1));
    const { 'sparse.values': values, dense } = tensors;
    const points: Features = {
      sparse: values && { ...pattern('sparse', width.sparse), values: values.data as Float32Array },
      dense: dense && { rows: labels.rows, cols: width.dense, values: dense.data as Float32Array },
    };
    return model({ width, unit, k, points, labels, posteriors });
  },
};
