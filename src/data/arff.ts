// Weka's ARFF as Mulan and MEKA write it: attributes, then dense or sparse rows. Which attributes are labels is said by
// Mulan's XML beside the file or by MEKA's `-C n` in the relation line.
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { badInput, locate } from '../errors.ts';
import { arffWriter } from './arff-writer.ts';
import type { Sample } from './dataset.ts';
import { type LineBatch, readLines } from './file.ts';
import type { Format, ReadOptions } from './format.ts';
import { readMulanLabels } from './mulan.ts';
import { ascending, parseRecords } from './records.ts';
import { type Label, Vocabulary } from './vocabulary.ts';

interface Attribute {
  name: string;
  /** What a nominal attribute may be; absent for a numeric one. */
  values?: string[];
}

interface ArffHeader {
  relation: string;
  attributes: Attribute[];
  /** Lines from the first row on. */
  rest?: LineBatch;
}

/** Where the values of one attribute go. */
type Slot =
  | { kind: 'label'; column: number }
  | { kind: 'number'; column: number; allowed?: Set<number> }
  /** One column for each value but the first, which is all zeros (and what sparse rows leave out). */
  | { kind: 'category'; column: number; codes: Map<string, number> };

export const arff: Format = {
  name: 'arff',
  read,
  write: arffWriter,
};

async function read(path: string, options: ReadOptions) {
  const lines = readLines(path, options);
  try {
    const header = await readHeader(lines, path);
    const labels = await findLabels(path, header, options.companion);
    const vocabulary = options.vocabulary ?? new Vocabulary();
    const { slots, featureNames } = assignSlots(header.attributes, labels, vocabulary);
    const first = header.rest?.lines[0].trim();
    const sparse = first?.startsWith('{') ?? false;
    if (sparse) checkSparseDefaults(header.attributes);
    const width = featureNames.length;
    const parse = (line: string) => {
      if (isBlank(line)) return undefined;
      return sparse ? parseSparse(line, slots) : parseDense(line, slots, width);
    };
    const rows = batches(lines, header.rest, parse, path, options);
    return { vocabulary, width: sparse ? width : undefined, featureNames, batches: rows };
  } catch (error) {
    await lines.return(undefined);
    throw locate(error, { file: path });
  }
}

async function* batches(
  lines: AsyncGenerator<LineBatch>,
  rest: LineBatch | undefined,
  parse: (line: string) => Sample | undefined,
  file: string,
  options: ReadOptions,
): AsyncGenerator<Sample[]> {
  try {
    let batch = rest;
    while (batch) {
      const { first } = batch;
      yield parseRecords(batch.lines, (i) => first + i, parse, file, options);
      batch = (await lines.next()).value;
    }
  } finally {
    await lines.return(undefined);
  }
}

const isBlank = (line: string) => /^\s*(%|$)/.test(line);

async function readHeader(lines: AsyncGenerator<LineBatch>, file: string): Promise<ArffHeader> {
  const attributes: Attribute[] = [];
  let relation = '';
  let inData = false;
  for (let next = await lines.next(); !next.done; next = await lines.next()) {
    const batch = next.value;
    for (const [i, line] of batch.lines.entries()) {
      if (isBlank(line)) continue;
      const place = { file, line: batch.first + i };
      if (inData) return { relation, attributes, rest: { first: place.line, lines: batch.lines.slice(i) } };
      const [, keyword, rest = ''] = /^\s*@(\w+)(?:\s+(.*))?$/.exec(line) ?? [];
      if (keyword === undefined)
        throw badInput('a line before @data must start with @', { ...place, value: line });
      switch (keyword.toLowerCase()) {
        case 'relation':
          relation = tokens(rest)[0] ?? '';
          break;
        case 'attribute':
          attributes.push(parseAttribute(rest, place));
          break;
        case 'data':
          inData = true;
          break;
        default:
          throw badInput('keyword must be @relation, @attribute or @data', {
            ...place,
            value: `@${keyword}`,
          });
      }
    }
  }
  if (!inData) throw badInput('ARFF must have an @data line', { file });
  return { relation, attributes };
}

function parseAttribute(text: string, place: { file: string; line: number }): Attribute {
  const [, name, type] = /^("(?:\\.|""|[^"\\])*"|'(?:\\.|''|[^'\\])*'|[^\s{]+)\s*(.*?)\s*$/.exec(text) ?? [];
  if (name === undefined) throw badInput('@attribute must have a name and a type', { ...place, value: text });
  const nominal = /^\{(.*)\}$/.exec(type);
  if (nominal) return { name: tokens(name)[0], values: tokens(nominal[1]) };
  if (/^(numeric|real|integer)\b/i.test(type)) return { name: tokens(name)[0] };
  throw badInput('attribute type must be numeric, real, integer or {values}', { ...place, value: type });
}

/** Words between commas and blanks; quotes protect both, a backslash or a doubled quote protects a quote. */
function tokens(text: string): string[] {
  const word = /"((?:\\.|""|[^"\\])*)"|'((?:\\.|''|[^'\\])*)'|[^\s,]+/g;
  return Array.from(text.matchAll(word), ([whole, double, single]) => {
    if (double !== undefined) return double.replace(/\\(.)|""/g, (_, escaped) => escaped ?? '"');
    if (single !== undefined) return single.replace(/\\(.)|''/g, (_, escaped) => escaped ?? "'");
    return whole;
  });
}

/** The labels of the XML file, or those MEKA's `-C n` means: the first n attributes, or the last -n. */
async function findLabels(path: string, header: ArffHeader, companion?: string): Promise<Label[]> {
  const { relation, attributes } = header;
  const xml = companion ?? (await findXml(path, relation));
  if (xml !== undefined) {
    const labels = await readMulanLabels(xml);
    const names = new Set(attributes.map(({ name }) => name));
    const absent = labels.find(({ id }) => !names.has(id));
    if (!absent) return labels;
    throw badInput(`every label of ${basename(xml)} must be an attribute`, { value: absent.id });
  }
  const count = mekaLabels(relation);
  if (count === 0)
    throw badInput('ARFF needs to know which attributes are labels', {
      hint: 'put the Mulan XML file beside it, name it as companion, or have -C n in the @relation line',
    });
  if (Math.abs(count) > attributes.length)
    throw badInput(`-C must be at most the number of attributes (${attributes.length})`, { value: count });
  const labels = count > 0 ? attributes.slice(0, count) : attributes.slice(count);
  return labels.map(({ name }) => ({ id: name }));
}

const mekaLabels = (relation: string) => Number(/(?:^|\s)-C\s+(-?\d+)(?!\S)/.exec(relation)?.[1] ?? 0);

/** The XML of the same name, less `-train`, `-test`, `-sparse`; or, if MEKA says nothing, the only one there is. */
async function findXml(path: string, relation: string): Promise<string | undefined> {
  const folder = dirname(path);
  const files = (await readdir(folder)).filter((name) => /\.xml(\.gz)?$/i.test(name)).sort();
  const stemOf = (name: string) => name.toLowerCase().replace(/(\.(arff|xml))?(\.gz)?$/, '');
  for (let stem = stemOf(basename(path)), longer = ''; stem !== longer; ) {
    const found = files.find((name) => stemOf(name) === stem);
    if (found) return join(folder, found);
    longer = stem;
    stem = stem.replace(/-(train|test|sparse)$/, '');
  }
  return files.length === 1 && mekaLabels(relation) === 0 ? join(folder, files[0]) : undefined;
}

function assignSlots(attributes: Attribute[], labels: Label[], vocabulary: Vocabulary) {
  const byName = new Map(labels.map((label) => [label.id, label]));
  const featureNames: string[] = [];
  const names = new Set<string>();
  const slots = attributes.map(({ name, values }): Slot => {
    if (names.has(name)) throw badInput('attribute names must be unique', { value: name });
    names.add(name);
    const label = byName.get(name);
    if (label) {
      vocabulary.describe([label]);
      return { kind: 'label', column: vocabulary.add(name) };
    }
    const column = featureNames.length;
    const numbers = values?.map(Number);
    if (!values || numbers?.every(Number.isFinite)) {
      featureNames.push(name);
      return { kind: 'number', column, allowed: numbers && new Set(numbers) };
    }
    featureNames.push(...values.slice(1).map((value) => `${name}=${value}`));
    return { kind: 'category', column, codes: new Map(values.map((value, code) => [value, code])) };
  });
  return { slots, featureNames };
}

/** What a sparse row leaves out is the first value, and read as zero. */
function checkSparseDefaults(attributes: Attribute[]): void {
  for (const { name, values = [] } of attributes) {
    if (values.some((value) => !Number.isFinite(Number(value)))) continue;
    if (values.length > 0 && Number(values[0]) !== 0)
      throw badInput(`in a sparse file the first value of attribute ${name} must be 0`, { value: values[0] });
  }
}

function parseDense(line: string, slots: Slot[], width: number): Sample {
  let cells = /["']/.test(line) ? tokens(line) : line.split(',');
  if (cells.length !== slots.length) cells = tokens(line);
  if (cells.length !== slots.length)
    throw badInput(`a row must have ${slots.length} values`, { value: cells.length });
  const dense = new Float32Array(width);
  const labels: number[] = [];
  for (let i = 0; i < slots.length; i++) {
    const slot = slots[i];
    const value = slotValue(slot, cells[i]);
    if (value === 0) continue;
    if (slot.kind === 'label') labels.push(slot.column);
    else if (slot.kind === 'number') dense[slot.column] = value;
    else dense[slot.column + value - 1] = 1;
  }
  return { dense, labels: ascending(Uint32Array.from(labels)) };
}

function parseSparse(line: string, slots: Slot[]): Sample {
  const body = /^\s*\{(.*)\}\s*$/.exec(line)?.[1];
  if (body === undefined)
    throw badInput('a row of a sparse file must be {index value, ...}', { value: line });
  const indices: number[] = [];
  const values: number[] = [];
  const labels: number[] = [];
  let last = -1;
  for (const [index, text] of sparsePairs(body)) {
    const i = Number(index);
    const slot = slots[i];
    if (!slot || index === '')
      throw badInput(`attribute index must be from 0 to ${slots.length - 1}`, { value: index });
    if (i <= last) throw badInput('attribute indices must ascend', { value: `${i} after ${last}` });
    last = i;
    const value = slotValue(slot, text);
    if (value === 0) continue;
    if (slot.kind === 'label') {
      labels.push(slot.column);
      continue;
    }
    indices.push(slot.kind === 'number' ? slot.column : slot.column + value - 1);
    values.push(slot.kind === 'number' ? value : 1);
  }
  return { sparse: { indices, values }, labels: ascending(Uint32Array.from(labels)) };
}

function sparsePairs(body: string): [string, string][] {
  if (/["']/.test(body)) {
    const words = tokens(body);
    return Array.from({ length: Math.ceil(words.length / 2) }, (_, i) => [
      words[2 * i],
      words[2 * i + 1] ?? '',
    ]);
  }
  if (body.trim() === '') return [];
  return body.split(',').map((piece) => {
    const pair = piece.trim();
    const gap = pair.search(/\s/);
    return gap < 0 ? [pair, ''] : [pair.slice(0, gap), pair.slice(gap + 1)];
  });
}

/** The number a cell means: its value, 0 or 1 for a label, the place in the list for a category. */
function slotValue(slot: Slot, cell: string): number {
  if (slot.kind === 'category') {
    const code = slot.codes.get(cell.trim());
    if (code !== undefined) return code;
    throw badInput(cell.trim() === '?' ? missing : 'value must be one the attribute lists', { value: cell });
  }
  const value = Number(cell);
  const known = value !== 0 || cell.trim() !== '';
  if (!known || !Number.isFinite(Math.fround(value)))
    throw badInput(cell.trim() === '?' ? missing : 'value must be a finite number', { value: cell });
  if (slot.kind === 'label' && value !== 0 && value !== 1)
    throw badInput('a label must be 0 or 1', { value: cell });
  if (slot.kind === 'number' && slot.allowed && !slot.allowed.has(value))
    throw badInput('value must be one the attribute lists', { value: cell });
  return value;
}

const missing = 'values must not be missing';
