import { describe, expect, it } from 'vitest';
import { randomGroups } from '../../data/group.ts';
import { type Csr, CsrBuilder, type Pattern, unitRows } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { withinShare } from './mixed.ts';

const cols = 8;
/** Unit rows around `kinds` centres, one after the other, this far from them. */
function rowsAround(kinds: number, rows: number, spread: number): Csr {
  const random = new Random(1, 'rows');
  const draw = () => Array.from({ length: cols }, () => random.normal());
  const centres = Array.from({ length: kinds }, draw);
  const builder = new CsrBuilder('values');
  for (let row = 0; row < rows; row++) {
    const noise = draw();
    builder.add(
      [...noise.keys()],
      noise.map((value, j) => centres[row % kinds][j] + spread * value),
    );
  }
  return unitRows(builder.csr(cols));
}

function groupsOf(groups: number[][], cols: number): Pattern {
  const builder = new CsrBuilder('binary');
  for (const rows of groups) builder.add(rows);
  return builder.pattern(cols);
}

describe('how mixed groups are', () => {
  it('is one for random groups, whatever their size', () => {
    const x = rowsAround(10, 3000, 0.5);
    for (const size of [2, 5, 50]) expect(withinShare(x, randomGroups(3000, size, 1))).toBeCloseTo(1, 1);
  });

  it('is nothing where members are all the same', () => {
    const x = rowsAround(4, 40, 0);
    const kinds = [0, 1, 2, 3].map((kind) => Array.from({ length: 10 }, (_, i) => 4 * i + kind));
    expect(withinShare(x, groupsOf(kinds, 40))).toBeCloseTo(0, 6);
  });

  it('grows with the distance of members from each other', () => {
    const kinds = [0, 1, 2, 3].map((kind) => Array.from({ length: 100 }, (_, i) => 4 * i + kind));
    const shares = [0.1, 0.5, 1, 4].map((spread) =>
      withinShare(rowsAround(4, 400, spread), groupsOf(kinds, 400)),
    );
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect(shares[0]).toBeLessThan(0.1);
  });

  it('is one where every group has a single member', () => {
    expect(withinShare(rowsAround(2, 4, 1), groupsOf([[0], [1], [2], [3]], 4))).toBe(1);
  });
});
