// Evidence for people (evidence.jsonl): for every group and label the instances that got it, how similar they are, and by
// how much they are ahead. Corrections have the same shape: lines whose instances someone has set right.
import { badInput } from '../errors.ts';
import { rowIndices } from '../math/csr.ts';
import type { Dataset } from './dataset.ts';
import { AtomicFile } from './file.ts';
import type { ReadOptions } from './format.ts';
import type { Groups } from './group.ts';
import { idList, idOf, rowFinder } from './groups-file.ts';
import { takeObjects } from './records.ts';

/** One line; instances are sample ids, or row numbers where the samples have none. */
export interface EvidenceRecord {
  group: string;
  label: string;
  instances: string[];
  /** Cosines with the label, or the margins of its classifiers (eagle-plus). */
  similarities?: number[];
  /**
   * How far the last of them is ahead of the best of the others: below zero where the label had to make room, or was
   * drawn; null where every member got it.
   */
  margin?: number | null;
  /** Where members were drawn by how probable they are, instead of the best being taken. */
  drawn?: true;
  pinned?: true;
}

/** A pair of group and label, by numbers, and who has the label. */
export interface Correction {
  group: number;
  /** The label's column. */
  label: number;
  /** The members that have the label; none where the group should not carry it. */
  rows: number[];
}

export async function writeEvidence(path: string, records: Iterable<EvidenceRecord>): Promise<number> {
  const file = await AtomicFile.create(path);
  try {
    let written = 0;
    let lines: string[] = [];
    for (const record of records) {
      lines.push(`${JSON.stringify(record)}\n`);
      written++;
      if (lines.length < 4096) continue;
      await file.write(lines.join(''));
      lines = [];
    }
    await file.write(lines.join(''));
    await file.close();
    return written;
  } catch (error) {
    await file.abort();
    throw error;
  }
}

const shape = '{"group": "a", "label": "x", "instances": ["1"]}';

/**
 * Which members of a group have a label, as evidence says or someone has put it right. The group must carry the label,
 * and a pair must have one line.
 */
export async function readEvidence(
  path: string,
  { names, members, labels }: Groups,
  dataset: Pick<Dataset, 'rows' | 'ids' | 'vocabulary'>,
  options: ReadOptions = {},
): Promise<(Correction & { record: EvidenceRecord })[]> {
  const groupOf = new Map(names.map((name, group) => [name, group]));
  const rowOf = rowFinder(dataset);
  const seen = new Set<string>();
  const found: Awaited<ReturnType<typeof readEvidence>> = [];
  // Nobody may have found anything to put right.
  await takeObjects(path, { ...options, mayBeEmpty: true, shape }, (given) => {
    const record = parseRecord(given);
    const group = groupOf.get(record.group);
    if (group === undefined) throw badInput('group must be one of the groups file', { value: record.group });
    const label = dataset.vocabulary.column(record.label);
    if (label === undefined || !rowIndices(labels, group).includes(label))
      throw badInput(`label must be one that group ${record.group} carries`, { value: record.label });
    const own = new Set(rowIndices(members, group));
    const rows = record.instances.map((id) => {
      const row = rowOf(id);
      if (row === undefined || !own.has(row))
        throw badInput(`instance must be a member of group ${record.group}`, { value: id });
      return row;
    });
    const pair = `${group} ${label}`;
    if (seen.has(pair))
      throw badInput('a pair of group and label must have one line', {
        value: `${record.group}, ${record.label}`,
      });
    seen.add(pair);
    found.push({ group, label, rows: [...new Set(rows)], record });
  });
  return found;
}

function parseRecord(record: Record<string, unknown>): EvidenceRecord {
  const { instances, similarities, margin, drawn, pinned } = record;
  const [group, label] = [idOf(record.group), idOf(record.label)];
  if (group === undefined || label === undefined)
    throw badInput('group and label must be strings that are not empty, or whole numbers', {
      value: { group: record.group, label: record.label },
    });
  return {
    group,
    label,
    instances: idList('instances', instances),
    ...(Array.isArray(similarities) && { similarities: similarities.map(Number) }),
    ...(typeof margin === 'number' || margin === null ? { margin } : {}),
    ...(drawn === true && { drawn }),
    ...(pinned === true && { pinned }),
  };
}
