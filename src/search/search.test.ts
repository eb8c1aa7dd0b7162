import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rowIndices, rowValues } from '../math/csr.ts';
import type { Dense } from '../math/dense.ts';
import { Random } from '../math/random.ts';
import { approximateSearch, canApproximate, recallOf } from './approximate.ts';
import { exactSearch } from './exact.ts';
import { openSearch } from './open.ts';
import { slowSearch } from './reference.ts';

/** Rows of normal numbers; of whole ones where ties are wanted. */
function draw(rows: number, cols: number, kind: 'normal' | 'whole', ...key: (number | string)[]): Dense {
  const random = new Random(...key);
  const number = kind === 'whole' ? () => random.integer(5) - 2 : () => random.normal();
  return { rows, cols, values: Float32Array.from({ length: rows * cols }, number) };
}

const cases = fc.record({
  count: fc.integer({ min: 1, max: 60 }),
  cols: fc.integer({ min: 1, max: 40 }),
  queries: fc.integer({ min: 0, max: 70 }),
  top: fc.integer({ min: 1, max: 70 }),
  kind: fc.constantFrom('normal' as const, 'whole' as const),
  hidden: fc.boolean(),
  seed: fc.nat(),
});

describe('exact search', () => {
  it('finds what the slow one finds, ties by lowest number, without what is excluded', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ count, cols, queries, top, kind, hidden, seed }) => {
        const vectors = draw(count, cols, kind, seed, 'vectors');
        const asked = draw(queries, cols, kind, seed, 'queries');
        const excluded = hidden
          ? Uint8Array.from({ length: count }, (_, i) => Number(i % 3 === 1))
          : undefined;
        const found = await (await exactSearch(vectors)).search(asked, { top, excluded });
        const expected = await slowSearch(vectors).search(asked, { top, excluded });
        expect(found.indptr).toEqual(expected.indptr);
        if (kind === 'whole') expect(found).toEqual(expected);
        for (let row = 0; row < queries; row++) {
          const [scores, wanted] = [rowValues(found, row), rowValues(expected, row)];
          scores.forEach((score, rank) => {
            expect(score).toBeCloseTo(wanted[rank], 3);
          });
          const own = (i: number) => rowIndices(found, row)[i];
          for (let rank = 1; rank < scores.length; rank++)
            if (scores[rank] === scores[rank - 1]) expect(own(rank)).toBeGreaterThan(own(rank - 1));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('is not misled by vectors whose whole numbers say little', async () => {
    // One huge number in each vector leaves nothing of the others in eight bits; they alone decide.
    const vectors = draw(200, 24, 'normal', 'hard');
    for (let row = 0; row < 200; row++) vectors.values[row * 24] = 1e4;
    const queries = draw(40, 24, 'normal', 'asked');
    for (let row = 0; row < 40; row++) queries.values[row * 24] = 0;
    const found = await (await exactSearch(vectors)).search(queries, { top: 5 });
    expect(found.indices).toEqual((await slowSearch(vectors).search(queries, { top: 5 })).indices);
  });

  it('gives the same answer with any number of threads', async () => {
    const search = await exactSearch(draw(500, 33, 'normal', 'many'));
    const queries = draw(150, 33, 'normal', 'threads');
    const one = await search.search(queries, { top: 7 });
    expect(await search.search(queries, { top: 7, threads: 3 })).toEqual(one);
    const [first, second] = await Promise.all([
      search.search(queries, { top: 7, threads: 2 }),
      search.search(queries, { top: 500, threads: 2 }),
    ]);
    expect(first).toEqual(one);
    expect(rowIndices(second, 149).subarray(0, 7)).toEqual(rowIndices(one, 149));
  });

  it('answers with nothing where there is nothing', async () => {
    const search = await exactSearch({ rows: 0, cols: 3, values: new Float32Array(0) });
    expect((await search.search(draw(2, 3, 'normal', 1), { top: 4 })).indptr).toEqual(new Uint32Array(3));
  });

  it('refuses queries of other dimensions, and more dimensions than it can count with', async () => {
    const search = await exactSearch(draw(4, 3, 'normal', 1));
    await expect(search.search(draw(1, 2, 'normal', 1), { top: 1 })).rejects.toThrow(
      'queries must have 3 dimensions, got 2',
    );
    await expect(exactSearch(draw(1, 4097, 'normal', 1))).rejects.toThrow('at most 4096 dimensions');
  });

  it('stops when cancelled', async () => {
    const search = await exactSearch(draw(4, 3, 'normal', 1));
    const signal = AbortSignal.abort();
    await expect(search.search(draw(1, 3, 'normal', 1), { top: 1, signal })).rejects.toThrow('cancelled');
  });
});

describe.runIf(canApproximate())('approximate search', () => {
  const vectors = draw(3000, 16, 'normal', 'approximate');
  const queries = draw(60, 16, 'normal', 'near');

  it('finds what it was asked to find, says how much, and gives exact products', async () => {
    const search = await approximateSearch(vectors, { sample: queries });
    expect(search.recall).toBeGreaterThanOrEqual(0.95);
    const truth = await slowSearch(vectors).search(queries, { top: 10 });
    const found = await search.search(queries, { top: 10, threads: 2 });
    expect(recallOf(found, truth)).toBe(search.recall);
    for (let row = 0; row < queries.rows; row++)
      rowIndices(found, row).forEach((label, rank) => {
        const at = rowIndices(truth, row).indexOf(label);
        if (at >= 0) expect(rowValues(found, row)[rank]).toBeCloseTo(rowValues(truth, row)[at], 4);
      });
  });

  it('is the same when it is built again, and when it is saved and loaded', async () => {
    const first = await approximateSearch(vectors);
    const saved = await first.save();
    expect((await (await approximateSearch(vectors)).save()).graph).toEqual(saved.graph);
    const loaded = await approximateSearch(vectors, { saved });
    expect(loaded.recall).toBe(first.recall);
    expect(await loaded.search(queries, { top: 5 })).toEqual(await first.search(queries, { top: 5 }));
  });

  it('grows by further vectors without being built anew', async () => {
    const first = { ...vectors, rows: 2900, values: vectors.values.subarray(0, 2900 * 16) };
    const saved = await (await approximateSearch(first)).save();
    const grown = await approximateSearch(vectors, { saved, sample: queries });
    expect(grown.recall).toBeGreaterThanOrEqual(0.95);
    expect((await grown.save()).rows).toBe(3000);
    const truth = await slowSearch(vectors).search(queries, { top: 10 });
    expect(recallOf(await grown.search(queries, { top: 10 }), truth)).toBe(grown.recall);
  });

  it('finds the few that are not excluded', async () => {
    const search = await approximateSearch(vectors);
    const excluded = new Uint8Array(3000).fill(1);
    for (const left of [7, 1500, 2999]) excluded[left] = 0;
    const { indices } = await search.search(queries, { top: 5, excluded });
    expect(indices.length).toBeLessThanOrEqual(180);
    expect(new Set(indices)).toEqual(new Set([7, 1500, 2999]));
  });

  it('leaves out what is excluded and still finds as many as asked for', async () => {
    const search = await approximateSearch(vectors);
    const excluded = new Uint8Array(3000);
    const nearest = await search.search(queries, { top: 3 });
    for (const label of nearest.indices) excluded[label] = 1;
    const others = await search.search(queries, { top: 3, excluded });
    expect(others.indices).toHaveLength(180);
    expect(others.indices.some((label) => excluded[label])).toBe(false);
    expect((await search.search(draw(0, 16, 'normal', 0), { top: 3 })).rows).toBe(0);
  });

  it('is chosen above a size, exactness below', async () => {
    const many = await openSearch(vectors, { limit: 1000, recall: 0.5 });
    expect(many.recall).toBeLessThanOrEqual(1);
    expect(many).toHaveProperty('save');
    const few = await openSearch(vectors);
    expect(few.recall).toBe(1);
    expect(await few.search(queries, { top: 2 })).toEqual(
      await (await exactSearch(vectors)).search(queries, { top: 2 }),
    );
  });
});
