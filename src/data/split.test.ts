import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsrBuilder, columnCounts, type Pattern, rowIndices, selectRows } from '../math/csr.ts';
import { Random } from '../math/random.ts';
import { type SplitOptions, splitRows, splitRules } from './split.ts';

function pattern(rows: number[][], cols: number): Pattern {
  const builder = new CsrBuilder('binary');
  for (const row of rows) builder.add(row);
  return builder.pattern(cols);
}

/** Rows of up to `most` labels, low label numbers far more frequent than high ones. */
function skewed(rows: number, cols: number, most: number, random: Random): Pattern {
  const draw = () => Math.floor(cols * random.uniform() ** 3);
  const row = () =>
    [...new Set(Array.from({ length: random.integer(most + 1) }, draw))].sort((a, b) => a - b);
  return pattern(Array.from({ length: rows }, row), cols);
}

const partsOf = ({ train, valid, test }: ReturnType<typeof splitRows>) =>
  valid ? [train, valid, test] : [train, test];

/** The same rules with a scan of everything at every step. */
function slowStratified(labels: Pattern, sizes: number[], random: Random): number[][] {
  const order = random.permutation(labels.rows);
  const holds = (row: number, label: number) => rowIndices(labels, row).includes(label);
  const total = (label: number) => [...order].filter((row) => holds(row, label)).length;
  const parts: number[][] = sizes.map(() => []);
  let left = [...order];
  const room = (part: number) => sizes[part] - parts[part].length;
  const wants = (part: number, label: number) =>
    (total(label) * sizes[part]) / labels.rows - parts[part].filter((row) => holds(row, label)).length;
  const place = (row: number, want: (part: number) => number) => {
    const open = sizes.map((_, part) => part).filter((part) => room(part) > 0);
    const best = Math.max(...open.map(want));
    const wanting = open.filter((part) => want(part) === best);
    const mostRoom = Math.max(...wanting.map(room));
    const tied = wanting.filter((part) => room(part) === mostRoom);
    parts[tied.length === 1 ? tied[0] : tied[random.integer(tied.length)]].push(row);
    left = left.filter((other) => other !== row);
  };
  for (;;) {
    const counts = Array.from(
      { length: labels.cols },
      (_, label) => left.filter((row) => holds(row, label)).length,
    );
    const fewest = Math.min(...counts.filter((count) => count > 0));
    const label = counts.indexOf(fewest);
    if (label < 0) break;
    for (const row of left.filter((one) => holds(one, label))) {
      const odd = total(label) > 1 && sizes.every((_, part) => wants(part, label) < 1);
      const late = sizes.findIndex((size, part) => room(part) * labels.rows > 2 * size * left.length);
      place(row, odd && late >= 0 ? (part) => (part === late ? 1 : 0) : (part) => wants(part, label));
    }
  }
  for (const row of left) place(row, room);
  return parts.map((rows) => rows.sort((a, b) => a - b));
}

const anyOptions = fc.record({
  rule: fc.constantFrom(...splitRules),
  test: fc.double({ min: 0.01, max: 0.5, noNaN: true }),
  valid: fc.option(fc.double({ min: 0.01, max: 0.45, noNaN: true }), { nil: undefined }),
  seed: fc.nat(),
});

describe('splitRows', () => {
  it('puts every row in exactly one part, ascending, with sizes within a row of the fractions', () => {
    fc.assert(
      fc.property(anyOptions, fc.integer({ min: 3, max: 80 }), (options, rows) => {
        const labels = skewed(rows, 12, 4, new Random(options.seed, 'data'));
        const split = splitRows(labels, options);
        const parts = partsOf(split);
        expect(parts.flatMap((part) => [...part]).sort((a, b) => a - b)).toEqual([...Array(rows).keys()]);
        for (const part of parts) {
          expect(part.length).toBeGreaterThan(0);
          expect([...part]).toEqual([...part].sort((a, b) => a - b));
        }
        expect(Math.abs(split.test.length - rows * options.test)).toBeLessThanOrEqual(1);
        expect(split.valid === undefined).toBe(options.valid === undefined);
      }),
    );
  });

  it('gives the same split for the same seed and another for another', () => {
    const labels = skewed(200, 20, 4, new Random(1));
    for (const rule of ['random', 'stratified'] as const) {
      const split = (seed: number) => splitRows(labels, { rule, test: 0.2, valid: 0.2, seed });
      expect(split(1)).toEqual(split(1));
      expect(split(1)).not.toEqual(split(2));
    }
  });

  it('keeps time order: train before valid before test', () => {
    const split = splitRows(skewed(10, 3, 2, new Random(1)), {
      rule: 'order',
      test: 0.3,
      valid: 0.2,
      seed: 1,
    });
    expect(partsOf(split).map((part) => [...part])).toEqual([
      [0, 1, 2, 3, 4],
      [5, 6],
      [7, 8, 9],
    ]);
  });

  it('refuses fractions outside (0, 1), fractions that leave no training rows, and too few rows', () => {
    const labels = skewed(10, 3, 2, new Random(1));
    const split = (given: Partial<SplitOptions>, on = labels) =>
      splitRows(on, { rule: 'random', test: 0.5, seed: 1, ...given });
    for (const value of [0, 1, -0.1, 1.5, Number.NaN]) {
      const rule = `must be a fraction above 0 and below 1, got ${value}`;
      expect(() => split({ test: value })).toThrow(`test ${rule}`);
      expect(() => split({ valid: value })).toThrow(`valid ${rule}`);
    }
    expect(() => split({ test: 0.5, valid: 0.5 })).toThrow('test and valid together must be below 1, got 1');
    expect(() => split({ valid: 0.2 }, pattern([[0], [1]], 2))).toThrow('needs at least 3 rows, got 2');
    expect(() => split({}, pattern([], 0))).toThrow('needs at least 2 rows, got 0');
    expect(() => split({ rule: 'stratifed' as 'stratified' })).toThrow('did you mean stratified?');
  });
});

describe('the stratified split', () => {
  it('equals the slow reference', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 3, max: 40 }),
        fc.integer({ min: 1, max: 10 }),
        fc.constantFrom([0.5], [0.1], [0.25], [0.2, 0.2], [0.34, 0.33]),
        (seed, rows, cols, [test, valid]) => {
          const labels = skewed(rows, cols, 3, new Random(seed, 'data'));
          const found = partsOf(splitRows(labels, { rule: 'stratified', test, valid, seed }));
          const sizes = found.map((part) => part.length);
          const expected = slowStratified(labels, sizes, new Random(seed, 'split'));
          expect(found.map((part) => [...part])).toEqual(expected);
        },
      ),
    );
  });

  it('comes closer to the share of every label than a random split', () => {
    const error = (rule: 'random' | 'stratified', seed: number) => {
      const labels = skewed(500, 60, 5, new Random(seed, 'data'));
      const { test } = splitRows(labels, { rule, test: 0.2, seed });
      const [total, inTest] = [columnCounts(labels), columnCounts(selectRows(labels, test))];
      return total.reduce((sum, n, label) => sum + (n === 0 ? 0 : Math.abs(inTest[label] / n - 0.2)), 0);
    };
    for (let seed = 0; seed < 10; seed++) {
      expect(error('stratified', seed)).toBeLessThan(0.7 * error('random', seed));
    }
  });

  it('is never a whole row away from a label share when each row has one label and parts are not full', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 2, maxLength: 8 }),
        (seed, sizes) => {
          // One label of a thousand rows takes what the others leave, so no part fills up before the last label.
          const labels = pattern(
            [...sizes, 1000].flatMap((size, label) => Array(size).fill([label])),
            sizes.length + 1,
          );
          const { test } = splitRows(labels, { rule: 'stratified', test: 0.3, seed });
          const inTest = columnCounts(selectRows(labels, test));
          sizes.forEach((size, label) => {
            expect(Math.abs(inTest[label] - (size * test.length) / labels.rows)).toBeLessThan(1);
          });
        },
      ),
    );
  });

  it('leaves no label in the test part alone when all labels have three rows', () => {
    const labels = pattern(
      Array.from({ length: 300 }, (_, row) => [row % 100]),
      100,
    );
    const { train, test } = splitRows(labels, { rule: 'stratified', test: 0.1, seed: 1 });
    expect(test.length).toBe(30);
    expect(Math.min(...columnCounts(selectRows(labels, train)))).toBeGreaterThan(0);
  });

  it('shares out rows without labels by size', () => {
    const labels = pattern(Array(100).fill([]), 5);
    const { train, valid, test } = splitRows(labels, { rule: 'stratified', test: 0.2, valid: 0.1, seed: 3 });
    expect([train.length, valid?.length, test.length]).toEqual([70, 10, 20]);
    expect(test[0]).toBeLessThan(50);
  });
});
