// Two rankings of the same inputs made one: by the ranks of labels, or by their scores brought to one scale.
import type { Vocabulary } from '../data/vocabulary.ts';
import { badUsage } from '../errors.ts';
import { CsrBuilder, type Ranking, rowIndices, rowValues } from '../math/csr.ts';
import { topK } from '../math/topk.ts';
import { choice, number, type OptionsOf, parseOptions } from '../options.ts';
import type { Inputs } from './preparation.ts';

export const blendOptions = {
  by: choice(
    'score',
    ['rank', 'score'],
    'what counts of each model: ranks, or how far scores are above its worst, as shares of one',
  ),
  weight: number(0.5, 'of the other model, from 0 to 1', { min: 0, max: 1 }),
};
export type BlendOptions = OptionsOf<typeof blendOptions>;

/** Labels that each model is asked for, if no more are wanted: the worse of one may be the better of the other. */
const blendDepth = 100;
/** Of ranks: how much the first few are like each other (Cormack et al. 2009). */
const flatness = 60;
/** Of the worst label of a list; scores are above 0. */
const least = 1e-12;

/** Columns of both rankings mean the same labels. */
export function blendRankings(
  first: Ranking,
  second: Ranking,
  top: number,
  { by, weight }: BlendOptions,
): Ranking {
  const blended = new CsrBuilder('values');
  const worth = by === 'rank' ? byRank : byScore;
  for (let row = 0; row < first.rows; row++) {
    const total = new Map<number, number>();
    for (const [ranking, share] of [
      [first, 1 - weight],
      [second, weight],
    ] as const) {
      const values = worth(rowValues(ranking, row));
      rowIndices(ranking, row).forEach((label, i) => {
        total.set(label, (total.get(label) ?? 0) + share * values[i]);
      });
    }
    // A model that weighs nothing brings no labels.
    const labels = [...total.keys()].filter((label) => (total.get(label) ?? 0) > 0).sort((a, b) => a - b);
    const scores = Float32Array.from(labels, (label) => total.get(label) ?? 0);
    const best = Array.from(topK(scores, top));
    blended.add(
      best.map((i) => labels[i]),
      best.map((i) => scores[i]),
    );
  }
  return blended.csr(Math.max(first.cols, second.cols));
}

const byRank = (scores: Float32Array): Float32Array =>
  scores.map((_, rank) => (flatness + 1) / (flatness + 1 + rank));

/**
 * What each score is above the worst, as a share of all: where a model is sure its first labels have most of it, where it
 * is not all have little, whether scores are probabilities or cosines.
 */
function byScore(scores: Float32Array): Float32Array {
  const worst = scores[scores.length - 1];
  const total = scores.reduce((sum, score) => sum + score - worst, 0);
  return scores.map((score) => (total > 0 ? Math.max(least, (score - worst) / total) : 1 / scores.length));
}

/** A ranking whose columns are those of another label set; labels that it does not have are left out. */
export function inColumns(ranking: Ranking, columns: Int32Array, cols: number): Ranking {
  const mapped = new CsrBuilder('values');
  for (let row = 0; row < ranking.rows; row++) {
    const values = rowValues(ranking, row);
    const kept = Array.from(rowIndices(ranking, row), (label, i) => ({
      label: columns[label],
      score: values[i],
    }));
    const known = kept.filter(({ label }) => label >= 0);
    mapped.add(
      known.map(({ label }) => label),
      known.map(({ score }) => score),
    );
  }
  return mapped.csr(cols);
}

/** What a classifier must be for this. */
interface Ranker {
  vocabulary: Vocabulary;
  rank(inputs: Inputs, options: { top: number }): Promise<Ranking>;
}

export interface Partner {
  other: Ranker;
  how: BlendOptions;
}

export function partnerOf(first: Ranker, other: Ranker, options: Partial<BlendOptions>): Partner {
  if (!Array.from(other.vocabulary).some(({ id }) => first.vocabulary.column(id) !== undefined))
    throw badUsage('models to be blended must have labels in common', {
      value: Array.from(other.vocabulary, ({ id }) => id)
        .slice(0, 3)
        .join(', '),
    });
  return { other, how: parseOptions(blendOptions, options) };
}

/** Asks both, and blends what they say in the columns of the first. */
export async function rankBoth(
  first: Ranker,
  { other, how }: Partner,
  inputs: Inputs,
  options: { top: number },
): Promise<Ranking> {
  const deep = { ...options, top: Math.max(options.top, blendDepth) };
  const own = await first.rank(inputs, deep);
  const columns = Int32Array.from(other.vocabulary, ({ id }) => first.vocabulary.column(id) ?? -1);
  const theirs = inColumns(await other.rank(inputs, deep), columns, own.cols);
  return blendRankings(own, theirs, options.top, how);
}
