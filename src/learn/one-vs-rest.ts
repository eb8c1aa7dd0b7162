// One linear SVM per label, solved exactly by dual coordinate descent in plain TypeScript. Slow and obvious on
// purpose: it is the reference every fast kernel is tested against. For more than a few thousand labels use `tree`.
import { type Csr, CsrBuilder, type Pattern, rowIndices, rowValues, transpose } from '../math/csr.ts';
import { Random } from '../math/random.ts';
import { topK } from '../math/topk.ts';
import { integer, number, type OptionsOf } from '../options.ts';
import { vector } from '../parts.ts';
import { breathe, checkCancelled } from '../progress.ts';
import { joinFeatures, unitFeatures, widthOf } from './features.ts';
import type { Learner, Model, Width } from './learner.ts';

const options = {
  cost: number(1, 'C: the price of a violated margin; larger fits the training data more closely', {
    min: 1e-9,
  }),
  epsilon: number(0.1, 'stop when the projected gradients differ by less than this', { min: 1e-12 }),
  iterations: integer(100, 'passes over the data at most', { min: 1 }),
  bias: number(1, 'value of the constant feature (regularised like the others); 0 leaves it out', { min: 0 }),
  threshold: number(0, 'weights smaller than this become zero', { min: 0 }),
};
type Options = OptionsOf<typeof options>;

/**
 * min over w of 1/2 |w|^2 + C sum_i max(0, 1 - s_i w.x_i)^2, with s_i = 1 for `positives` and -1 for all other rows.
 * Returns the weights, the bias weight last (times nothing: multiply by `bias` to score).
 */
export function solveSvm(x: Csr, positives: ArrayLike<number>, o: Options, random: Random): Float64Array {
  const w = new Float64Array(x.cols + 1);
  const alpha = new Float64Array(x.rows);
  const sign = new Int8Array(x.rows).fill(-1);
  for (let i = 0; i < positives.length; i++) sign[positives[i]] = 1;
  const diagonal = 1 / (2 * o.cost);
  const curvature = Float64Array.from({ length: x.rows }, (_, i) => {
    return rowValues(x, i).reduce((sum, v) => sum + v * v, o.bias * o.bias + diagonal);
  });
  const order = Uint32Array.from({ length: x.rows }, (_, i) => i);
  for (let pass = 0; pass < o.iterations; pass++) {
    random.shuffle(order);
    let [largest, smallest] = [-Infinity, Infinity];
    for (const i of order) {
      const gradient = sign[i] * margin(x, i, w, o.bias) - 1 + alpha[i] * diagonal;
      const projected = alpha[i] === 0 ? Math.min(gradient, 0) : gradient;
      largest = Math.max(largest, projected);
      smallest = Math.min(smallest, projected);
      if (projected === 0) continue;
      const next = Math.max(alpha[i] - gradient / curvature[i], 0);
      const step = (next - alpha[i]) * sign[i];
      alpha[i] = next;
      for (let p = x.indptr[i]; p < x.indptr[i + 1]; p++) w[x.indices[p]] += step * x.values[p];
      w[x.cols] += step * o.bias;
    }
    if (largest - smallest <= o.epsilon) break;
  }
  return w;
}

function margin(x: Csr, row: number, w: ArrayLike<number>, bias: number): number {
  let sum = w[x.cols] * bias;
  for (let p = x.indptr[row]; p < x.indptr[row + 1]; p++) sum += w[x.indices[p]] * x.values[p];
  return sum;
}

/** The last column left out. */
function withoutColumn(m: Csr, column: number): Csr {
  const kept = new CsrBuilder('values');
  for (let row = 0; row < m.rows; row++) {
    const size = rowIndices(m, row).filter((other) => other < column).length;
    kept.add(rowIndices(m, row).subarray(0, size), rowValues(m, row).subarray(0, size));
  }
  return kept.csr(column);
}

const sigmoid = (margin: number) => 1 / (1 + Math.exp(-margin));

/** `weights` is labels x (features + bias), sparse; a label without training positives has an empty row. */
function model(weights: Csr, bias: number, width: Width): Model {
  const byFeature = transpose(weights);
  const trained = Array.from({ length: weights.rows }, (_, l) => weights.indptr[l + 1] > weights.indptr[l]);
  const biasColumn = weights.cols - 1;

  const scoreRow = (x: Csr, row: number, margins: Float64Array) => {
    margins.fill(0);
    const addFeature = (feature: number, value: number) => {
      for (let p = byFeature.indptr[feature]; p < byFeature.indptr[feature + 1]; p++) {
        margins[byFeature.indices[p]] += value * byFeature.values[p];
      }
    };
    for (let p = x.indptr[row]; p < x.indptr[row + 1]; p++) addFeature(x.indices[p], x.values[p]);
    addFeature(biasColumn, bias);
  };

  return {
    width,
    labelWeights: () => withoutColumn(weights, biasColumn),
    async predict(inputs, { top, excluded, signal, progress }) {
      const x = joinFeatures(unitFeatures(inputs));
      const margins = new Float64Array(weights.rows);
      const scores = new Float32Array(weights.rows);
      const ranking = new CsrBuilder('values');
      for (let row = 0; row < x.rows; row++) {
        if (row % 64 === 63) {
          progress?.({ phase: 'predict', done: row, total: x.rows, unit: 'rows' });
          await breathe();
        }
        checkCancelled(signal);
        // An empty input says nothing about any label.
        if (x.indptr[row] === x.indptr[row + 1]) {
          ranking.add([]);
          continue;
        }
        scoreRow(x, row, margins);
        // Ranked as rounded for the answer, so that ties in the answer go to the lowest column.
        for (let l = 0; l < weights.rows; l++)
          scores[l] = trained[l] && !excluded?.[l] ? sigmoid(margins[l]) : 0;
        const best = topK(scores, top).filter((l) => scores[l] > 0);
        ranking.add(
          best,
          Array.from(best, (l) => scores[l]),
        );
      }
      return ranking.csr(weights.rows);
    },
    async explain(input, label) {
      const x = joinFeatures(unitFeatures(input));
      if (!trained[label] || x.indptr[1] === 0) return undefined;
      const features = rowIndices(weights, label);
      const w = new Map(Array.from(rowValues(weights, label), (value, p) => [features[p], value]));
      const products = Array.from(rowIndices(x, 0), (feature, p) => {
        return { feature, value: (w.get(feature) ?? 0) * x.values[p] };
      });
      const contributions = products
        .filter(({ value }) => value !== 0)
        .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
      const biasTerm = (w.get(biasColumn) ?? 0) * bias;
      const total = contributions.reduce((sum, { value }) => sum + value, biasTerm);
      const factor = sigmoid(total);
      return {
        score: factor,
        steps: [{ what: 'label', margin: total, bias: biasTerm, factor, contributions }],
      };
    },
    async save(parts) {
      const { indptr, indices, values } = weights;
      await parts.write('weights', {
        indptr: vector(indptr),
        indices: vector(indices),
        values: vector(values),
      });
      return { bias, ...width };
    },
  };
}

async function trainWeights(x: Csr, labels: Pattern, o: Options, context: Parameters<Learner['train']>[2]) {
  const weights = new CsrBuilder('values');
  const positives = transpose(labels);
  for (let label = 0; label < labels.cols; label++) {
    checkCancelled(context.signal);
    const rows = rowIndices(positives, label);
    const solved = rows.length ? solveSvm(x, rows, o, new Random(context.seed, 'one-vs-rest', label)) : [];
    const kept = Array.from(solved.keys()).filter(
      (j) => solved[j] !== 0 && Math.abs(solved[j]) >= o.threshold,
    );
    weights.add(
      kept,
      kept.map((j) => solved[j]),
    );
    context.progress({ phase: 'train', done: label + 1, total: labels.cols, unit: 'labels' });
    await breathe();
  }
  return weights.csr(x.cols + 1);
}

export const oneVsRest: Learner<typeof options> = {
  name: 'one-vs-rest',
  summary: 'one linear SVM per label, solved exactly; slow, the reference for the fast learners',
  options,
  tries: { cost: [0.1, 0.3, 1, 3] },
  async train({ features, labels }, o, context) {
    const x = joinFeatures(unitFeatures(features));
    return model(await trainWeights(x, labels, o, context), o.bias, widthOf(features));
  },
  async load(config, parts) {
    const { bias, sparse, dense } = config as { bias: number } & { [K in keyof Width]: number };
    const { indptr, indices, values } = await parts.read('weights');
    const weights: Csr = {
      rows: indptr.data.length - 1,
      cols: sparse + dense + 1,
      indptr: indptr.data as Uint32Array,
      indices: indices.data as Uint32Array,
      values: values.data as Float32Array,
    };
    return model(weights, bias, { sparse, dense });
  },
};
