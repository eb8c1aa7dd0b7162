// Parquet tables through hyparquet, row group by row group. Columns as in other tables (columns.ts); labels may also be
// a list, and a column `features` of lists of numbers holds dense features.
import { type FileHandle, open } from 'node:fs/promises';
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import { badInput, badUsage, locate, UmbelError } from '../errors.ts';
import { checkCancelled } from '../progress.ts';
import { resolveColumns } from './columns.ts';
import type { Sample, SampleStream } from './dataset.ts';
import { AtomicFile } from './file.ts';
import type { Format, Header, ReadOptions, SampleWriter } from './format.ts';
import { ascending, checkHolds, labelColumns, parseRecords } from './records.ts';
import { Vocabulary } from './vocabulary.ts';

export const parquet: Format = {
  name: 'parquet',
  read,
  write,
};

/** Largest page unpacked; writers make pages of about a megabyte. */
const maxPageBytes = 2 ** 30;
const batchRows = 1024;
const groupRows = 4096;

/** What hyparquet makes of a cell: text, number, bigint, boolean, list, null... */
type Cell = unknown;

async function read(path: string, options: ReadOptions): Promise<SampleStream> {
  const handle = await open(path).catch(() => {
    throw badInput('file must exist and be readable', { file: path });
  });
  try {
    const file = await fileSlices(handle);
    const metadata = await intact(path, () => parquetMetadataAsync(file));
    const vocabulary = options.vocabulary ?? new Vocabulary();
    const { columns, parse } = rowParser(metadata, vocabulary, options);
    const groups = readGroups(file, metadata, columns, path);
    return { vocabulary, batches: batches(groups, Number(metadata.num_rows), parse, handle, path, options) };
  } catch (error) {
    await handle.close();
    throw locate(error, { file: path });
  }
}

async function fileSlices(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  const readSlice = async (start: number, end: number) => {
    const bytes = new Uint8Array(end - start);
    for (let done = 0; done < bytes.length; ) {
      const { bytesRead } = await handle.read(bytes, done, bytes.length - done, start + done);
      if (bytesRead === 0) throw badInput('Parquet file must be whole');
      done += bytesRead;
    }
    return bytes.buffer;
  };
  return {
    byteLength: size,
    slice(start, end = size) {
      if (!(start >= 0 && start <= end && end <= size))
        throw badInput('Parquet file must be whole', { value: `bytes ${start} to ${end} of ${size}` });
      const bytes = readSlice(start, end);
      // hyparquet asks for slices ahead and may fail before it looks at them.
      bytes.catch(() => {});
      return bytes;
    },
  };
}

/** hyparquet's own errors are about the file. */
async function intact<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UmbelError) throw locate(error, { file });
    throw badInput('Parquet file must be intact', { file, value: (error as Error).message });
  }
}

const safeCompressors = Object.fromEntries(
  Object.entries(compressors).map(([codec, unpack]) => [
    codec,
    (input: Uint8Array, size: number) => {
      if (size > maxPageBytes)
        throw badInput(`a page must have at most ${maxPageBytes} bytes`, { value: size });
      return unpack(input, size);
    },
  ]),
);

async function* readGroups(
  file: AsyncBuffer,
  metadata: FileMetaData,
  columns: string[],
  path: string,
): AsyncGenerator<Cell[][]> {
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    const rowEnd = rowStart + Number(group.num_rows);
    let rows: Cell[][] = [];
    const onComplete = (read: Cell[][]) => {
      rows = read;
    };
    const what = { file, metadata, columns, rowStart, rowEnd, compressors: safeCompressors, onComplete };
    await intact(path, () => parquetRead(what));
    yield rows;
    rowStart = rowEnd;
  }
}

async function* batches(
  groups: AsyncGenerator<Cell[][]>,
  total: number,
  parse: (row: Cell[]) => Sample,
  handle: FileHandle,
  path: string,
  options: ReadOptions,
): AsyncGenerator<Sample[]> {
  let done = 0;
  try {
    for await (const rows of groups) {
      for (let start = 0; start < rows.length; start += batchRows) {
        checkCancelled(options.signal);
        const batch = rows.slice(start, start + batchRows);
        const first = done + 1;
        yield parseRecords(batch, (i) => first + i, parse, path, options);
        done += batch.length;
        options.progress?.({ phase: 'read', done, total, unit: 'rows' });
      }
    }
  } finally {
    await handle.close();
  }
}

/** The columns to read, and how a row of them becomes a sample. */
function rowParser(metadata: FileMetaData, vocabulary: Vocabulary, options: ReadOptions) {
  const header = parquetSchema(metadata).children.map(({ element }) => element.name);
  const found = resolveColumns(header, options.columns);
  const features = header.findIndex((name) => name.toLowerCase() === 'features');
  if (found.text.length === 0 && features < 0)
    throw badUsage('table must have a column that holds the text or the features', {
      value: header.join(' | '),
      hint: 'say which columns hold what, for example --columns id=1,labels=2,text=title+body',
    });
  const { id, group, text, labels, indicators } = found;
  const used = [...new Set([id, group, ...text, ...labels, ...indicators, features])].filter(
    (position): position is number => position !== undefined && position >= 0,
  );
  const place = new Map(used.map((position, i) => [position, i]));
  const cellOf = (row: Cell[], position: number) => row[place.get(position) ?? -1];
  const delimiter = options.labelDelimiter ?? ',';
  const indicatorColumns = indicators.map((position) => vocabulary.add(header[position]));
  let width: number | undefined;

  const parse = (row: Cell[]): Sample => {
    const set = indicatorColumns.filter((_, i) => isSet(cellOf(row, indicators[i])));
    const ids = labels.flatMap((position) => labelIds(cellOf(row, position), delimiter));
    const sample: Sample = {
      labels: indicators.length > 0 ? ascending(Uint32Array.from(set)) : labelColumns(ids, vocabulary),
    };
    if (id !== undefined) sample.id = nameOf('id', cellOf(row, id));
    if (group !== undefined) sample.group = nameOf('group', cellOf(row, group));
    if (text.length > 0) sample.text = text.map((position) => textOf(cellOf(row, position))).join(' ');
    if (features >= 0) {
      sample.dense = numbersOf(cellOf(row, features));
      width ??= sample.dense.length;
      if (sample.dense.length !== width)
        throw badInput(`features must have ${width} numbers like the first row`, {
          value: sample.dense.length,
        });
    }
    return sample;
  };
  return { columns: used.map((position) => header[position]), parse };
}

function textOf(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell === 'object') throw badInput('cell must be a text or a number', { value: kindOf(cell) });
  return String(cell);
}

function nameOf(role: string, cell: Cell): string {
  const name = textOf(cell);
  if (name.trim() === '') throw badInput(`${role} must not be empty`);
  return name;
}

/** A list, or one label, or (in a text) several between delimiters. */
function labelIds(cell: Cell, delimiter: string): string[] {
  if (isList(cell)) return Array.from(cell, (label) => nameOf('label', label));
  const ids = typeof cell === 'string' ? cell.split(delimiter).map((id) => id.trim()) : [textOf(cell)];
  return ids.filter((id) => id !== '');
}

function isSet(cell: Cell): boolean {
  const value = typeof cell === 'string' ? Number(cell.trim() || Number.NaN) : Number(cell ?? Number.NaN);
  if (value !== 0 && value !== 1)
    throw badInput('a cell of several label columns must be 0 or 1', { value: cell });
  return value === 1;
}

function numbersOf(cell: Cell): Float32Array {
  if (!isList(cell)) throw badInput('features must be a list of numbers', { value: kindOf(cell) });
  return Float32Array.from(cell, (item) => {
    const value =
      typeof item === 'number' || typeof item === 'bigint' ? Math.fround(Number(item)) : Number.NaN;
    if (!Number.isFinite(value)) throw badInput('features must be finite numbers', { value: item });
    return value;
  });
}

const isList = (cell: Cell): cell is ArrayLike<unknown> =>
  Array.isArray(cell) || (ArrayBuffer.isView(cell) && 'length' in cell);
const kindOf = (cell: Cell) => (cell instanceof Object ? cell.constructor.name : String(cell));

/** Bytes go to the file after each row group. */
class FileSink extends ByteWriter {
  readonly #file: AtomicFile;

  constructor(file: AtomicFile) {
    super();
    this.#file = file;
  }

  async flush(): Promise<void> {
    const bytes = this.getBytes().slice();
    this.index = 0;
    await this.#file.write(bytes);
  }

  override finish(): Promise<void> {
    return this.flush();
  }
}

const text = (name: string): SchemaElement[] => [
  { name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
];
const list = (name: string, element: SchemaElement[]): SchemaElement[] => [
  { name, repetition_type: 'REQUIRED', num_children: 1, converted_type: 'LIST' },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  ...element,
];
const schemaOf = {
  id: text('id'),
  text: text('text'),
  group: text('group'),
  dense: list('features', [{ name: 'element', type: 'FLOAT', repetition_type: 'REQUIRED' }]),
  labels: list('labels', text('element')),
};
type Field = keyof typeof schemaOf;
const fields = Object.keys(schemaOf) as Field[];

async function write(path: string, { vocabulary }: Header): Promise<SampleWriter> {
  const file = await AtomicFile.create(path);
  let open: { writer: ParquetWriter; fields: Field[] } | undefined;
  let pending: Sample[] = [];

  const start = (sample: Sample) => {
    const own = fields.filter((field) => sample[field] !== undefined);
    const schema = [{ name: 'root', num_children: own.length }, ...own.flatMap((field) => schemaOf[field])];
    return { writer: new ParquetWriter({ writer: new FileSink(file), schema }), fields: own };
  };
  const cell = (sample: Sample, field: Field) => {
    if (field === 'labels') return Array.from(sample.labels, (column) => vocabulary.label(column).id);
    const value = field === 'dense' ? sample.dense && Array.from(sample.dense) : sample[field];
    if (value !== undefined) return value;
    throw badInput(`every sample or none must have ${schemaOf[field][0].name}`, { value: sample.id });
  };
  const flush = async () => {
    const samples = pending;
    pending = [];
    open ??= start(samples[0] ?? { labels: [] });
    const columnData = open.fields.map((field) => ({
      name: schemaOf[field][0].name,
      data: samples.map((sample) => cell(sample, field)),
    }));
    await open.writer.write({ columnData, rowGroupSize: groupRows });
    return open.writer;
  };
  return {
    async write(batch) {
      for (const sample of batch) {
        checkHolds('parquet', ['text', 'group', 'dense'], sample);
        pending.push(sample);
        if (pending.length >= groupRows) await flush();
      }
    },
    async close() {
      const writer = await flush();
      await writer.finish();
      await file.close();
    },
    abort: () => file.abort(),
  };
}
