// The door to all formats: a table of lazy loaders, how a file's format is told, and reading, writing and converting
// through any of them. A new format is one file and one row here.
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { badInput, badUsage, locate, unknownName } from '../errors.ts';
import { checkCancelled } from '../progress.ts';
import { type GivenColumns, toColumns } from './columns.ts';
import { collect, type Dataset, type Sample, type SampleStream } from './dataset.ts';
import { extensionOf, readLines } from './file.ts';
import type { Format, ReadOptions } from './format.ts';
import { uniqueIds } from './records.ts';
import { Skipped } from './skipped.ts';

interface Row {
  /** Lowercase endings, with the dot, without `.gz`. */
  extensions: readonly string[];
  summary: string;
  /** What its second file holds, if it takes one. */
  companion?: string;
  load: () => Promise<Format>;
}

export const formats: Record<string, Row> = {
  xmc: {
    extensions: ['.xmc', '.txt'],
    summary: 'text of the XMC repository: a header `n d L`, then lines `l1,l2 f:v f:v`',
    load: async () => (await import('./xmc.ts')).xmc,
  },
  svmlight: {
    extensions: ['.svmlight', '.svm', '.libsvm'],
    summary: 'multi-label svmlight: lines `l1,l2 f:v f:v`, no header',
    load: async () => (await import('./svmlight.ts')).svmlight,
  },
  jsonl: {
    extensions: ['.jsonl', '.ndjson'],
    summary: 'JSON lines: {"id", "text" or "features", "labels", "group"}',
    load: async () => (await import('./jsonl.ts')).jsonl,
  },
  csv: {
    extensions: ['.csv'],
    summary: 'comma-separated table of texts with a header; semicolons and tabs are recognised',
    load: async () => (await import('./table.ts')).csv,
  },
  tsv: {
    extensions: ['.tsv'],
    summary: 'tab-separated table of texts with a header, or labels<TAB>text without',
    load: async () => (await import('./table.ts')).tsv,
  },
  'labels-text': {
    extensions: [],
    summary: 'lines labels<TAB>text, no header',
    load: async () => (await import('./table.ts')).labelsText,
  },
  text: {
    extensions: [],
    summary: 'one text per line, no labels',
    load: async () => (await import('./plain-text.ts')).plainText,
  },
  parquet: {
    extensions: ['.parquet'],
    summary: 'Parquet table: id, text, labels (list or delimited), group, features (list of numbers)',
    load: async () => (await import('./parquet.ts')).parquet,
  },
  arff: {
    extensions: ['.arff'],
    summary: 'ARFF of Mulan (labels in an XML file beside it) or MEKA (-C n in the relation line)',
    companion: 'labels of Mulan (.xml)',
    load: async () => (await import('./arff.ts')).arff,
  },
  npz: {
    extensions: ['.npz'],
    summary: 'sparse features of SciPy (X.npz), labels in a second matrix (Y.npz)',
    companion: 'label matrix',
    load: async () => (await import('./npy.ts')).npz,
  },
  npy: {
    extensions: ['.npy'],
    summary: 'dense features of NumPy (X.npy), labels in a sparse matrix (Y.npz)',
    companion: 'label matrix',
    load: async () => (await import('./npy.ts')).npy,
  },
  idx: {
    extensions: ['.idx', '.idx1-ubyte', '.idx2-ubyte', '.idx3-ubyte', '.idx4-ubyte'],
    summary: 'IDX images of MNIST (...-images-idx3-ubyte), labels in a second file (...-labels-idx1-ubyte)',
    companion: 'labels of IDX',
    load: async () => (await import('./idx.ts')).idx,
  },
};

export const formatNames: readonly string[] = Object.keys(formats);

/** One line for each format: its name and the endings that tell it. */
export const describeFormats = (): string =>
  formatNames
    .map((name) => {
      const { extensions, summary } = formats[name];
      return `  ${name.padEnd(12)} ${summary}${extensions.length ? ` (${extensions.join(' ')})` : ''}`;
    })
    .join('\n');

export interface OpenOptions extends Omit<ReadOptions, 'columns'> {
  /** Of a table: `text=title+body,labels=subjects`, or the same as an object. */
  columns?: GivenColumns;
  /** The name of the format, where the file's name does not tell it. */
  format?: string;
}

export interface WriteOptions {
  format?: string;
  labelDelimiter?: string;
  signal?: AbortSignal;
}

/** Opens a file, or two as `path,companion`. Ids must be unique. */
export async function openSamples(spec: string, options: OpenOptions = {}): Promise<SampleStream> {
  const { path, companion } = await splitSpec(spec, options.companion);
  const format = await loadFormat(options.format ?? (await detectFormat(path)));
  if (companion !== undefined) checkTakesCompanion(format, path, companion);
  const columns = options.columns === undefined ? undefined : toColumns(options.columns);
  const stream = await format.read(path, { ...options, columns, companion });
  return { ...stream, batches: withUniqueIds(stream.batches, path, options) };
}

/** Reads a whole file into memory. */
export async function readDataset(spec: string, options: OpenOptions = {}): Promise<Dataset> {
  const stream = await openSamples(spec, options);
  try {
    const dataset = await collect(stream);
    if (dataset.rows === 0) throw badInput('file must hold at least one sample');
    return dataset;
  } catch (error) {
    throw locate(error, { file: spec });
  }
}

/** Writes all samples, or leaves nothing behind; returns how many. With `openSamples` this converts any size of file. */
export async function writeSamples(
  { vocabulary, width, featureNames, batches }: SampleStream,
  path: string,
  { format: name, labelDelimiter, signal }: WriteOptions = {},
): Promise<number> {
  const format = await loadFormat(name ?? formatByName(path));
  if (!format.write)
    throw badUsage(`${format.name} can be read but not written`, {
      file: path,
      hint: 'write .jsonl instead',
    });
  const writer = await format.write(path, { vocabulary, width, featureNames, labelDelimiter });
  let samples = 0;
  try {
    for await (const batch of batches) {
      checkCancelled(signal);
      await writer.write(batch);
      samples += batch.length;
    }
    if (samples === 0) throw badInput('at least one sample is needed to write a file', { file: path });
    await writer.close();
    return samples;
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

async function loadFormat(name: string): Promise<Format> {
  if (!Object.hasOwn(formats, name)) throw unknownName('format', name, formatNames);
  return formats[name].load();
}

function checkTakesCompanion({ name }: Format, file: string, companion: string): void {
  if (formats[name].companion !== undefined) return;
  const takers = Object.entries(formats).flatMap(([taker, row]) =>
    row.companion === undefined ? [] : `${taker} (${row.companion})`,
  );
  throw badUsage(`${name} takes no second file`, {
    file,
    value: companion,
    hint: `give one file; a second one is taken by ${takers.join(', ')}`,
  });
}

/** A path with a comma in it that does not exist as it is names a file and its companion. */
async function splitSpec(spec: string, companion?: string): Promise<{ path: string; companion?: string }> {
  if (companion !== undefined || (await exists(spec))) return { path: spec, companion };
  for (let at = spec.indexOf(','); at >= 0; at = spec.indexOf(',', at + 1)) {
    const path = spec.slice(0, at);
    if (await exists(path)) return { path, companion: spec.slice(at + 1) };
  }
  return { path: spec };
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** By the name, and where that is `.txt` by the first line. */
async function detectFormat(path: string): Promise<string> {
  if (extensionOf(path) !== '.txt') return formatByName(path);
  const line = await firstLine(path);
  if (/^\d+\s+\d+\s+\d+\s*$/.test(line)) return 'xmc';
  if (line.includes('\t')) return 'tsv';
  throw badInput('a .txt file must start with a header `samples features labels`, or with labels<TAB>text', {
    file: path,
    line: 1,
    value: line,
    hint: `for one text per line say --format text; others: ${formatNames.join(', ')}`,
  });
}

async function firstLine(path: string): Promise<string> {
  for await (const { lines } of readLines(path, { skipped: new Skipped() })) return lines[0];
  return '';
}

function formatByName(path: string): string {
  // As MNIST's files are called: `train-images-idx3-ubyte`.
  if (/idx\d-ubyte/i.test(basename(path))) return 'idx';
  const extension = extensionOf(path);
  const name = formatNames.find((format) => formats[format].extensions.includes(extension));
  if (name === undefined)
    throw badUsage('file name must tell its format', {
      file: path,
      value: extension,
      hint: `known endings: ${Object.values(formats)
        .flatMap(({ extensions }) => extensions)
        .join(' ')}; or name the format with --format: ${formatNames.join(', ')}`,
    });
  return name;
}

async function* withUniqueIds(
  batches: AsyncIterable<Sample[]>,
  file: string,
  { skipped }: OpenOptions,
): AsyncGenerator<Sample[]> {
  const checkId = uniqueIds();
  const isNew = ({ id }: Sample): boolean => {
    try {
      checkId(id);
      return true;
    } catch (error) {
      const located = locate(error, { file });
      if (!skipped) throw located;
      skipped.add(located);
      return false;
    }
  };
  for await (const batch of batches) yield batch.filter(isNew);
}
