// JSON lines: `{"id": "7", "text": "...", "labels": ["a", "b"], "group": "g"}`. Instead of a text or beside it,
// `features`: `{"12": 0.5}` for sparse columns or `[0.1, 0.2]` for dense ones. Other keys are ignored.
import { badInput } from '../errors.ts';
import type { Sample } from './dataset.ts';
import type { Format, Header } from './format.ts';
import { checkHolds, labelColumns, lineSamples, textWriter } from './records.ts';
import { shortFloat } from './sparse-rows.ts';
import { Vocabulary } from './vocabulary.ts';

export const jsonl: Format = {
  name: 'jsonl',
  read: async (path, options) => {
    const vocabulary = options.vocabulary ?? new Vocabulary();
    return { vocabulary, batches: lineSamples(path, recordParser(vocabulary), options) };
  },
  write: (path, header) => textWriter(path, (sample) => `${stringify(sample, header)}\n`),
};

function recordParser(vocabulary: Vocabulary): (line: string) => Sample | undefined {
  let width: number | undefined;
  const dense = (features: unknown[]) => {
    const values = Float32Array.from(features, finite);
    width ??= values.length;
    if (values.length === width) return values;
    throw badInput(`features must be as many as in the first record (${width})`, { value: values.length });
  };
  return (line) => {
    if (line.trim() === '') return undefined;
    const { id, text, features, labels, group } = parseObject(line);
    if (text === undefined && features === undefined)
      throw badInput('a record must have a text or features', { value: line });
    if (text !== undefined && typeof text !== 'string')
      throw badInput('text must be a string', { value: JSON.stringify(text) });
    const sample = {
      id: name('id', id),
      text,
      group: name('group', group),
      dense: Array.isArray(features) ? dense(features) : undefined,
      sparse: features === undefined || Array.isArray(features) ? undefined : sparse(features),
    };
    // Last, so that a bad record adds no label to the vocabulary.
    return { ...sample, labels: labelColumns(labelIds(labels), vocabulary) };
  };
}

function parseObject(line: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw badInput(`line must be valid JSON: ${(error as Error).message}`);
  }
  if (!isObject(value)) throw badInput('line must be a JSON object', { value: line });
  return value;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function name(field: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === 'string' && value !== '')) return value;
  if (typeof value === 'number') return String(value);
  throw badInput(`${field} must be a string or a number, and not empty`, { value: JSON.stringify(value) });
}

/** A record to predict for need not have labels. */
function labelIds(value: unknown = []): string[] {
  if (Array.isArray(value)) return value.flatMap((label) => name('a label', label) ?? []);
  throw badInput('labels must be an array of strings', { value: JSON.stringify(value) });
}

function sparse(features: unknown): Sample['sparse'] {
  if (!isObject(features))
    throw badInput('features must be an object {"column": value} or an array of numbers', {
      value: JSON.stringify(features),
    });
  // In ascending order: JavaScript keeps whole-number keys so.
  const keys = Object.keys(features);
  const indices = new Uint32Array(keys.length);
  const values = new Float32Array(keys.length);
  for (let i = 0; i < keys.length; i++) {
    indices[i] = column(keys[i]);
    values[i] = finite(features[keys[i]]);
  }
  return { indices, values };
}

function column(key: string): number {
  const index = Number(key);
  if (String(index) === key && Number.isInteger(index) && index >= 0 && index < 2 ** 32 - 1) return index;
  throw badInput('feature column must be a whole number below 2^32 - 1', { value: key });
}

function finite(value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(Math.fround(value))) return value;
  throw badInput('feature value must be a finite number', { value: JSON.stringify(value) });
}

function stringify(sample: Sample, { vocabulary }: Header): string {
  const { id, text, sparse, dense, group } = sample;
  checkHolds('jsonl', sparse ? ['text', 'group', 'sparse'] : ['text', 'group', 'dense'], sample);
  const features = sparse
    ? Object.fromEntries(Array.from(sparse.indices, (column, i) => [column, shortFloat(sparse.values[i])]))
    : dense && Array.from(dense, shortFloat);
  const labels = Array.from(sample.labels, (column) => vocabulary.label(column).id);
  return JSON.stringify({ id, text, features, labels, group });
}
