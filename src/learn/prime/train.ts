// Trains PRIME on a thread of its own: subwords, encoder and prototypes, epoch by epoch; then the prototypes of all labels.
import type { Pattern } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { linearRate } from '../../nn/schedule.ts';
import { type Json, type Tensors, vector } from '../../parts.ts';
import type { EncoderShape } from '../encode/encoder.ts';
import { type EpochJob, runEpochs } from '../epochs.ts';
import { drawOrder, groupQueries, groupSize } from './batches.ts';
import { trainClassifiers } from './classifiers.ts';
import { Machine } from './machine.ts';
import { rateOf, type Settings } from './options.ts';
import { openReading } from './reading.ts';

export interface PrimeSetup {
  texts: string[];
  /** By label; null without a text. */
  labelTexts: (string | null)[];
  labels: Pattern;
  settings: Settings;
  seed: number;
  /** What an earlier run left. */
  kept?: Tensors;
}

/** All that a model needs to predict, and to take labels it has not seen. */
export interface Trained {
  tokenizer: Json;
  shape: EncoderShape;
  /** Of the encoder and the prototypes, by name. */
  weights: Tensors;
  /** By label: what predictions go by. */
  vectors: Float32Array;
  /** Absent where texts stand for labels. */
  prototypes?: { centroids: Float32Array; free: Float32Array; places: Uint32Array };
}

export const trainPrime: EpochJob<PrimeSetup, Trained> = (setup) => async (_, report) => {
  const { settings: o, labels, seed } = setup;
  const steps = Math.ceil(labels.rows / o.batch);
  const total = o.epochs * steps;
  // Reports are where a cancelled run ends.
  let done = 0;
  const breathe = () => report({ done, total, losses: {} });
  const reading = await openReading(setup);
  breathe();
  const machine = await Machine.open(setup, reading, breathe);
  const rate = linearRate({
    rate: rateOf(o),
    steps: total,
    warmup: Math.min(500, Math.floor(total / 10)),
  });
  // Grouping takes a good part of an epoch: groups stay until larger ones are due.
  let groups = setup.kept?.groups?.data as Uint32Array | undefined;
  const plan = {
    trainer: machine.trainer,
    epochs: o.epochs,
    steps,
    patience: 0,
    select: [],
    kept: setup.kept,
    async run(epoch: number, told: (losses: Record<string, number>) => void) {
      const size = groupSize(epoch, o.epochs);
      if (o.alike && size !== groupSize(epoch - 1, o.epochs))
        groups = groupQueries(await machine.encodeQueries(), size, seed);
      const order = drawOrder(labels.rows, groups, new Random(seed, 'prime order', epoch));
      for (let at = 0; at < order.length; at += o.batch) {
        told(await machine.step(order.subarray(at, at + o.batch), rate(machine.trainer.step)));
        done = machine.trainer.step;
      }
    },
    state: () => ({ ...machine.state(), ...(groups && { groups: vector(groups.slice()) }) }),
  };
  await runEpochs(plan, report);
  const queries = o.classifierEpochs > 0 ? await machine.encodeQueries() : undefined;
  const trained = await machine.finish();
  const common = { tokenizer: reading.subwords.file, shape: reading.shape, ...trained };
  if (!queries) return common;
  const size = groupSize(o.epochs - 1, o.epochs);
  if (groups) groups = groupQueries(queries, size, seed);
  const all = total + o.classifierEpochs * steps;
  const vectors = await trainClassifiers(
    { queries, labels, start: trained.vectors, groups, settings: o, seed },
    (losses) => report({ done: ++done, total: all, losses }),
  );
  return { ...common, vectors };
};
