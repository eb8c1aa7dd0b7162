// Trains a network on a thread of its own, epoch by epoch, and keeps the weights that did best on validation rows.
import type { Features } from '../../data/dataset.ts';
import { columnCounts, type Pattern, rowIndices } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { encodeModel, inputsOf } from '../../nn/onnx.ts';
import { constantRate, cosineRate, type Schedule } from '../../nn/schedule.ts';
import { type Feeds, Trainer } from '../../nn/train.ts';
import type { Tensors } from '../../parts.ts';
import { type Course, type EpochJob, type EpochPlan, runEpochs, weightsOf } from '../epochs.ts';
import { writeRows } from '../features.ts';
import type { Scaling } from '../scaling.ts';
import { makeNetwork, type Network, predict } from './net.ts';
import { objectiveOf } from './objective.ts';
import type { Settings } from './options.ts';
import { validationScores } from './scores.ts';

export interface Samples {
  features: Features;
  labels: Pattern;
}

export interface TrainSetup {
  train: Samples;
  /** Without these the last epoch is taken. */
  validation?: Samples;
  /** Columns, sparse and dense. */
  width: number;
  scaling?: Scaling;
  settings: Settings;
  seed: number;
  /** What an earlier run left. */
  kept?: Tensors;
}

export interface Trained {
  /** The program that predicts, with its weights. */
  onnx: Uint8Array;
  training: Pick<Course, 'epochs' | 'chosen' | 'scores'>;
}

export const trainNetwork: EpochJob<TrainSetup, Trained> = (setup) => async (_, report) => {
  const { settings: o, train, validation, seed, width } = setup;
  const sizes = { features: width, labels: train.labels.cols, shares: sharesOf(train.labels) };
  const net = makeNetwork(sizes, o, seed, setup.scaling);
  const machine = await openMachine(net, seed);
  const batches = new Batches(train, width, o.batch);
  const rate = scheduleOf(o);
  const plan: EpochPlan = {
    trainer: machine.trainer,
    epochs: o.epochs,
    steps: Math.ceil(train.labels.rows / o.batch),
    patience: o.patience,
    select: [o.select],
    kept: setup.kept,
    async run(epoch, told) {
      const order = new Random(seed, 'gmvae order', epoch).permutation(train.labels.rows);
      for (let at = 0; at < order.length; at += o.batch)
        told(await machine.step(batches.feeds(order.subarray(at, at + o.batch)), rate(epoch)));
    },
    validate: validation && (() => validate(machine, validation, setup)),
  };
  const course = await runEpochs(plan, report);
  await machine.close();
  const kept = weightsOf(course, net.parameters.keys());
  const { epochs, chosen, scores } = course;
  const onnx = encodeModel({ probabilities: predict(net, 1) }, kept, 'rows');
  return { onnx, training: { epochs, chosen, scores } };
};

/** Of all rows, those with each label; never none or all. */
const sharesOf = (labels: Pattern): Float64Array =>
  Float64Array.from(columnCounts(labels), (count) => (count + 0.5) / (labels.rows + 1));

/** What trains a network and what validates it, over the same parameters. */
async function openMachine(net: Network, seed: number) {
  const { batch, weightDecay, maxNorm, runtimeThreads } = net.settings;
  const objective = objectiveOf(net, batch);
  const used = new Set(inputsOf([objective.loss]));
  const parameters = new Map([...net.parameters].filter(([value]) => used.has(value)));
  const trainer = await Trainer.create({
    groups: [{ parameters, l2: weightDecay }],
    seed,
    maxNorm: maxNorm || undefined,
    runtime: { threads: runtimeThreads },
  });
  const steps = await trainer.compile(objective);
  const program = await trainer.program({ probabilities: predict(net, batch) });
  return {
    trainer,
    step: (feeds: Feeds, rate: number) => steps.run(feeds, { rate }),
    probabilities: async (x: Float32Array) => (await program.run({ x })).probabilities as Float32Array,
    close: async () => {
      await steps.close();
      await program.close();
    },
  };
}

/** Rows as they are fed, in arrays that are used again and again. */
class Batches {
  readonly #samples: Samples;
  readonly #feeds: { x: Float32Array; y: Float32Array; rows: Float32Array; labelled: Float32Array };

  constructor(samples: Samples, width: number, size: number) {
    this.#samples = samples;
    const [x, y] = [width, samples.labels.cols].map((columns) => new Float32Array(size * columns));
    this.#feeds = { x, y, rows: new Float32Array(size), labelled: new Float32Array(size) };
  }

  /** The features of these rows; zeros after the last. */
  features(rows: Uint32Array): Float32Array {
    writeRows(this.#samples.features, rows, this.#feeds.x);
    return this.#feeds.x;
  }

  feeds(numbers: Uint32Array): Feeds {
    const { labels } = this.#samples;
    const { y, rows, labelled } = this.#feeds;
    for (const array of [y, rows, labelled]) array.fill(0);
    numbers.forEach((row, i) => {
      const own = rowIndices(labels, row);
      for (const label of own) y[i * labels.cols + label] = 1;
      rows[i] = 1 / numbers.length;
      labelled[i] = own.length > 0 ? 1 : 0;
    });
    const count = labelled.reduce((total, one) => total + one, 0);
    for (let i = 0; i < labelled.length; i++) labelled[i] /= Math.max(count, 1);
    return { x: this.features(numbers), y, rows, labelled };
  }
}

type Machine = Awaited<ReturnType<typeof openMachine>>;

async function validate(machine: Machine, samples: Samples, { width, settings: { batch } }: TrainSetup) {
  const { rows, cols } = samples.labels;
  const batches = new Batches(samples, width, batch);
  const all = new Float32Array(rows * cols);
  for (let at = 0; at < rows; at += batch) {
    const numbers = Uint32Array.from({ length: Math.min(batch, rows - at) }, (_, i) => at + i);
    const found = await machine.probabilities(batches.features(numbers));
    all.set(found.subarray(0, numbers.length * cols), at * cols);
  }
  return validationScores(all, samples.labels);
}

/** The rate starts anew from time to time; PyTorch calls this cosine annealing with warm restarts. */
function scheduleOf({ learningRate: rate, lowestRate, restart, stretch }: Settings): Schedule {
  if (restart === 0) return constantRate(rate);
  return cosineRate({ rate, steps: restart, end: Math.min(lowestRate, rate), stretch });
}
