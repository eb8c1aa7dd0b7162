// The parameters of PRIME, the programs over them, and what is kept beside them: makes steps, encodes, and hands over what
// was learned.
import { inversePropensity } from '../../data/propensity.ts';
import { columnCounts, type Pattern } from '../../math/csr.ts';
import type { Dense } from '../../math/dense.ts';
import { Random } from '../../math/random.ts';
import { input, type Value } from '../../nn/graph.ts';
import { decays } from '../../nn/parameters.ts';
import { type Feeds, type Program, type Steps, Trainer } from '../../nn/train.ts';
import type { Tensors } from '../../parts.ts';
import { longestOf, sequences, TokenFeeds, vectorsOf } from '../encode/tokens.ts';
import { drawPool, sameTexts, Truth } from './batches.ts';
import { LabelSide } from './label-side.ts';
import { type BatchShape, buildPrime, freeTable, type PrimeNetwork, primeObjective } from './network.ts';
import { freeVectorCount, type Settings } from './options.ts';
import type { Reading } from './reading.ts';
import type { PrimeSetup, Trained } from './train.ts';

/** Vectors of queries, of the texts of labels, and of their prototypes. */
interface Programs {
  queries: Program;
  labels: Program;
  prototypes?: Program;
}

interface Opened {
  setup: PrimeSetup;
  reading: Reading;
  size: BatchShape;
  /** Free vectors. */
  free: number;
  trainer: Trainer;
  steps: Steps;
  programs: Programs;
  /** Called between pieces of work. */
  breathe: () => void;
}

export class Machine {
  readonly trainer: Trainer;
  readonly #opened: Opened;
  readonly #queryTokens: TokenFeeds;
  readonly #labelTokens: TokenFeeds;
  readonly #truth: Truth;
  readonly #chances: Float64Array;
  readonly #vectors: Float32Array;
  /** Absent where texts stand for labels. */
  #beside: LabelSide | undefined;

  private constructor(opened: Opened) {
    const { setup, reading, size, trainer } = opened;
    this.trainer = trainer;
    this.#opened = opened;
    this.#queryTokens = new TokenFeeds('query', size.queries, size.queryLength);
    this.#labelTokens = new TokenFeeds('label', size.pool, size.labelLength);
    this.#truth = new Truth(size.queries, size.pool, setup.labels, sameTexts(setup.labelTexts));
    this.#chances = samplingWeights(setup.labels, setup.settings);
    this.#vectors = new Float32Array(size.queries * reading.shape.width);
  }

  static async open(setup: PrimeSetup, reading: Reading, breathe: () => void): Promise<Machine> {
    const { settings: o, labels } = setup;
    const prototypes = o.labels === 'prototype';
    const free = prototypes ? freeVectorCount(o.freeVectors, labels.cols) : 0;
    const net = buildPrime(
      reading.shape,
      prototypes ? { centroids: o.centroids, free: free > 0 } : undefined,
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
    const machine = new Machine({ setup, reading, size, free, trainer, steps, programs, breathe });
    if (net.make) {
      const encodeLabels = () => machine.#encodeLabels(programs.labels);
      machine.#beside = await LabelSide.open(setup, size, free, () => machine.encodeQueries(), encodeLabels);
    }
    return machine;
  }

  encodeQueries(): Promise<Dense> {
    const { setup, reading, size, programs, breathe } = this.#opened;
    const feeds = (rows: Uint32Array) => this.#queryTokens.of(reading.queries, rows);
    return vectorsOf(setup.labels.rows, reading.shape.width, size.queries, programs.queries, feeds, breathe);
  }

  #encodeLabels(program: Program, beside: (labels: Uint32Array) => Feeds = () => ({})): Promise<Dense> {
    const { setup, reading, size, breathe } = this.#opened;
    const feeds = (labels: Uint32Array) => ({
      ...this.#labelTokens.of(reading.labels, labels),
      ...beside(labels),
    });
    return vectorsOf(setup.labels.cols, reading.shape.width, size.pool, program, feeds, breathe);
  }

  /** One step on these queries; returns the losses. */
  async step(rows: Uint32Array, rate: number): Promise<Record<string, number>> {
    const { setup, reading, steps } = this.#opened;
    const { settings: o, labels, seed } = setup;
    const [truth, beside, vectors] = [this.#truth, this.#beside, this.#vectors];
    const random = new Random(seed, 'prime pool', this.trainer.step);
    const pool = drawPool(rows, labels, this.#chances, o.positives, random);
    truth.fill(rows, pool);
    const feeds = {
      ...this.#queryTokens.of(reading.queries, rows),
      ...this.#labelTokens.of(reading.labels, pool),
      positive: truth.positive,
      usable: truth.usable,
      'usable text': truth.usableText,
      ...beside?.feeds(pool),
    };
    const losses = await steps.run(feeds, { rate, rows: beside?.freeRows(pool), into: { vectors } });
    beside?.centroids.update(pool, truth.carriers, vectors);
    return losses;
  }

  /** What is needed to go on, beside the trainer's own. */
  state(): Tensors {
    return this.#beside?.state() ?? {};
  }

  /** What was learned; there are no steps after this. */
  async finish(): Promise<Omit<Trained, 'tokenizer' | 'shape'>> {
    const { reading, free, steps, programs } = this.#opened;
    const beside = this.#beside;
    const numbers = free * reading.shape.width;
    const table = free > 0 ? this.trainer.table(freeTable).slice(0, numbers) : new Float32Array(0);
    const { values } = await this.#encodeLabels(programs.prototypes ?? programs.labels, (labels) => ({
      ...beside?.feeds(labels),
      ...beside?.freeVectors(labels, table),
    }));
    // A thread that ends with open sessions would wait for them.
    for (const open of [steps, ...Object.values(programs)]) await open.close();
    return {
      weights: tensorsOf(this.trainer.weights()),
      vectors: values,
      ...(beside && {
        prototypes: { centroids: beside.centroids.values, free: table, places: beside.places },
      }),
    };
  }
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

async function openPrograms(trainer: Trainer, net: PrimeNetwork, size: BatchShape): Promise<Programs> {
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
