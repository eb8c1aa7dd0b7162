// Trains Deep-MIML on a thread of its own: embeds the labels, then epochs over all bags. Returns the program that scores
// instances, with its weights.
import { rowIndices, rowValues } from '../../math/csr.ts';
import { type Dense, unitDenseRows } from '../../math/dense.ts';
import { topK } from '../../math/topk.ts';
import { input } from '../../nn/graph.ts';
import { Session } from '../../nn/session.ts';
import { type Steps, Trainer } from '../../nn/train.ts';
import type { Tensors } from '../../parts.ts';
import { type EpochJob, runEpochs, type Scores, weightsOf } from '../epochs.ts';
import { type BagSet, bagScore, chances, drawBatches, feeder, type Layout, layoutsOf } from './bags.ts';
import { labelEmbeddings } from './embed.ts';
import {
  bagScores,
  coAttention,
  embeddingsName,
  type InstanceScores,
  initialParameters,
  instanceProgram,
  instanceScores,
  lossOf,
  makeNetwork,
  type Network,
  scoreInstances,
  similarities,
} from './network.ts';
import type { Options } from './options.ts';

export interface TrainSetup {
  train: BagSet;
  /** Without these the last epoch is taken. */
  validation?: BagSet;
  options: Options;
  seed: number;
  /** What an earlier run left. */
  kept?: Tensors;
}

export interface Trained {
  /** The program that scores instances. */
  onnx: Uint8Array;
  epochs: number;
  chosen: number;
  scores?: Scores;
}

export const trainMiml: EpochJob<TrainSetup, Trained> = (setup) => async (_, report) => {
  const { train, validation, options: o, seed, kept } = setup;
  const runtime = { threads: o.runtimeThreads };
  const iterations = o.attention === 'eagle' ? o.iterations : 0;
  const turns = { iterations, step: o.step, seed, runtime };
  const embeddings = await labelEmbeddings(unitDenseRows(train.x), train.bags, train.labels, turns);
  const shape = { width: train.x.cols, hidden: o.hidden, concepts: o.concepts, labels: train.labels.cols };
  const net = makeNetwork(shape, o.head);
  const parameters = initialParameters(net, seed);
  const trainer = await Trainer.create({ groups: [{ parameters, decay: o.weightDecay }], seed, runtime });
  const layouts = layoutsOf(train.bags, o.batch);
  const machines = await Promise.all(layouts.map((layout) => openSteps(net, layout, trainer, setup)));
  const batchesOf = (epoch: number) => drawBatches(train.bags, layouts, seed, 'miml order', epoch);
  const course = await runEpochs(
    {
      ...{ trainer, kept, epochs: o.epochs, patience: o.patience },
      steps: batchesOf(0).length,
      select: ['R-precision', 'likelihood'],
      async run(epoch, told) {
        for (const { layout, bags } of batchesOf(epoch)) {
          const { steps, feeds } = machines[layout];
          const step = { ...feeds(bags), [embeddingsName]: embeddings.values };
          told(await steps.run(step, { rate: o.learningRate }));
        }
      },
      validate: validation && (() => validate(net, trainer, embeddings, validation, o)),
    },
    report,
  );
  for (const { steps } of machines) await steps.close();
  const weights = weightsOf(course, parameters.keys()).set(net.embeddings, embeddings.values);
  const { epochs, chosen, scores } = course;
  return { onnx: instanceProgram(net, weights), epochs, chosen, scores };
};

async function openSteps(
  net: Network,
  layout: Layout,
  trainer: Trainer,
  { train, options: o }: TrainSetup,
): Promise<{ steps: Steps; feeds: ReturnType<typeof feeder> }> {
  const { size, count } = layout;
  const x = input('x', [count * size, net.shape.width]);
  const mask = coAttention(similarities(net, x), input('valid', [count, size]), o.tau);
  const scores = bagScores(instanceScores(net, x, o.dropout), mask);
  const loss = lossOf(
    net.head,
    scores,
    input('targets', [count, net.shape.labels]),
    input('weights', [count]),
  );
  return { steps: await trainer.compile({ loss }), feeds: feeder(train, layout, net.head) };
}

async function validate(net: Network, trainer: Trainer, embeddings: Dense, held: BagSet, o: Options) {
  const weights = new Map(trainer.weights()).set(net.embeddings, embeddings.values);
  const session = await Session.open(instanceProgram(net, weights), { threads: o.runtimeThreads });
  const found = await scoreInstances(session, held.x, net.shape.labels);
  await session.close();
  return bagScoring(found, held, o);
}

/**
 * Means over bags that have labels: of n labels, how many of the n best are the bag's own; and the logarithm of the
 * chance that the bag's labels were given, which still tells epochs apart where all find the right ones.
 */
function bagScoring(found: InstanceScores, { bags, labels }: BagSet, { tau, head }: Options): Scores {
  const all = new Uint8Array(labels.cols).fill(1);
  let [precision, likelihood, count] = [0, 0, 0];
  for (let bag = 0; bag < bags.rows; bag++) {
    const [own, counts] = [rowIndices(labels, bag), rowValues(labels, bag)];
    if (own.length === 0) continue;
    const scores = chances(head, bagScore(found, rowIndices(bags, bag), labels.cols, tau), all);
    precision += topK(scores, own.length).filter((label) => own.includes(label)).length / own.length;
    const total = counts.reduce((sum, value) => sum + value, 0);
    own.forEach((label, p) => {
      likelihood += (counts[p] / total) * Math.log(Math.max(scores[label], 1e-9));
    });
    count++;
  }
  return { 'R-precision': precision / Math.max(count, 1), likelihood: likelihood / Math.max(count, 1) };
}
