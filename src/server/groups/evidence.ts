// EAGLE's evidence in memory: which member of which group took which label, and how clearly. Read when the server
// starts, from files named then; corrections are in the database.
import { type EvidenceRecord, readEvidence } from '../../data/evidence-file.ts';
import { readDataset } from '../../data/formats.ts';
import { readGroups } from '../../data/groups-file.ts';
import { nnz, rowIndices } from '../../math/csr.ts';
import type { Reading } from '../runs/sources.ts';

export interface EvidenceFiles extends Reading {
  name: string;
  instances: string;
  groups: string;
  evidence: string;
}

export interface Group {
  name: string;
  members: string[];
  labels: EvidenceRecord[];
  /** Of its least clear label. */
  margin: number | null;
}

export interface Evidence {
  name: string;
  pairs: number;
  /** Labels of groups that have no line. */
  missing: number;
  /** The least clear first. */
  ordered: Group[];
  groups: Map<string, Group>;
  textOf(instance: string): string;
}

export async function openEvidence({ name, ...files }: EvidenceFiles): Promise<Evidence> {
  const { format, columns, labelDelimiter } = files;
  const dataset = await readDataset(files.instances, { format, columns, labelDelimiter });
  const read = await readGroups(files.groups, dataset);
  const { names, members, labels } = read;
  const rowOf = dataset.ids && new Map(dataset.ids.map((id, row) => [id, row]));
  const groups = new Map(
    names.map((group, i): [string, Group] => {
      const ids = Array.from(rowIndices(members, i), (row) => dataset.ids?.[row] ?? String(row));
      return [group, { name: group, members: ids, labels: [], margin: null }];
    }),
  );
  // Lines of another grouping are found here, not after someone has worked on them.
  const lines = await readEvidence(files.evidence, read, dataset);
  for (const { record } of lines) groups.get(record.group)?.labels.push(record);
  for (const group of groups.values()) group.margin = leastClear(group.labels);
  const clarity = ({ margin }: Group) => margin ?? Number.POSITIVE_INFINITY;
  return {
    name,
    pairs: lines.length,
    missing: nnz(labels) - lines.length,
    groups,
    ordered: [...groups.values()].sort((a, b) => clarity(a) - clarity(b) || 0),
    textOf: (instance) => dataset.texts?.[rowOf ? (rowOf.get(instance) ?? -1) : Number(instance)] ?? '',
  };
}

/** What was drawn is unclear by chance: it says nothing about the rest. */
function leastClear(labels: EvidenceRecord[]): number | null {
  const margins = labels.flatMap(({ margin, drawn }) =>
    typeof margin === 'number' && !drawn ? [margin] : [],
  );
  return margins.length > 0 ? Math.min(...margins) : null;
}
