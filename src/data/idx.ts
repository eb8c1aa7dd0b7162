// IDX, MNIST's format: big-endian arrays of any dimensions. Images become dense rows with the values as stored; labels
// are a one-dimensional file beside them (`train-images-idx3-ubyte` has `train-labels-idx1-ubyte`).
import { access } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { badInput } from '../errors.ts';
import { ByteReader } from './bytes.ts';
import type { Sample, SampleStream } from './dataset.ts';
import { readBytes } from './file.ts';
import type { Format, ReadOptions } from './format.ts';
import { idxWriter, labelsName } from './idx-writer.ts';
import { parseRecords } from './records.ts';
import { Vocabulary } from './vocabulary.ts';

export const idx: Format = {
  name: 'idx',
  read,
  write: idxWriter,
};

interface NumberType {
  bytes: number;
  decode(bytes: Buffer): Float32Array;
}

const numberTypes = new Map<number, NumberType>([
  [0x08, { bytes: 1, decode: (bytes) => new Float32Array(bytes) }],
  [0x09, { bytes: 1, decode: (bytes) => new Float32Array(new Int8Array(bytes)) }],
  [0x0b, wide(2, (bytes, at) => bytes.readInt16BE(at))],
  [0x0c, wide(4, (bytes, at) => bytes.readInt32BE(at))],
  [0x0d, wide(4, (bytes, at) => bytes.readFloatBE(at))],
  [0x0e, wide(8, (bytes, at) => bytes.readDoubleBE(at))],
]);

function wide(width: number, read: (bytes: Buffer, at: number) => number): NumberType {
  const decode = (bytes: Buffer) => {
    const values = new Float32Array(bytes.length / width);
    for (let i = 0; i < values.length; i++) values[i] = read(bytes, i * width);
    return values;
  };
  return { bytes: width, decode };
}

/** Samples handed over together hold about this many bytes. */
const batchBytes = 2 ** 20;
const maxItemValues = 2 ** 26;

/** An IDX file: `count` items of `size` values each. */
class IdxFile {
  readonly count: number;
  readonly size: number;
  readonly dimensions: number;
  readonly bytes: ByteReader;
  readonly #type: NumberType;

  static async open(file: string, options: ReadOptions = {}): Promise<IdxFile> {
    const bytes = new ByteReader(readBytes(file, options), file);
    try {
      const magic = await bytes.take(4);
      const type = numberTypes.get(magic[2]);
      if (magic[0] !== 0 || magic[1] !== 0 || !type || magic[3] === 0)
        throw badInput('IDX must start with two zeros, a type and a number of dimensions', {
          file,
          value: `0x${magic.toString('hex')}`,
        });
      const lengths = await bytes.take(4 * magic[3]);
      const shape = Array.from({ length: magic[3] }, (_, i) => lengths.readUInt32BE(4 * i));
      return new IdxFile(bytes, type, shape, file);
    } catch (error) {
      await bytes.close();
      throw error;
    }
  }

  private constructor(bytes: ByteReader, type: NumberType, [count, ...item]: number[], file: string) {
    this.count = count;
    this.dimensions = 1 + item.length;
    this.size = item.reduce((product, length) => product * length, 1);
    if (this.size > maxItemValues)
      throw badInput(`an IDX item must have at most ${maxItemValues} values`, {
        file,
        value: item.join('x'),
      });
    this.bytes = bytes;
    this.#type = type;
  }

  /** The next items, about a megabyte of them. */
  async take(limit: number): Promise<Float32Array[]> {
    const itemBytes = this.size * this.#type.bytes;
    const count = Math.min(limit, Math.max(1, Math.floor(batchBytes / Math.max(1, itemBytes))));
    const values = this.#type.decode(await this.bytes.take(count * itemBytes));
    return Array.from({ length: count }, (_, i) => values.subarray(i * this.size, (i + 1) * this.size));
  }
}

async function read(path: string, options: ReadOptions): Promise<SampleStream> {
  const images = await IdxFile.open(path, options);
  try {
    if (images.dimensions < 2)
      throw badInput('IDX features must have at least two dimensions', {
        file: path,
        value: images.dimensions,
      });
    const companion = options.companion ?? (await findLabels(path));
    const vocabulary = options.vocabulary ?? new Vocabulary();
    const classes = companion === undefined ? undefined : await readClasses(companion, images.count);
    for (const id of new Set(classes?.toSorted())) vocabulary.add(String(id));
    const columns = classes && Uint32Array.from(classes, (id) => vocabulary.add(String(id)));
    return { vocabulary, batches: batches(images, columns, path, options) };
  } catch (error) {
    await images.bytes.close();
    throw error;
  }
}

async function* batches(
  images: IdxFile,
  columns: Uint32Array | undefined,
  file: string,
  options: ReadOptions,
): AsyncGenerator<Sample[]> {
  const toSample = (dense: Float32Array, line: number): Sample => {
    for (let i = 0; i < dense.length; i++)
      if (!Number.isFinite(dense[i])) throw badInput('values must be finite in 32 bits', { value: dense[i] });
    return { dense, labels: columns ? columns.subarray(line - 1, line) : [] };
  };
  try {
    for (let done = 0; done < images.count; ) {
      const items = await images.take(images.count - done);
      const first = done + 1;
      yield parseRecords(items, (i) => first + i, toSample, file, options);
      done += items.length;
    }
    await images.bytes.end();
  } finally {
    await images.bytes.close();
  }
}

/** The class of every image; read whole, so that columns follow the order of the classes. */
async function readClasses(file: string, count: number): Promise<Int32Array> {
  const labels = await IdxFile.open(file);
  try {
    if (labels.dimensions !== 1)
      throw badInput('IDX labels must have one dimension', { file, value: labels.dimensions });
    if (labels.count !== count)
      throw badInput(`there must be as many labels as images (${count})`, { file, value: labels.count });
    const classes: number[] = [];
    while (classes.length < count)
      for (const [id] of await labels.take(count - classes.length)) classes.push(id);
    const bad = classes.find((id) => !Number.isInteger(id));
    if (bad !== undefined) throw badInput('IDX labels must be integers', { file, value: bad });
    await labels.bytes.end();
    return Int32Array.from(classes);
  } finally {
    await labels.bytes.close();
  }
}

/** `...-images-idx3-ubyte(.gz)` has `...-labels-idx1-ubyte(.gz)` beside it. */
async function findLabels(path: string): Promise<string | undefined> {
  const labels = labelsName(basename(path).replace(/\.gz$/i, ''));
  if (labels === undefined) return undefined;
  for (const candidate of [labels, `${labels}.gz`]) {
    const beside = join(dirname(path), candidate);
    const found = await access(beside).then(
      () => true,
      () => false,
    );
    if (found) return beside;
  }
  return undefined;
}
