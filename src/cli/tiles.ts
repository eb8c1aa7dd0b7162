// Rows of numbers as pictures side by side: what the label embeddings of an image set look like.
import { badUsage } from '../errors.ts';
import { type Dense, denseRow } from '../math/dense.ts';

const tilesAcross = 10;

/** One matrix with every row as a tile of `width` columns, by default a square; each tile's largest number is 1 or -1. */
export function tiled(rows: Dense, width = Math.sqrt(rows.cols)): Dense {
  const height = rows.cols / width;
  if (!Number.isInteger(width) || !Number.isInteger(height))
    throw badUsage(`--width must divide the ${rows.cols} numbers of an embedding`, { value: width });
  const across = Math.min(tilesAcross, rows.rows);
  // A line of zeros lies between two tiles.
  const cols = across * (width + 1) - 1;
  const lines = Math.ceil(rows.rows / across) * (height + 1) - 1;
  const values = new Float32Array(lines * cols);
  for (let tile = 0; tile < rows.rows; tile++) {
    const numbers = denseRow(rows, tile);
    const largest = numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    const [top, left] = [Math.floor(tile / across) * (height + 1), (tile % across) * (width + 1)];
    numbers.forEach((value, i) => {
      values[(top + Math.floor(i / width)) * cols + left + (i % width)] = value / largest;
    });
  }
  return { rows: lines, cols, values };
}
