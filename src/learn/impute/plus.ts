// Beyond the paper (`eagle-plus`): rare features weigh more, the mean is subtracted, a label goes to as many members as
// the group carries it, members are known by their other labels too, and classifiers choose anew in groups they have not
// seen.
import type { Groups } from '../../data/group.ts';
import {
  type Csr,
  CsrBuilder,
  columnCounts,
  nnz,
  type Pattern,
  rowIndices,
  rowValues,
  unitRows,
} from '../../math/csr.ts';
import type { Context } from '../../progress.ts';
import { type Assignment, assignedLabels } from './assignment.ts';
import { assignNearest } from './grlr.ts';
import { refine } from './refine.ts';

export interface PlusOptions {
  /** Rounds in which the labels chosen so far are features. */
  labelRounds: number;
  /** Rounds of classifiers. */
  classifierRounds: number;
}

const start = { iterations: 0, step: 0, centre: true, weightByCount: true, assign: 'top-r' } as const;
const classifier = { folds: 3, negatives: 1, cost: 0.4 };

export async function assignPlus(
  x: Csr,
  groups: Pick<Groups, 'members' | 'labels'>,
  o: PlusOptions,
  context: Context,
): Promise<Assignment> {
  const features = rareFirst(x);
  const weight = labelWeight(groups);
  const known = (chosen: Assignment) => withLabels(features, assignedLabels(groups, chosen), weight);
  let chosen = await assignNearest(features, groups, start, context);
  for (let round = 0; round < o.labelRounds; round++) {
    chosen = await assignNearest(known(chosen), groups, start, context, x.cols);
  }
  for (let round = 0; round < o.classifierRounds; round++) {
    chosen = await refine(known(chosen), groups, chosen, x.cols, { ...classifier, round }, context);
  }
  return chosen;
}

/**
 * How much a row's other labels say beside its features: as much where there are about fifteen, less where there are
 * few. Found on bibtex, cve-libraries, yso-titles-l3 and delicious, whose rows have 2.4, 5, 5 and 19 labels.
 */
function labelWeight({ members, labels }: Pick<Groups, 'members' | 'labels'>): number {
  const perRow = labels.values.reduce((sum, count) => sum + count, 0) / Math.max(1, nnz(members));
  return Math.min(1.5, Math.max(0, perRow - 1) / 15);
}

/** Unit rows whose columns weigh the more the fewer rows have them. */
function rareFirst(x: Csr): Csr {
  const weights = Float64Array.from(columnCounts(x), (count) => 1 + Math.log((x.rows + 1) / (count + 1)));
  return unitRows({ ...x, values: x.values.map((value, p) => value * weights[x.indices[p]]) });
}

/** The labels as further columns, of length `weight` together. */
function withLabels(x: Csr, labels: Pattern, weight: number): Csr {
  const carried = rareFirst({ ...labels, values: new Float32Array(nnz(labels)).fill(1) });
  const joined = new CsrBuilder('values');
  const columns = (row: number) => rowIndices(carried, row).map((label) => x.cols + label);
  for (let row = 0; row < x.rows; row++) {
    const values = rowValues(carried, row).map((value) => value * weight);
    joined.add([...rowIndices(x, row), ...columns(row)], [...rowValues(x, row), ...values]);
  }
  return joined.csr(x.cols + labels.cols);
}
