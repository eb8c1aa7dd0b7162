// The text format of the XMC repository: a header `n d L`, then one line `l1,l2 f:v f:v` per sample, labels and
// features counted from 0. A line may start with a blank (no labels) or be empty (no features either).
import { rm } from 'node:fs/promises';
import { badInput } from '../errors.ts';
import type { Sample, SampleStream } from './dataset.ts';
import { AtomicFile, type LineBatch, partialName, readBytes, readLines } from './file.ts';
import type { Format, Header, ReadOptions, SampleWriter } from './format.ts';
import { LabelNumbers, labelLimit } from './label-numbers.ts';
import { ascending, parseRecords } from './records.ts';
import { FeatureScanner, featureText, labelsEnd, rowOf } from './sparse-rows.ts';
import { Vocabulary } from './vocabulary.ts';

interface Counts {
  samples: number;
  features: number;
  labels: number;
}

export const xmc: Format = {
  name: 'xmc',
  read,
  write: (path, header) => XmcWriter.create(path, header),
};

async function read(path: string, options: ReadOptions): Promise<SampleStream> {
  const lines = readLines(path, options);
  const { value: start } = await lines.next();
  try {
    const counts = parseCounts(start?.first === 1 ? start.lines[0] : '', path);
    const vocabulary = options.vocabulary ?? Vocabulary.numbered(counts.labels);
    const columns = columnsOfNumbers(counts.labels, vocabulary);
    const rest = start && { first: 2, lines: start.lines.slice(1) };
    return {
      vocabulary,
      width: counts.features,
      batches: batches(rest, lines, rowParser(counts, columns), counts, path, options),
    };
  } catch (error) {
    await lines.return(undefined);
    throw error;
  }
}

function parseCounts(line: string, file: string): Counts {
  const match = /^(\d+)\s+(\d+)\s+(\d+)\s*$/.exec(line);
  if (!match)
    throw badInput('header must be three counts: samples features labels', { file, line: 1, value: line });
  const [samples, features, labels] = match.slice(1).map(Number);
  if (features >= 2 ** 32)
    throw badInput('number of features must be below 2^32', { file, line: 1, value: features });
  if (labels > labelLimit)
    throw badInput(`number of labels must be at most ${labelLimit}`, { file, line: 1, value: labels });
  return { samples, features, labels };
}

/** The vocabulary's columns of the ids "0" to "labels-1", or undefined where they are those numbers. */
function columnsOfNumbers(labels: number, vocabulary: Vocabulary): Uint32Array | undefined {
  const columns = Uint32Array.from({ length: labels }, (_, number) => vocabulary.add(String(number)));
  return columns.every((column, number) => column === number) ? undefined : columns;
}

function rowParser({ features, labels }: Counts, columns?: Uint32Array): (row: string) => Sample {
  const scanner = new FeatureScanner(features);
  return (row) => {
    const end = labelsEnd(row);
    const numbers = parseLabels(row, end, labels);
    const sparse = scanner.scan(row, end);
    return { labels: ascending(columns ? numbers.map((number) => columns[number]) : numbers), sparse };
  };
}

function parseLabels(row: string, end: number, limit: number): Uint32Array {
  const numbers: number[] = [];
  for (let at = 0; at < end; at++) {
    const start = at;
    let number = 0;
    for (let code = row.charCodeAt(at); at < end && code !== 44; code = row.charCodeAt(++at))
      number = code >= 48 && code <= 57 ? number * 10 + code - 48 : Number.NaN;
    if (!(number < limit) || at === start)
      throw badInput(`label must be a whole number below ${limit}`, { value: row.slice(start, at) });
    numbers.push(number);
  }
  if (row[end - 1] === ',') throw badInput('labels must not end with a comma', { value: row.slice(0, end) });
  return Uint32Array.from(numbers);
}

async function* batches(
  rest: LineBatch | undefined,
  lines: AsyncGenerator<LineBatch>,
  parse: (row: string) => Sample,
  { samples }: Counts,
  file: string,
  options: ReadOptions,
): AsyncGenerator<Sample[]> {
  let rows = 0;
  const parseRow = (row: string, line: number) => {
    if (line - 1 <= samples) return parse(row);
    if (row.trim() === '') return undefined;
    throw badInput(`file must have as many rows as its header says (${samples})`, { value: 'more' });
  };
  try {
    for (let batch = rest; batch; batch = (await lines.next()).value as LineBatch | undefined) {
      const { first } = batch;
      rows = first - 2 + batch.lines.length;
      yield parseRecords(batch.lines, (i) => first + i, parseRow, file, options);
    }
  } finally {
    await lines.return(undefined);
  }
  if (rows >= samples) return;
  const rule = `file must have as many rows as its header says (${samples})`;
  const error = badInput(rule, { file, line: rows + 1, value: rows });
  if (!options.skipped) throw error;
  options.skipped.add(error);
}

/** The header needs counts known only at the end, so the rows wait in a hidden file beside the target. */
class XmcWriter implements SampleWriter {
  readonly #path: string;
  readonly #numbers: LabelNumbers;
  readonly #bodyPath: string;
  readonly #body: AtomicFile;
  #out: AtomicFile | undefined;
  #width: number;
  #rows = 0;

  static async create(path: string, header: Header): Promise<XmcWriter> {
    const bodyPath = `${partialName(path)}.rows`;
    return new XmcWriter(path, header, bodyPath, await AtomicFile.create(bodyPath));
  }

  private constructor(path: string, header: Header, bodyPath: string, body: AtomicFile) {
    this.#path = path;
    this.#numbers = new LabelNumbers(header.vocabulary);
    this.#width = header.width ?? 0;
    this.#bodyPath = bodyPath;
    this.#body = body;
  }

  async write(batch: Sample[]): Promise<void> {
    await this.#body.write(batch.map((sample) => this.#line(sample)).join(''));
  }

  #line(sample: Sample): string {
    const row = rowOf('xmc', sample);
    const width = sample.dense?.length ?? (row.indices[row.indices.length - 1] ?? -1) + 1;
    this.#width = Math.max(this.#width, width);
    this.#rows++;
    const labels = Array.from(sample.labels, (column) => this.#numbers.of(column));
    return `${labels.sort((a, b) => a - b)}${featureText(row)}\n`;
  }

  async close(): Promise<void> {
    await this.#body.close();
    await this.#numbers.save(this.#path);
    this.#out = await AtomicFile.create(this.#path);
    await this.#out.write(`${this.#rows} ${this.#width} ${this.#numbers.count}\n`);
    if (this.#rows > 0) for await (const chunk of readBytes(this.#bodyPath)) await this.#out.write(chunk);
    await this.#out.close();
    await rm(this.#bodyPath);
  }

  async abort(): Promise<void> {
    await this.#body.abort();
    await rm(this.#bodyPath, { force: true });
    await this.#out?.abort();
  }
}
