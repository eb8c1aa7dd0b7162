// Samples as plain objects, `{ id: '7', text: '...', labels: ['a', 'b'], group: 'g' }`: what a line of JSON holds and what
// a program gives. Everything is checked, whatever the types promise. Keys not named here are ignored.
import { badInput, badUsage, locate } from '../errors.ts';
import { Collector, type Dataset, type Sample } from './dataset.ts';
import { labelColumns, uniqueIds } from './records.ts';
import { Vocabulary } from './vocabulary.ts';

export interface PlainSample {
  id?: string;
  /** A sample has a text, features or both. */
  text?: string;
  /** Values by column for sparse features, or a list for dense ones. */
  features?: ArrayLike<number> | Record<number, number>;
  /** Ids, or objects that have them as `label`, as predictions are written. */
  labels?: (string | { label: string })[];
  group?: string;
}

/** A data set from memory. New labels are added to the vocabulary. */
export function datasetOf(
  samples: Iterable<PlainSample>,
  vocabulary: Vocabulary = new Vocabulary(),
): Dataset {
  if (typeof (samples as Partial<typeof samples> | null)?.[Symbol.iterator] !== 'function')
    throw badUsage('samples must be an array of objects, or iterable', { value: samples ?? null });
  if (!(vocabulary instanceof Vocabulary))
    throw badUsage('vocabulary must be a Vocabulary', { value: vocabulary ?? null });
  const collector = new Collector();
  const parse = sampleParser(vocabulary);
  const checkId = uniqueIds();
  for (const plain of samples) {
    try {
      const sample = parse(plain);
      checkId(sample.id);
      collector.add(sample);
    } catch (error) {
      throw locate(error, { file: 'samples', line: collector.rows + 1 });
    }
  }
  if (collector.rows === 0) throw badInput('a data set must have at least one sample');
  return collector.dataset({ vocabulary });
}

/** Checks plain samples one after the other, which must have dense features of one length. */
export function sampleParser(vocabulary: Vocabulary): (plain: unknown) => Sample {
  let width: number | undefined;
  const dense = (features: ArrayLike<unknown>) => {
    const values = Float32Array.from(features, finite);
    width ??= values.length;
    if (values.length === width) return values;
    throw badInput(`features must be as many as in the first record (${width})`, { value: values.length });
  };
  return (plain) => {
    if (!isObject(plain)) throw badInput('a record must be an object', { value: plain ?? null });
    const { id, text, features, labels, group } = plain;
    if (text === undefined && features === undefined)
      throw badInput('a record must have a text or features', { value: plain ?? null });
    if (text !== undefined && typeof text !== 'string')
      throw badInput('text must be a string', { value: text ?? null });
    const sample = {
      id: id === undefined ? undefined : name('id', id),
      text,
      group: group === undefined ? undefined : name('group', group),
      dense: isList(features) ? dense(features) : undefined,
      sparse: features === undefined || isList(features) ? undefined : sparse(features),
    };
    // Last, so that a bad record adds no label to the vocabulary.
    return { ...sample, labels: labelColumns(labelIds(labels), vocabulary) };
  };
}

/** Not a list, nor a Map or another object whose content is not in its keys. */
const isObject = (value: unknown): value is Record<string, unknown> =>
  Object.prototype.toString.call(value) === '[object Object]';

const isList = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

function name(field: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  if (Number.isFinite(value)) return String(value);
  throw badInput(`${field} must be a string or a number, and not empty`, { value: value ?? null });
}

/** A record to predict for need not have labels. */
function labelIds(value: unknown = []): string[] {
  const idOf = (label: unknown) => (isObject(label) ? label.label : label);
  if (Array.isArray(value)) return Array.from(value, (label) => name('a label', idOf(label)));
  throw badInput('labels must be an array of strings', { value: value ?? null });
}

function sparse(features: unknown): Sample['sparse'] {
  if (!isObject(features))
    throw badInput('features must be an object {"column": value} or an array of numbers', {
      value: features ?? null,
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
  throw badInput('feature value must be a finite number', { value: value ?? null });
}
