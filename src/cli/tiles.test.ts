import { expect, it } from 'vitest';
import { tiled } from './tiles.ts';

it('puts every row beside the last as a square, with a line between, its largest number one', () => {
  const rows = { rows: 2, cols: 4, values: Float32Array.of(1, 2, -4, 0, 0, 0, 0, 3) };
  const picture = tiled(rows);
  expect([picture.rows, picture.cols]).toEqual([2, 5]);
  expect([...picture.values]).toEqual([0.25, 0.5, 0, 0, 0, -1, 0, 0, 0, 1]);
});

it('begins a new line after ten, and takes tiles of any width that fits', () => {
  const rows = { rows: 12, cols: 6, values: new Float32Array(72) };
  expect(tiled(rows, 3)).toMatchObject({ rows: 5, cols: 39 });
  expect(() => tiled(rows)).toThrow(/--width must divide the 6 numbers of an embedding, got 2.449/);
});
