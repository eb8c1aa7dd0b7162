// Tables of texts, one sample per row. CSV has quotes (RFC 4180: a quoted field may hold commas, quotes and line ends,
// read as LF) and is read with semicolons or tabs too; in TSV a quote is a character like any other. A TSV without a
// header and with two columns is `labels<TAB>text`. Which column is what: see columns.ts.
import Papa from 'papaparse';
import { badInput, badUsage, locate } from '../errors.ts';
import { type ColumnPositions, resolveColumns, separatorOf } from './columns.ts';
import type { Sample, SampleStream } from './dataset.ts';
import { maxLineBytes, readCheckedLines, readLines } from './file.ts';
import type { Columns, Format, Header, ReadOptions } from './format.ts';
import { ascending, checkHolds, labelColumns, parseRecords, textWriter } from './records.ts';
import { Vocabulary } from './vocabulary.ts';

interface Row {
  line: number;
  cells: string[];
  /** Why the row is broken, if it is. */
  broken?: string;
}

/** What the first row says about the table. */
interface Layout extends ColumnPositions {
  header?: string[];
  /** Number of columns; absent for `labels<TAB>text`, where further tabs belong to the text. */
  width?: number;
  /** How a file that does not say is read. */
  assumed?: string;
}

export const csv: Format = {
  name: 'csv',
  read: (path, options) => read(csvRows(path, options), findLayout, path, options),
  write: (path, header) => textWriter(path, tableText('csv', header, ',', quoteCell)),
};

export const tsv: Format = {
  name: 'tsv',
  read: (path, options) => read(tsvRows(path, options), findTsvLayout, path, options),
  write: (path, header) => textWriter(path, tableText('tsv', header, '\t', plainCell(/[\t\r\n]/))),
};

export const labelsText: Format = {
  name: 'labels-text',
  read: (path, options) => read(tsvRows(path, options), () => labelsTextLayout, path, options),
  write: (path, header) => textWriter(path, labelsTextLine(header)),
};

async function read(
  rows: AsyncGenerator<Row[]>,
  layoutOf: (first: string[], columns?: Columns) => Layout,
  path: string,
  options: ReadOptions,
): Promise<SampleStream> {
  const vocabulary = options.vocabulary ?? new Vocabulary();
  async function* batches() {
    let parse: ((row: Row) => Sample | undefined) | undefined;
    for await (let batch of rows) {
      if (!parse) {
        const start = batch.findIndex((row) => !isBlank(row));
        if (start < 0) continue;
        const { line, cells } = batch[start];
        const layout = located(() => layoutOf(cells, options.columns), path, line);
        if (layout.assumed) options.note?.(`${path}: read as ${layout.assumed}`);
        batch = batch.slice(layout.header ? start + 1 : start);
        parse = rowParser(layout, vocabulary, options.labelDelimiter ?? ',');
      }
      yield parseRecords(batch, (i) => batch[i].line, parse, path, options);
    }
  }
  return { vocabulary, batches: batches() };
}

function located<T>(work: () => T, file: string, line: number): T {
  try {
    return work();
  } catch (error) {
    throw locate(error, { file, line });
  }
}

const isBlank = ({ cells }: Row) => cells.length === 1 && cells[0].trim() === '';

async function* tsvRows(path: string, options: ReadOptions): AsyncGenerator<Row[]> {
  for await (const { first, lines } of readLines(path, options))
    yield lines.map((line, i) => ({ line: first + i, cells: line.split('\t') }));
}

async function* csvRows(path: string, options: ReadOptions): AsyncGenerator<Row[]> {
  let parser: Papa.Parser | undefined;
  const badLines: number[] = [];
  let text = '';
  let line = 1;
  for await (const batch of readCheckedLines(path, options)) {
    for (const index of batch.bad) badLines.push(batch.first + index);
    text += `${batch.lines.join('\n')}\n`;
    parser ??= csvParser(batch.lines, path, options);
    // Told to leave out the last row, the parser stops before a field whose quote is still open.
    const { data, errors, meta }: Papa.ParseResult<string[]> = parser.parse(text, 0, true);
    const rows = data.map((cells): Row => {
      const row = { line, cells };
      line += 1 + cells.reduce((ends, cell) => ends + countLineEnds(cell), 0);
      return row;
    });
    for (const { row, message } of errors) if (row !== undefined && rows[row]) rows[row].broken = message;
    yield badLines.length === 0
      ? rows
      : rows.filter((row, i) => !covers(row.line, rows[i + 1]?.line ?? line, badLines));
    text = text.slice(meta.cursor);
    if (text.length > maxLineBytes) break;
  }
  if (text === '') return;
  const error = badInput('a quoted field must be closed', { file: path, line, value: text.slice(0, 80) });
  if (!options.skipped) throw error;
  options.skipped.add(error);
}

function csvParser(lines: string[], path: string, { note }: ReadOptions): Papa.Parser {
  const delimiter = separatorOf(lines.find((line) => line.trim() !== '') ?? '');
  if (delimiter !== ',') note?.(`${path}: read as parted by ${delimiter === ';' ? 'semicolons' : 'tabs'}`);
  return new Papa.Parser({ delimiter, newline: '\n' });
}

function countLineEnds(cell: string): number {
  let count = 0;
  for (let at = cell.indexOf('\n'); at >= 0; at = cell.indexOf('\n', at + 1)) count++;
  return count;
}

/** Whether one of the bad lines is from `start` up to, not including, `end`. */
const covers = (start: number, end: number, badLines: number[]) =>
  badLines.some((line) => line >= start && line < end);

const labelsTextLayout: Layout = { labels: [0], text: [1], indicators: [] };

function findTsvLayout(first: string[], columns?: Columns): Layout {
  const headerless = first.length === 2 && !columns && !looksLikeHeader(first);
  if (!headerless) return findLayout(first, columns);
  return { ...labelsTextLayout, assumed: 'labels<TAB>text, no header' };
}

/** The first row is a header, unless columns are given by position and it does not look like one. */
function findLayout(first: string[], columns?: Columns): Layout {
  const given = Object.values(columns ?? {}).flatMap((names) => names ?? []);
  const byPosition = given.length > 0 && given.every((name) => /^\d+(\.\.\d+)?$/.test(name));
  const header = !byPosition || looksLikeHeader(first) ? first.map((name) => name.trim()) : undefined;
  const found = resolveColumns(header ?? first.map(() => ''), columns);
  if (found.text.length === 0)
    throw badUsage('table must have a column that holds the text', {
      value: first.join(' | '),
      hint: 'say which columns hold what by name or position, for example --columns id=1,labels=2,text=title+body',
    });
  return { ...found, header, width: first.length };
}

/**
 * Whether a row that could be data is a header. One name of a text column is not enough unless it comes first: a title
 * may well be "Abstract".
 */
function looksLikeHeader(first: string[]): boolean {
  const { id, group, text, labels } = resolveColumns(first);
  return id !== undefined || group !== undefined || labels.length > 0 || text.length > 1 || text[0] === 0;
}

function rowParser(layout: Layout, vocabulary: Vocabulary, delimiter: string) {
  const { id, group, text, labels, indicators, header, width } = layout;
  const indicatorColumns = indicators.map((at) => vocabulary.add(header?.[at] ?? String(at + 1)));
  const indicated = (cells: string[]) =>
    ascending(Uint32Array.from(indicatorColumns.filter((_, i) => isSet(cells[indicators[i]]))));
  const listed = (cells: string[]) =>
    labelColumns(labels.length > 0 ? splitLabels(cells[labels[0]], delimiter) : [], vocabulary);

  return (row: Row): Sample | undefined => {
    if (isBlank(row)) return undefined;
    const cells = width === undefined ? splitAtFirstTab(row.cells) : row.cells;
    if (row.broken) throw badInput(`quotes must be well formed: ${row.broken}`);
    if (width !== undefined && cells.length !== width)
      throw badInput(`a row must have ${width} columns like the first`, { value: cells.length });
    return {
      id: nameIn('id', cells, id),
      group: nameIn('group', cells, group),
      text: text.length === 1 ? cells[text[0]] : text.map((at) => cells[at]).join(' '),
      labels: indicators.length > 0 ? indicated(cells) : listed(cells),
    };
  };
}

function splitAtFirstTab([labels, ...text]: string[]): string[] {
  if (text.length > 0) return [labels, text.join('\t')];
  throw badInput('a line must be labels, a tab and a text', { value: labels });
}

function nameIn(role: string, cells: string[], at: number | undefined): string | undefined {
  if (at === undefined) return undefined;
  if (cells[at].trim() === '') throw badInput(`${role} must not be empty`);
  return cells[at];
}

function isSet(cell: string): boolean {
  const value = cell.trim() === '' ? Number.NaN : Number(cell);
  if (value !== 0 && value !== 1)
    throw badInput('a cell of several label columns must be 0 or 1', { value: cell });
  return value === 1;
}

function splitLabels(cell: string, delimiter: string): string[] {
  const ids: string[] = [];
  for (const part of cell.split(delimiter)) {
    const id = part.trim();
    if (id !== '') ids.push(id);
  }
  return ids;
}

/** Writes the header before the first row; it has an id and a group where the first sample has them. */
function tableText(
  format: string,
  header: Header,
  separator: string,
  cell: (text: string) => string,
): (sample: Sample) => string {
  let columns: string | undefined;
  return (sample) => {
    const text = textOf(format, sample);
    const names = columnNames(sample).join(separator);
    const start = columns === undefined ? `${names}\n` : '';
    columns ??= names;
    if (names !== columns)
      throw badInput('every sample or none must have an id, and likewise a group', { value: sample.id });
    const ids = [sample.id, sample.group].filter((name) => name !== undefined);
    return `${start}${[...ids, text, labelCell(sample, header)].map(cell).join(separator)}\n`;
  };
}

const columnNames = ({ id, group }: Sample): string[] => [
  ...(id === undefined ? [] : ['id']),
  ...(group === undefined ? [] : ['group']),
  'text',
  'labels',
];

function labelsTextLine(header: Header): (sample: Sample) => string {
  const [labels, text] = [plainCell(/[\t\r\n]/), plainCell(/[\r\n]/)];
  return (sample) => {
    checkHolds('labels-text', ['text'], sample);
    return `${labels(labelCell(sample, header))}\t${text(textOf('labels-text', sample))}\n`;
  };
}

function textOf(format: string, sample: Sample): string {
  checkHolds(format, ['text', 'group'], sample);
  if (sample.text === undefined) throw badUsage(`${format} needs a text`, { hint: 'write .jsonl instead' });
  return sample.text;
}

function labelCell({ labels }: Sample, { vocabulary, labelDelimiter = ',' }: Header): string {
  const ids = Array.from(labels, (column) => vocabulary.label(column).id);
  for (const id of ids) {
    if (id.includes(labelDelimiter))
      throw badInput(`a label must not contain the label delimiter ${JSON.stringify(labelDelimiter)}`, {
        value: id,
        hint: 'choose another label delimiter, or write .jsonl',
      });
    if (id.trim() !== id || id === '')
      throw badInput('a label in a table must not be empty, start or end with a blank', {
        value: id,
        hint: 'write .jsonl instead',
      });
  }
  return ids.join(labelDelimiter);
}

const quoteCell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const plainCell = (forbidden: RegExp) => (text: string) => {
  if (!forbidden.test(text)) return text;
  throw badInput('a cell of a plain table must not contain a tab or a line end', {
    value: text,
    hint: 'write .csv or .jsonl instead',
  });
};
