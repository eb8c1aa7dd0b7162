// The groups file (groups.jsonl): one `{"group", "instances", "labels"}` per line. Instances are sample ids, or row
// numbers from "0" where the samples have none; a label repeated is a label counted.
import { badInput } from '../errors.ts';
import { CsrBuilder, rowIndices, rowValues } from '../math/csr.ts';
import { type Dataset, selectSamples } from './dataset.ts';
import { AtomicFile } from './file.ts';
import type { ReadOptions } from './format.ts';
import type { Groups } from './group.ts';
import { type LeaveOut, takeObjects } from './records.ts';
import type { Skipped } from './skipped.ts';

export async function writeGroups(
  path: string,
  { names, members, labels }: Groups,
  { ids, vocabulary }: Pick<Dataset, 'ids' | 'vocabulary'>,
): Promise<void> {
  if (ids) rowsOfIds(ids);
  const file = await AtomicFile.create(path);
  try {
    for (let group = 0; group < names.length; group++) {
      const counts = rowValues(labels, group);
      const record = {
        group: names[group],
        instances: Array.from(rowIndices(members, group), (row) => ids?.[row] ?? String(row)),
        labels: [...rowIndices(labels, group)].flatMap((column, i) =>
          new Array<string>(counts[i]).fill(vocabulary.label(column).id),
        ),
      };
      await file.write(`${JSON.stringify(record)}\n`);
    }
    await file.close();
  } catch (error) {
    await file.abort();
    throw error;
  }
}

const shape = '{"group": "a", "instances": ["1", "2"], "labels": ["x"]}';

/**
 * The groups of `dataset`'s rows. Labels are added to its vocabulary: the instances come without any. `closed` says that
 * the vocabulary is complete, so that another label is a mistake; `labelled`, that every group must say what it carries.
 * A bad line is left out, or only the bad instances and labels of a line.
 */
export async function readGroups(
  path: string,
  dataset: Pick<Dataset, 'rows' | 'ids' | 'vocabulary'>,
  {
    closed = false,
    labelled = false,
    ...options
  }: ReadOptions & { closed?: boolean; labelled?: boolean } = {},
): Promise<Groups> {
  const { rows, ids, vocabulary } = dataset;
  const rowOf = rowFinder(dataset);
  const hint = ids ? undefined : `samples without ids are called "0" to "${rows - 1}"`;
  const names = new Set<string>();
  const members = new CsrBuilder('binary');
  const labels = new CsrBuilder('values');
  await takeObjects(path, { ...options, shape }, (given, leaveOut) => {
    const record = parseRecord(given, labelled);
    if (names.has(record.group)) throw badInput('group must appear once', { value: record.group });
    const instances = memberRows(record.instances, rowOf, leaveOut, hint);
    const known = record.labels.filter((label) => {
      if (!closed || vocabulary.column(label) !== undefined) return true;
      leaveOut(badInput('label must be in the vocabulary', { value: label }));
      return false;
    });
    names.add(record.group);
    members.add(instances);
    const counts = new Map<number, number>();
    for (const id of known) {
      const column = vocabulary.add(id);
      counts.set(column, (counts.get(column) ?? 0) + 1);
    }
    const columns = Uint32Array.from(counts.keys()).sort();
    labels.add(
      columns,
      Array.from(columns, (column) => counts.get(column) ?? 0),
    );
  });
  return { names: [...names], members: members.pattern(rows), labels: labels.csr(vocabulary.size) };
}

/** Samples in no group are refused, or left out and counted. */
export function leaveOutUngrouped(
  dataset: Dataset,
  groups: Groups,
  { skipped, file }: { skipped?: Skipped; file?: string } = {},
): { dataset: Dataset; groups: Groups } {
  const { members } = groups;
  const grouped = new Uint8Array(dataset.rows);
  for (const row of members.indices) grouped[row] = 1;
  const kept: number[] = [];
  const lost: string[] = [];
  const numbers = new Uint32Array(dataset.rows);
  for (let row = 0; row < dataset.rows; row++) {
    numbers[row] = kept.length;
    if (grouped[row] === 1) kept.push(row);
    else lost.push(dataset.ids?.[row] ?? String(row));
  }
  const rule = 'every instance must be in a group';
  if (lost.length > 0 && !skipped)
    throw badInput(rule, {
      file,
      value: lost[0] + (lost.length > 1 ? ` and ${lost.length - 1} more` : ''),
      hint: 'give each a group of its own, without labels, or leave them out with --skip-bad',
    });
  for (const value of lost) skipped?.add(badInput(rule, { file, value }));
  if (kept.length === dataset.rows) return { dataset, groups };
  const indices = members.indices.map((row) => numbers[row]);
  const remaining = { ...groups, members: { ...members, cols: kept.length, indices } };
  // Those who are left keep the row numbers that people know them by.
  const ids = dataset.ids ?? Array.from({ length: dataset.rows }, (_, row) => String(row));
  return { dataset: selectSamples({ ...dataset, ids }, kept), groups: remaining };
}

interface GroupRecord {
  group: string;
  instances: string[];
  labels: string[];
}

function parseRecord(record: Record<string, unknown>, labelled: boolean): GroupRecord {
  const { instances, labels } = record;
  const group = idOf(record.group);
  if (group === undefined)
    throw badInput('group must be a string that is not empty, or a whole number', {
      value: record.group ?? null,
    });
  // Groups to be predicted have no labels yet.
  const carried = labelled ? labels : (labels ?? []);
  const lists = { instances: idList('instances', instances), labels: idList('labels', carried) };
  if (lists.instances.length === 0) throw badInput('instances must not be empty', { value: '[]' });
  return { group, ...lists };
}

/** An id as it is known; a catalogue number is one like any other. */
export const idOf = (value: unknown): string | undefined =>
  Number.isSafeInteger(value) ? String(value) : typeof value === 'string' && value !== '' ? value : undefined;

/** Ids as strings. */
export function idList(field: string, value: unknown): string[] {
  if (!Array.isArray(value)) throw badInput(`${field} must be a list of ids`, { value: value ?? null });
  return value.map((given) => {
    const id = idOf(given);
    if (id !== undefined) return id;
    throw badInput(`${field} must hold ids: strings that are not empty, or whole numbers`, {
      value: given ?? null,
    });
  });
}

/** Ascending rows of the instances, each once; a group of whose instances none is right is wrong as a whole. */
function memberRows(
  instances: string[],
  rowOf: (id: string) => number | undefined,
  leaveOut: LeaveOut,
  hint: string | undefined,
): Uint32Array {
  const rows = new Set<number>();
  const wrong: unknown[] = [];
  for (const id of instances) {
    const row = rowOf(id);
    if (row === undefined) wrong.push(badInput('instance must be the id of a sample', { value: id, hint }));
    else if (rows.has(row)) wrong.push(badInput('instance must appear once in a group', { value: id }));
    else rows.add(row);
  }
  if (rows.size === 0) throw wrong[0];
  wrong.forEach(leaveOut);
  return Uint32Array.from(rows).sort();
}

export function rowFinder({ rows, ids }: Pick<Dataset, 'rows' | 'ids'>): (id: string) => number | undefined {
  if (ids) {
    const known = rowsOfIds(ids);
    return (id) => known.get(id);
  }
  return (id) => (/^(0|[1-9]\d*)$/.test(id) && Number(id) < rows ? Number(id) : undefined);
}

function rowsOfIds(ids: string[]): Map<string, number> {
  const rows = new Map<string, number>();
  ids.forEach((id, row) => {
    if (rows.has(id)) throw badInput('sample ids must be unique where groups name them', { value: id });
    rows.set(id, row);
  });
  return rows;
}
