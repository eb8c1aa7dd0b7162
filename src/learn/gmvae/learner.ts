// The `gmvae` learner (C-GMVAE, Bai et al. 2022): each label is a Gaussian in a latent space, a row's labels a mixture
// of theirs, and features are encoded to meet it; labels and inputs share one space of embeddings.
import { selectFeatures } from '../../data/dataset.ts';
import { splitRows } from '../../data/split.ts';
import { badInput } from '../../errors.ts';
import type { Task } from '../../kernels/pool.ts';
import { CsrBuilder, columnCounts, type Pattern, rowIndices, selectRows } from '../../math/csr.ts';
import { trainOnThread } from '../epochs.ts';
import { widthOf } from '../features.ts';
import { fingerprint } from '../fingerprint.ts';
import type { Learner, TrainContext, TrainingSet } from '../learner.ts';
import { inputScaling } from '../scaling.ts';
import { gmvaeModel, loadGmvae } from './model.ts';
import { options, type Settings, settle } from './options.ts';
import type { Samples, Trained, TrainSetup } from './train.ts';

/** The labels that training rows carry: the network knows no others. */
const labelsSeen = (labels: Pattern): Uint32Array => {
  const counts = columnCounts(labels);
  return Uint32Array.from(counts.keys()).filter((label) => counts[label] > 0);
};

/** Rows whose columns are numbered as in `columns`; others are left out. */
function renumbered(labels: Pattern, columns: Uint32Array): Pattern {
  const place = new Int32Array(labels.cols).fill(-1);
  columns.forEach((column, i) => {
    place[column] = i;
  });
  const rows = new CsrBuilder('binary');
  for (let row = 0; row < labels.rows; row++)
    rows.add(Array.from(rowIndices(labels, row), (column) => place[column]).filter((column) => column >= 0));
  return rows.pattern(columns.length);
}

const pick = ({ features, labels }: Samples, rows: Uint32Array): Samples => ({
  features: selectFeatures(features, rows),
  labels: selectRows(labels, rows),
});

/** Which rows train and which choose the epoch. */
function divide(
  { features, labels }: TrainingSet,
  columns: Uint32Array,
  o: Settings,
  { validation, seed }: TrainContext,
): Pick<TrainSetup, 'train' | 'validation'> {
  const all = { features, labels: renumbered(labels, columns) };
  const teaches = (row: number) => o.emptyRows === 'keep' || rowIndices(labels, row).length > 0;
  const training = (rows: Uint32Array): Samples => {
    const kept = rows.filter(teaches);
    if (kept.length === 0) throw badInput('training data must have rows with labels', { value: 'none' });
    return pick(all, kept);
  };
  if (!validation && o.validation * labels.rows >= 1) {
    const { train, test } = splitRows(labels, { rule: 'random', test: o.validation, seed });
    return { train: training(train), validation: pick(all, test) };
  }
  const held = validation && {
    features: validation.features,
    labels: renumbered(validation.labels, columns),
  };
  return { train: training(Uint32Array.from({ length: labels.rows }, (_, row) => row)), validation: held };
}

/** What tells this run's pieces from those of others. */
function pieceOf({ train, validation, width, settings, seed }: TrainSetup): string {
  const arrays = [train, ...(validation ? [validation] : [])].flatMap(({ features, labels }) => {
    const { sparse, dense } = features;
    const numbers = [sparse?.indptr, sparse?.indices, sparse?.values, dense?.values];
    return [...numbers, labels.indptr, labels.indices].filter((array) => array !== undefined);
  });
  return `gmvae-${fingerprint([width, settings, seed], arrays)}`;
}

/** Numbers that training holds, four of each parameter; and what one of the largest layers takes. */
function sizesOf({ features, labels }: TrainingSet, o: Settings): { parameters: number; working: number } {
  const { sparse, dense } = widthOf(features);
  const [width, seen] = [sparse + dense, labelsSeen(labels).length];
  const encoders = 256 * width + 512 * o.embedding + 5 * 256 * 512;
  const decoder = 512 * (width + o.latent + o.embedding) + (o.decoderLayers - 1) * 512 * 512;
  return {
    parameters: encoders + decoder + seen * o.embedding,
    working: seen * (o.embedding + 2048) + o.batch * (width + 3 * (o.embedding + seen)),
  };
}

export const gmvae: Learner<typeof options> = {
  name: 'gmvae',
  summary: 'a network that learns labels as Gaussians (C-GMVAE): dense features, tens to thousands of labels',
  options,
  tries: {
    learningRate: [0.0005, 0.001, 0.002],
    dropout: [0.3, 0.5],
    inputDropout: [0, 0.5],
    decoderDropout: [0, 0.5],
  },
  validates: true,
  async train(set, given, context) {
    const settings = settle(given);
    const columns = labelsSeen(set.labels);
    const width = widthOf(set.features);
    const setup: TrainSetup = {
      ...divide(set, columns, settings, context),
      width: width.sparse + width.dense,
      scaling: inputScaling(set.features, settings.scaling),
      settings,
      seed: context.seed,
    };
    const module = import.meta.url.replace(/learner(\.[jt]s)$/, 'train$1');
    const task: Task<TrainSetup, undefined, Trained> = { module, name: 'trainNetwork' };
    const { onnx, training } = await trainOnThread(task, setup, pieceOf(setup), context);
    const { runtimeThreads: threads } = settings;
    return gmvaeModel(onnx, columns, { ...width, labels: set.labels.cols, threads, training });
  },
  estimate(set, given) {
    const { parameters, working } = sizesOf(set, settle(given));
    return { memory: 150e6 + 4 * (6 * parameters + 12 * working), disk: 4 * parameters };
  },
  load: loadGmvae,
};
