// Group robust label representation (GRLR) on the kernels: for every label a direction that has a near member in each
// of its groups, and those members. The plain reference is reference.ts.
import type { GroupParts } from '../../data/group.ts';
import type { Csr } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import type { Context } from '../../progress.ts';
import type { Assignment } from './assignment.ts';
import { keep, type LabelTask, list, meansOf, overLabels, runLabels } from './places.ts';

export interface GrlrOptions {
  iterations: number;
  step: number;
  /** Whether the mean of all rows is subtracted from each. */
  centre: boolean;
  /** Whether a group that carries a label r times counts r times. */
  weightByCount: boolean;
  /** Whether a label goes to the best member of a group, or to as many as the group carries it. */
  assign: 'best' | 'top-r';
}

const task: LabelTask<GrlrOptions> = { module: import.meta.url, name: 'prepareAssign' };

/**
 * How near each member of a group is to each of its labels, and which are the nearest; `x` has unit rows. Rows after the
 * `samples` are names of labels, which are not in the mean.
 */
export const assignNearest = (
  x: Csr,
  groups: GroupParts,
  options: GrlrOptions,
  context: Context,
  samples = x.rows,
): Promise<Assignment> => {
  const { centre, weightByCount, assign } = options;
  const averaged = centre ? samples : undefined;
  return runLabels(task, x, groups, options, { averaged, weightByCount, topR: assign === 'top-r' }, context);
};

export const prepareAssign = overLabels<GrlrOptions>((kernels, setup, at, label) => {
  const { memory, options } = setup;
  const { weights, count, places } = label;
  list(kernels, setup, at, label);
  const rows = [places, at.spans, meansOf(setup, at), setup.meanSquare] as const;
  const others = at.sums + 8 * (setup.width + 1);
  const clear = () => kernels.clearSums(places, at.spans, setup.width, at.sums, others);
  const start = () => {
    const length = kernels.startDirection(...rows, at.sums, at.shares, at.dots);
    if (length === 0) clear();
    return length > 0;
  };
  kernels.shareWeights(count, at.firsts, weights, at.shares);
  const found =
    start() ||
    randomStart(
      new Float64Array(memory.buffer, at.shares, places),
      new Uint32Array(memory.buffer, at.firsts, count + 1),
      new Float32Array(memory.buffer, weights, count),
      start,
      new Random(setup.seed, 'impute', label.label),
    );
  // Where all members are empty none is nearer than another, and the first is taken.
  if (!found) new Float64Array(memory.buffer, at.dots, places).fill(0);
  else {
    const turning = [others, at.shares, at.dots, at.pulls, count, at.firsts, weights, at.nearest] as const;
    if (options.iterations > 0) kernels.turnDirection(...rows, ...turning, options.iterations, options.step);
    clear();
  }
  keep(kernels, setup, at, label);
  kernels.markBest(count, at.firsts, at.dots, label.pairs, setup.offsets, label.counts, setup.chosen);
});

/**
 * Where the sum of all members is zero, that of one member of each group, drawn at random; where that is zero too, any
 * direction the members span. False where all members are zero.
 */
export function randomStart(
  shares: Float64Array,
  firsts: Uint32Array,
  weights: Float32Array,
  start: () => boolean,
  random: Random,
): boolean {
  shares.fill(0);
  for (let j = 0; j < weights.length; j++) {
    const size = firsts[j + 1] - firsts[j];
    if (size > 0) shares[firsts[j] + random.integer(size)] = weights[j];
  }
  if (start()) return true;
  for (let i = 0; i < shares.length; i++) shares[i] = random.normal();
  return start();
}
