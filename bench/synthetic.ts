// Data sets of any size with a planted model: Zipf-frequent labels, each with a few preferred features, rows mixing
// their labels' features with Zipf-frequent noise. Row i depends on the seed and i alone, so test rows are those after
// the training rows. Run it to write X.trn.npz, Y.trn.npz, X.tst.npz and Y.tst.npz into a folder.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Sample, SampleStream } from '../src/data/dataset.ts';
import { writeSamples } from '../src/data/formats.ts';
import { Vocabulary } from '../src/data/vocabulary.ts';
import { Random } from '../src/math/random.ts';
import { integer, number, type OptionsOf, parseOptions } from '../src/options.ts';

const shapeOptions = {
  rows: integer(200_000, 'training rows', { min: 1 }),
  test: integer(20_000, 'test rows', { min: 1 }),
  features: integer(100_000, 'sparse features', { min: 100 }),
  labels: integer(50_000, 'labels', { min: 1 }),
  nonzeros: integer(75, 'features drawn per row; repeated draws make one feature heavier', { min: 1 }),
  labelsPerRow: number(3, 'labels per row on average', { min: 1 }),
  signal: number(0.25, 'share of the draws that come from the preferred features of a label', { max: 1 }),
  seed: integer(1, 'every choice follows from it', { min: 0 }),
};
export type Shape = OptionsOf<typeof shapeOptions>;

const preferredPerLabel = 12;
/** Labels of one topic share this many features and occur together, so that clustering has something to find. */
const topicLabels = 32;
const topicFeatures = 24;
const labelExponent = 0.7;
const featureExponent = 0.9;

/** Rows `first` to `first + count - 1` of the endless planted set. */
export function syntheticRows(shape: Shape, first: number, count: number): SampleStream {
  const preferred = preferredFeatures(shape);
  async function* batches() {
    const size = 4096;
    for (let start = first; start < first + count; start += size) {
      const rows = Math.min(size, first + count - start);
      yield Array.from({ length: rows }, (_, i) => row(shape, preferred, start + i));
    }
  }
  return { vocabulary: Vocabulary.numbered(shape.labels), width: shape.features, batches: batches() };
}

/** For every label, ranks of features: half its own, half its topic's. */
function preferredFeatures({ labels, features, seed }: Shape): Uint32Array {
  const preferred = new Uint32Array(labels * preferredPerLabel);
  let shared = new Uint32Array(0);
  for (let label = 0; label < labels; label++) {
    if (label % topicLabels === 0) {
      const random = new Random(seed, 'topic', label);
      shared = Uint32Array.from({ length: topicFeatures }, () => random.integer(features));
    }
    const random = new Random(seed, 'label', label);
    for (let p = 0; p < preferredPerLabel; p++) {
      const own = p % 2 === 0;
      preferred[label * preferredPerLabel + p] = own
        ? random.integer(features)
        : shared[random.integer(topicFeatures)];
    }
  }
  return preferred;
}

function row(shape: Shape, preferred: Uint32Array, number: number): Sample {
  const random = new Random(shape.seed, 'row', number);
  const labels = drawLabels(shape, random);
  const counts = new Map<number, number>();
  for (let draw = 0; draw < shape.nonzeros; draw++) {
    const label = labels[random.integer(labels.length)];
    const rank =
      random.uniform() < shape.signal
        ? preferred[label * preferredPerLabel + random.integer(preferredPerLabel)]
        : zipf(random, shape.features, featureExponent);
    counts.set(rank, (counts.get(rank) ?? 0) + 1);
  }
  // As TF-IDF weighs words: repeated ones and rare ones more.
  const entries = Array.from(counts, ([rank, count]) => ({
    index: scatter(rank, shape.features),
    value: (1 + Math.log(count)) * (1 + featureExponent * Math.log(1 + rank)),
  })).sort((a, b) => a.index - b.index);
  const length = Math.hypot(...entries.map(({ value }) => value));
  return {
    labels: Uint32Array.from(labels, (label) => scatter(label, shape.labels)).sort(),
    sparse: {
      indices: Uint32Array.from(entries, ({ index }) => index),
      values: Float32Array.from(entries, ({ value }) => value / length),
    },
  };
}

/** Ranks of one label drawn by frequency and, with the same chance again and again, of others: half from its topic. */
function drawLabels({ labels, labelsPerRow }: Shape, random: Random): number[] {
  const drawn = new Set([zipf(random, labels, labelExponent)]);
  const [first] = drawn;
  const topic = first - (first % topicLabels);
  const oneMore = 1 - 1 / labelsPerRow;
  while (random.uniform() < oneMore) {
    const related = random.uniform() < 0.5;
    const inTopic = topic + random.integer(Math.min(topicLabels, labels - topic));
    drawn.add(related ? inTopic : zipf(random, labels, labelExponent));
  }
  return [...drawn];
}

/** A rank in [0, n) with chance about (rank + 1)^-exponent, by inverting the continuous distribution. */
function zipf(random: Random, n: number, exponent: number): number {
  const power = 1 - exponent;
  const x = (1 + random.uniform() * ((n + 1) ** power - 1)) ** (1 / power);
  return Math.min(n - 1, Math.floor(x) - 1);
}

/** A column for every rank, one to one: frequent ones must not sit side by side. */
function scatter(rank: number, n: number): number {
  // 2^31 - 1 is prime and above every n here, so that multiplying by it is one to one modulo n.
  return (rank * (2147483647 % n)) % n;
}

async function main() {
  const flags = Object.keys(shapeOptions).map((name) => [name, { type: 'string' }] as const);
  const { values, positionals } = parseArgs({ allowPositionals: true, options: Object.fromEntries(flags) });
  const [folder] = positionals;
  if (folder === undefined) throw new Error('give the folder to write to as the first argument');
  const shape = parseOptions(shapeOptions, values);
  await mkdir(folder, { recursive: true });
  const parts = [
    { name: 'trn', first: 0, count: shape.rows },
    { name: 'tst', first: shape.rows, count: shape.test },
  ];
  for (const { name, first, count } of parts) {
    await writeSamples(syntheticRows(shape, first, count), join(folder, `X.${name}.npz`));
  }
  console.log(JSON.stringify(shape));
}

if (argv[1] === fileURLToPath(import.meta.url)) await main();
