// Trains PRIME on a thread of its own: subwords, encoder and prototypes, epoch by epoch; then the prototypes of all labels.
import { readPretrainedFolder } from '../../data/pretrained-folder.ts';
import { inversePropensity } from '../../data/propensity.ts';
import { badInput, badUsage, locate } from '../../errors.ts';
import { columnCounts, type Pattern } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { input, type Value } from '../../nn/graph.ts';
import { decays } from '../../nn/parameters.ts';
import { linearRate } from '../../nn/schedule.ts';
import { type Program, Trainer } from '../../nn/train.ts';
import type { Json, Tensors } from '../../parts.ts';
import { trainSubwords } from '../../text/subword-trainer.ts';
import { Subwords, type TokenRows } from '../../text/subwords.ts';
import { startImportance } from '../encode/bag.ts';
import type { EncoderShape } from '../encode/encoder.ts';
import { readPretrained } from '../encode/pretrained.ts';
import { type EpochJob, runEpochs } from '../epochs.ts';
import { drawOrder, drawPool, groupQueries, groupSize, Truth } from './batches.ts';
import { trainClassifiers } from './classifiers.ts';
import { LabelSide } from './label-side.ts';
import {
  type BatchShape,
  buildPrime,
  freeTable,
  type PrimeNetwork,
  primeObjective,
  sequences,
} from './network.ts';
import { freeVectorCount, rateOf, type Settings } from './options.ts';
import { longestOf, sameTexts, TokenFeeds, vectorsOf } from './tokens.ts';

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
  const machine = await openMachine(setup, reading, breathe);
  const rate = linearRate({
    rate: rateOf(o),
    steps: total,
    warmup: Math.min(500, Math.floor(total / 10)),
  });
  const plan = {
    trainer: machine.trainer,
    epochs: o.epochs,
    steps,
    patience: 0,
    select: [],
    kept: setup.kept,
    async run(epoch: number, told: (losses: Record<string, number>) => void) {
      const size = o.alike ? groupSize(epoch, o.epochs) : 0;
      const groups = size ? groupQueries(await machine.encodeQueries(), size, seed) : undefined;
      const order = drawOrder(labels.rows, groups, new Random(seed, 'prime order', epoch));
      for (let at = 0; at < order.length; at += o.batch) {
        told(await machine.step(order.subarray(at, at + o.batch), rate(machine.trainer.step)));
        done = machine.trainer.step;
      }
    },
    state: machine.state,
  };
  await runEpochs(plan, report);
  const queries = o.classifierEpochs > 0 ? await machine.encodeQueries() : undefined;
  const trained = await machine.finish();
  const common = { tokenizer: reading.subwords.file, shape: reading.shape, ...trained };
  if (!queries) return common;
  const size = o.alike ? groupSize(o.epochs - 1, o.epochs) : 0;
  const groups = size ? groupQueries(queries, size, seed) : undefined;
  const all = total + o.classifierEpochs * steps;
  const vectors = await trainClassifiers(
    { queries, labels, start: trained.vectors, groups, settings: o, seed },
    (losses) => report({ done: ++done, total: all, losses }),
  );
  return { ...common, vectors };
};

interface Reading {
  subwords: Subwords;
  shape: EncoderShape;
  /** By name, where there are any before training. */
  weights: ReadonlyMap<string, Float32Array>;
  queries: TokenRows;
  labels: TokenRows;
}

/** Tokens, and the encoder that takes them. */
async function openReading({ texts, labelTexts, settings: o }: PrimeSetup): Promise<Reading> {
  const known = labelTexts.filter((text) => text !== null);
  const { subwords, shape, weights } =
    o.encoder === 'pretrained' ? await openPretrained(o) : await openNew([...texts, ...known], o);
  const queries = subwords.encode(texts, o.length);
  return {
    subwords,
    shape,
    weights: shape.kind === 'bag' ? startImportance(queries, shape.tokens) : weights,
    queries,
    labels: subwords.encode(
      labelTexts.map((text) => text ?? ''),
      o.length,
    ),
  };
}

async function openNew(texts: string[], o: Settings) {
  const subwords = await Subwords.from(
    trainSubwords(texts, { size: o.vocabulary, minCount: 2, lowercase: true }),
  );
  const common = { tokens: subwords.size, width: o.width };
  if (o.encoder === 'bag')
    return { subwords, weights: new Map(), shape: { kind: 'bag', pooling: o.pooling, ...common } as const };
  if (o.width % o.heads !== 0) throw badUsage(`heads must divide the width ${o.width}`, { value: o.heads });
  const shape: EncoderShape = {
    kind: 'transformer',
    ...common,
    layers: o.layers,
    heads: o.heads,
    inner: 4 * o.width,
    places: o.length,
    activation: 'gelu',
    epsilon: 1e-12,
    dropout: 0.1,
  };
  return { subwords, weights: new Map<string, Float32Array>(), shape };
}

async function openPretrained(o: Settings) {
  if (!o.folder) throw badUsage('encoder=pretrained must come with folder=...');
  const { tokenizer, config, tensors } = await readPretrainedFolder(o.folder);
  try {
    const subwords = await Subwords.from(tokenizer);
    const { shape, weights } = readPretrained(config, tensors);
    if (subwords.size > shape.tokens)
      throw badInput(`tokenizer.json must know at most the ${shape.tokens} tokens of the network`, {
        value: subwords.size,
      });
    if (o.length > shape.places)
      throw badUsage(`length must be at most the ${shape.places} places of the network`, { value: o.length });
    return { subwords, shape, weights };
  } catch (error) {
    throw locate(error, { file: o.folder });
  }
}

/** The parameters, the programs over them, and what is kept beside them. */
async function openMachine(setup: PrimeSetup, reading: Reading, breathe: () => void) {
  const { settings: o, labels, seed } = setup;
  const { shape } = reading;
  const free = o.labels === 'prototype' ? freeVectorCount(o.freeVectors, labels.cols) : 0;
  const net = buildPrime(
    shape,
    o.labels === 'prototype' ? { centroids: o.centroids, free: free > 0 } : undefined,
  );
  const size: BatchShape = {
    queries: o.batch,
    pool: Math.min(o.batch * o.positives, labels.cols),
    queryLength: longestOf(reading.queries),
    labelLength: longestOf(reading.labels),
  };
  const trainer = await createTrainer(net, setup, reading.weights, free, size.pool);
  const steps = await trainer.compile(primeObjective(net, o, size));
  const programs = await openPrograms(trainer, net, size);
  const feeds = {
    query: new TokenFeeds('query', size.queries, size.queryLength),
    label: new TokenFeeds('label', size.pool, size.labelLength),
  };
  const encodeQueries = () =>
    vectorsOf(
      labels.rows,
      shape.width,
      size.queries,
      programs.queries,
      (rows) => feeds.query.of(reading.queries, rows),
      breathe,
    );
  const encodeLabels = () =>
    vectorsOf(
      labels.cols,
      shape.width,
      size.pool,
      programs.labels,
      (rows) => feeds.label.of(reading.labels, rows),
      breathe,
    );
  const beside = net.make && (await LabelSide.open(setup, size, free, encodeQueries, encodeLabels));
  const truth = new Truth(size.queries, size.pool, labels, sameTexts(setup.labelTexts));
  const weights = samplingWeights(labels, o);
  const vectors = new Float32Array(size.queries * shape.width);
  return {
    trainer,
    encodeQueries,
    async step(rows: Uint32Array, rate: number) {
      const random = new Random(seed, 'prime pool', trainer.step);
      const pool = drawPool(rows, labels, weights, o.positives, random);
      truth.fill(rows, pool);
      const losses = await steps.run(
        {
          ...feeds.query.of(reading.queries, rows),
          ...feeds.label.of(reading.labels, pool),
          positive: truth.positive,
          usable: truth.usable,
          'usable text': truth.usableText,
          ...beside?.feeds(pool),
        },
        { rate, rows: beside?.freeRows(pool), into: { vectors } },
      );
      beside?.centroids.update(pool, truth.carriers, vectors);
      return losses;
    },
    state: (): Tensors => beside?.state() ?? {},
    async finish(): Promise<Omit<Trained, 'tokenizer' | 'shape'>> {
      const table = free > 0 ? trainer.table(freeTable).slice(0, free * shape.width) : new Float32Array(0);
      const all = await vectorsOf(
        labels.cols,
        shape.width,
        size.pool,
        programs.prototypes ?? programs.labels,
        (rows) => ({
          ...feeds.label.of(reading.labels, rows),
          ...beside?.feeds(rows),
          ...beside?.freeVectors(rows, table),
        }),
        breathe,
      );
      // A thread that ends with open sessions would wait for them.
      for (const open of [steps, ...Object.values(programs)]) await open.close();
      return {
        weights: tensorsOf(trainer.weights()),
        vectors: all.values,
        ...(beside && {
          prototypes: { centroids: beside.centroids.values, free: table, places: beside.places },
        }),
      };
    },
  };
}

async function createTrainer(
  net: PrimeNetwork,
  { settings: o, seed }: PrimeSetup,
  known: ReadonlyMap<string, Float32Array>,
  free: number,
  pool: number,
): Promise<Trainer> {
  const drawn = [...net.encoder.parameters.draw(seed), ...net.ofPrototypes.draw(seed)].map(
    ([value, numbers]): [Value, Float32Array] => [value, known.get(value.name ?? '') ?? numbers],
  );
  const group = (decaying: boolean) => new Map(drawn.filter(([value]) => decays(value) === decaying));
  const { width } = net.shape;
  const random = new Random(seed, 'prime free');
  const bound = Math.sqrt(6 / (free + width));
  // A step is fed as many rows as the pool has places; those it does not need come from the end.
  const initial = Float32Array.from(
    { length: (free + pool) * width },
    () => bound * (2 * random.uniform() - 1),
  );
  return Trainer.create({
    groups: [{ parameters: group(true), decay: o.weightDecay }, { parameters: group(false) }],
    tables: free > 0 ? [{ name: freeTable, width, initial }] : [],
    epsilon: 1e-6,
    seed,
    runtime: { threads: o.runtimeThreads },
  });
}

/** Vectors of queries, of the texts of labels, and of their prototypes. */
async function openPrograms(
  trainer: Trainer,
  net: PrimeNetwork,
  size: BatchShape,
): Promise<{ queries: Program; labels: Program; prototypes?: Program }> {
  const { encoder } = net;
  const texts = encoder.encode(sequences('label', size.pool, size.labelLength));
  const free = net.make?.free ? input('free', [size.pool, net.shape.width]) : undefined;
  return {
    queries: await trainer.program({
      vectors: encoder.encode(sequences('query', size.queries, size.queryLength)),
    }),
    labels: await trainer.program({ vectors: texts }),
    ...(net.make && { prototypes: await trainer.program({ vectors: net.prototype(texts, free) }) }),
  };
}

/** How likely each label is drawn as a positive, beside the others of its row. */
function samplingWeights(labels: Pattern, { sampling }: Settings): Float64Array {
  const counts = columnCounts(labels);
  return sampling === 'uniform'
    ? new Float64Array(labels.cols).fill(1)
    : inversePropensity(counts, labels.rows);
}

const tensorsOf = (weights: ReadonlyMap<Value, Float32Array>): Tensors =>
  Object.fromEntries(
    Array.from(weights, ([value, data]) => [
      value.name ?? '',
      { shape: [...value.shape], data: data.slice() },
    ]),
  );
