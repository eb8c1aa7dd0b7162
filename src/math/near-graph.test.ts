import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Csr, CsrBuilder, unitRows } from './csr.ts';
import { layOut } from './layout.ts';
import { nearGraph } from './near-graph.ts';
import { Random } from './random.ts';

const width = 6;
const quiet = () => {};

/** Rows of families: each has words of its family, and some of its own. */
function families(rows: number, count: number, seed: number): Csr {
  const random = new Random(seed, 'families');
  const builder = new CsrBuilder('values');
  for (let row = 0; row < rows; row++) {
    const family = row % count;
    const words = new Set([0, 1, 2, 3].map(() => 20 * family + random.integer(20)));
    for (let i = 0; i < 3; i++) words.add(20 * count + random.integer(500));
    const columns = [...words].sort((a, b) => a - b);
    builder.add(
      columns,
      columns.map((column) => (column < 20 * count ? 1 : 0.4)),
    );
  }
  return unitRows(builder.csr(20 * count + 500));
}

/** With every row, by comparing with all of them; 0 with itself. */
function cosines({ indptr, indices, values, rows }: Csr, row: number): number[] {
  const own = new Map<number, number>();
  for (let p = indptr[row]; p < indptr[row + 1]; p++) own.set(indices[p], values[p]);
  return Array.from({ length: rows }, (_, other) => {
    let dot = 0;
    for (let p = indptr[other]; p < indptr[other + 1]; p++) dot += values[p] * (own.get(indices[p]) ?? 0);
    return other === row ? 0 : dot;
  });
}

const largest = (all: number[]) =>
  all
    .filter((cosine) => cosine > 0)
    .sort((a, b) => b - a)
    .slice(0, width);

describe('nearGraph', () => {
  it('has the nearest of few rows, as comparing all of them gives', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 60 }), (seed, rows) => {
        const points = families(rows, 5, seed);
        const { neighbours, strengths } = nearGraph(points, width, 1, quiet);
        for (let row = 0; row < rows; row++) {
          const expected = largest(cosines(points, row));
          const used = strengths.subarray(row * width, (row + 1) * width).filter((strength) => strength > 0);
          expect(used).toHaveLength(expected.length);
          used.forEach((strength, i) => {
            expect(strength).toBeCloseTo(expected[i] / expected[0], 4);
          });
          const others = neighbours.subarray(row * width, row * width + used.length);
          expect(new Set(others).size).toBe(used.length);
          expect(others).not.toContain(row);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('of many rows finds nearly all of the nearest, the same ones every time', () => {
    const points = families(6000, 60, 3);
    const { neighbours } = nearGraph(points, width, 1, quiet);
    let [found, all] = [0, 0];
    for (let row = 0; row < 6000; row += 50) {
      const own = cosines(points, row);
      const least = largest(own)[width - 1];
      const chosen = neighbours.subarray(row * width, (row + 1) * width);
      found += chosen.filter((other) => own[other] > least - 1e-6).length;
      all += width;
    }
    expect(found / all).toBeGreaterThan(0.9);
    expect(nearGraph(points, width, 1, quiet).neighbours).toEqual(neighbours);
  });
});

describe('layOut', () => {
  it('puts rows of a family beside each other', () => {
    const graph = nearGraph(families(300, 6, 1), width, 1, quiet);
    const { x, y } = layOut(graph, new Random(1), quiet);
    const distance = (a: number, b: number) => Math.hypot(x[a] - x[b], y[a] - y[b]);
    const others = (row: number) => [...x.keys()].filter((other) => other !== row);
    const right = [...x.keys()].filter((row) => {
      const nearest = others(row).reduce((a, b) => (distance(row, b) < distance(row, a) ? b : a));
      return nearest % 6 === row % 6;
    });
    expect(right.length).toBeGreaterThan(285);
    expect([...x, ...y].every((value) => value >= 0 && value <= 1)).toBe(true);
    expect(layOut(graph, new Random(1), quiet)).toEqual({ x, y });
  });
});
