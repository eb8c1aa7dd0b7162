// The labels of one group compete for its members: what classifiers say of each label alone is turned into a choice for
// the whole group, in which labels that nothing is known about and members that nothing was chosen for meet.
import { askedGroups, countLabels, type GroupParts } from '../../data/group.ts';
import { columnCounts, rowIndices } from '../../math/csr.ts';
import { type Assignment, chooseBest, type Scores } from './assignment.ts';

/** Where groups do not say how often they carry a label, members above this margin and near the best get it too. */
const alsoAbove = -0.6;
const near = 0.5;
/** A label that one group carries alone goes to so many members at least, if no other label claims them. */
const guesses = 3;
/** How much of its margin a label may lose for a member that would have none. */
const dearest = 1;

/**
 * Scores are margins of classifiers, zeros for labels that one group carries alone; those become, here, minus the
 * largest margin of any other label.
 */
export function compete(groups: GroupParts, scores: Scores): Assignment {
  const { members, labels } = groups;
  const { offsets, values } = scores;
  const chosen = chooseBest(groups, scores, 'top-r');
  const counted = countLabels(groups);
  const carriers = columnCounts(labels);
  const asked = askedGroups(groups);
  // Who was named for a label has one already, wherever else it is a member.
  const named = new Uint8Array(members.cols);
  for (const row of members.indices.subarray(members.indptr[asked])) named[row] = 1;
  for (let group = 0; group < asked; group++) {
    const pairs = Array.from(
      { length: labels.indptr[group + 1] - labels.indptr[group] },
      (_, i) => labels.indptr[group] + i,
    );
    const table: Table = {
      named: Array.from(rowIndices(members, group), (row) => named[row] === 1),
      margins: pairs.map((pair) => values.subarray(offsets[pair], offsets[pair + 1])),
      marks: pairs.map((pair) => chosen.subarray(offsets[pair], offsets[pair + 1])),
    };
    const alone = pairs.flatMap((pair, i) => (carriers[labels.indices[pair]] === 1 ? i : []));
    const others = pairs.flatMap((pair, i) => (carriers[labels.indices[pair]] > 1 ? i : []));
    if (!counted) for (const i of others) addAbove(table, i);
    if (others.length > 0)
      placeUnknown(
        table,
        others,
        alone.map((i) => ({ label: i, count: labels.values[pairs[i]] })),
      );
    fillEmpty(table);
  }
  return { scores, chosen };
}

/** One group: which of its members were named for a label, and of each other label the margins and marks of all. */
interface Table {
  named: boolean[];
  margins: Float32Array[];
  marks: Uint8Array[];
}

function addAbove({ margins, marks }: Table, label: number): void {
  const least = Math.max(alsoAbove, margins[label].reduce((most, margin) => Math.max(most, margin)) - near);
  margins[label].forEach((margin, member) => {
    if (margin > least) marks[label][member] = 1;
  });
}

/** Labels of this group alone go to the members that others claim least. */
function placeUnknown(
  { named, margins, marks }: Table,
  others: number[],
  unknown: { label: number; count: number }[],
): void {
  if (unknown.length === 0) return;
  const claims = Float32Array.from(named, (_, member) =>
    others.reduce((most, label) => Math.max(most, margins[label][member]), Number.NEGATIVE_INFINITY),
  );
  const taken = named.map((is, member) => is || others.some((label) => marks[label][member] === 1));
  const order = Array.from(named.keys()).sort(
    (a, b) => Number(taken[a]) - Number(taken[b]) || claims[a] - claims[b] || a - b,
  );
  const free = taken.filter((is) => !is).length;
  for (const { label, count } of unknown) {
    marks[label].fill(0);
    margins[label].set(claims.map((claim) => -claim));
    for (const member of order.slice(0, Math.max(count, Math.min(guesses, free)))) marks[label][member] = 1;
  }
}

/** Every member that has no label takes one from a member that has several: the one that loses least by it. */
function fillEmpty({ named, margins, marks }: Table): void {
  const has = Uint32Array.from(named, Number);
  // Few of all labels and members are marked, and only these are looked at.
  const given: { label: number; member: number }[] = [];
  marks.forEach((own, label) => {
    own.forEach((mark, member) => {
      if (mark === 0) return;
      has[member]++;
      given.push({ label, member });
    });
  });
  const comesBefore = (a: (typeof given)[number], b: (typeof given)[number]) =>
    a.label < b.label || (a.label === b.label && a.member < b.member);
  for (let empty = 0; empty < has.length; empty++) {
    if (has[empty] > 0) continue;
    let least = dearest;
    let cheapest: (typeof given)[number] | undefined;
    for (const one of given) {
      if (has[one.member] < 2) continue;
      const loss = margins[one.label][one.member] - margins[one.label][empty];
      if (loss > least || (loss === least && !(cheapest && comesBefore(one, cheapest)))) continue;
      [least, cheapest] = [loss, one];
    }
    if (!cheapest) continue;
    const { label, member } = cheapest;
    marks[label][member] = 0;
    marks[label][empty] = 1;
    has[member]--;
    has[empty]++;
    cheapest.member = empty;
  }
}
