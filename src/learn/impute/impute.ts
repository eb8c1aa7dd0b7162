// Training from group labels (EAGLE): only groups carry labels; imputing decides which of their members they belong to,
// and so turns a grouped data set into one that any learner takes.
import type { Features } from '../../data/dataset.ts';
import { baselineLabels, type Groups } from '../../data/group.ts';
import type { Pattern } from '../../math/csr.ts';
import { choice, flag, integer, number, type OptionsOf } from '../../options.ts';
import type { Context } from '../../progress.ts';
import { joinFeatures, unitFeatures } from '../features.ts';
import { type Assignment, assignedLabels } from './assignment.ts';
import { assignNearest } from './grlr.ts';
import { assignPlus } from './plus.ts';

export const imputeMethods = ['baseline', 'eagle-0', 'eagle', 'eagle-plus'] as const;

export const imputeOptions = {
  method: choice(
    'eagle',
    imputeMethods,
    'baseline: every member gets all labels of its group; eagle-0: the member nearest to the mean of the groups with ' +
      'the label; eagle: the mean is first turned towards the nearest members; eagle-plus: centred, rare features, other labels and classifiers',
  ),
  iterations: integer(20, 'how often eagle turns', { min: 0 }),
  step: number(0.1, 'how far it turns each time', { min: 0 }),
  weightByCount: flag(true, 'a group that carries a label r times counts r times'),
  assign: choice(
    'best',
    ['best', 'top-r'],
    'a label goes to the best member of a group, or (always in eagle-plus) to as many as the group carries it',
  ),
  labelRounds: integer(2, 'rounds of eagle-plus in which members are known by their other labels too', {
    min: 0,
  }),
  classifierRounds: integer(
    2,
    'rounds of eagle-plus in which classifiers choose in groups they have not seen',
    {
      min: 0,
    },
  ),
};
export type ImputeOptions = OptionsOf<typeof imputeOptions>;

export interface Imputed {
  /** rows x labels. */
  labels: Pattern;
  /** Who got what, and by how much; absent where every member gets everything. */
  assignment?: Assignment;
}

/** Labels for the rows of `features`, from those of their groups. */
export async function impute(
  features: Features,
  groups: Pick<Groups, 'members' | 'labels'>,
  o: ImputeOptions,
  context: Context,
): Promise<Imputed> {
  const x = joinFeatures(unitFeatures(features));
  switch (o.method) {
    case 'baseline':
      return { labels: baselineLabels(groups) };
    case 'eagle-0':
    case 'eagle': {
      const iterations = o.method === 'eagle' ? o.iterations : 0;
      const assignment = await assignNearest(x, groups, { ...o, iterations, centre: false }, context);
      return { labels: assignedLabels(groups, assignment), assignment };
    }
    case 'eagle-plus': {
      const assignment = await assignPlus(x, groups, o, context);
      return { labels: assignedLabels(groups, assignment), assignment };
    }
    default:
      return o.method satisfies never;
  }
}
