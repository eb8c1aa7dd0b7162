import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type GroupParts, type Groups, groupRows, randomGroups } from '../../data/group.ts';
import { type Csr, CsrBuilder, nnz, type Pattern, rowIndices, unitRows } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { parseOptions } from '../../options.ts';
import { quiet } from '../../progress.ts';
import { choiceOf, chooseBest, chosenLabels } from './assignment.ts';
import { assignNearest as assign, type GrlrOptions } from './grlr.ts';
import { impute } from './impute.ts';
import { imputeOptions } from './options.ts';
import { centredRows, dot, labelDirection } from './reference.ts';

const context = { seed: 1, threads: 1, progress: quiet };
const usual: GrlrOptions = { iterations: 20, step: 0.1, centre: false, weightByCount: true, assign: 'best' };

const assignNearest = (x: Csr, groups: GroupParts, o: GrlrOptions, { threads = 1 } = {}) =>
  assign(x, groups, o, { ...context, threads });

function csr(rows: readonly (readonly number[])[], cols: number): Csr {
  const builder = new CsrBuilder('values');
  for (const row of rows) {
    const set = row.flatMap((value, column) => (value === 0 ? [] : column));
    builder.add(
      set,
      set.map((column) => row[column]),
    );
  }
  return unitRows(builder.csr(cols));
}

function pattern(rows: readonly (readonly number[])[], cols: number): Pattern {
  const builder = new CsrBuilder('binary');
  for (const row of rows) builder.add(row);
  return builder.pattern(cols);
}

/** Planted labels: rows are the unit sum of q label vectors with noise; groups are random, merged as sets. */
function planted(q: number, noise: number, size: number, seed: number, n = 4000, labelCount = 200, d = 64) {
  const random = new Random(seed, 'planted');
  const vectors = Array.from({ length: labelCount }, () => unit(normals(d, random)));
  const rows: number[][] = [];
  const truth: number[][] = [];
  for (let i = 0; i < n; i++) {
    const own = new Set<number>();
    while (own.size < q) own.add(random.integer(labelCount));
    const sum = new Array<number>(d).fill(0);
    for (const label of own) add(sum, vectors[label]);
    const step = normals(d, random);
    rows.push(unit(sum).map((value, j) => value + (noise * step[j]) / Math.sqrt(d)));
    truth.push([...own].sort((a, b) => a - b));
  }
  const x = csr(rows, d);
  const labels = pattern(truth, labelCount);
  return { x, labels, groups: groupRows(randomGroups(n, size, seed), labels, 'set') };
}
function add(sum: number[], v: ArrayLike<number>): void {
  for (let j = 0; j < sum.length; j++) sum[j] += v[j];
}
const normals = (size: number, random: Random) => Array.from({ length: size }, () => random.normal());
const unit = (v: number[]) => {
  const length = Math.hypot(...v);
  return v.map((value) => value / length);
};

/** The share of pairs whose first chosen member really has the label. */
async function accuracy({ x, labels, groups }: ReturnType<typeof planted>, o: GrlrOptions) {
  const assigned = await assignNearest(x, groups, o);
  let right = 0;
  for (let pair = 0, group = 0; pair < nnz(groups.labels); pair++) {
    while (groups.labels.indptr[group + 1] <= pair) group++;
    const [place] = choiceOf(assigned, pair).places;
    const row = rowIndices(groups.members, group)[place];
    if (rowIndices(labels, row).includes(groups.labels.indices[pair])) right++;
  }
  return right / nnz(groups.labels);
}

/** Small sets with zero rows, opposite rows, duplicates, groups that overlap, repeated labels. */
const smallSet = fc
  .record({
    rows: fc.array(fc.array(fc.integer({ min: -2, max: 2 }), { minLength: 3, maxLength: 3 }), {
      minLength: 6,
      maxLength: 6,
    }),
    members: fc.array(fc.subarray([0, 1, 2, 3, 4, 5], { minLength: 1 }), { minLength: 1, maxLength: 4 }),
    labels: fc.array(fc.subarray([0, 1, 2]), { minLength: 6, maxLength: 6 }),
    merge: fc.constantFrom('list' as const, 'set' as const),
  })
  .map(({ rows, members, labels, merge }) => ({
    // Far apart, so that what is left of one label's sums would show in the next.
    x: csr(
      rows.map((row) => row.flatMap((value) => [value, ...new Array<number>(199).fill(0)])),
      600,
    ),
    groups: groupRows(pattern(members, 6), pattern(labels, 3), merge),
  }));
const anyOptions = fc.record({
  iterations: fc.constantFrom(0, 1, 2, 5, 8, 20, 300),
  step: fc.constantFrom(0.1, 0.5),
  centre: fc.boolean(),
  weightByCount: fc.boolean(),
  assign: fc.constantFrom('best' as const, 'top-r' as const),
});

describe('the members a label goes to', () => {
  it('are as similar to it as the reference says, and none left out is more similar', async () => {
    await fc.assert(
      fc.asyncProperty(smallSet, anyOptions, async ({ x, groups }, o) => {
        const found = await assignNearest(x, groups, o);
        expect(found.chosen).toEqual(chooseBest(groups, found.scores, o.assign));
        const points = centredRows(x, o.centre);
        for (let group = 0; group < groups.members.rows; group++) {
          for (let pair = groups.labels.indptr[group]; pair < groups.labels.indptr[group + 1]; pair++) {
            const { direction } = labelDirection(x, groups, groups.labels.indices[pair], o, context.seed);
            const members = [...rowIndices(groups.members, group)];
            const similarity = (row: number) => dot(direction, points[row]);
            const { places, similarities, margin } = choiceOf(found, pair);
            const chosen = places.map((place) => members[place]);
            const wanted = o.assign === 'best' ? 1 : Math.min(groups.labels.values[pair], members.length);
            expect(chosen.length).toBe(wanted);
            chosen.forEach((row, rank) => {
              expect(similarities[rank]).toBeCloseTo(similarity(row), 5);
            });
            const rest = members.filter((row) => !chosen.includes(row)).map(similarity);
            const last = similarity(chosen[wanted - 1]);
            if (rest.length === 0) expect(margin).toBeNull();
            else expect(margin).toBeCloseTo(last - Math.max(...rest), 5);
            expect(last).toBeGreaterThanOrEqual(Math.max(...rest) - 1e-6);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('are the same for any number of threads', async () => {
    const set = planted(3, 1, 4, 1, 400, 30);
    const one = await assignNearest(set.x, set.groups, usual);
    expect(await assignNearest(set.x, set.groups, usual, { threads: 3 })).toEqual(one);
  });

  it('are found where they are planted, as often as expected', async () => {
    const expected: [q: number, noise: number, size: number, t: number, share: number][] = [
      [1, 2, 2, 0, 0.987],
      [1, 2, 4, 20, 0.959],
      [1, 2, 10, 0, 0.6],
      [1, 2, 10, 5, 0.685],
      [1, 2, 10, 20, 0.8],
      [3, 1, 4, 0, 0.887],
      [3, 1, 4, 20, 0.966],
      [3, 1, 10, 0, 0.413],
      [3, 1, 10, 20, 0.71],
    ];
    for (const [q, noise, size, iterations, share] of expected) {
      const seeds = await Promise.all(
        [1, 2, 3].map((seed) => accuracy(planted(q, noise, size, seed), { ...usual, iterations })),
      );
      const mean = seeds.reduce((sum, value) => sum + value) / seeds.length;
      expect(Math.abs(mean - share), `q ${q}, groups of ${size}, T ${iterations}: ${mean}`).toBeLessThan(
        0.03,
      );
    }
  });

  it('are found more often when rows are centred', async () => {
    const set = planted(3, 1, 10, 1);
    const plain = await accuracy(set, usual);
    expect(await accuracy(set, { ...usual, centre: true })).toBeGreaterThan(plain + 0.1);
  });

  it('are the labels themselves in groups of one', async () => {
    const set = planted(3, 1, 1, 1, 200, 20);
    for (const iterations of [0, 20]) {
      const found = await assignNearest(set.x, set.groups, { ...usual, iterations });
      expect(chosenLabels(set.groups, found)).toEqual(set.labels);
    }
  });

  it('are one for every group and label where groups do not overlap', async () => {
    const set = planted(3, 1, 4, 2, 400, 30);
    const found = await assignNearest(set.x, set.groups, usual);
    expect(nnz(chosenLabels(set.groups, found))).toBe(nnz(set.groups.labels));
  });

  it('do not depend on the lengths of rows given to `impute`', async () => {
    const { x, groups } = planted(2, 1, 4, 3, 200, 20);
    const longer = { ...x, values: x.values.map((value) => value * 8) };
    const eagle = (sparse: Csr) =>
      impute({ features: { sparse } }, groups, parseOptions(imputeOptions, { method: 'eagle' }), context);
    expect(await eagle(longer)).toEqual(await eagle(x));
  });

  it('are the same from dense columns as from sparse ones', async () => {
    const { x, groups } = planted(2, 1, 4, 4, 200, 20);
    const values = new Float32Array(x.rows * x.cols);
    for (let row = 0; row < x.rows; row++)
      for (let p = x.indptr[row]; p < x.indptr[row + 1]; p++)
        values[row * x.cols + x.indices[p]] = x.values[p];
    const dense = { rows: x.rows, cols: x.cols, values };
    const o = parseOptions(imputeOptions, { method: 'eagle' });
    expect(await impute({ features: { dense } }, groups, o, context)).toEqual(
      await impute({ features: { sparse: x } }, groups, o, context),
    );
  });
});

describe('the direction of a label', () => {
  it('is the unit sum of its rows in groups of one, after any number of steps', () => {
    const { x, groups, labels } = planted(2, 1, 1, 5, 60, 6);
    const points = centredRows(x, false);
    for (let label = 0; label < 6; label++) {
      const sum = new Array<number>(x.cols).fill(0);
      points.forEach((point, row) => {
        if (rowIndices(labels, row).includes(label)) add(sum, point);
      });
      for (const iterations of [0, 20]) {
        const { direction } = labelDirection(x, groups, label, { ...usual, iterations }, 1);
        expectClose(direction, unit(sum), 6);
      }
    }
  });

  it('never gets further from its nearest members', () => {
    for (const centre of [false, true]) {
      const { x, groups } = planted(3, 1, 4, 6, 400, 30);
      for (let label = 0; label < 30; label++) {
        const { objective } = labelDirection(x, groups, label, { ...usual, centre }, 1);
        for (let t = 1; t < objective.length; t++)
          expect(objective[t]).toBeGreaterThanOrEqual(objective[t - 1] - 1e-9);
      }
    }
  });

  it('does not depend on the order of groups and of their members', () => {
    const { x, groups } = planted(2, 1, 4, 7, 80, 8);
    const backwards = reordered(groups);
    for (let label = 0; label < 8; label++) {
      const { direction } = labelDirection(x, groups, label, usual, 1);
      const again = labelDirection(x, backwards, label, usual, 1).direction;
      expectClose(again, direction, 9);
    }
  });

  it('is found where each group holds a row and its opposite', () => {
    const rows = Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? [0.6, 0.8, 0] : [-0.6, -0.8, 0]));
    const members = pattern(
      Array.from({ length: 6 }, (_, j) => [2 * j, 2 * j + 1]),
      12,
    );
    const groups = groupRows(members, pattern(new Array<number[]>(12).fill([0]), 1), 'set');
    for (const seed of [1, 2, 3, 4]) {
      const x = csr(rows, 3);
      const { direction, objective } = labelDirection(x, groups, 0, { ...usual, iterations: 200 }, seed);
      expect(Math.abs(0.6 * direction[0] + 0.8 * direction[1])).toBeGreaterThan(0.999);
      expect(objective.at(-1)).toBeCloseTo(6, 2);
    }
  });

  it('is nothing where every member is empty, and the first member gets the label', async () => {
    const x = csr([[], [], []], 2);
    const groups = groupRows(pattern([[1, 2]], 3), pattern([[], [0], []], 1), 'list');
    expect(labelDirection(x, groups, 0, usual, 1).direction).toEqual(new Float64Array(2));
    expect([...(await assignNearest(x, groups, usual)).chosen]).toEqual([1, 0]);
  });
});

function expectClose(seen: ArrayLike<number>, wanted: ArrayLike<number>, digits: number): void {
  for (let j = 0; j < wanted.length; j++) expect(seen[j]).toBeCloseTo(wanted[j], digits);
}

/** The last group first, and in each group the last member first. */
function reordered({ names, members, labels }: Groups): Groups {
  const backwards = new CsrBuilder('binary');
  const carried = new CsrBuilder('values');
  for (let group = members.rows - 1; group >= 0; group--) {
    backwards.add([...rowIndices(members, group)].reverse());
    const [from, to] = [labels.indptr[group], labels.indptr[group + 1]];
    carried.add(labels.indices.subarray(from, to), labels.values.subarray(from, to));
  }
  return { names, members: backwards.pattern(members.cols), labels: carried.csr(labels.cols) };
}
