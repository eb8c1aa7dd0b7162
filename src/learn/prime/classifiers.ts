// PRIME (W): one classifier per label on top of an encoder that no longer moves. Classifiers start as the prototypes and
// learn from the hardest labels of each batch.
import type { Pattern } from '../../math/csr.ts';
import { type Dense, denseRow, unitDenseRows } from '../../math/dense.ts';
import { Random } from '../../math/random.ts';
import { input } from '../../nn/graph.ts';
import { dropout, unit } from '../../nn/layers.ts';
import { matmul } from '../../nn/ops.ts';
import { linearRate } from '../../nn/schedule.ts';
import { Trainer } from '../../nn/train.ts';
import { drawOrder, drawPool, Truth } from './batches.ts';
import { tripletLoss } from './losses.ts';
import type { Settings } from './options.ts';

const table = 'classifiers';
/** As NGAME trains them. */
const triplets = {
  margin: 'fixed',
  marginLow: 0.2,
  marginHigh: 0.2,
  tieGradient: 0,
  positives: 3,
  negatives: 5,
  aggregate: 'hardest',
} as const;
const dropoutRate = 0.5;
/** Labels of each sample, at most, that are in a batch. */
const labelsOfEach = 5;

export interface ClassifierSetup {
  queries: Dense;
  labels: Pattern;
  /** By label, what its classifier starts from. */
  start: Float32Array;
  /** Queries that are alike, if batches are made of such. */
  groups?: Uint32Array;
  settings: Settings;
  seed: number;
}

/** The classifiers of all labels, of length one; tells of every step. */
export async function trainClassifiers(
  { queries, labels, start, groups, settings: o, seed }: ClassifierSetup,
  told: (losses: Record<string, number>) => void,
): Promise<Float32Array> {
  const { cols: width } = queries;
  const pool = Math.min(o.batch * labelsOfEach, labels.cols);
  // A step is fed as many rows as the pool has places; those it does not need come from the end.
  const initial = new Float32Array((labels.cols + pool) * width);
  initial.set(start);
  const trainer = await Trainer.create({
    groups: [],
    tables: [{ name: table, width, initial }],
    seed,
    runtime: { threads: o.runtimeThreads },
  });
  const rows = input('classifier rows', [pool, width]);
  const vectors = dropout(input('vectors', [o.batch, width]), dropoutRate, 'vector mask');
  const matrix = (name: string) => input(name, [o.batch, pool]);
  const similarities = matmul(vectors, unit(rows), { b: true });
  const loss = tripletLoss(similarities, matrix('positive'), matrix('usable'), triplets);
  const steps = await trainer.compile({ loss, rows: { [table]: rows } });
  const perEpoch = Math.ceil(labels.rows / o.batch);
  const total = o.classifierEpochs * perEpoch;
  const rate = linearRate({
    rate: o.classifierRate,
    steps: total,
    warmup: Math.min(500, Math.floor(total / 10)),
  });
  const truth = new Truth(o.batch, pool, labels, new Int32Array(labels.cols));
  const alike = new Float64Array(labels.cols).fill(1);
  const fed = new Float32Array(o.batch * width);
  const numbers = new Uint32Array(pool);
  for (let epoch = 0; epoch < o.classifierEpochs; epoch++) {
    const order = drawOrder(labels.rows, groups, new Random(seed, 'classifier order', epoch));
    for (let at = 0; at < order.length; at += o.batch) {
      const batch = order.subarray(at, at + o.batch);
      const random = new Random(seed, 'classifier pool', trainer.step);
      const drawn = drawPool(batch, labels, alike, labelsOfEach, random);
      truth.fill(batch, drawn);
      fed.fill(0);
      batch.forEach((row, i) => {
        fed.set(denseRow(queries, row), i * width);
      });
      numbers.set(drawn);
      for (let i = drawn.length; i < pool; i++) numbers[i] = labels.cols + i;
      const feeds = { vectors: fed, positive: truth.positive, usable: truth.usable };
      told(await steps.run(feeds, { rate: rate(trainer.step), rows: { [table]: numbers } }));
    }
  }
  await steps.close();
  const values = trainer.table(table).slice(0, labels.cols * width);
  return unitDenseRows({ rows: labels.cols, cols: width, values }).values;
}
