import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Csr, CsrBuilder, nnz, rowIndices, rowValues, selectRows, stackRows } from './csr.ts';

const cols = 6;
const matrix = fc.array(fc.subarray([0, 1, 2, 3, 4, 5]), { maxLength: 8 }).map((rows): Csr => {
  const built = new CsrBuilder('values');
  for (const columns of rows)
    built.add(
      columns,
      columns.map((column) => column + rows.length),
    );
  return built.csr(cols);
});

describe('stacked rows', () => {
  it('are those of the first matrix, then those of the last', () => {
    fc.assert(
      fc.property(matrix, matrix, (first, last) => {
        const both = stackRows(first, last);
        expect([both.rows, both.cols, nnz(both)]).toEqual([
          first.rows + last.rows,
          cols,
          nnz(first) + nnz(last),
        ]);
        const parts = [first, last].flatMap((m) =>
          Array.from({ length: m.rows }, (_, row) => [rowIndices(m, row), rowValues(m, row)]),
        );
        parts.forEach(([indices, values], row) => {
          expect([rowIndices(both, row), rowValues(both, row)]).toEqual([indices, values]);
        });
        expect(selectRows(both, [...Array(first.rows).keys()])).toEqual(first);
      }),
    );
  });

  it('have the columns of the wider matrix, and values only where both have', () => {
    const narrow = { rows: 1, cols: 2, indptr: Uint32Array.of(0, 1), indices: Uint32Array.of(1) };
    const wide = { ...narrow, cols: 5, values: Float32Array.of(3) };
    expect(stackRows(narrow, wide)).toEqual({
      rows: 2,
      cols: 5,
      indptr: Uint32Array.of(0, 1, 2),
      indices: Uint32Array.of(1, 1),
    });
  });
});
