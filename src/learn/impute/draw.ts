// Members by chance, the more probable the oftener, for labels that many carry. Where features tell little, the best
// members of all groups are too much alike: who learns from them alone becomes surer than the truth is. Chance is noise
// in turn, which a classifier only averages out if it has more examples than features.
import { countLabels, type GroupParts } from '../../data/group.ts';
import { Random } from '../../math/random.ts';
import type { Assignment } from './assignment.ts';
import { compete } from './compete.ts';

/** Margins are no probabilities beyond this. */
const surest = 0.98;

/**
 * What was chosen, but drawn anew for labels that groups carry more often than there are `features`: one member after
 * the other, each with odds by its margin among those left. Adding noise of the Gumbel distribution to the logarithms
 * of odds, and taking the best, does just that. Each pair has noise of its own: to correct one leaves the others alone.
 */
export function drawFrequent(
  groups: GroupParts,
  { scores, chosen }: Assignment,
  features: number,
  seed: number,
): Assignment {
  const { labels } = groups;
  const carried = new Float64Array(labels.cols);
  labels.indices.forEach((label, pair) => {
    carried[label] += labels.values[pair];
  });
  // Groups that do not say how often they carry a label leave open how many to draw.
  const counted = countLabels(groups);
  const drawn = new Set([...carried.keys()].filter((label) => counted && carried[label] > features));
  if (drawn.size === 0) return { scores, chosen };
  const { offsets } = scores;
  const values = scores.values.slice();
  for (let group = 0; group < labels.rows; group++) {
    for (let pair = labels.indptr[group]; pair < labels.indptr[group + 1]; pair++) {
      const label = labels.indices[pair];
      if (!drawn.has(label)) continue;
      const random = new Random(seed, 'draw members', group, label);
      for (let i = offsets[pair]; i < offsets[pair + 1]; i++) {
        const probability = Math.min(surest, Math.max(1 - surest, (values[i] + 1) / 2));
        const logOdds = Math.log(probability / (1 - probability)) - Math.log(-Math.log(1 - random.uniform()));
        // Beside the margins of other labels: near zero, the logarithm of odds is two margins.
        values[i] = logOdds / 2;
      }
    }
  }
  return { scores, chosen: compete(groups, { offsets, values }).chosen, drawn };
}
