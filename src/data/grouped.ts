// A grouped data set from its files: instances without labels, groups that carry them, and what people have put right.
import { badInput } from '../errors.ts';
import { columnCounts, nnz } from '../math/csr.ts';
import type { Dataset } from './dataset.ts';
import { type Correction, readEvidence } from './evidence-file.ts';
import type { ReadOptions } from './format.ts';
import { readDataset } from './formats.ts';
import type { Groups } from './group.ts';
import { leaveOutUngrouped, readGroups } from './groups-file.ts';
import type { Skipped } from './skipped.ts';

export interface GroupedRows {
  groups: Groups;
  corrections?: Correction[];
  /** Takes groups that cannot be imputed; without it they are refused. */
  skipped?: Skipped;
}

/** Instances and their groups; what is wrong with them is refused, or left out and counted. */
export async function readGrouped(
  train: string,
  files: { groups: string; corrections?: string },
  reading: ReadOptions & { format?: string } = {},
): Promise<{ dataset: Dataset; grouped: GroupedRows }> {
  const before = reading.skipped?.count ?? 0;
  const instances = await readDataset(train, reading);
  const left = (reading.skipped?.count ?? 0) - before;
  if (left > 0 && !instances.ids)
    throw badInput('instances must have ids where bad ones are left out: row numbers no longer tell them', {
      file: train,
      value: `${left} left out`,
      hint: 'put them right, or give every instance an id',
    });
  if (nnz(instances.labels) > 0)
    throw badInput('instances must come without labels where groups carry them', {
      file: train,
      value: `${nnz(instances.labels)} labels`,
      hint: '--columns labels= reads none; to try groups out on samples with labels: umbel data group',
    });
  const { vocabulary } = instances;
  // Only a file that names its labels says what a label may be.
  const closed = vocabulary.size > 0;
  const read = await readGroups(files.groups, instances, { ...plain(reading), closed, labelled: true });
  const { dataset, groups } = leaveOutUngrouped(instances, read, {
    skipped: reading.skipped,
    file: files.groups,
  });
  dataset.labels.cols = vocabulary.size;
  noteRepeated(groups, dataset, reading);
  const corrections = files.corrections
    ? await readEvidence(files.corrections, groups, dataset, plain(reading))
    : [];
  return { dataset, grouped: { groups, corrections, skipped: reading.skipped } };
}

/** An instance may be in several groups, but often that is a slip. */
function noteRepeated({ members }: Groups, { ids }: Dataset, { note }: ReadOptions): void {
  const counts = columnCounts(members);
  const rows = Array.from(counts.keys()).filter((row) => counts[row] > 1);
  if (rows.length === 0) return;
  const [first] = rows;
  const example = JSON.stringify(ids?.[first] ?? String(first));
  note?.(`instances in several groups, which may get labels of each: ${rows.length}, such as ${example}`);
}

/** Groups and corrections are JSON lines, whatever the instances are. */
const plain = ({ skipped, note, progress, signal }: ReadOptions): ReadOptions => ({
  skipped,
  note,
  progress,
  signal,
});
