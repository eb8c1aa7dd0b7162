// Which method suits the groups (`auto`): how mixed they are, and which imputed labels make the classifier that best
// recognises the labels of groups it has not seen.
import { countLabels, type GroupParts } from '../../data/group.ts';
import { Vocabulary } from '../../data/vocabulary.ts';
import { type Csr, nnz, type Pattern, rowIndices, rowValues, selectRows } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { parseOptions } from '../../options.ts';
import { type Context, quiet } from '../../progress.ts';
import { findLearner } from '../registry.ts';
import { withinShare } from './mixed.ts';

/** A method and what it makes of some groups. */
export interface Candidate<M> {
  method: M;
  impute(x: Csr, groups: GroupParts): Promise<Pattern>;
}

/** Rows that are looked at: enough to tell methods apart by a point. */
const enoughRows = 8000;
const heldOutShare = 0.25;

/**
 * The best method, and why in words. Candidates come in the order in which ties are decided; where what one has
 * before the other may be chance, they are tied.
 */
export async function chooseMethod<M extends string>(
  x: Csr,
  groups: GroupParts,
  candidates: Candidate<M>[],
  context: Context,
): Promise<{ method: M; reasons: string[] }> {
  const [{ method: usual }] = candidates;
  if (!isOpen(groups)) {
    const reason = `nothing is left to be decided: no label has more than one member to go to (${usual})`;
    return { method: usual, reasons: [reason] };
  }
  const mixed = withinShare(x, groups.members);
  const reasons = [
    `members of a group differ ${(100 * mixed).toFixed(0)}% as much as random rows do` +
      (countLabels(groups) ? '' : '; no group carries a label twice'),
  ];
  const parts = split(x, groups, context.seed);
  const found: { method: M; hits: Hits }[] = [];
  for (const { method, impute } of candidates) {
    const labels = await impute(parts.train.x, parts.train.groups);
    found.push({ method, hits: await recognised(parts, labels, context) });
  }
  const most = found.reduce((first, other) => (kappa(other.hits) > kappa(first.hits) ? other : first));
  const best = found.find(({ hits }) => isTied(hits, most.hits)) ?? most;
  const shown = found.map(({ method, hits }) => `${method} ${(100 * kappa(hits)).toFixed(1)}`).join(', ');
  const judges = parts.test.groups.members.rows;
  reasons.push(`labels recognised in ${judges} groups not learnt from, beyond chance, %: ${shown}`);
  // Chance may have it that none is better than chance.
  const known = kappa(most.hits) > 0;
  reasons.push(known ? `so ${best.method}` : `too little to tell them apart, so ${usual}`);
  return { method: known ? best.method : usual, reasons };
}

/** Whether any label could go to one member or to another. */
export function isOpen({ members, labels }: GroupParts): boolean {
  for (let group = 0; group < members.rows; group++) {
    const carries = labels.indptr[group + 1] > labels.indptr[group];
    if (carries && members.indptr[group + 1] - members.indptr[group] > 1) return true;
  }
  return false;
}

interface Part {
  x: Csr;
  groups: GroupParts;
}

/** Some groups to learn from and some to ask about; no row is in both. */
function split(x: Csr, whole: GroupParts, seed: number): { train: Part; test: Part } {
  const { members, labels } = whole;
  const counted = countLabels(whole);
  const order = new Random(seed, 'auto').permutation(members.rows);
  const sides: { groups: number[]; rows: Set<number> }[] = [0, 1].map(() => ({
    groups: [],
    rows: new Set(),
  }));
  for (const group of order) {
    const rows = rowIndices(members, group);
    const [train, test] = sides;
    const total = train.rows.size + test.rows.size;
    if (total >= enoughRows) break;
    const own = test.rows.size < heldOutShare * total ? test : train;
    const other = own === test ? train : test;
    if (rows.some((row) => other.rows.has(row))) continue;
    own.groups.push(group);
    for (const row of rows) own.rows.add(row);
  }
  const [train, test] = sides.map(({ groups, rows }): Part => {
    const kept = [...rows].sort((a, b) => a - b);
    const numbers = new Map(kept.map((row, i) => [row, i]));
    const some = selectRows(members, groups);
    const indices = some.indices.map((row) => numbers.get(row) ?? 0);
    return {
      x: selectRows(x, kept),
      groups: {
        members: { ...some, cols: kept.length, indices },
        labels: selectRows(labels, groups),
        counted,
      },
    };
  });
  return { train, test };
}

/** Of each group asked about: how often a member's best label was its group's less chance, and the most possible. */
interface Hits {
  won: Float64Array;
  most: Float64Array;
}

const total = (numbers: Float64Array) => numbers.reduce((sum, number) => sum + number, 0);

/** Cohen's: summed before it is divided, since a label that nearly all groups carry wins next to nothing. */
const kappa = ({ won, most }: Hits): number => (total(most) === 0 ? 0 : total(won) / total(most));

/** Whether `hits` are within two standard errors of `best`, over groups, since members of one go together. */
function isTied(hits: Hits, best: Hits): boolean {
  const pull = ({ won, most }: Hits, of: number, group: number) =>
    (won[group] - of * most[group]) / Math.max(1e-9, total(most));
  const [own, other] = [kappa(hits), kappa(best)];
  let square = 0;
  for (let group = 0; group < hits.won.length; group++)
    square += (pull(best, other, group) - pull(hits, own, group)) ** 2;
  return other - own <= 2 * Math.sqrt(square);
}

async function recognised(
  { train, test }: { train: Part; test: Part },
  labels: Pattern,
  context: Context,
): Promise<Hits> {
  const groups = test.groups.members.rows;
  const hits: Hits = { won: new Float64Array(groups), most: new Float64Array(groups) };
  if (labels.indices.length === 0) return hits;
  const tree = await findLearner('tree');
  const vocabulary = Vocabulary.numbered(labels.cols);
  const set = { rows: train.x.rows, labels, vocabulary, features: { sparse: train.x } };
  const model = await tree.train(set, parseOptions(tree.options), { ...context, progress: quiet });
  const ranking = await model.predict({ sparse: test.x }, { top: 1, threads: context.threads });
  const counted = countLabels(train.groups);
  const rooms = Array.from({ length: groups }, (_, group) => room(test.groups, group, counted));
  const chances = shares(rooms, labels.cols, nnz(test.groups.members));
  for (let group = 0; group < groups; group++) {
    const left = rooms[group];
    for (const row of rowIndices(test.groups.members, group)) {
      const [label] = rowIndices(ranking, row);
      const chance = label === undefined ? 0 : chances[label];
      const free = left.get(label) ?? 0;
      left.set(label, free - 1);
      hits.won[group] += (free > 0 ? 1 : 0) - chance;
      hits.most[group] += 1 - chance;
    }
  }
  return hits;
}

/** How many members of a group each of its labels may belong to: as many as it says, where groups say that. */
function room({ members, labels }: GroupParts, group: number, counted: boolean): Map<number, number> {
  const size = members.indptr[group + 1] - members.indptr[group];
  const counts = rowValues(labels, group);
  return new Map(Array.from(rowIndices(labels, group), (label, i) => [label, counted ? counts[i] : size]));
}

/** Of each label, the share of members it may belong to: who names it for all of them wins nothing. */
function shares(rooms: Map<number, number>[], labels: number, members: number): Float64Array {
  const found = new Float64Array(labels);
  for (const room of rooms) for (const [label, count] of room) found[label] += count / members;
  return found;
}
