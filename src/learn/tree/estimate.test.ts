import { describe, expect, it } from 'vitest';
import type { Pattern } from '../../math/csr.ts';
import { estimateTree } from './estimate.ts';

/** Every row has as many entries as any other; only the sizes matter. */
const even = (rows: number, cols: number, perRow: number): Pattern => ({
  rows,
  cols,
  indptr: Uint32Array.from({ length: rows + 1 }, (_, row) => row * perRow),
  indices: new Uint32Array(0),
});

describe('the estimate of what training needs', () => {
  it('is near what the titles of a library took: 360 MB, and 40 MB on disk', () => {
    const tree = { trees: 1, flat: false, copies: 1 };
    const { memory, disk } = estimateTree(even(175272, 34210, 12), even(175272, 24382, 5), tree, 2);
    expect(memory / 360e6).toBeGreaterThan(0.7);
    expect(memory / 360e6).toBeLessThan(1.5);
    expect(disk / 40e6).toBeGreaterThan(0.7);
    expect(disk / 40e6).toBeLessThan(1.5);
  });

  it('grows with the number of trees', () => {
    const [x, y] = [even(1000, 500, 10), even(1000, 300, 3)];
    const disk = (trees: number) => estimateTree(x, y, { trees, flat: false, copies: 1 }, 1).disk;
    expect(disk(3)).toBe(3 * disk(1));
  });

  it('refuses what cannot fit, and says so', () => {
    const large = () =>
      estimateTree(
        even(1_000_000, 1000, 300),
        even(1_000_000, 10, 1),
        { trees: 1, flat: true, copies: 1 },
        2,
      );
    expect(large).toThrow(/must fit into 4 GB, got "6\.9 GB"/);
  });
});
