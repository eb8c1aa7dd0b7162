import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rowIndices, rowValues } from '../math/csr.ts';
import type { Dense } from '../math/dense.ts';
import { Random } from '../math/random.ts';
import { exactSearch } from './exact.ts';
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
