import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Csr, CsrBuilder, nnz, type Pattern, rowIndices, rowValues, selectRows } from '../math/csr.ts';
import type { Dense } from '../math/dense.ts';
import { Random } from '../math/random.ts';
import type { Features } from './dataset.ts';
import { baselineLabels, clusteredGroups, groupRows, mergeLabels, randomGroups } from './group.ts';

function pattern(rows: readonly number[][], cols: number): Pattern {
  const builder = new CsrBuilder('binary');
  for (const row of rows) builder.add(row);
  return builder.pattern(cols);
}
const listOf = (m: Pattern) => Array.from({ length: m.rows }, (_, row) => [...rowIndices(m, row)]);
const countsOf = (m: Csr) =>
  listOf(m).map((columns, row) => Object.fromEntries(columns.map((c, i) => [c, rowValues(m, row)[i]])));
const sizesOf = (members: Pattern) => listOf(members).map((rows) => rows.length);

/** Any binary matrix: rows of distinct ascending columns. */
const matrix = (rows: number, cols: number) =>
  fc
    .array(fc.subarray([...Array(cols).keys()]), { minLength: rows, maxLength: rows })
    .map((m) => pattern(m, cols));
/** Overlapping members of some rows, and the rows' labels. */
const grouped = fc
  .tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 8 }))
  .chain(([groups, rows, labels]) => fc.tuple(matrix(groups, rows), matrix(rows, labels)));

/** Sparse rows around `clusters` directions; the cluster of row i is i % clusters. */
function planted(rows: number, clusters: number, cols: number, seed: number): Csr {
  const random = new Random(seed, 'planted');
  const builder = new CsrBuilder('values');
  for (let row = 0; row < rows; row++) {
    const other = clusters + random.integer(cols - clusters);
    builder.add([row % clusters, other], [1, 0.3]);
  }
  return builder.csr(cols);
}
/** Share of pairs inside groups that come from one planted cluster. */
function purity(members: Pattern, clusters: number): number {
  const [same, all] = listOf(members).reduce(
    ([s, a], rows) => {
      const pairs = rows.flatMap((x, i) => rows.slice(0, i).map((y) => (x - y) % clusters === 0));
      return [s + pairs.filter(Boolean).length, a + pairs.length];
    },
    [0, 0],
  );
  return same / all;
}

describe('randomGroups', () => {
  it('puts every row in one group of the size asked for, only the last smaller', () => {
    fc.assert(
      fc.property(fc.nat(60), fc.integer({ min: 1, max: 70 }), fc.nat(), (rows, size, seed) => {
        const members = randomGroups(rows, size, seed);
        expect(
          listOf(members)
            .flat()
            .sort((a, b) => a - b),
        ).toEqual([...Array(rows).keys()]);
        const sizes = sizesOf(members);
        expect(sizes.slice(0, -1).every((found) => found === size)).toBe(true);
        expect(sizes.every((found) => found > 0)).toBe(true);
      }),
    );
  });

  it('with size 1 makes samples of the groups: merged labels and baseline are the samples own', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        matrix(9, 5),
        fc.constantFrom('list' as const, 'set' as const),
        (seed, labels, merge) => {
          const groups = groupRows(randomGroups(9, 1, seed), labels, merge);
          const order = listOf(groups.members).flat();
          expect(listOf(groups.labels)).toEqual(order.map((row) => [...rowIndices(labels, row)]));
          expect(baselineLabels(groups)).toEqual(labels);
        },
      ),
    );
  });

  it('refuses a size that is not a positive integer', () => {
    for (const size of [0, -1, 1.5]) {
      expect(() => randomGroups(5, size, 1)).toThrow(`group size must be a positive integer, got ${size}`);
    }
  });
});

describe('mergeLabels', () => {
  it('counts as the product of the two matrices does', () => {
    fc.assert(
      fc.property(grouped, ([members, labels]) => {
        const expected = listOf(members).map((rows) => {
          const counts: Record<number, number> = {};
          for (const label of rows.flatMap((row) => [...rowIndices(labels, row)])) {
            counts[label] = (counts[label] ?? 0) + 1;
          }
          return counts;
        });
        expect(countsOf(mergeLabels(members, labels, 'list'))).toEqual(expected);
      }),
    );
  });

  it('as a set is the list without its counts, and equal to it when no label repeats in a group', () => {
    fc.assert(
      fc.property(grouped, ([members, labels]) => {
        const [list, set] = [mergeLabels(members, labels, 'list'), mergeLabels(members, labels, 'set')];
        expect(set).toEqual({ ...list, values: list.values.map(() => 1) });
        const repeats = list.values.some((count) => count > 1);
        expect(repeats).toBe(list.values.reduce((sum, count) => sum + count, 0) !== nnz(set));
      }),
    );
  });

  it('keeps every positive of a list when each row is in one group', () => {
    fc.assert(
      fc.property(fc.nat(), matrix(15, 6), fc.integer({ min: 1, max: 15 }), (seed, labels, size) => {
        const { values } = mergeLabels(randomGroups(15, size, seed), labels, 'list');
        expect(values.reduce((sum, count) => sum + count, 0)).toBe(nnz(labels));
      }),
    );
  });

  it('does not depend on the order of the groups', () => {
    fc.assert(
      fc.property(grouped, fc.nat(), ([members, labels], seed) => {
        const order = new Random(seed).permutation(members.rows);
        const merged = mergeLabels(members, labels, 'list');
        expect(mergeLabels(selectRows(members, order), labels, 'list')).toEqual(selectRows(merged, order));
      }),
    );
  });
});

describe('baselineLabels', () => {
  it('gives a row every label of every group it is in and no other', () => {
    fc.assert(
      fc.property(grouped, ([members, labels]) => {
        const groups = groupRows(members, labels, 'list');
        const expected = Array.from({ length: labels.rows }, (_, row) => {
          const of = listOf(members).flatMap((rows, group) => (rows.includes(row) ? [group] : []));
          return [...new Set(of.flatMap((group) => [...rowIndices(groups.labels, group)]))].sort(
            (a, b) => a - b,
          );
        });
        expect(listOf(baselineLabels(groups))).toEqual(expected);
      }),
    );
  });

  it('holds every true label of a grouped row', () => {
    fc.assert(
      fc.property(grouped, ([members, labels]) => {
        const known = listOf(baselineLabels(groupRows(members, labels, 'set')));
        for (const row of new Set(listOf(members).flat())) {
          expect(known[row]).toEqual(expect.arrayContaining([...rowIndices(labels, row)]));
        }
      }),
    );
  });
});

describe('clusteredGroups', () => {
  const sparse = planted(256, 8, 200, 1);
  const dense: Dense = { rows: 256, cols: 200, values: new Float32Array(256 * 200) };
  listOf(sparse).forEach((columns, row) => {
    columns.forEach((column, i) => {
      dense.values[row * 200 + column] = rowValues(sparse, row)[i];
    });
  });

  it('makes 2^depth groups whose sizes differ by at most one, at any noise', () => {
    const uneven = planted(101, 4, 50, 2);
    for (const noise of [0, 0.5, 3, Number.POSITIVE_INFINITY]) {
      for (const depth of [0, 1, 3, 6]) {
        const sizes = sizesOf(clusteredGroups({ sparse: uneven }, depth, { seed: 1, noise }));
        expect(sizes.length).toBe(2 ** depth);
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(101);
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
      }
    }
  });

  it('does not depend on the lengths of rows', () => {
    const longer = { ...sparse, values: sparse.values.map((value) => value * 8) };
    for (const noise of [0, 0.5]) {
      const groups = (features: Csr) => clusteredGroups({ sparse: features }, 4, { seed: 3, noise });
      expect(groups(longer)).toEqual(groups(sparse));
    }
  });

  const meanPurity = (features: Features, noise: number) => {
    const found = [1, 2, 3, 4, 5].map((seed) => purity(clusteredGroups(features, 4, { seed, noise }), 8));
    return found.reduce((sum, value) => sum + value, 0) / found.length;
  };

  it('goes from like rows to random groups as the noise grows', () => {
    const [clean, blurred, drowned, random] = [0, 3, 1e6, Number.POSITIVE_INFINITY].map((noise) =>
      meanPurity({ sparse }, noise),
    );
    expect(random).toBeCloseTo(31 / 255, 1);
    expect(clean).toBeGreaterThan(0.8);
    expect(drowned).toBeLessThan(random + 0.05);
    expect(blurred).toBeLessThan(clean - 0.1);
    expect(blurred).toBeGreaterThan(random + 0.1);
  });

  it('blurs sparse rows about as much as noise on every column would', () => {
    for (const noise of [1, 2, 3, 4, 6]) {
      expect(Math.abs(meanPurity({ sparse }, noise) - meanPurity({ dense }, noise))).toBeLessThan(0.05);
    }
  });

  it('with noise 0 is the clustering itself, and noise depends on the seed alone', () => {
    const groups = (seed: number, noise?: number) => clusteredGroups({ sparse }, 4, { seed, noise });
    expect(groups(1, 0)).toEqual(groups(1));
    expect(groups(1, 1)).toEqual(groups(1, 1));
    expect(groups(1, 1)).not.toEqual(groups(1));
  });

  it('clusters dense rows, and dense beside sparse', () => {
    expect(clusteredGroups({ dense }, 4, { seed: 1 })).toEqual(clusteredGroups({ sparse }, 4, { seed: 1 }));
    expect(purity(clusteredGroups({ dense }, 4, { seed: 1, noise: 0.1 }), 8)).toBeGreaterThan(0.8);
    expect(purity(clusteredGroups({ sparse, dense }, 4, { seed: 1 }), 8)).toBeGreaterThan(0.8);
  });

  it('leaves rows without features where they are: zero stays zero under noise', () => {
    const empty: Csr = { ...pattern([[], [], [], []], 10), values: new Float32Array(0) };
    expect(clusteredGroups({ sparse: empty }, 1, { seed: 1, noise: 2 })).toEqual(
      clusteredGroups({ sparse: empty }, 1, { seed: 1 }),
    );
  });

  it('refuses a depth with more groups than rows, and noise below zero', () => {
    expect(() => clusteredGroups({ sparse }, 9, { seed: 1 })).toThrow(
      'depth must be a whole number with 2^depth at most 256, the rows, got 9',
    );
    expect(() => clusteredGroups({ sparse }, 1.5, { seed: 1 })).toThrow('got 1.5');
    expect(() => clusteredGroups({ sparse }, 2, { seed: 1, noise: -1 })).toThrow(
      'noise must be a number >= 0, got -1',
    );
    expect(() => clusteredGroups({ sparse }, 2, { seed: 1, noise: Number.NaN })).toThrow('got NaN');
  });
});
