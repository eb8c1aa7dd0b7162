// The `miml` learner: Deep-MIML with EAGLE's co-attention, for samples that are bags of instances (images of an album,
// sentences of a text) and carry labels as a whole. A plain sample is a bag of one.
import { selectFeatures } from '../../data/dataset.ts';
import { splitRows } from '../../data/split.ts';
import { badInput } from '../../errors.ts';
import type { Task } from '../../kernels/pool.ts';
import { type Csr, columnCounts, type Pattern, selectRows } from '../../math/csr.ts';
import { trainOnThread } from '../epochs.ts';
import { inputRows, widthOf } from '../features.ts';
import { fingerprint } from '../fingerprint.ts';
import type { Learner, TrainContext, TrainingSet } from '../learner.ts';
import { type Scaling, standardise } from '../scaling.ts';
import type { BagSet } from './bags.ts';
import { fitInstances, Projector } from './instances.ts';
import { loadMiml, mimlModel } from './model.ts';
import { type Options, options } from './options.ts';
import type { Trained, TrainSetup } from './train.ts';

const taus = [0, 0.5, 1, 2, 5, 10, 20];
const task: Task<TrainSetup, undefined, Trained> = {
  module: import.meta.url.replace(/learner(\.[jt]s)$/, 'train$1'),
  name: 'trainMiml',
};

export const miml: Learner<typeof options> = {
  name: 'miml',
  summary:
    'a network for bags of instances, which learns what each instance is from the labels of bags (Deep-MIML)',
  options,
  validates: true,
  takesBags: true,
  async train(set, o, context) {
    const projection = { columns: o.columns, seed: context.seed };
    const width = widthOf(set.features);
    const projector = new Projector(width.sparse, projection);
    const rows = projector.apply(set.features);
    const scaling = fitInstances(rows, width.dense);
    const all = { x: standardise(rows, scaling), bags: bagsOf(set), labels: countsOf(set) };
    const given = context.validation && bagSetOf(context.validation, projector, scaling);
    const { train, validation } = given
      ? { train: labelled(all), validation: given }
      : divide(all, o, context);
    const { tau, trained: result } = await trainBest(
      { train, validation, options: o, seed: context.seed },
      context,
    );
    const { onnx, ...training } = result;
    const counts = columnCounts(train.labels);
    return mimlModel(
      {
        ...width,
        projection,
        head: o.head,
        tau,
        threads: o.runtimeThreads,
        training: { scores: null, ...training },
      },
      { onnx, scaling, trained: Uint8Array.from(counts, (count) => (count > 0 ? 1 : 0)) },
    );
  },
  load: loadMiml,
};

/** Every row is a bag of one where there are no bags. */
function bagsOf({ features }: Pick<TrainingSet, 'features'>): Pattern {
  const rows = inputRows(features);
  const indptr = Uint32Array.from({ length: rows + 1 }, (_, row) => row);
  return features.bags ?? { rows, cols: rows, indptr, indices: indptr.slice(0, rows) };
}

const countsOf = ({ labels, labelCounts }: TrainingSet): Csr => ({
  ...labels,
  values: labelCounts ?? new Float32Array(labels.indices.length).fill(1),
});

const bagSetOf = (set: TrainingSet, projector: Projector, scaling: Scaling): BagSet => ({
  x: standardise(projector.apply(set.features), scaling),
  bags: bagsOf(set),
  labels: countsOf(set),
});

const pick = ({ x, bags, labels }: BagSet, rows: ArrayLike<number>): BagSet => ({
  x,
  bags: selectRows(bags, rows),
  labels: selectRows(labels, rows),
});

/** Bags without instances or labels teach nothing. */
function labelled(set: BagSet): BagSet {
  const size = ({ indptr }: Pattern, row: number) => indptr[row + 1] - indptr[row];
  const rows = Array.from({ length: set.bags.rows }, (_, row) => row);
  const kept = rows.filter((row) => size(set.bags, row) > 0 && size(set.labels, row) > 0);
  if (kept.length === 0) throw badInput('training data must have a bag with instances and labels');
  return pick(set, kept);
}

/** Bags to train on, and some held back to choose by. */
function divide(all: BagSet, { validation: share }: Options, { seed }: TrainContext) {
  const set = labelled(all);
  if (share * set.bags.rows < 1) return { train: set };
  const { train, test } = splitRows(set.labels, { rule: 'random', test: share, seed });
  // With no other instances than its own: all are scored after every epoch.
  const { dense: x = set.x, bags = set.bags } = selectFeatures({ dense: set.x, bags: set.bags }, test);
  return { train: pick(set, train), validation: { x, bags, labels: selectRows(set.labels, test) } };
}

/** Trains with the options' tau, or with all of several, of which the best on validation is kept. */
async function trainBest(
  setup: TrainSetup,
  context: TrainContext,
): Promise<{ tau: number; trained: Trained }> {
  const { attention, chooseTau, tau: asked } = setup.options;
  if (attention === 'none') return trainOnce(setup, 0, context);
  if (!chooseTau) return trainOnce(setup, asked, context);
  if (!setup.validation)
    throw badInput('chooseTau must have validation data, or a share of the bags to hold back');
  let best: Awaited<ReturnType<typeof trainOnce>> | undefined;
  for (const tau of taus) {
    const found = await trainOnce(setup, tau, context);
    if (!best || scoreOf(found.trained) > scoreOf(best.trained)) best = found;
  }
  return best ?? trainOnce(setup, asked, context);
}

const scoreOf = ({ scores }: Trained): number => scores?.['R-precision'] ?? 0;

async function trainOnce(setup: TrainSetup, tau: number, context: TrainContext) {
  const settled = { ...setup, options: { ...setup.options, tau } };
  const piece = context.checkpoint ? `${fingerprintOf(settled)}-epoch` : '';
  return { tau, trained: await trainOnThread(task, settled, piece, context) };
}

function fingerprintOf({ train, validation, options: o, seed }: TrainSetup): string {
  const arrays = [train, ...(validation ? [validation] : [])].flatMap(({ x, bags, labels }) => [
    ...[x.values, bags.indptr, bags.indices],
    ...[labels.indptr, labels.indices, labels.values],
  ]);
  return fingerprint([o, seed, train.x.cols, train.labels.cols], arrays);
}
