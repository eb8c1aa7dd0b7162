import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Csr, CsrBuilder, columnCounts, nnz, selectRows, transpose, unitRows } from './csr.ts';
import { denseRow, selectDenseRows, unitDenseRows } from './dense.ts';
import { Random } from './random.ts';
import { topK } from './topk.ts';

const matrix = fc
  .array(fc.array(fc.constantFrom(0, 0, 0, 1, -2, 0.5), { minLength: 7, maxLength: 7 }), { maxLength: 12 })
  .map((rows) => ({ rows, csr: toCsr(rows) }));

function toCsr(rows: number[][]): Csr {
  const builder = new CsrBuilder('values');
  for (const row of rows) {
    const indices = row.flatMap((value, column) => (value === 0 ? [] : [column]));
    builder.add(
      indices,
      indices.map((column) => row[column]),
    );
  }
  return builder.csr(7);
}

function toRows(m: Csr): number[][] {
  return Array.from({ length: m.rows }, (_, row) => {
    const dense = new Array<number>(m.cols).fill(0);
    for (let p = m.indptr[row]; p < m.indptr[row + 1]; p++) dense[m.indices[p]] = m.values[p];
    return dense;
  });
}

describe('sparse rows', () => {
  it('transpose as dense rows do, and back', () => {
    fc.assert(
      fc.property(matrix, ({ rows, csr }) => {
        const flipped = Array.from({ length: 7 }, (_, column) => rows.map((row) => row[column]));
        expect(toRows(transpose(csr))).toEqual(flipped);
        expect(transpose(transpose(csr))).toEqual(csr);
      }),
    );
  });

  it('select rows in any order, repeated or not', () => {
    fc.assert(
      fc.property(matrix, fc.array(fc.nat(100)), ({ rows, csr }, picks) => {
        fc.pre(rows.length > 0);
        const wanted = picks.map((pick) => pick % rows.length);
        expect(toRows(selectRows(csr, wanted))).toEqual(wanted.map((row) => rows[row]));
      }),
    );
  });

  it('have length one after unitRows, unless they are zero', () => {
    fc.assert(
      fc.property(matrix, ({ csr }) => {
        for (const row of toRows(unitRows(csr))) {
          const length = Math.hypot(...row);
          expect(length === 0 || Math.abs(length - 1) < 1e-6).toBe(true);
        }
      }),
    );
  });

  it('count their columns', () => {
    fc.assert(
      fc.property(matrix, ({ rows, csr }) => {
        const counts = Array.from({ length: 7 }, (_, c) => rows.filter((row) => row[c] !== 0).length);
        expect([...columnCounts(csr)]).toEqual(counts);
        expect(nnz(csr)).toBe(counts.reduce((sum, count) => sum + count, 0));
      }),
    );
  });

  it('grow past any first guess', () => {
    const builder = new CsrBuilder('values');
    for (let row = 0; row < 5000; row++) builder.add([row, row + 1], [row, 1]);
    const m = builder.csr();
    expect([m.rows, m.cols, nnz(m)]).toEqual([5000, 5001, 10000]);
    expect([m.indices[9998], m.values[9998]]).toEqual([4999, 4999]);
  });
});

describe('dense rows', () => {
  it('are selected and made length one', () => {
    const m = { rows: 3, cols: 2, values: Float32Array.of(3, 4, 0, 0, 1, 0) };
    const picked = unitDenseRows(selectDenseRows(m, [1, 0]));
    expect([...denseRow(picked, 0)]).toEqual([0, 0]);
    expect(denseRow(picked, 1)[0]).toBeCloseTo(0.6);
  });
});

describe('topK', () => {
  it('is a stable sort cut at k', () => {
    const scores = fc.array(fc.constantFrom(0, 1, 2, -1, 0.5, Number.NEGATIVE_INFINITY));
    fc.assert(
      fc.property(scores, fc.nat(12), (list, k) => {
        const order = list.map((_, i) => i).sort((a, b) => (list[a] === list[b] ? a - b : list[b] - list[a]));
        expect([...topK(list, k)]).toEqual(order.slice(0, k));
      }),
    );
  });
});

describe('Random', () => {
  it('repeats for the same key and differs for another', () => {
    const draw = (...key: (number | string)[]) => {
      const random = new Random(...key);
      return Array.from({ length: 5 }, () => random.uint32());
    };
    expect(draw(1, 'a')).toEqual(draw(1, 'a'));
    expect(draw(1, 'a')).not.toEqual(draw(2, 'a'));
    expect(draw(1, 'a')).not.toEqual(draw(1, 'b'));
  });

  it('draws uniform integers, uniform numbers and normals with the right moments', () => {
    const random = new Random(3);
    const n = 50_000;
    const counts = new Float64Array(6);
    let [sum, square, uniform] = [0, 0, 0];
    for (let i = 0; i < n; i++) {
      counts[random.integer(6)]++;
      const x = random.normal();
      sum += x;
      square += x * x;
      uniform += random.uniform();
    }
    const chiSquare = counts.reduce((total, count) => total + (count - n / 6) ** 2 / (n / 6), 0);
    expect(chiSquare).toBeLessThan(20.5); // p = .001 at 5 degrees of freedom
    expect(Math.abs(sum / n)).toBeLessThan(0.02);
    expect(Math.abs(square / n - 1)).toBeLessThan(0.03);
    expect(Math.abs(uniform / n - 0.5)).toBeLessThan(0.005);
  });

  it('permutes without loss', () => {
    const order = new Random(5).permutation(1000);
    expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    expect([...order]).not.toEqual([...order].sort((a, b) => a - b));
  });
});
