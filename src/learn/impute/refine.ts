// Alternation with a classifier: for each label, a linear classifier learns the members chosen so far from the rest of
// their groups and from groups without the label, and chooses anew in the groups it has not learnt from.
import { askedGroups, type GroupParts } from '../../data/group.ts';
import type { Csr } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import type { Context } from '../../progress.ts';
import type { Scores } from './assignment.ts';
import {
  gather,
  keep,
  type LabelPlaces,
  type LabelTask,
  overLabels,
  runLabels,
  type Scratch,
  type Setup,
} from './places.ts';

/** Folds and negatives are drawn anew in each round. */
type Options = { round: number };

const [cost, bias, epsilon, passes] = [0.4, 1, 0.1, 10];
/** As many as are learnt at once. */
const mostFolds = 4;
/** Groups without the label for each group with it. */
const negatives = 1;
const task: LabelTask<Options> = { module: import.meta.url, name: 'prepareRefine' };

/**
 * One round. Columns of `x` from `labelFeatures` on stand for the labels chosen so far; the single rows at the end are
 * examples that are not asked about.
 */
export async function refine(
  x: Csr,
  groups: GroupParts,
  chosen: Uint8Array,
  labelFeatures: number,
  round: number,
  context: Context,
): Promise<Scores> {
  const given = { chosen, labelFeatures, asked: askedGroups(groups), others: negatives };
  const { scores } = await runLabels(task, x, groups, { round }, given, context);
  // Copied, so that the memory, which holds much more, can go.
  return { ...scores, values: scores.values.slice() };
}

export const prepareRefine = overLabels<Options>((kernels, setup, at, label) => {
  const { memory, options } = setup;
  const { count } = label;
  const asked = askedOf(setup, label);
  const folds = Math.min(mostFolds, asked);
  // One group without an example beside it has none to learn from: nothing is known.
  if (count < 2 || asked === 0) return;
  const random = new Random(setup.seed, 'refine', options.round, label.label);
  const groups = listGroups(setup, at, label, random);
  const features = gather(kernels, setup, at, label.label, at.list, groups);
  kernels.takeMarks(count, at.firsts, label.pairs, setup.offsets, setup.chosen, at.marks);
  const foldOf = new Uint8Array(memory.buffer, at.folds, groups);
  random.permutation(asked).forEach((group, i) => {
    foldOf[group] = i % folds;
  });
  // Examples and groups without the label are never asked about: every fold learns from them.
  foldOf.fill(mostFolds, asked);
  kernels.takeSides(count, groups, at.firsts, at.folds, at.marks, at.sides);
  const rows = [at.ends, at.entries, features, at.sums] as const;
  const work = [folds, at.sides, at.pulls, at.nearest, at.order, at.means] as const;
  kernels.solveFolds(groups, at.firsts, ...rows, ...work, cost, bias, epsilon, passes, random.uint32());
  kernels.scoreFolds(asked, at.firsts, at.folds, ...rows, bias, at.dots);
  keep(kernels, setup, at, { ...label, count: asked });
});

/** How many of the label's groups, which come in ascending order, are no examples. */
function askedOf({ memory, asked }: Setup<Options>, { list, count }: LabelPlaces): number {
  const own = new Uint32Array(memory.buffer, list, count);
  const first = own.findIndex((group) => group >= asked);
  return first < 0 ? count : first;
}

/** The groups of the label, followed by some without it; returns how many. */
function listGroups(setup: Setup<Options>, at: Scratch, label: LabelPlaces, random: Random): number {
  const own = new Uint32Array(setup.memory.buffer, label.list, label.count);
  const wanted = Math.ceil(negatives * label.count);
  const others = drawOthers(own, setup.asked, wanted, random);
  const list = new Uint32Array(setup.memory.buffer, at.list, own.length + others.length);
  list.set(own);
  list.set(others, own.length);
  return list.length;
}

/** Different groups below `groups` that are not in `own`, as many as wanted or as there are. */
function drawOthers(own: Uint32Array, groups: number, wanted: number, random: Random): number[] {
  const taken = new Set(own);
  const others: number[] = [];
  if (2 * wanted >= groups - own.length) {
    for (let group = 0; group < groups; group++) if (!taken.has(group)) others.push(group);
    return random.shuffle(others).slice(0, wanted);
  }
  while (others.length < wanted) {
    const group = random.integer(groups);
    if (taken.has(group)) continue;
    taken.add(group);
    others.push(group);
  }
  return others;
}
