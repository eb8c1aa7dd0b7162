// What imputing decided, for people: one record for every group and label, as evidence.jsonl holds them.
import type { Dataset } from '../../data/dataset.ts';
import type { EvidenceRecord } from '../../data/evidence-file.ts';
import type { GroupedRows } from '../../data/grouped.ts';
import { rowIndices } from '../../math/csr.ts';
import { choiceOf } from './assignment.ts';
import type { ImputedSet } from './impute.ts';

/** Group after group, label after label; then what was corrected. */
export function* evidenceOf(
  imputed: Pick<ImputedSet, 'groups' | 'assignment'>,
  dataset: Dataset,
  grouped: GroupedRows,
): Generator<EvidenceRecord> {
  const { groups, assignment } = imputed;
  const { names } = grouped.groups;
  const idOf = (row: number) => dataset.ids?.[row] ?? String(row);
  const labelOf = (column: number) => dataset.vocabulary.label(column).id;
  for (let group = 0; group < names.length; group++) {
    for (let pair = groups.labels.indptr[group]; pair < groups.labels.indptr[group + 1]; pair++) {
      const record = { group: names[group], label: labelOf(groups.labels.indices[pair]) };
      if (!assignment) {
        yield { ...record, instances: Array.from(rowIndices(groups.members, group), idOf) };
        continue;
      }
      const { places, similarities, margin } = choiceOf(assignment, pair);
      const isDrawn = assignment.drawn?.has(groups.labels.indices[pair]) && margin !== null;
      const members = rowIndices(groups.members, group);
      yield {
        ...record,
        instances: places.map((place) => idOf(members[place])),
        similarities: similarities.map(short),
        margin: margin === null ? null : short(margin),
        ...(isDrawn && { drawn: true }),
      };
    }
  }
  for (const { group, label, rows } of grouped.corrections ?? [])
    yield { group: names[group], label: labelOf(label), instances: rows.map(idOf), pinned: true };
}

const short = (value: number) => Number(value.toPrecision(4));
