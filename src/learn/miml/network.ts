// Deep-MIML (Feng and Zhou 2017) with EAGLE's co-attention (Shen et al. 2020) as a program: instances get a score for
// every label, the best of several concepts; a bag's score is its best instance's. What is trained and how is train.ts.
import type { Dense } from '../../math/dense.ts';
import { Random } from '../../math/random.ts';
import { input, sizeOf, type Value } from '../../nn/graph.ts';
import { dropout, linear, logSoftmax, softmax, unit } from '../../nn/layers.ts';
import { encodeModel } from '../../nn/onnx.ts';
import { add, clip, div, log, matmul, max, mul, neg, relu, reshape, sub, sum } from '../../nn/ops.ts';
import type { Session } from '../../nn/session.ts';

export interface NetworkShape {
  /** Numbers of an instance. */
  width: number;
  hidden: number;
  concepts: number;
  labels: number;
}

export const heads = ['softmax', 'bce-softmax'] as const;
export type Head = (typeof heads)[number];

/** By this name the embeddings are fed, and found in a saved program. */
export const embeddingsName = 'label embeddings';

export interface Network {
  shape: NetworkShape;
  head: Head;
  hidden: { weights: Value; bias: Value };
  concepts: { weights: Value; bias: Value };
  /** labels x width, fixed; what instances are compared with to weigh them. */
  embeddings: Value;
}

export function makeNetwork(shape: NetworkShape, head: Head): Network {
  const { width, hidden, concepts, labels } = shape;
  const layer = (name: string, from: number, to: number) => ({
    weights: input(`${name} weights`, [from, to]),
    bias: input(`${name} bias`, [to]),
  });
  return {
    shape,
    head,
    hidden: layer('hidden', width, hidden),
    concepts: layer('concept', hidden, concepts * labels),
    embeddings: input(embeddingsName, [labels, width]),
  };
}

/** What training changes, and what it starts from: uniform, narrower the more numbers are summed. */
export function initialParameters({ hidden, concepts }: Network, seed: number): Map<Value, Float32Array> {
  return new Map(
    [hidden, concepts].flatMap(({ weights, bias }) =>
      [weights, bias].map((value): [Value, Float32Array] => {
        const random = new Random(seed, value.name ?? '');
        const bound = 1 / Math.sqrt(weights.shape[0]);
        const numbers = Array.from({ length: sizeOf(value.shape) }, () => bound * (2 * random.uniform() - 1));
        return [value, Float32Array.from(numbers)];
      }),
    ),
  );
}

/** rows x labels: the score of every label for instances (rows of x), at least 0. */
export function instanceScores(net: Network, x: Value, drop: number): Value {
  const { concepts, labels } = net.shape;
  const hidden = relu(linear(x, net.hidden.weights, net.hidden.bias));
  const all = linear(dropout(hidden, drop, 'dropped'), net.concepts.weights, net.concepts.bias);
  const best = max(reshape(relu(all), [x.shape[0], concepts, labels]), [1]);
  return net.head === 'softmax' ? best : softmax(best);
}

/** rows x labels: the cosine of every instance with every label's embedding; 0 for an instance that is 0. */
export function similarities(net: Network, x: Value): Value {
  return matmul(unit(x), net.embeddings, { b: true });
}

/**
 * bags x instances x labels: how much each instance counts for each label, on average 1 over a bag. `valid` (bags x
 * instances) is 1 for the bag's own instances and 0 for those that only fill up.
 */
export function coAttention(similarity: Value, valid: Value, tau: number): Value {
  const [bags, size] = valid.shape;
  const own = reshape(valid, [bags, size, 1]);
  const scaled = mul(reshape(similarity, [bags, size, similarity.shape[1]]), tau);
  return mul(softmax(add(scaled, mul(sub(own, 1), 1e9)), 1), sum(own, [1], true));
}

/** bags x labels: each label's best instance, as the mask sees it. */
export function bagScores(scores: Value, mask: Value): Value {
  return max(mul(reshape(scores, mask.shape), mask), [1]);
}

/**
 * The mean over bags that count (`weights`, 1 or 0) of how far scores are from `targets`, bags x labels: the share of
 * each label in its bag, or for `bce-softmax` whether the bag has it.
 */
export function lossOf(head: Head, scores: Value, targets: Value, weights: Value): Value {
  const perBag = head === 'softmax' ? crossEntropy(scores, targets) : binaryCrossEntropy(scores, targets);
  return div(sum(mul(perBag, weights)), sum(weights));
}

const crossEntropy = (scores: Value, shares: Value): Value => neg(sum(mul(shares, logSoftmax(scores)), [1]));

/** Scores are chances here; a mask may have lifted one above 1. */
function binaryCrossEntropy(scores: Value, labels: Value): Value {
  const chance = clip(scores, 1e-6, 1 - 1e-6);
  const right = add(mul(labels, log(chance)), mul(sub(1, labels), log(sub(1, chance))));
  return neg(sum(right, [1]));
}

/** The program that scores any number of instances. */
export function instanceProgram(net: Network, weights: ReadonlyMap<Value, Float32Array>): Uint8Array {
  const x = input('x', [1, net.shape.width]);
  const outputs = { scores: instanceScores(net, x, 0), similarities: similarities(net, x) };
  return encodeModel(outputs, weights, 'rows');
}

/** Per instance and label. */
export interface InstanceScores {
  scores: Float32Array;
  /** Cosines with the label embeddings. */
  similarities: Float32Array;
}

const chunkRows = 1024;

/** Runs that program over all rows of x. */
export async function scoreInstances(session: Session, x: Dense, labels: number): Promise<InstanceScores> {
  const [scores, similarities] = [new Float32Array(x.rows * labels), new Float32Array(x.rows * labels)];
  for (let from = 0; from < x.rows; from += chunkRows) {
    const found = await session.run({ x: x.values.subarray(from * x.cols, (from + chunkRows) * x.cols) });
    scores.set(found.scores as Float32Array, from * labels);
    similarities.set(found.similarities as Float32Array, from * labels);
  }
  return { scores, similarities };
}
