// Beyond the paper (`eagle-plus`): rare features weigh more, the mean is subtracted, classifiers choose anew in groups
// they have not seen, knowing members by their other labels and labels by their names, and the labels of a group compete
// for its members; those of frequent labels are drawn.
import { askedGroups, type GroupParts } from '../../data/group.ts';
import { type Csr, CsrBuilder, columnCounts, nnz, rowIndices, rowValues, unitRows } from '../../math/csr.ts';
import type { Context } from '../../progress.ts';
import { type Assignment, chooseBest, type Scores } from './assignment.ts';
import { compete } from './compete.ts';
import { drawFrequent } from './draw.ts';
import { assignNearest } from './grlr.ts';
import { likelyLabels } from './likely.ts';
import { withinShare } from './mixed.ts';
import { firstPairs, type Names, withNames } from './names.ts';
import { refine } from './refine.ts';

/** What can be left out to see what it brings, beside rounds, names and draws. */
export const ingredients = ['rarity', 'centring', 'other labels', 'mean of rounds', 'competition'] as const;

export interface PlusOptions {
  /** Rounds of classifiers at most. */
  rounds: number;
  /** Whether members of frequent labels are drawn. */
  draw: boolean;
  /** Examples of labels. */
  names?: Names;
  /** For benchmarks. */
  without?: (typeof ingredients)[number];
}

const start = { iterations: 0, step: 0, centre: true, weightByCount: true, assign: 'top-r' } as const;
/** A round that changes a smaller share of the choices is the last. */
const stable = 0.01;
/** How much more likely a higher score makes a label. */
const sharpness = { similarities: 60, margins: 5 };

export async function assignPlus(
  x: Csr,
  given: GroupParts,
  { rounds, draw, names, without }: PlusOptions,
  context: Context,
): Promise<Assignment> {
  const weight = without === 'other labels' ? 0 : labelWeight(x, given);
  const { rows, groups } = names ? withNames(x, given, names) : { rows: x, groups: given };
  const features = without === 'rarity' ? rows : rareFirst(rows, x);
  const centred = { ...start, centre: without !== 'centring' };
  let assigned = await assignNearest(features, groups, centred, context, x.rows);
  for (let round = 0; round < rounds; round++) {
    const likely = likelyLabels(groups, assigned, sharpness[round === 0 ? 'similarities' : 'margins']);
    const known = withLabels(features, likely, weight);
    const found = await refine(known, groups, assigned.chosen, features.cols, round, context);
    // Each round draws other folds: their mean tells more than the last.
    if (round > 0 && without !== 'mean of rounds') average(found, assigned.scores, round);
    const best = () => ({ scores: found, chosen: chooseBest(groups, found, 'top-r') });
    const next = without === 'competition' ? best() : compete(groups, found);
    const changed = changedShare(next.chosen, assigned.chosen);
    assigned = next;
    if (changed < stable) break;
  }
  // Similarities are no margins: nothing is drawn by them.
  const last = draw && rounds > 0 ? drawFrequent(groups, assigned, x.cols, context.seed) : assigned;
  return firstPairs(last, nnz(given.labels));
}

/** Makes `found` the mean of itself and of the rounds before it. */
function average({ values: found }: Scores, { values: before }: Scores, rounds: number): void {
  for (let i = 0; i < found.length; i++) found[i] = (before[i] * rounds + found[i]) / (rounds + 1);
}

function changedShare(chosen: Uint8Array, before: Uint8Array): number {
  let [all, changed] = [0, 0];
  for (let i = 0; i < chosen.length; i++) {
    all += chosen[i];
    if (chosen[i] > before[i]) changed++;
  }
  return changed / Math.max(1, all);
}

/**
 * How much a row's other labels say beside its features: as much where there are about five or more, less where there
 * are few or members of a group are alike, since others in the group then have these labels too.
 * Found on bibtex, rcv1sub, cve-libraries, yso-titles-l3 and delicious, whose rows have 2.4, 3, 5, 5 and 19 labels.
 */
export function labelWeight(x: Csr, groups: GroupParts): number {
  const { members, labels } = groups;
  // A member that someone named is in its group, too.
  const rows = members.indptr[askedGroups(groups)];
  const perRow = labels.values.reduce((sum, count) => sum + count, 0) / Math.max(1, rows);
  const mixed = Math.min(1, withinShare(x, members));
  return Math.min(1.2, (Math.max(0, perRow - 1) / 4) * mixed ** 5);
}

/** Unit rows whose columns weigh the more the fewer of the rows `known` have them. */
function rareFirst(x: Csr, known = x): Csr {
  const weights = Float64Array.from(
    columnCounts(known),
    (count) => 1 + Math.log((known.rows + 1) / (count + 1)),
  );
  return unitRows({ ...x, values: x.values.map((value, p) => value * weights[x.indices[p]]) });
}

/** The labels as further columns, of length `weight` together. */
function withLabels(x: Csr, labels: Csr, weight: number): Csr {
  const carried = rareFirst(labels);
  const joined = new CsrBuilder('values');
  const columns = (row: number) => rowIndices(carried, row).map((label) => x.cols + label);
  for (let row = 0; row < x.rows; row++) {
    const values = rowValues(carried, row).map((value) => value * weight);
    joined.add([...rowIndices(x, row), ...columns(row)], [...rowValues(x, row), ...values]);
  }
  return joined.csr(x.cols + labels.cols);
}
