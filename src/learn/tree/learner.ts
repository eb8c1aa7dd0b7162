// The `tree` learner: labels are clustered into a tree by their label features, every node gets a linear classifier,
// and a beam search finds the labels of an input in time that grows with the depth of the tree.
import type { Features } from '../../data/dataset.ts';
import { badUsage } from '../../errors.ts';
import type { Pattern } from '../../math/csr.ts';
import { choice, flag, integer, number, type OptionsOf } from '../../options.ts';
import { entriesOf, joinFeatures, unitFeatures, widthOf } from '../features.ts';
import type { Learner, TrainContext } from '../learner.ts';
import { estimateTree } from './estimate.ts';
import { loadTree, treeModel } from './model.ts';
import type { Overlap } from './overlap.ts';
import { keepTexts } from './senses.ts';

const options = {
  preset: choice('xr-linear', ['xr-linear', 'parabel'], 'sets the defaults of the options that say "preset"'),
  branching: integer(0, 'children per inner node; 0: the preset (xr-linear 32, parabel 2)', { min: 0 }),
  leafSize: integer(100, 'labels per leaf at most (with overlap and many leaves: copies of labels, about)', {
    min: 2,
    max: 65535,
  }),
  flatSize: integer(1000, 'with no more labels than this there is no tree: all are scored', {
    min: 1,
    max: 65535,
  }),
  trees: integer(0, 'trees whose scores are averaged; 0: the preset (xr-linear 1, parabel 3)', { min: 0 }),
  loss: choice(
    'squared-hinge',
    ['squared-hinge', 'logistic'],
    'logistic trains slower and gives probabilities',
  ),
  costPositive: number(0, 'price of an error on a row with the label; 0: squared hinge 0.4, logistic 4', {
    min: 0,
  }),
  costNegative: number(0, 'price of an error on a row without the label; 0: as above', { min: 0 }),
  negatives: choice(
    'tfn',
    ['tfn', 'man', 'tfn+man'],
    'rows a node learns from: with labels below its parent (tfn), those the beam takes there (man), or both',
  ),
  epsilon: number(0.2, 'stop when the projected gradients differ by less than this', { min: 1e-12 }),
  iterations: integer(
    0,
    'passes over the rows at most; 0: the preset (xr-linear 100, parabel 20), with overlap 4 or 5, up to 10 for frequent labels',
    {
      min: 0,
    },
  ),
  threshold: number(0.1, 'weights smaller than this become zero', { min: 0 }),
  bias: number(1, 'value of the constant feature (regularised like the others); 0 leaves it out', { min: 0 }),
  postProcessor: choice(
    'preset',
    ['preset', 'l1-hinge', 'l2-hinge', 'l3-hinge', 'l4-hinge', 'l5-hinge', 'sigmoid', 'log-sigmoid', 'none'],
    'how margins become factors of the score: exp(-max(0, 1 - margin)^p), a sigmoid, or the label alone; ' +
      'log-sigmoid, a name from PECOS, is sigmoid; preset: xr-linear l3-hinge, parabel l2-hinge, logistic loss sigmoid',
  ),
  beam: integer(0, 'nodes kept per level while searching; 0: 10, or 8 with overlap and many leaves', {
    min: 0,
  }),
  overlap: flag(
    false,
    'labels with several meanings may lie in several leaves; changes nothing where there is no tree',
  ),
  'overlap.lambda': integer(2, 'leaves per label at most', { min: 1 }),
  'overlap.rounds': integer(1, 'how often labels are placed by where the beam takes their rows', { min: 1 }),
  'overlap.positives': choice(
    'all',
    ['all', 'matched'],
    'what each copy of a label learns from: all rows of the label, or those the beam takes to its leaf',
  ),
  'overlap.balance': choice(
    'capped',
    ['none', 'capped'],
    'capped: no leaf gets more than 1.2 times its even share of labels',
  ),
  'overlap.update': choice(
    'matcher+ranker',
    ['matcher+ranker', 'ranker-only'],
    'what is trained again after labels were placed: all levels, or the last alone',
  ),
  'overlap.merge': choice(
    'auto',
    ['auto', 'mean', 'max'],
    'how the scores of the copies the beam reached become one; auto: the largest, or the mean where leaves are a hundred ' +
      'and more',
  ),
  'overlap.placement': choice(
    'matched',
    ['matched', 'random'],
    'random puts as many copies anywhere, for comparison',
  ),
  'overlap.examples': integer(
    3,
    'training texts kept with the model for each sense of a label (umbel senses)',
    {
      min: 0,
    },
  ),
};
type Options = OptionsOf<typeof options>;

const presets = {
  'xr-linear': { branching: 32, trees: 1, iterations: 100, postProcessor: 'l3-hinge', shareRows: true },
  parabel: { branching: 2, trees: 3, iterations: 20, postProcessor: 'l2-hinge', shareRows: false },
} as const;

const prefix = 'overlap.';
/** Leaves are many from so many times as many labels as one holds. */
const manyLeaves = 40;
/**
 * A label in several leaves is learned several times, so that fewer passes do, and found by any of them, so that fewer
 * of many need to be looked at. Levels that only have to show where labels belong, a draft, learn from every so many-th
 * row.
 */
const withOverlap = {
  passes: { draft: 3, most: 10 },
  few: { least: 5, above: 5, step: 1, beam: 10 },
  many: { least: 4, above: 8, step: 2, beam: 8 },
};
/** From so many times as many labels as a leaf holds, a beam seldom reaches two copies, and their mean costs little. */
const meanLeaves = 100;

/** The options of overlap without their prefix; undefined where it is off, which refuses them. */
function settleOverlap(o: Options, beam: number, labels: number, isLarge: boolean): Overlap | undefined {
  const own = Object.entries(o).filter(([name]) => name.startsWith(prefix));
  if (o.overlap) {
    if (o['overlap.update'] === 'ranker-only' && o['overlap.rounds'] > 1)
      throw badUsage(
        'overlap.rounds must be 1 with overlap.update=ranker-only, which looks at the first levels only',
        {
          value: o['overlap.rounds'],
        },
      );
    const merge = labels > meanLeaves * o.leafSize ? 'mean' : 'max';
    const values = own.map(([name, value]) => [name.slice(prefix.length), value]);
    const { least, above, step } = isLarge ? withOverlap.many : withOverlap.few;
    const { most, draft } = withOverlap.passes;
    const given = (passes: number) => o.iterations || passes;
    const passes = { above: given(above), labels: { least: given(least), most: given(most) } };
    // To count where most rows of a label go takes few leaves; to say which rows a copy learns from, all.
    const counts = isLarge && o['overlap.positives'] === 'all';
    const enough = counts ? Math.min(beam, o['overlap.lambda'] + 1) : beam;
    const first = { step, passes: Math.min(passes.above, draft), beam: enough };
    const whole = { step: 1, passes: passes.above, beam };
    return {
      ...Object.fromEntries(values),
      merge: o['overlap.merge'] === 'auto' ? merge : o['overlap.merge'],
      passes,
      draft: o['overlap.update'] === 'ranker-only' ? whole : first,
    };
  }
  const set = own.find(([name, value]) => value !== options[name as keyof Options].default);
  if (set)
    throw badUsage(`${set[0]} must be left alone without overlap`, {
      value: set[1],
      hint: 'set overlap=true',
    });
  return undefined;
}

/** As the search kernel takes it. */
function powerOf(postProcessor: Exclude<Options['postProcessor'], 'preset'>): number {
  if (postProcessor === 'none') return -1;
  return postProcessor.endsWith('sigmoid') ? 0 : Number(postProcessor[1]);
}

function settle(o: Options, labels: number) {
  const preset = presets[o.preset];
  const usual = o.loss === 'logistic' ? 'sigmoid' : preset.postProcessor;
  const postProcessor = o.postProcessor === 'preset' ? usual : o.postProcessor;
  const cost = o.loss === 'logistic' ? 4 : 0.4;
  const isLarge = labels > manyLeaves * o.leafSize;
  const beam = o.beam || (o.overlap && isLarge ? withOverlap.many : withOverlap.few).beam;
  const overlap = settleOverlap(o, beam, labels, isLarge);
  return {
    ...o,
    overlap,
    // No label lies in more leaves than there are.
    copies: Math.min(overlap?.lambda ?? 1, 2 ** Math.ceil(Math.log2(Math.max(1, labels / o.leafSize)))),
    costPositive: o.costPositive || cost,
    costNegative: o.costNegative || cost,
    beam,
    branching: Math.max(2, o.branching || preset.branching),
    trees: o.trees || preset.trees,
    iterations: o.iterations || preset.iterations,
    shareRows: preset.shareRows,
    power: powerOf(postProcessor),
  };
}

const shapeOf = ({ cols }: Pattern, { trees, flatSize, copies }: ReturnType<typeof settle>) => ({
  trees,
  flat: cols <= flatSize,
  copies,
});

/** Sparse entries from which on the memory that training leaves behind is worth looking for. */
const manyEntries = 1 << 22;
/** Entries times labels up to which training takes about half a second, and starting threads a good part of it. */
const smallWork = 1 << 27;
/** The threads work in memory of ours; what they make for themselves is little, and may be collected often. */
const resourceLimits = { maxYoungGenerationSizeMb: 2 };

async function grow(
  features: Features,
  labels: Pattern,
  o: ReturnType<typeof settle>,
  context: TrainContext,
) {
  // A page that only predicts need not load these. The pool's threads start while all else is being made ready.
  const [{ collectGarbage }, { Pool }] = await Promise.all([
    import('../../kernels/garbage.ts'),
    import('../../kernels/pool.ts'),
  ]);
  // What reading left behind goes before more is asked for.
  collectGarbage();
  const here = entriesOf(features) * labels.cols < smallWork;
  const pool = new Pool(context.threads, { resourceLimits, here });
  const x = joinFeatures(unitFeatures(features));
  try {
    const { growTrees } = await import('./grow.ts');
    // Refuses before the work what could only fail in the middle of it.
    estimateTree(x, labels, shapeOf(labels, o), context.threads);
    return await growTrees(x, labels, o, pool, context);
  } finally {
    await pool.close();
    if (x.indices.length > manyEntries) collectGarbage();
  }
}

export const tree: Learner<typeof options> = {
  name: 'tree',
  summary:
    'a tree of linear classifiers (XR-Linear, Parabel): the one to start with, up to millions of labels',
  options,
  tries: { costPositive: [0.2, 0.4, 1], costNegative: [0.2, 0.4, 1], overlap: [false, true] },
  async train({ features, labels, texts, ids }, given, context) {
    const o = settle(given, labels.cols);
    const trees = await grow(features, labels, o, context);
    const records = trees.flatMap(({ senses }) => senses ?? []);
    const senses = keepTexts(records, (row) => texts?.[row] ?? ids?.[row] ?? `row ${row + 1}`);
    const { bias, beam, power, overlap } = o;
    const merge = overlap && { merge: overlap.merge };
    return treeModel(
      { width: widthOf(features), labels: labels.cols, bias, beam, power, ...merge },
      trees.map(({ levels }) => levels),
      senses,
    );
  },
  estimate({ features, labels }, given, threads) {
    const shape = shapeOf(labels, settle(given, labels.cols));
    const estimate = estimateTree(joinFeatures(features), labels, shape, threads);
    if (!given.overlap || !shape.flat) return estimate;
    const { cols } = labels;
    const remark = `overlap changes nothing: ${cols} labels have no tree, being no more than flatSize=${given.flatSize}`;
    return { ...estimate, remark };
  },
  load: loadTree,
};
