// What people know better: a corrected pair of group and label is pinned to the members they name (or to none), and
// groups that cannot tell anything are found before imputing.
import type { Correction } from '../../data/evidence-file.ts';
import { countLabels, type Groups } from '../../data/group.ts';
import type { Skipped } from '../../data/skipped.ts';
import { badInput } from '../../errors.ts';
import { type Csr, CsrBuilder, rowIndices, rowValues } from '../../math/csr.ts';

/** Corrected pairs leave their group; each member named becomes a group of its own, at the end. */
export function pinGroups(groups: Groups, corrections: readonly Correction[]): Groups {
  if (corrections.length === 0) return groups;
  const { names, members, labels } = groups;
  const pinned = new Set(corrections.map(({ group, label }) => `${group} ${label}`));
  const [allMembers, left] = [new CsrBuilder('binary'), new CsrBuilder('values')];
  for (let group = 0; group < members.rows; group++) {
    allMembers.add(rowIndices(members, group));
    const carried = rowIndices(labels, group);
    const kept = [...carried.keys()].filter((i) => !pinned.has(`${group} ${carried[i]}`));
    const counts = rowValues(labels, group);
    left.add(
      kept.map((i) => carried[i]),
      kept.map((i) => counts[i]),
    );
  }
  const allNames = [...names];
  for (const { group, label, rows } of corrections) {
    for (const row of rows) {
      allNames.push(names[group]);
      allMembers.add([row]);
      left.add([label], [1]);
    }
  }
  return {
    names: allNames,
    members: allMembers.pattern(members.cols),
    labels: left.csr(labels.cols),
    pinned: allNames.length - names.length,
    // The last pair that says so may be corrected.
    counted: countLabels(groups),
  };
}

/** Groups with labels but no feature in any member are refused, or their labels left out and counted. */
export function checkGroups(given: Groups, x: Csr, skipped?: Skipped): Groups {
  const { names, members, labels } = given;
  const isEmpty = (row: number) => x.indptr[row] === x.indptr[row + 1];
  const empty = names.flatMap((_, group) => {
    const carries = labels.indptr[group] < labels.indptr[group + 1];
    return carries && rowIndices(members, group).every(isEmpty) ? group : [];
  });
  if (empty.length === 0) return given;
  for (const group of empty) {
    const error = badInput('a group with labels must have an instance that is not empty', {
      value: names[group],
      hint: 'take its labels away, or leave them out with --skip-bad',
    });
    if (!skipped) throw error;
    skipped.add(error);
  }
  const left = new CsrBuilder('values');
  const isLeftOut = new Set(empty);
  for (let group = 0; group < names.length; group++) {
    if (isLeftOut.has(group)) left.add([]);
    else left.add(rowIndices(labels, group), rowValues(labels, group));
  }
  return { ...given, labels: left.csr(labels.cols) };
}
