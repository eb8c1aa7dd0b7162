// NumPy and SciPy matrices as data sets: .npy holds dense features, .npz sparse ones. Labels are a second matrix
// (samples x labels, sparse or dense): `X.trn.npz` has `Y.trn.npz` beside it, `name.npz` has `name.labels.npz`.
import { access } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { badInput } from '../errors.ts';
import { type Csr, CsrBuilder } from '../math/csr.ts';
import { checkCancelled } from '../progress.ts';
import type { Sample, SampleStream } from './dataset.ts';
import { AtomicFile } from './file.ts';
import type { Format, Header, ReadOptions, SampleWriter } from './format.ts';
import { LabelNumbers } from './label-numbers.ts';
import { type MatrixFile, type MatrixRow, openMatrix } from './matrixfile.ts';
import { arrayHeader } from './ndarray.ts';
import { ascending, checkHolds, parseRecords } from './records.ts';
import { Vocabulary } from './vocabulary.ts';
import { ZipWriter } from './zip.ts';

export const npz: Format = {
  name: 'npz',
  read,
  write: (path, header) => writer(path, header, 'npz'),
};

export const npy: Format = {
  name: 'npy',
  read,
  write: (path, header) => writer(path, header, 'npy'),
};

const maxLabels = 2 ** 27;

/** Where the labels of `path` are looked for and written: `Y...npz` for `X...`, else `....labels.npz`. */
function labelPath(path: string): string {
  const name = basename(path);
  const stem = name.replace(/\.np[yz](\.gz)?$/i, '');
  const labels = /^[Xx](?![a-z])/.test(stem)
    ? `${stem[0] === 'X' ? 'Y' : 'y'}${stem.slice(1)}`
    : `${stem}.labels`;
  return join(dirname(path), `${labels}.npz`);
}

async function read(path: string, options: ReadOptions): Promise<SampleStream> {
  const beside = labelPath(path);
  const found = await access(beside).then(
    () => beside,
    () => undefined,
  );
  const companion = options.companion ?? found;
  const features = await openMatrix(path);
  try {
    const labels = companion === undefined ? undefined : await openMatrix(companion);
    const vocabulary = options.vocabulary ?? new Vocabulary();
    const columns = labels && labelColumns(labels, features.rows, vocabulary, companion);
    const width = features.sparse ? features.cols : undefined;
    return {
      vocabulary,
      width,
      batches: batches(path, { ...options, companion }, features, labels, columns),
    };
  } catch (error) {
    await features.close();
    throw error;
  }
}

/** The vocabulary's column of each column of the label matrix; ids are the decimal numbers. */
function labelColumns(labels: MatrixFile, rows: number, vocabulary: Vocabulary, file?: string): Uint32Array {
  if (labels.rows !== rows)
    throw badInput(`label matrix must have as many rows as the features (${rows})`, {
      file,
      value: labels.rows,
    });
  if (labels.cols > maxLabels)
    throw badInput(`label matrix must have at most ${maxLabels} columns`, { file, value: labels.cols });
  return Uint32Array.from({ length: labels.cols }, (_, column) => vocabulary.add(String(column)));
}

async function* batches(
  file: string,
  options: ReadOptions,
  features: MatrixFile,
  labels?: MatrixFile,
  columns: Uint32Array = new Uint32Array(0),
): AsyncGenerator<Sample[]> {
  try {
    for (let done = 0; done < features.rows; ) {
      checkCancelled(options.signal);
      const rows = await features.take(features.rows - done);
      const labelRows = labels ? await takeAll(labels, rows.length) : [];
      const first = done + 1;
      const columnsSet = (i: number) =>
        labels ? ascending(setColumns(labelRows[i], options.companion).map((column) => columns[column])) : [];
      const samples = parseRecords(
        rows,
        (i) => first + i,
        (row, line) => toSample(row, columnsSet(line - first)),
        file,
        options,
      );
      done += rows.length;
      options.progress?.({ phase: 'read', done, total: features.rows, unit: 'rows' });
      if (samples.length > 0) yield samples;
    }
    await features.end();
    await labels?.end();
  } finally {
    await features.close();
    await labels?.close();
  }
}

async function takeAll(matrix: MatrixFile, count: number): Promise<MatrixRow[]> {
  const rows: MatrixRow[] = [];
  while (rows.length < count) rows.push(...(await matrix.take(count - rows.length)));
  return rows;
}

function toSample({ indices, values }: MatrixRow, labels: ArrayLike<number>): Sample {
  const bad = values.find((value) => !Number.isFinite(value));
  if (bad !== undefined) throw badInput('values must be finite in 32 bits', { value: bad });
  return indices ? { sparse: { indices, values }, labels } : { dense: values, labels };
}

/** Columns that are one. */
function setColumns({ indices, values }: MatrixRow, file?: string): Uint32Array {
  const strange = values.find((value) => value !== 0 && value !== 1);
  if (strange !== undefined)
    throw badInput('label matrix must hold zeros and ones', {
      file,
      value: strange,
      hint: 'features come first: X.npz,Y.npz',
    });
  const columns = indices ?? Uint32Array.from(values.keys());
  return columns.filter((_, p) => values[p] !== 0);
}

/** Holds the matrices in memory: their sizes come first in the files. */
async function writer(path: string, header: Header, format: 'npz' | 'npy'): Promise<SampleWriter> {
  const kind = format === 'npz' ? 'sparse' : 'dense';
  const labels = new CsrBuilder('binary');
  const numbers = new LabelNumbers(header.vocabulary);
  const sparse = new CsrBuilder('values');
  const dense: Float32Array[] = [];
  return {
    async write(batch) {
      for (const sample of batch) {
        checkHolds(format, [kind], sample);
        labels.add(ascending(Uint32Array.from(sample.labels, (column) => numbers.of(column))));
        if (kind === 'sparse' && sample.sparse) sparse.add(sample.sparse.indices, sample.sparse.values);
        else if (kind === 'dense' && sample.dense) dense.push(sample.dense.slice());
        else throw badInput(`${format} needs ${kind} features`, { file: path });
      }
    },
    async close() {
      const files: AtomicFile[] = [];
      const create = async (name: string) => {
        const file = await AtomicFile.create(name);
        files.push(file);
        return file;
      };
      try {
        await numbers.save(path);
        if (numbers.count > 0) await writeCsr(await create(labelPath(path)), labels.csr(numbers.count));
        const file = await create(path);
        if (kind === 'sparse') await writeCsr(file, sparse.csr(header.width));
        else await writeDense(file, dense);
      } catch (error) {
        for (const file of files) await file.abort();
        throw error;
      }
      for (const file of files) await file.close();
    },
    async abort() {},
  };
}

async function writeDense(file: AtomicFile, rows: Float32Array[]): Promise<void> {
  await file.write(arrayHeader('<f4', [rows.length, rows[0]?.length ?? 0]));
  for (const row of rows) await file.write(new Uint8Array(row.buffer, row.byteOffset, row.byteLength));
}

/** What scipy.sparse.save_npz writes. */
async function writeCsr(file: AtomicFile, { rows, cols, indptr, indices, values }: Csr): Promise<void> {
  if (cols >= 2 ** 31 || values.length >= 2 ** 31)
    throw badInput('npz must have fewer than 2^31 columns and values', { file: file.path, value: cols });
  const zip = new ZipWriter(file);
  const add = (name: string, dtype: string, shape: number[], data: ArrayBufferView) =>
    zip.add(`${name}.npy`, pieces(arrayHeader(dtype, shape), data));
  await add('indices', '<i4', [indices.length], indices);
  await add('indptr', '<i4', [indptr.length], indptr);
  await add('format', '|S3', [], Buffer.from('csr'));
  await add('shape', '<i8', [2], new BigInt64Array([BigInt(rows), BigInt(cols)]));
  await add('data', '<f4', [values.length], values);
  await zip.finish();
}

function* pieces(header: Buffer, data: ArrayBufferView): Generator<Buffer> {
  yield header;
  const size = 2 ** 20;
  for (let start = 0; start < data.byteLength; start += size)
    yield Buffer.from(data.buffer, data.byteOffset + start, Math.min(size, data.byteLength - start));
}
