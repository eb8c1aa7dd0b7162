// Evidence for people (evidence.jsonl): for every group and label the instances that got it, how similar they are, and by
// how much they are ahead. Corrections have the same shape: lines whose instances someone has set right.
import { asJson, badInput, locate } from '../errors.ts';
import { rowIndices } from '../math/csr.ts';
import type { Dataset } from './dataset.ts';
import { AtomicFile, readLines } from './file.ts';
import type { ReadOptions } from './format.ts';
import type { Groups } from './group.ts';
import { idList, rowFinder } from './groups-file.ts';
import { parseObject, takeObjects } from './records.ts';

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

/** A pair of group and label that someone has put right, by numbers. */
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

/** The lines of an evidence file, one by one. */
export async function* readEvidence(path: string, options: ReadOptions = {}): AsyncGenerator<EvidenceRecord> {
  for await (const { first, lines } of readLines(path, options)) {
    for (let i = 0; i < lines.length; i++) {
      if (lines[i].trim() === '') continue;
      try {
        yield parseRecord(parseObject(lines[i]));
      } catch (error) {
        throw locate(error, { file: path, line: first + i });
      }
    }
  }
}

/** Which members of a group have a label, by numbers; the label must be one the group carries. */
export async function readCorrections(
  path: string,
  { names, members, labels }: Groups,
  dataset: Pick<Dataset, 'rows' | 'ids' | 'vocabulary'>,
  options: ReadOptions = {},
): Promise<Correction[]> {
  const groupOf = new Map(names.map((name, group) => [name, group]));
  const rowOf = rowFinder(dataset);
  const seen = new Set<string>();
  const corrections: Correction[] = [];
  // Nobody may have found anything to put right.
  await takeObjects(path, { ...options, mayBeEmpty: true }, (given) => {
    const record = parseRecord(given);
    const group = groupOf.get(record.group);
    if (group === undefined) throw badInput('group must be one of the groups file', { value: record.group });
    const label = dataset.vocabulary.column(record.label);
    if (label === undefined || !rowIndices(labels, group).includes(label))
      throw badInput(`label must be one that group ${record.group} carries`, { value: record.label });
    const rows = record.instances.map((id) => {
      const row = rowOf(id);
      if (row === undefined || !rowIndices(members, group).includes(row))
        throw badInput(`instance must be a member of group ${record.group}`, { value: id });
      return row;
    });
    const pair = `${group} ${label}`;
    if (seen.has(pair))
      throw badInput('a pair of group and label must be corrected once', {
        value: `${record.group}, ${record.label}`,
      });
    seen.add(pair);
    corrections.push({ group, label, rows: [...new Set(rows)] });
  });
  return corrections;
}

function parseRecord(record: Record<string, unknown>): EvidenceRecord {
  const { group, label, instances, similarities, margin, drawn, pinned } = record;
  if (typeof group !== 'string' || typeof label !== 'string')
    throw badInput('group and label must be strings', { value: asJson({ group, label }) });
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
