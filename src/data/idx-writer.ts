// Writes dense rows as IDX: bytes where all values are whole numbers up to 255, else 32-bit numbers; one class per row
// in a second file beside. Rows wait in memory, since their number comes first.
import { basename, dirname, join } from 'node:path';
import { badInput, badUsage } from '../errors.ts';
import type { Sample } from './dataset.ts';
import { writeTogether } from './file.ts';
import type { Header, SampleWriter } from './format.ts';
import { checkHolds } from './records.ts';

/** The file of labels beside a file of images; undefined for a name that does not say `images`. */
export function labelsName(images: string): string | undefined {
  const name = images.replace('images', 'labels').replace(/idx\d/, 'idx1');
  return name === images ? undefined : name;
}

export async function idxWriter(path: string, { vocabulary }: Header): Promise<SampleWriter> {
  const name = labelsName(basename(path));
  if (name === undefined)
    throw badUsage('name must say `images`, so that its labels can lie beside it', {
      file: path,
      hint: 'for example train-images-idx2-ubyte',
    });
  const rows: Float32Array[] = [];
  const classes: number[] = [];
  const add = (sample: Sample) => {
    checkHolds('idx', ['dense'], sample);
    if (!sample.dense) throw badInput('idx needs dense features', { file: path });
    const ids = Array.from(sample.labels, (column) => vocabulary.label(column).id);
    if (ids.length !== 1 || !/^\d{1,9}$/.test(ids[0]))
      throw badInput('a sample written as idx must have one label, a whole number', {
        file: path,
        value: ids.join(),
      });
    rows.push(sample.dense);
    classes.push(Number(ids[0]));
  };
  return {
    async write(batch) {
      batch.forEach(add);
    },
    close: () =>
      writeTogether([
        [join(dirname(path), name), arrayPieces([classes.length], [classes])],
        [path, arrayPieces([rows.length, rows[0]?.length ?? 0], rows)],
      ]),
    async abort() {},
  };
}

function* arrayPieces(shape: number[], rows: ArrayLike<number>[]): Iterable<Uint8Array> {
  const isByte = (value: number) => Number.isInteger(value) && value >= 0 && value <= 255;
  const bytes = rows.every((row) => Array.prototype.every.call(row, isByte));
  const head = Buffer.alloc(4 + 4 * shape.length);
  head.set([0, 0, bytes ? 0x08 : 0x0d, shape.length]);
  shape.forEach((length, i) => {
    head.writeUInt32BE(length, 4 + 4 * i);
  });
  yield head;
  for (const row of rows) yield bytes ? Uint8Array.from(row) : bigEndian(row);
}

function bigEndian(row: ArrayLike<number>): Uint8Array {
  const bytes = Buffer.alloc(4 * row.length);
  for (let i = 0; i < row.length; i++) bytes.writeFloatBE(row[i], 4 * i);
  return bytes;
}
