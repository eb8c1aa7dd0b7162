// Which column of a table holds what: the default names, the names or positions a user gives, and how
// `--columns id=1,text=title+body,labels=tags` is understood. Knows headers, not cells.
import { badUsage, unknownName } from '../errors.ts';
import type { Columns } from './format.ts';

/** Names looked for where the user gives none, in any case; `text` takes all that are present, the others the first. */
export const defaultColumns = {
  id: ['id'],
  text: ['text', 'title', 'content', 'body', 'abstract', 'description'],
  labels: ['labels', 'label', 'tags', 'topics', 'categories', 'subjects'],
  group: ['group'],
} as const;

const roles = ['id', 'text', 'labels', 'group'] as const;
type Role = (typeof roles)[number];

/** 0-based positions. */
export interface ColumnPositions {
  id?: number;
  /** To be joined by a space, in this order. */
  text: number[];
  /** The column whose cells list labels. */
  labels: number[];
  /** Columns of zeros and ones (several columns, or a range `A..B`): the header names the label. */
  indicators: number[];
  group?: number;
}

/** Finds the columns in a header. A table without one passes empty names, so that only positions match. */
export function resolveColumns(header: readonly string[], columns: Columns = {}): ColumnPositions {
  const found = (names: readonly string[]) =>
    header.flatMap((name, position) => (names.includes(name.trim().toLowerCase()) ? [position] : []));
  const byDefault = (names: readonly string[]) => names.flatMap((name) => found([name]));
  const one = (name: string | undefined, names: readonly string[]): number | undefined =>
    name === undefined ? byDefault(names)[0] : findColumn(header, name);

  const isRange = (name: string) => !header.includes(name) && name.includes('..');
  const labels = columns.labels
    ? columns.labels.flatMap((name) => (isRange(name) ? columnRange(header, name) : findColumn(header, name)))
    : byDefault(defaultColumns.labels).slice(0, 1);
  const areIndicators = labels.length > 1 || columns.labels?.some(isRange);
  return {
    id: one(columns.id, defaultColumns.id),
    text: columns.text ? columns.text.map((name) => findColumn(header, name)) : found(defaultColumns.text),
    labels: areIndicators ? [] : labels,
    indicators: areIndicators ? labels : [],
    group: one(columns.group, defaultColumns.group),
  };
}

/** The 0-based position of a header name (in any case, if only one fits) or of a 1-based position. */
export function findColumn(header: readonly string[], name: string): number {
  const exact = header.indexOf(name);
  if (exact >= 0) return exact;
  const lower = header.map((column) => column.trim().toLowerCase());
  const anyCase = lower.indexOf(name.trim().toLowerCase());
  if (anyCase >= 0) return anyCase;
  if (!/^\d+$/.test(name))
    throw unknownName(
      'column',
      name,
      header.filter((column) => column !== ''),
    );
  const position = Number(name);
  if (position < 1 || position > header.length)
    throw badUsage(`column position must be from 1 to ${header.length}`, { value: name });
  return position - 1;
}

/** All positions of a range `A..B`. */
function columnRange(header: readonly string[], range: string): number[] {
  const [, from, to] = /^(.+?)\.\.(.+)$/.exec(range) ?? [range, range, range];
  const [start, end] = [findColumn(header, from), findColumn(header, to)];
  if (start > end) throw badUsage('a range of columns must go from left to right', { value: range });
  return Array.from({ length: end - start + 1 }, (_, i) => start + i);
}

/**
 * What parts the cells of a CSV file: a comma, unless its first line has more semicolons (Excel where the comma is in
 * the numbers) or more tabs outside of quotes.
 */
export function separatorOf(firstLine: string): string {
  const bare = firstLine.replace(/(^|[,;\t])"(?:[^"]|"")*("|$)/g, '$1');
  const count = (separator: string) => bare.split(separator).length;
  return [',', ';', '\t'].reduce((best, next) => (count(next) > count(best) ? next : best));
}

/** `id=1,text=title+body,labels=tags`; `labels=` reads no labels, whatever columns there are. */
export function parseColumns(text: string): Columns {
  return byRole(parseRoles(text, roles, ['labels']));
}

const byRole = ({ id, group, ...lists }: Partial<Record<Role, string[]>>): Columns => ({
  ...lists,
  id: single('id', id),
  group: single('group', group),
});

/** Columns as a program may give them: as the command line does, or by role, one name or position or several. */
export type GivenColumns = string | { [R in keyof Columns]: ColumnName | ColumnName[] };
type ColumnName = string | number;

/** Checks them, whatever their type promises. */
export function toColumns(given: GivenColumns): Columns {
  if (typeof given === 'string') return parseColumns(given);
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw badUsage('columns must be a string role=column,... or an object { role: column }', {
      value: given ?? null,
    });
  const named: Partial<Record<Role, string[]>> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) named[roleNamed(name, roles)] = columnNames(name, value);
  }
  return byRole(named);
}

function columnNames(role: string, value: unknown): string[] {
  const isName = (name: unknown) => (typeof name === 'string' && name !== '') || Number.isInteger(name);
  const names: unknown[] = Array.isArray(value) ? value : [value];
  if ((names.length > 0 || role === 'labels') && names.every(isName)) return names.map(String);
  throw badUsage(`columns.${role} must be a column name or position, or an array of them`, {
    value: value ?? null,
  });
}

function roleNamed<R extends string>(name: string, known: readonly R[]): R {
  const role = known.find((other) => other === name);
  if (role === undefined) throw unknownName('column role', name, known);
  return role;
}

/** Splits `role=column+column,role=column`; every role must be known and appear once, some without a column. */
export function parseRoles<R extends string>(
  text: string,
  roles: readonly R[],
  optional: readonly R[] = [],
): Partial<Record<R, string[]>> {
  const parsed: Partial<Record<R, string[]>> = {};
  for (const part of text.split(',')) {
    const [, name, value] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/.exec(part) ?? [];
    if (name === undefined || (value === '' && !optional.some((role) => role === name)))
      throw badUsage('columns must be given as role=column,...', { value: part });
    const role = roleNamed(name, roles);
    if (parsed[role]) throw badUsage('each column role must appear once', { value: role });
    parsed[role] = value === '' ? [] : value.split('+').map((column) => column.trim());
  }
  return parsed;
}

/** The only column of a role that takes one. */
export function single(role: string, columns: string[] | undefined): string | undefined {
  if (columns && columns.length > 1)
    throw badUsage(`${role} must be one column`, { value: columns.join('+') });
  return columns?.[0];
}
