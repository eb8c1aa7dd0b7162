import { describe, expect, it } from 'vitest';
import { CsrBuilder } from '../../math/csr.ts';
import { choiceOf, scoreOffsets } from './assignment.ts';
import { compete } from './compete.ts';

/**
 * One group of three members and as many labels as there are rows of margins; a second group of one member carries those
 * labels that are known from elsewhere. The member `named`, if any, was named for a further label.
 */
function placesOf(margins: number[][], counts: number[], elsewhere: number[], named?: number): number[][] {
  const members = new CsrBuilder('binary');
  members.add([0, 1, 2]);
  members.add([3]);
  if (named !== undefined) members.add([named]);
  const labels = new CsrBuilder('values');
  labels.add([...margins.keys()], counts);
  labels.add(
    elsewhere,
    elsewhere.map(() => 1),
  );
  if (named !== undefined) labels.add([margins.length], [1]);
  const groups = {
    members: members.pattern(4),
    labels: labels.csr(margins.length + 1),
    pinned: named === undefined ? 0 : 1,
  };
  const offsets = scoreOffsets(groups.members, groups.labels);
  const values = new Float32Array(offsets[offsets.length - 1]);
  values.set(margins.flat());
  const assigned = compete(groups, { offsets, values });
  return margins.map((_, pair) => choiceOf(assigned, pair).places);
}

describe('labels that compete', () => {
  it('go to as many members as the group carries them, the best', () => {
    const [first, second] = placesOf(
      [
        [1, 0.9, -1],
        [-1, -1, 1],
      ],
      [2, 1],
      [0, 1],
    );
    expect(first).toEqual([0, 1]);
    expect(second).toEqual([2]);
  });

  it('of which nothing is known go to the members that no other claims, the least claimed first', () => {
    const [known, unknown] = placesOf(
      [
        [1, 0.2, -1],
        [0, 0, 0],
      ],
      [2, 1],
      [0],
    );
    expect(known).toEqual([0, 1]);
    expect(unknown).toEqual([2]);
  });

  it('give way to a member that would have none, where they lose least', () => {
    const places = placesOf(
      [
        [1, 0.5, -1],
        [1, -1, 0.3],
        [1, -1, 0.1],
      ],
      [2, 1, 1],
      [0, 1, 2],
    );
    expect(places).toEqual([[0, 1], [2], [0]]);
  });

  it('do not give way to a member that someone named for another label, nor go there where nothing is known', () => {
    const margins = [
      [1, 0.5, 0.4],
      [0, 0, 0],
    ];
    expect(placesOf(margins, [1, 1], [0])).toEqual([[0], [2, 1]]);
    expect(placesOf(margins, [1, 1], [0], 2)).toEqual([[0], [1]]);
    const held = [
      [1, 0.5, 0.4],
      [1, 0.5, 0.4],
    ];
    expect(placesOf(held, [1, 2], [0, 1])).toEqual([[2], [0, 1]]);
    expect(placesOf(held, [1, 2], [0, 1], 2)).toEqual([[0], [0, 1]]);
  });

  it('stay where giving way would cost too much', () => {
    const places = placesOf(
      [
        [1, -1, -1],
        [1, -1, -1],
      ],
      [1, 2],
      [0, 1],
    );
    expect(places[0]).toEqual([0]);
  });

  it('go to every member that is nearly as likely where groups do not say how often they carry them', () => {
    expect(placesOf([[0.2, -0.2, -0.9]], [1], [0])).toEqual([[0, 1]]);
    expect(placesOf([[0.6, -0.2, -0.9]], [1], [0])).toEqual([[0]]);
  });
});
