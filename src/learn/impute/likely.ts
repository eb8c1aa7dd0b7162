// How likely every member has each label of its group: what is known before anyone has to choose.
import type { GroupParts } from '../../data/group.ts';
import type { Csr } from '../../math/csr.ts';
import { type Assignment, givenLabels } from './assignment.ts';

/** What is less likely, or clearly less than if the member were drawn, is left out: it says little and there is much. */
const least = 0.1;
const ofChance = 0.8;

/**
 * rows x labels: a label that r members were chosen for falls r times to a member of the group, each time with odds
 * that grow with the exponential of `sharpness` times the scores.
 */
export function likelyLabels(groups: GroupParts, { scores, chosen }: Assignment, sharpness: number): Csr {
  const { offsets, values } = scores;
  const likely = new Float32Array(values.length);
  for (let pair = 0; pair + 1 < offsets.length; pair++) {
    const [from, to] = [offsets[pair], offsets[pair + 1]];
    let [times, most, sum] = [0, Number.NEGATIVE_INFINITY, 0];
    for (let i = from; i < to; i++) {
      times += chosen[i];
      most = Math.max(most, values[i]);
    }
    for (let i = from; i < to; i++) {
      likely[i] = Math.exp(sharpness * (values[i] - most));
      sum += likely[i];
    }
    const enough = Math.max(least, (ofChance * times) / (to - from));
    for (let i = from; i < to; i++) {
      const expected = Math.min(1, (times * likely[i]) / sum);
      likely[i] = expected < enough ? 0 : expected;
    }
  }
  return givenLabels(groups, offsets, likely);
}
