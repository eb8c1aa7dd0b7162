import { describe, expect, it } from 'vitest';
import { CsrBuilder } from '../../math/csr.ts';
import { chooseBest } from './assignment.ts';
import { drawFrequent } from './draw.ts';

/**
 * Groups that all carry one label so many times, with the same margins of their members; the last carries it once more,
 * so that it is plain that they count.
 */
function alike(count: number, margins: number[], times: number) {
  const [members, labels] = [new CsrBuilder('binary'), new CsrBuilder('values')];
  for (let group = 0; group < count; group++) {
    members.add(margins.map((_, i) => group * margins.length + i));
    labels.add([0], [group === count - 1 ? times + 1 : times]);
  }
  const groups = { members: members.pattern(count * margins.length), labels: labels.csr(1) };
  const offsets = Uint32Array.from({ length: count + 1 }, (_, group) => group * margins.length);
  const scores = { offsets, values: Float32Array.from(Array.from({ length: count }, () => margins).flat()) };
  return { groups, assignment: { scores, chosen: chooseBest(groups, scores, 'top-r') } };
}

const shareOf = (chosen: Uint8Array, place: number, size: number) =>
  chosen.filter((_, i) => i % size === place).reduce((sum, mark) => sum + mark, 0) / (chosen.length / size);

describe('members of frequent labels', () => {
  it('are drawn with odds by their margins', () => {
    const { groups, assignment } = alike(20000, [0.5, 0, -0.5], 1);
    const { chosen, scores, drawn } = drawFrequent(groups, assignment, 10, 1);
    // Probabilities 3/4, 1/2, 1/4: odds 3, 1 and 1/3.
    for (const [place, odds] of [3, 1, 1 / 3].entries())
      expect(Math.abs(shareOf(chosen, place, 3) - odds / (13 / 3))).toBeLessThan(0.015);
    expect(scores).toBe(assignment.scores);
    expect(drawn).toEqual(new Set([0]));
  });

  it('are as many as the group carries the label, each once', () => {
    const { groups, assignment } = alike(500, [0.5, 0.4, -0.5, -2], 3);
    const { chosen } = drawFrequent(groups, assignment, 10, 2);
    for (let group = 0; group < 499; group++)
      expect(chosen.subarray(4 * group, 4 * group + 4).reduce((sum, mark) => sum + mark, 0)).toBe(3);
    expect(shareOf(chosen, 3, 4)).toBeLessThan(shareOf(chosen, 0, 4));
  });

  it('are not drawn anew where another pair of the label is gone', () => {
    const { groups, assignment } = alike(500, [0.5, 0, -0.5], 1);
    const { chosen } = drawFrequent(groups, assignment, 10, 1);
    // Of the second group; its members stay.
    const { labels, members } = groups;
    const indptr = labels.indptr.map((end, group) => (group < 2 ? end : end - 1));
    const left = { ...labels, indptr, indices: labels.indices.slice(1), values: labels.values.slice(1) };
    const { scores } = assignment;
    const fewer = {
      scores: { offsets: scores.offsets.slice(0, -1), values: scores.values.slice(3) },
      chosen: assignment.chosen.slice(3),
    };
    const again = drawFrequent({ members, labels: left }, fewer, 10, 1);
    expect([...chosen.slice(0, 3), ...chosen.slice(6)]).toEqual([...again.chosen]);
  });

  it('stay the best where there are no more examples than features', () => {
    const { groups, assignment } = alike(500, [0.5, 0, -0.5], 1);
    expect(drawFrequent(groups, assignment, 501, 1)).toEqual(assignment);
  });
});
