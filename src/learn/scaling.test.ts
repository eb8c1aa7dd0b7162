import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitScaling, standardise } from './scaling.ts';

describe('scaling', () => {
  it('gives columns of mean zero and deviation one, and zeros for a constant column', () => {
    const value = fc.double({ min: -1e4, max: 1e4, noNaN: true });
    fc.assert(
      fc.property(fc.array(value, { minLength: 3, maxLength: 50 }), value, (column, constant) => {
        fc.pre(Math.max(...column) - Math.min(...column) > 1);
        const values = Float32Array.from(column.flatMap((entry) => [entry, constant]));
        const matrix = { rows: column.length, cols: 2, values };
        const scaled = standardise(matrix, fitScaling(matrix)).values;
        const first = column.map((_, row) => scaled[2 * row]);
        const mean = first.reduce((sum, entry) => sum + entry, 0) / first.length;
        const variance = first.reduce((sum, entry) => sum + (entry - mean) ** 2, 0) / first.length;
        expect(mean).toBeCloseTo(0, 2);
        expect(variance).toBeCloseTo(1, 2);
        expect(column.every((_, row) => scaled[2 * row + 1] === 0)).toBe(true);
      }),
    );
  });

  it('keeps the digits of a small deviation around a large mean', () => {
    const values = Float32Array.from([100_000, 100_001, 100_002, 100_003]);
    const matrix = { rows: 4, cols: 1, values };
    const [first, ...rest] = standardise(matrix, fitScaling(matrix)).values;
    expect(first).toBeCloseTo(-1.3416, 3);
    expect(rest.map((entry, i) => entry > [first, ...rest][i])).toEqual([true, true, true]);
  });
});
