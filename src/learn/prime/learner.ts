// The `prime` learners (Dahiya et al. 2024): texts of samples and labels in one space, where a label is a prototype of its
// text, the samples that carry it and a vector of its own.
import type { Vocabulary } from '../../data/vocabulary.ts';
import { badInput } from '../../errors.ts';
import type { Task } from '../../kernels/pool.ts';
import { columnCounts } from '../../math/csr.ts';
import { trainOnThread } from '../epochs.ts';
import { fingerprint } from '../fingerprint.ts';
import { calledBy } from '../label-names.ts';
import type { Estimate, Learner } from '../learner.ts';
import { loadPrime, openPrime } from './model.ts';
import { freeVectorCount, options, type Settings } from './options.ts';
import type { PrimeSetup, Trained } from './train.ts';

/** Texts by which to measure what the search finds. */
const sampleSize = 256;

/** By label; null where there is no name. */
function labelTexts(vocabulary: Vocabulary): (string | null)[] {
  const texts = Array.from(vocabulary, (label) => calledBy(label) || null);
  if (texts.every((text) => text === null))
    throw badInput('labels must have names, or ids that are words: this learner reads them', {
      hint: 'give them with --labels FILE (ids and names), or use another learner',
    });
  return texts;
}

/** Texts from the first to the last, in equal steps. */
const someOf = (texts: readonly string[]): string[] => {
  const step = Math.ceil(texts.length / sampleSize);
  return texts.filter((_, i) => i % step === 0);
};

/** What tells this run's pieces from those of others. */
function pieceOf({ texts, labelTexts, labels, settings, seed }: PrimeSetup): string {
  const words = new TextEncoder().encode(JSON.stringify([texts, labelTexts]));
  return `prime-${fingerprint([settings, seed], [words, labels.indptr, labels.indices])}`;
}

/** Roughly; of a pretrained encoder as if it were one of ours with the width that is set. */
function estimateOf(rows: number, labels: number, o: Settings): Estimate {
  const pool = Math.min(o.batch * o.positives, labels);
  const layers = o.encoder === 'bag' ? 1 : 3 * o.layers;
  const parameters = o.width * (o.vocabulary + 20 * layers * o.width);
  const ofLabels = (3 * labels + freeVectorCount(o.freeVectors, labels)) * o.width;
  // What a step holds at once: tokens as vectors, layer by layer, and the distances of triplets.
  const encoded = 8 * layers * (o.batch + pool) * o.length * o.width;
  const distances = 25 * o.batch * o.positives * pool;
  const numbers = 4 * parameters + 4 * ofLabels + rows * o.width + encoded + distances;
  return { memory: 250e6 + 4 * numbers, disk: 4 * (parameters + ofLabels) };
}

function primeLearner(name: string, summary: string, changed: Partial<Settings>): Learner<typeof options> {
  const own = Object.fromEntries(
    Object.entries(options).map(([option, described]) => [
      option,
      Object.hasOwn(changed, option)
        ? { ...described, default: changed[option as keyof Settings] }
        : described,
    ]),
  ) as typeof options;
  return {
    name,
    summary,
    options: own,
    readsText: true,
    async train({ features: { texts = [] }, labels, vocabulary }, settings, context) {
      const setup: PrimeSetup = {
        texts,
        labelTexts: labelTexts(vocabulary),
        labels,
        settings,
        seed: context.seed,
      };
      const module = import.meta.url.replace(/learner(\.[jt]s)$/, 'train$1');
      const task: Task<PrimeSetup, undefined, Trained> = { module, name: 'trainPrime' };
      const trained = await trainOnThread(task, setup, pieceOf(setup), context);
      const counts = columnCounts(labels);
      const prototypes = settings.labels === 'prototype';
      const known = Uint8Array.from(counts, (count, label) => {
        const hasText = setup.labelTexts[label] !== null;
        return (count > 0 && (prototypes || hasText)) || (settings.unseen && hasText) ? 1 : 0;
      });
      const free = prototypes && freeVectorCount(settings.freeVectors, labels.cols) > 0;
      const { length, runtimeThreads, exactLabels, recall } = settings;
      const parts = {
        ...trained,
        known,
        length,
        make: prototypes ? { centroids: settings.centroids, free } : null,
        threads: runtimeThreads,
        search: { exactLabels, recall },
      };
      const { progress, signal } = context;
      return openPrime(parts, { progress, signal, sample: someOf(texts) });
    },
    estimate: ({ rows, labels }, o) => estimateOf(rows, labels.cols, o),
    load: loadPrime,
  };
}

export const prime = primeLearner(
  'prime',
  'texts and label names in one space, labels as prototypes (PRIME); takes labels it has not seen',
  {},
);

export const primeW = primeLearner('prime-w', 'prime with a classifier for each label on top', {
  classifierEpochs: 10,
});

export const primeLite = primeLearner('prime-lite', 'prime with one positive per sample and half the batch', {
  positives: 1,
  batch: options.batch.default / 2,
});
