// Descriptions of labels for a vocabulary: names one per line, tables, JSON lines, Mulan's XML, SKOS; and plain lists of
// label ids. What a file is, is told by its ending and its first line.
import Papa from 'papaparse';
import { badInput, badUsage, locate } from '../errors.ts';
import { findColumn, parseRoles, separatorOf, single } from './columns.ts';
import { extensionOf, readLines } from './file.ts';
import { readMulanLabels } from './mulan.ts';
import { readSkos } from './skos.ts';
import type { Label, Vocabulary } from './vocabulary.ts';

export interface LabelOptions {
  /** For tables: `id=1,name=3,altNames=4,parents=5`, names from the header or positions. */
  columns?: string;
  /** Of names in SKOS, where there is a choice; English unless told otherwise. */
  language?: string;
}

const roles = ['id', 'name', 'altNames', 'parents'] as const;
type Role = (typeof roles)[number];

/** Labels with unique ids. In a plain list of names the id is the 0-based line number. */
export async function readLabels(path: string, options: LabelOptions = {}): Promise<Label[]> {
  const { language = 'en' } = options;
  switch (extensionOf(path)) {
    case '.ttl':
    case '.nt':
    case '.n3':
      return readSkos(path, 'turtle', language);
    case '.rdf':
      return readSkos(path, 'rdfxml', language);
    case '.xml':
      return (await isRdf(path)) ? readSkos(path, 'rdfxml', language) : readMulanLabels(path);
    case '.jsonl':
    case '.ndjson':
      return unique(path, jsonLabels(path));
    case '.csv':
      return unique(path, tableLabels(path, csvRows(path), language, options.columns));
    case '.tsv':
      return unique(path, tableLabels(path, tsvRows(path), language, options.columns));
    default: {
      const isTable = options.columns !== undefined || (await firstLine(path)).includes('\t');
      return isTable
        ? unique(path, tableLabels(path, tsvRows(path), language, options.columns))
        : readNames(path);
    }
  }
}

/** Label ids, one per line; blank lines are left out. */
export async function readIdList(path: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { lines } of readLines(path)) {
    for (const line of lines) if (line.trim() !== '') ids.push(plainId(line));
  }
  return ids;
}

/**
 * Pairs to leave out of an evaluation, `row label` on each line, rows counted from 0 and labels by id (the
 * `filter_labels_test.txt` of the XMC repository). A label that the vocabulary does not know cannot be predicted anyway.
 */
export async function readPairs(
  path: string,
  rows: number,
  vocabulary: Vocabulary,
): Promise<[number, number][]> {
  const pairs: [number, number][] = [];
  for await (const { first, lines } of readLines(path)) {
    lines.forEach((line, i) => {
      const [row, id, ...rest] = line.trim().split(/\s+/);
      if (row === '') return;
      const place = { file: path, line: first + i };
      if (id === undefined || rest.length > 0)
        throw badInput('line must be a row and a label', { ...place, value: line });
      if (!/^\d+$/.test(row) || Number(row) >= rows) {
        throw badInput(`row must be a whole number below ${rows}`, { ...place, value: row });
      }
      const column = vocabulary.column(id);
      if (column !== undefined) pairs.push([Number(row), column]);
    });
  }
  return pairs;
}

/** Annif writes URIs in angle brackets. */
const plainId = (text: string) => text.trim().replace(/^<(.*)>$/, '$1');

async function firstLine(path: string): Promise<string> {
  for await (const { lines } of readLines(path)) return lines[0];
  return '';
}

async function isRdf(path: string): Promise<boolean> {
  for await (const { lines } of readLines(path))
    for (const line of lines) {
      if (/<rdf:RDF|22-rdf-syntax-ns#/.test(line)) return true;
      if (/<(\w+:)?labels?[\s>]/i.test(line)) return false;
    }
  return false;
}

interface Numbered<T> {
  line: number;
  value: T;
}

async function unique(file: string, labels: AsyncIterable<Numbered<Label>>): Promise<Label[]> {
  const byId = new Map<string, Label>();
  for await (const { line, value } of labels) {
    if (value.id === '') throw badInput('label id must not be empty', { file, line });
    if (byId.has(value.id)) throw badInput('label ids must be unique', { file, line, value: value.id });
    byId.set(value.id, value);
  }
  return [...byId.values()];
}

async function readNames(path: string): Promise<Label[]> {
  const labels: Label[] = [];
  for await (const { lines } of readLines(path)) {
    for (const line of lines) {
      const [id, name] = [String(labels.length), line.trim()];
      labels.push(name === '' ? { id } : { id, name });
    }
  }
  return labels;
}

async function* jsonLabels(file: string): AsyncGenerator<Numbered<Label>> {
  for await (const { first, lines } of readLines(file)) {
    for (const [i, text] of lines.entries()) {
      if (text.trim() === '') continue;
      const line = first + i;
      try {
        yield { line, value: parseLabel(text) };
      } catch (error) {
        throw locate(error, { file, line });
      }
    }
  }
}

function parseLabel(text: string): Label {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw badInput('a line must be JSON', { value: text });
  }
  const { id, name, altNames, parents } = (given ?? {}) as Record<string, unknown>;
  if (typeof id !== 'string' && typeof id !== 'number')
    throw badInput('a label must have an id, a text or a number', { value: text });
  const label: Label = { id: String(id) };
  if (name !== undefined) {
    if (typeof name !== 'string') throw badInput('name must be a text', { value: name });
    label.name = name;
  }
  if (altNames !== undefined) label.altNames = texts('altNames', altNames);
  if (parents !== undefined) label.parents = texts('parents', parents);
  return label;
}

function texts(field: string, value: unknown): string[] {
  if (Array.isArray(value) && value.every((item): item is string => typeof item === 'string')) return value;
  throw badInput(`${field} must be a list of texts`, { value: JSON.stringify(value) });
}

async function* tsvRows(path: string): AsyncGenerator<Numbered<string[]>> {
  for await (const { first, lines } of readLines(path)) {
    for (const [i, line] of lines.entries())
      if (line.trim() !== '') yield { line: first + i, value: line.split('\t') };
  }
}

async function* csvRows(path: string): AsyncGenerator<Numbered<string[]>> {
  const parts: string[] = [];
  for await (const { lines } of readLines(path)) parts.push(lines.join('\n'));
  const text = parts.join('\n');
  const delimiter = separatorOf(text.trimStart().split('\n', 1)[0]);
  const { data, errors } = Papa.parse<string[]>(text, { delimiter, newline: '\n' });
  const broken = errors.at(0);
  if (broken)
    throw badInput('CSV must be well formed', {
      file: path,
      line: (broken.row ?? 0) + 1,
      value: broken.message,
    });
  for (const [i, value] of data.entries())
    if (value.length > 1 || value[0].trim() !== '') yield { line: i + 1, value };
}

async function* tableLabels(
  file: string,
  rows: AsyncIterable<Numbered<string[]>>,
  language: string,
  columns?: string,
): AsyncGenerator<Numbered<Label>> {
  let layout: Layout | undefined;
  for await (const { line, value: cells } of rows) {
    const place = { file, line };
    if (!layout) {
      layout = findLayout(cells, language, columns, place);
      if (layout.hasHeader) continue;
    }
    if (cells.length !== layout.width)
      throw badInput(`a row must have ${layout.width} columns like the first`, {
        ...place,
        value: cells.length,
      });
    yield { line, value: labelOf(cells, layout.positions) };
  }
}

interface Layout {
  hasHeader: boolean;
  width: number;
  positions: Partial<Record<Role, number>> & { id: number };
}

const headerNames = (language: string): Record<Role, string[]> => ({
  id: ['id', 'uri'],
  name: ['name', 'label', 'preflabel', `label_${language}`],
  altNames: ['altnames', 'alt', 'altlabels', 'altlabel', 'synonyms'],
  parents: ['parents', 'parent', 'broader'],
});

/** The first row is a header if it has a column `id` or `uri`, or if the columns are given by name. */
function findLayout(
  first: string[],
  language: string,
  columns: string | undefined,
  place: { file: string; line: number },
): Layout {
  const names = headerNames(language);
  const given = columns === undefined ? {} : parseRoles(columns, roles);
  const chosen = Object.fromEntries(roles.map((role) => [role, single(role, given[role])]));
  const lower = first.map((cell) => cell.trim().toLowerCase());
  const byName = Object.values(chosen).some((column) => column !== undefined && !/^\d+$/.test(column));
  const hasHeader = byName || lower.some((cell) => names.id.includes(cell));
  const header = hasHeader ? first : first.map(() => '');
  const positions: Partial<Record<Role, number>> = columns || hasHeader ? {} : bareLayout(first, place);
  for (const role of roles) {
    const column = chosen[role];
    const found = lower.findIndex((cell) => names[role].includes(cell));
    if (column !== undefined) positions[role] = findColumn(header, column);
    else if (hasHeader && found >= 0) positions[role] = found;
  }
  const { id } = positions;
  if (id === undefined) throw badUsage('columns must say which one is the id', { ...place, value: columns });
  return { hasHeader, width: first.length, positions: { ...positions, id } };
}

/** Without a header: `id<TAB>name`, or Annif's `<uri><TAB>name` with more columns after. */
function bareLayout(first: string[], place: { file: string; line: number }): Partial<Record<Role, number>> {
  if (first.length === 2 || (first.length > 2 && /^<.*>$/.test(first[0].trim()))) return { id: 0, name: 1 };
  throw badUsage('a table of labels without a header must be id and name, or columns must be given', {
    ...place,
    value: `${first.length} columns`,
    hint: 'for example id=1,name=3,altNames=4',
  });
}

function labelOf(cells: string[], { id, name, altNames, parents }: Layout['positions']): Label {
  const label: Label = { id: plainId(cells[id]) };
  const cell = name === undefined ? '' : cells[name].trim();
  if (cell !== '') label.name = cell;
  const others = altNames === undefined ? [] : splitList(cells[altNames]).filter((other) => other !== cell);
  if (others.length > 0) label.altNames = others;
  const broader = parents === undefined ? [] : splitList(cells[parents]).map(plainId);
  if (broader.length > 0) label.parents = broader;
  return label;
}

/** Between `|`, or where there is none between `;`. */
function splitList(cell: string): string[] {
  const items = cell.split(cell.includes('|') ? '|' : ';').map((item) => item.trim());
  return items.filter((item) => item !== '');
}
