// What every text reader and writer does with a record: parse it, say where it breaks a rule, leave it out under
// --skip-bad; refuse to write what the format cannot hold.
import { badInput, badUsage, locate } from '../errors.ts';
import type { Sample } from './dataset.ts';
import { AtomicFile, readLines } from './file.ts';
import type { ReadOptions, SampleWriter } from './format.ts';
import type { Vocabulary } from './vocabulary.ts';

/** The samples of records that arrived together; `parse` returns undefined for a record that is none (a comment). */
export function parseRecords<R>(
  records: readonly R[],
  lineOf: (index: number) => number,
  parse: (record: R, line: number) => Sample | undefined,
  file: string,
  { skipped }: ReadOptions,
): Sample[] {
  const samples: Sample[] = [];
  for (let i = 0; i < records.length; i++) {
    try {
      const sample = parse(records[i], lineOf(i));
      if (sample) samples.push(sample);
    } catch (error) {
      const located = locate(error, { file, line: lineOf(i) });
      if (!skipped) throw located;
      skipped.add(located);
    }
  }
  return samples;
}

/** Samples of a file with one record per line. */
export async function* lineSamples(
  path: string,
  parse: (line: string) => Sample | undefined,
  options: ReadOptions,
): AsyncGenerator<Sample[]> {
  for await (const { first, lines } of readLines(path, options))
    yield parseRecords(lines, (i) => first + i, parse, path, options);
}

/** Takes what is wrong with a record, or throws it. */
export type LeaveOut = (error: unknown) => void;

/**
 * Hands over every object of a file of JSON lines of this `shape`: what is wrong is refused with its place, or left out
 * and counted.
 */
export async function takeObjects(
  path: string,
  options: ReadOptions & { mayBeEmpty?: boolean; shape: string },
  take: (record: Record<string, unknown>, leaveOut: LeaveOut) => void,
): Promise<void> {
  for await (const { first, lines } of readLines(path, options)) {
    for (let i = 0; i < lines.length; i++) {
      if (lines[i].trim() === '') continue;
      const leaveOut = (error: unknown) => {
        const located = locate(error, { file: path, line: first + i });
        if (!options.skipped) throw located;
        options.skipped.add(located);
      };
      try {
        take(parseObject(lines[i], options.shape), leaveOut);
      } catch (error) {
        leaveOut(error);
      }
    }
  }
}

/** The object a line holds; where there is none, the error shows what one looks like. */
function parseObject(line: string, shape: string): Record<string, unknown> {
  const hint = `lines look like ${shape}`;
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    throw badInput('line must be valid JSON', { value: line, hint });
  }
  if (typeof record !== 'object' || record === null || Array.isArray(record))
    throw badInput('line must be an object', { value: line, hint });
  return record as Record<string, unknown>;
}

/** Writes what `text` makes of each sample. */
export async function textWriter(path: string, text: (sample: Sample) => string): Promise<SampleWriter> {
  const file = await AtomicFile.create(path);
  return {
    write: async (batch) => file.write(batch.map(text).join('')),
    close: () => file.close(),
    abort: () => file.abort(),
  };
}

/** Columns of label ids, new ones added; ascending, each once. */
export function labelColumns(ids: readonly string[], vocabulary: Vocabulary): Uint32Array {
  const columns = new Uint32Array(ids.length);
  for (let i = 0; i < ids.length; i++)
    columns[i] = vocabulary.column(ids[i]) ?? vocabulary.add(detached(ids[i]));
  return ascending(columns);
}

/** A copy to keep: a piece of a string holds all of it, here a megabyte of the file, in memory. */
export const detached = (text: string): string => Buffer.from(text, 'utf16le').toString('utf16le');

/** Refuses an id that it was asked before. */
export function uniqueIds(): (id: string | undefined) => void {
  const seen = new Set<string>();
  return (id) => {
    if (id === undefined) return;
    if (seen.has(id)) throw badInput('id must be used once', { value: id });
    seen.add(detached(id));
  };
}

/** Sorted in place where needed, each value once. */
export function ascending(columns: Uint32Array): Uint32Array {
  let sorted = true;
  for (let i = 1; i < columns.length; i++) if (columns[i] <= columns[i - 1]) sorted = false;
  if (sorted) return columns;
  return columns.sort().filter((column, i) => i === 0 || column !== columns[i - 1]);
}

type Field = 'text' | 'sparse' | 'dense' | 'group';

const homes: Record<Field, string> = {
  text: 'a text: write .jsonl, .csv or .tsv, or vectorise it by training a model',
  sparse: 'sparse features: write xmc, svmlight, jsonl or npz',
  dense: 'dense features: write jsonl, npy or parquet',
  group: 'a group: write .jsonl, .csv or .tsv',
};

/** Refuses to lose part of a sample. Not the id: where a format has none, a sample is known by its position. */
export function checkHolds(format: string, holds: readonly Field[], sample: Sample): void {
  for (const field of Object.keys(homes) as Field[]) {
    if (sample[field] === undefined || holds.includes(field)) continue;
    const [what, instead] = homes[field].split(': ');
    throw badUsage(`${format} cannot hold ${what}`, { hint: instead });
  }
}
