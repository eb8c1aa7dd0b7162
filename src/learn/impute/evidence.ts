// What imputing decided, for people: one record for every group and label, as evidence.jsonl holds them.
import type { Dataset } from '../../data/dataset.ts';
import type { EvidenceRecord } from '../../data/evidence-file.ts';
import type { GroupedRows } from '../../data/grouped.ts';
import { rowIndices } from '../../math/csr.ts';
import { choiceOf } from './assignment.ts';
import type { ImputedSet } from './impute.ts';

/** Group after group, label after label; what was corrected stays in its place. */
export function* evidenceOf(
  imputed: Pick<ImputedSet, 'groups' | 'assignment'>,
  dataset: Dataset,
  grouped: GroupedRows,
): Generator<EvidenceRecord> {
  const { groups, assignment } = imputed;
  const { names, labels } = grouped.groups;
  const corrected = new Map(
    grouped.corrections?.map(({ group, label, rows }) => [`${group} ${label}`, rows]),
  );
  const idOf = (row: number) => dataset.ids?.[row] ?? String(row);
  const decision = (group: number, pair: number) => {
    const members = rowIndices(groups.members, group);
    if (!assignment) return { instances: Array.from(members, idOf) };
    const { places, similarities, margin } = choiceOf(assignment, pair);
    const isDrawn = assignment.drawn?.has(groups.labels.indices[pair]) && margin !== null;
    return {
      instances: places.map((place) => idOf(members[place])),
      similarities: similarities.map(short),
      margin: margin === null ? null : short(margin),
      ...(isDrawn && { drawn: true as const }),
    };
  };
  let pair = 0;
  for (let group = 0; group < names.length; group++) {
    for (const label of rowIndices(labels, group)) {
      const record = { group: names[group], label: dataset.vocabulary.label(label).id };
      const rows = corrected.get(`${group} ${label}`);
      if (rows) yield { ...record, instances: rows.map(idOf), pinned: true };
      // Corrected pairs are not among those imputed, nor are those left out as bad.
      const isNext = pair < groups.labels.indptr[group + 1] && groups.labels.indices[pair] === label;
      if (!rows && isNext) yield { ...record, ...decision(group, pair++) };
    }
  }
}

const short = (value: number) => Number(value.toPrecision(4));
