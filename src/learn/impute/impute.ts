// Training from group labels (EAGLE): only groups carry labels; imputing decides which of their members they belong to,
// and so turns a grouped data set into one that any learner takes.
import { type Dataset, type Features, selectFeatures, selectSamples } from '../../data/dataset.ts';
import { baselineLabels, type GroupParts, type Groups } from '../../data/group.ts';
import type { GroupedRows } from '../../data/grouped.ts';
import { badInput } from '../../errors.ts';
import { type Csr, nnz, type Pattern, unitRows } from '../../math/csr.ts';
import { parseOptions } from '../../options.ts';
import { type Context, quiet } from '../../progress.ts';
import { joinFeatures, unitFeatures } from '../features.ts';
import { nameFeatures } from '../label-names.ts';
import type { TrainingSet } from '../learner.ts';
import { Preparation, preparationOptions } from '../preparation.ts';
import { type Assignment, chosenLabels } from './assignment.ts';
import { chooseMethod, isOpen } from './auto.ts';
import { checkGroups, pinGroups } from './corrections.ts';
import { assignNearest } from './grlr.ts';
import { usefulNames } from './names.ts';
import { fixedMethods, type ImputeOptions, parseImputeOptions } from './options.ts';
import { assignPlus, type PlusOptions } from './plus.ts';

export interface Imputed {
  /** rows x labels. */
  labels: Pattern;
  /** Who got what, and by how much; absent where every member gets everything. */
  assignment?: Assignment;
  /** The method that was used, and why where it was chosen here. */
  method: (typeof fixedMethods)[number];
  reasons: string[];
}

/** The data set that any learner takes, and what was decided for it. */
export interface ImputedSet extends Imputed {
  set: TrainingSet;
  /** The rows that are left, where some were dropped. */
  kept?: number[];
  /** The groups as imputed: without corrected pairs, but with a group for each instance of those. */
  groups: Groups;
}

export async function imputeSet(
  set: TrainingSet,
  { groups: given, corrections = [], skipped }: GroupedRows,
  o: ImputeOptions,
  context: Context,
): Promise<ImputedSet> {
  const checked = checkGroups(given, joinFeatures(set.features), skipped);
  if (nnz(checked.labels) === 0)
    throw badInput('at least one group must carry a label', {
      value: `none in ${given.names.length}`,
    });
  const groups = pinGroups(checked, corrections);
  const imputed = await imputePinned(set, checked, groups, o, context);
  const labelled = { ...set, labels: imputed.labels };
  if (!o.dropUnlabelled) return { ...imputed, set: labelled, groups };
  const { indptr } = imputed.labels;
  const rows = Array.from({ length: set.rows }, (_, row) => row);
  const kept = rows.filter((row) => indptr[row + 1] > indptr[row]);
  const left = { ...selectSamples(labelled, kept), features: selectFeatures(set.features, kept) };
  return { ...imputed, set: left, kept, groups };
}

/** `auto` judges methods by the groups as they came, unless corrections have left nothing to decide. */
async function imputePinned(
  known: Known,
  checked: GroupParts,
  groups: GroupParts,
  o: ImputeOptions,
  context: Context,
): Promise<Imputed> {
  if (o.method !== 'auto' || !groups.pinned) return impute(known, groups, o, context);
  const { method, reasons } = await chooseFor(known, isOpen(groups) ? checked : groups, o, context);
  const imputed = await impute(known, groups, { ...o, method }, context);
  return { ...imputed, reasons: [...reasons, ...imputed.reasons] };
}

/** The same from texts or features as they were read; `dataset` in the answer has the labels. */
export async function imputeDataset(
  dataset: Dataset,
  grouped: GroupedRows,
  options: Partial<ImputeOptions> = {},
  running: Partial<Context> = {},
): Promise<ImputedSet & { dataset: Dataset }> {
  const context = { seed: 1, threads: 1, progress: quiet, ...running };
  const o = parseImputeOptions(options);
  const { preparation, features } = await Preparation.fit(dataset, parseOptions(preparationOptions), context);
  const names = await nameFeatures(dataset, preparation.vectoriser, context);
  const imputed = await imputeSet({ ...dataset, features, nameFeatures: names }, grouped, o, context);
  const labelled = { ...dataset, labels: imputed.labels };
  return { ...imputed, dataset: imputed.kept ? selectSamples(labelled, imputed.kept) : labelled };
}

type Known = Pick<TrainingSet, 'features' | 'nameFeatures'>;
/** Benchmarks may leave an ingredient out. */
type Ablation = Pick<PlusOptions, 'without'>;

/** Rows of length one; where they have a sparse and a dense part, both weigh alike. */
function unitJoined(features: Features): Csr {
  const joined = joinFeatures(unitFeatures(features));
  return features.sparse && features.dense ? unitRows(joined) : joined;
}

/** Labels for the rows of features, from those of their groups. */
export async function impute(
  known: Known,
  groups: GroupParts,
  o: ImputeOptions & Ablation,
  context: Context,
): Promise<Imputed> {
  const x = unitJoined(known.features);
  const assigned = (method: Imputed['method'], assignment: Assignment): Imputed => {
    return { labels: chosenLabels(groups, assignment), assignment, method, reasons: [] };
  };
  const nearest = async (method: Imputed['method'], iterations: number) => {
    const found = assigned(
      method,
      await assignNearest(x, groups, { ...o, iterations, centre: false }, context),
    );
    const repeats = o.assign === 'best' ? repeatsOf(groups) : 0;
    if (repeats > 0)
      found.reasons.push(
        `groups repeat labels ${repeats} times, but each goes to one member: assign=top-r gives them to as many`,
      );
    return found;
  };
  switch (o.method) {
    case 'baseline':
      return { labels: baselineLabels(groups), method: 'baseline', reasons: [] };
    case 'eagle-0':
      return nearest('eagle-0', 0);
    case 'eagle':
      return nearest('eagle', o.iterations);
    case 'eagle-plus': {
      const names = o.names && known.nameFeatures && usefulNames(known.nameFeatures, groups.labels);
      const found = assigned(
        'eagle-plus',
        await assignPlus(x, groups, { ...o, names: names || undefined }, context),
      );
      if (names && names.labels.length > 0)
        found.reasons.push(`labels known by their names, too: ${names.labels.length}`);
      const drawn = found.assignment?.drawn?.size ?? 0;
      if (drawn > 0)
        found.reasons.push(
          `labels that more samples carry than there are features: ${drawn}; their members are drawn, the likelier ` +
            'the oftener (draw=false takes the likeliest)',
        );
      return found;
    }
    case 'auto': {
      const { method, reasons } = await chooseFor(known, groups, o, context);
      const imputed = await impute(known, groups, { ...o, method }, context);
      return { ...imputed, reasons: [...reasons, ...imputed.reasons] };
    }
    default:
      return o.method satisfies never;
  }
}

/** How many times groups name labels that they have named before. */
const repeatsOf = ({ labels }: GroupParts): number =>
  labels.values.reduce((sum, count) => sum + count, 0) - nnz(labels);

/** What `auto` would use, and why. */
export function chooseFor(
  { features, nameFeatures }: Known,
  groups: GroupParts,
  o: ImputeOptions,
  context: Context,
): Promise<Pick<Imputed, 'method' | 'reasons'>> {
  const candidates = fixedMethods.map((method) => ({
    method,
    impute: async (sparse: Csr, some: GroupParts) =>
      (await impute({ features: { sparse }, nameFeatures }, some, { ...o, method }, context)).labels,
  }));
  return chooseMethod(unitJoined(features), groups, candidates, context);
}
