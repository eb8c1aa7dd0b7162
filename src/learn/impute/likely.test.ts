import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GroupParts } from '../../data/group.ts';
import { type Csr, CsrBuilder, nnz, rowIndices, rowValues } from '../../math/csr.ts';
import { chooseBest, scoreOffsets } from './assignment.ts';
import { likelyLabels } from './likely.ts';

/** Groups by their members, and by their labels with how often they carry them. */
function groupsOf(members: number[][], labels: [number, number][][]): GroupParts {
  const [rows, carried] = [new CsrBuilder('binary'), new CsrBuilder('values')];
  for (const own of members) rows.add(own);
  for (const own of labels)
    carried.add(
      own.map(([label]) => label),
      own.map(([, count]) => count),
    );
  const most = (all: number[]) => Math.max(...all) + 1;
  return {
    members: rows.pattern(most(members.flat())),
    labels: carried.csr(most(labels.flat().map(([label]) => label))),
  };
}

function likelyOf(groups: GroupParts, values: number[], sharpness = 1): Csr {
  const scores = {
    offsets: scoreOffsets(groups.members, groups.labels),
    values: Float32Array.from(values),
  };
  return likelyLabels(groups, { scores, chosen: chooseBest(groups, scores, 'top-r') }, sharpness);
}

const asRows = (m: Csr) =>
  Array.from({ length: m.rows }, (_, row) =>
    Array.from(rowIndices(m, row), (label, i) => [label, rowValues(m, row)[i]]),
  );

describe('likely labels', () => {
  it('have the odds of their scores', () => {
    const groups = groupsOf([[0, 1]], [[[0, 1]]]);
    const likelyBy = (sharpness: number) => likelyOf(groups, [Math.log(11), Math.log(9)], sharpness).values;
    expect(likelyBy(1)).toEqual(Float32Array.of(0.55, 0.45));
    // Twice the sharpness squares the odds.
    expect(Array.from(likelyBy(2))).toEqual([expect.closeTo(121 / 202, 5), expect.closeTo(81 / 202, 5)]);
  });

  it('are shared out as often as the group carries them, and sure at most', () => {
    const groups = groupsOf([[0, 1, 2]], [[[0, 2]]]);
    expect(asRows(likelyOf(groups, [0, 0, 0])).flat()).toEqual(
      Array.from({ length: 3 }, () => [0, expect.closeTo(2 / 3)]),
    );
    expect(asRows(likelyOf(groups, [9, 0, 0]))[0]).toEqual([[0, 1]]);
  });

  it('leave out what is less than a tenth, or clearly less than by chance', () => {
    const pair = groupsOf([[0, 1]], [[[0, 1]]]);
    expect(asRows(likelyOf(pair, [Math.log(65), Math.log(35)]))[1]).toEqual([]);
    expect(asRows(likelyOf(pair, [Math.log(55), Math.log(45)]))[1]).toEqual([[0, expect.closeTo(0.45)]]);
    const twelve = groupsOf([Array.from({ length: 12 }, (_, row) => row)], [[[0, 1]]]);
    expect(nnz(likelyOf(twelve, new Array(12).fill(0)))).toBe(0);
  });

  it('take the likeliest group of a row that is in several', () => {
    const groups = groupsOf(
      [
        [0, 1],
        [1, 2],
        [2, 3],
      ],
      [
        [[1, 1]],
        [
          [0, 1],
          [1, 1],
        ],
        [[0, 1]],
      ],
    );
    const [, second, third] = asRows(likelyOf(groups, [0, 0, 9, 0, Math.log(3), 0, 0, Math.log(3)]));
    expect(second).toEqual([
      [0, expect.closeTo(1, 3)],
      [1, expect.closeTo(0.75)],
    ]);
    expect(third).toEqual([]);
  });

  it('are certain for who is alone, follow the scores, and are no more than the counts together', () => {
    const score = fc.float({ min: -2, max: 2, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(score, { minLength: 1, maxLength: 9 }),
        fc.integer({ min: 1, max: 3 }),
        (own, r) => {
          const count = Math.min(r, own.length);
          const rows = asRows(likelyOf(groupsOf([Array.from(own.keys())], [[[0, count]]]), own));
          const likely = rows.map((row) => row[0]?.[1] ?? 0);
          if (own.length === 1) expect(likely).toEqual([1]);
          expect(Math.max(...likely)).toBeLessThanOrEqual(1);
          expect(likely.reduce((all, one) => all + one)).toBeLessThan(count + 1e-4);
          const order = Array.from(own.keys()).sort((a, b) => own[a] - own[b]);
          for (let i = 1; i < order.length; i++)
            expect(likely[order[i]]).toBeGreaterThanOrEqual(likely[order[i - 1]]);
        },
      ),
    );
  });
});
