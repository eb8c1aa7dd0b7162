import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Arena, createMemory } from '../../kernels/memory.ts';
import { Pool } from '../../kernels/pool.ts';
import { balancedGroups } from '../../math/balanced-two-means.ts';
import {
  type Csr,
  CsrBuilder,
  type Pattern,
  rowIndices,
  rowValues,
  transpose,
  unitRows,
} from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { quiet } from '../../progress.ts';
import { buildChain, placeMatrix, upperLevels } from './chain.ts';

const context = { seed: 0, threads: 1, progress: quiet };

/** Unit rows of a few random features each, and one to three labels per row. */
function randomSet(rows: number, features: number, labels: number, seed: number): { x: Csr; y: Pattern } {
  const random = new Random(seed, 'chain test');
  const some = (n: number, most: number) =>
    [...new Set(Array.from({ length: 1 + random.integer(most) }, () => random.integer(n)))].sort(
      (a, b) => a - b,
    );
  const [x, y] = [new CsrBuilder('values'), new CsrBuilder('binary')];
  for (let row = 0; row < rows; row++) {
    const columns = some(features, 6);
    x.add(
      columns,
      columns.map(() => random.uniform() + 0.1),
    );
    y.add(some(labels, 3));
  }
  return { x: unitRows(x.csr(features)), y: y.pattern(labels) };
}

async function chainOf(x: Csr, y: Pattern, leafSize: number, shareRows: boolean, branching = 4) {
  const arena = new Arena(createMemory(1 << 16, true));
  const options = { branching, leafSize, flatSize: 1, shareRows, copies: 1, beam: 10 };
  const placed = placeMatrix(arena, x);
  return buildChain(arena, placed, y, transpose(y), options, '7', new Pool(1), context);
}

/** The sum of a label's rows, each divided by the root of its number of labels; in double precision. */
function labelFeatures(x: Csr, y: Pattern, shareRows: boolean): Csr {
  const byLabel = transpose(y);
  const out = new CsrBuilder('values');
  for (let label = 0; label < y.cols; label++) {
    const sum = new Map<number, number>();
    for (const row of rowIndices(byLabel, label)) {
      const weight = shareRows ? 1 / Math.sqrt(y.indptr[row + 1] - y.indptr[row]) : 1;
      const values = rowValues(x, row);
      rowIndices(x, row).forEach((f, i) => {
        sum.set(f, (sum.get(f) ?? 0) + weight * values[i]);
      });
    }
    const columns = [...sum.keys()].sort((a, b) => a - b);
    out.add(
      columns,
      columns.map((f) => sum.get(f) ?? 0),
    );
  }
  return unitRows(out.csr(x.cols));
}

describe('the chain of levels', () => {
  it('has the clusters of the plain balanced 2-means over the plain label features', async () => {
    for (const [seed, shareRows] of [
      [1, true],
      [2, false],
      [3, true],
    ] as const) {
      const { x, y } = randomSet(300, 40, 50, seed);
      const [, leaves] = await chainOf(x, y, 7, shareRows, 8);
      const used = [...Array(50).keys()].filter((l) => transpose(y).indptr[l + 1] > transpose(y).indptr[l]);
      expect(used.length).toBe(50);
      const groups = balancedGroups({ sparse: labelFeatures(x, y, shareRows) }, 3, 7);
      for (let leaf = 0; leaf < 8; leaf++) {
        const expected = used.filter((label) => groups[label] === leaf);
        expect([...rowIndices(leaves, leaf)]).toEqual(expected);
      }
    }
  });

  it('puts every label that occurs into exactly one leaf, and leaves of one level differ by one at most', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 2, max: 9 }),
        fc.integer({ min: 2, max: 5 }),
        fc.nat(1000),
        async (labels, leafSize, branching, seed) => {
          const { x, y } = randomSet(40, 20, labels, seed);
          const chain = await chainOf(x, y, leafSize, true, branching);
          const occurring = [...new Set(y.indices)].sort((a, b) => a - b);
          const last = chain[chain.length - 1];
          expect([...last.indices].sort((a, b) => a - b)).toEqual(occurring);
          const sizes = Array.from({ length: last.rows }, (_, i) => last.indptr[i + 1] - last.indptr[i]);
          expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
          expect(Math.max(...sizes)).toBeLessThanOrEqual(leafSize);
          expect(chain[0].rows).toBe(1);
          for (let level = 1; level < chain.length; level++)
            expect(chain[level].rows).toBe(chain[level - 1].cols);
        },
      ),
      { seed: 1, numRuns: 40 },
    );
  });

  it('groups consecutive nodes until one root is left', () => {
    const sizes = (nodes: number, branching: number) => upperLevels(nodes, branching).map(({ cols }) => cols);
    expect(sizes(256, 16)).toEqual([16, 256]);
    expect(sizes(256, 32)).toEqual([8, 256]);
    expect(sizes(8, 2)).toEqual([2, 4, 8]);
    expect(sizes(2, 32)).toEqual([2]);
  });
});
