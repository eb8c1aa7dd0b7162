// A matrix of similarities as a picture: PNG, or a page that says what lies under the pointer. Knows no labels but names.
import { crc32, deflateSync } from 'node:zlib';
import type { Dense } from '../math/dense.ts';

/** Blue for -1, white for 0, red for 1. */
function colorOf(value: number): [number, number, number] {
  const fade = Math.round(255 * (1 - Math.min(1, Math.abs(value))));
  return value < 0 ? [fade, fade, 255] : [255, fade, fade];
}

/** Cells as squares of several pixels, so that small maps can be seen. */
export function heatMapPng({ rows, cols, values }: Dense): Buffer {
  const cell = Math.max(1, Math.floor(800 / Math.max(rows, cols, 1)));
  const width = cols * cell;
  const pixels = Buffer.alloc(rows * cell * (1 + 3 * width));
  for (let y = 0; y < rows * cell; y++) {
    // Each line begins with the number of its filter: none.
    const start = y * (1 + 3 * width) + 1;
    for (let x = 0; x < width; x++)
      pixels.set(colorOf(values[Math.floor(y / cell) * cols + Math.floor(x / cell)]), start + 3 * x);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(rows * cell, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const chunks = [chunk('IHDR', header), chunk('IDAT', deflateSync(pixels)), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body) >>> 0);
  return Buffer.concat([length, body, checksum]);
}

const escapeHtml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** One file without anything to fetch. */
export function heatMapPage(title: string, names: readonly string[], matrix: Dense): string {
  const picture = `data:image/png;base64,${heatMapPng(matrix).toString('base64')}`;
  const values = Buffer.from(Int8Array.from(matrix.values, (value) => Math.round(100 * value)).buffer);
  // A name must not be able to end the script.
  const data = JSON.stringify({ names, values: values.toString('base64') }).replaceAll('<', '\\u003c');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escapeHtml(title)}</title>
<style>
  body { font: 16px sans-serif; margin: 2rem; }
  img { width: min(90vw, 80vh); image-rendering: pixelated; border: 1px solid #888; }
  p { min-height: 1.5em; }
</style>
<h1>${escapeHtml(title)}</h1>
<p id="told" aria-live="polite">Point at a cell: red labels are alike, blue ones opposite.</p>
<img id="map" alt="Similarities of ${names.length} labels" src="${picture}">
<script>
  const { names, values } = ${data};
  const cells = new Int8Array(Uint8Array.from(atob(values), (c) => c.charCodeAt(0)).buffer);
  const map = document.getElementById('map');
  map.addEventListener('mousemove', ({ offsetX, offsetY }) => {
    const place = (at, size) => Math.min(names.length - 1, Math.max(0, Math.floor((at / size) * names.length)));
    const [row, column] = [place(offsetY, map.clientHeight), place(offsetX, map.clientWidth)];
    const value = (cells[row * names.length + column] / 100).toFixed(2);
    document.getElementById('told').textContent = names[row] + ' and ' + names[column] + ': ' + value;
  });
</script>
</html>
`;
}
