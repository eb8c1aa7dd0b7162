// The metrics as the definitions print them, over dense matrices: slow, obvious, and used by tests only.
import { CsrBuilder, type Pattern, type Ranking } from '../math/csr.ts';
import { Random } from '../math/random.ts';

/** Scores (0 = not listed) and truths of every row; labels are columns. */
export interface DenseCase {
  scores: number[][];
  truth: boolean[][];
  /** Labels the model knows; the others only occur in the truth. */
  known: number;
}

/** Scores in twentieths (many ties), rows with few or no predictions, rows without truth, labels nobody trained. */
export function randomCase(seed: number, rows = 50, labels = 20): DenseCase {
  const random = new Random(seed, 'case');
  const known = labels - random.integer(4);
  const [listed, common] = [random.uniform(), random.uniform() * 0.3];
  const matrix = <T>(cell: (empty: boolean) => T) =>
    Array.from({ length: rows }, () => {
      const empty = random.uniform() < 0.1;
      return Array.from({ length: labels }, () => cell(empty));
    });
  const score = () => Math.fround((1 + random.integer(20)) / 20);
  return {
    scores: matrix((empty) => (empty || random.uniform() > listed ? 0 : score())),
    truth: matrix((empty) => !empty && random.uniform() < common),
    known,
  };
}

export const toTruth = ({ truth }: DenseCase): Pattern => {
  const builder = new CsrBuilder('binary');
  for (const row of truth) builder.add(row.flatMap((isTrue, l) => (isTrue ? [l] : [])));
  return builder.pattern(truth[0].length);
};

export const toRanking = (dense: DenseCase): Ranking => {
  const builder = new CsrBuilder('values');
  dense.scores.forEach((row, i) => {
    const order = ranked(dense, i);
    builder.add(
      order,
      order.map((l) => row[l]),
    );
  });
  return builder.csr(dense.known);
};

/** Known labels with a score, best first, ties by lowest label. */
function ranked({ scores, known }: DenseCase, row: number): number[] {
  const labels = scores[row].flatMap((score, l) => (score > 0 && l < known ? [l] : []));
  return labels.sort((x, y) => scores[row][y] - scores[row][x] || x - y);
}

const mean = (values: number[]) => (values.length === 0 ? 0 : total(values) / values.length);
const total = (values: number[]) => values.reduce((x, y) => x + y, 0);
const range = (n: number) => Array.from({ length: n }, (_, i) => i);
const gain = (rank: number) => 1 / Math.log2(rank + 1);

/** P, R, nDCG, PSP and PSnDCG at one k. */
export function denseRanking(dense: DenseCase, k: number, weights: Float64Array): Record<string, number> {
  const rows = dense.truth.map((truth, i) => {
    const hits = range(k).map((r) => (truth[ranked(dense, i)[r]] ? 1 : 0));
    const weightAt = range(k).map((r) => weights[ranked(dense, i)[r]] ?? 0);
    const ideal = truth.flatMap((isTrue, l) => (isTrue ? [weights[l]] : [])).sort((x, y) => y - x);
    const size = ideal.length;
    const z = total(range(Math.min(k, size)).map((r) => gain(r + 1))) || 1;
    return {
      size,
      p: total(hits) / k,
      r: total(hits) / Math.max(size, 1),
      ndcg: total(hits.map((hit, r) => hit * gain(r + 1))) / z,
      psp: total(hits.map((hit, r) => hit * weightAt[r])) / k,
      bestPsp: total(ideal.slice(0, k)) / k,
      psndcg: total(hits.map((hit, r) => hit * weightAt[r] * gain(r + 1))) / z,
      bestPsndcg: total(ideal.slice(0, k).map((w, r) => w * gain(r + 1))) / z,
    };
  });
  const ratioOfMeans = (above: number[], below: number[]) =>
    total(below) === 0 ? 0 : mean(above) / mean(below);
  const column = (pick: (row: (typeof rows)[number]) => number) => rows.map(pick);
  return {
    [`P@${k}`]: mean(column((row) => row.p)),
    [`R@${k}`]: mean(column((row) => row.r)),
    [`R@${k} of rows with truth`]: mean(rows.filter((row) => row.size > 0).map((row) => row.r)),
    [`nDCG@${k}`]: mean(column((row) => row.ndcg)),
    [`PSP@${k}`]: ratioOfMeans(
      column((row) => row.psp),
      column((row) => row.bestPsp),
    ),
    [`PSnDCG@${k}`]: ratioOfMeans(
      column((row) => row.psndcg),
      column((row) => row.bestPsndcg),
    ),
    [`PSP@${k} unnormalised`]: mean(column((row) => row.psp)),
    [`PSnDCG@${k} unnormalised`]: mean(column((row) => row.psndcg)),
  };
}

/** The four set metrics at thresholds given per label. */
export function denseSets({ scores, truth, known }: DenseCase, cuts: ArrayLike<number>, emptyF1 = 'drop') {
  const cells = truth.map((row, i) =>
    row.map((isTrue, l) => ({ isTrue, isPredicted: l < known && scores[i][l] >= cuts[l] })),
  );
  const f1 = (part: { isTrue: boolean; isPredicted: boolean }[]) => {
    const size = part.filter((c) => c.isTrue).length + part.filter((c) => c.isPredicted).length;
    return size === 0 ? undefined : (2 * part.filter((c) => c.isTrue && c.isPredicted).length) / size;
  };
  const perRow = cells.map((row) => f1(row) ?? (emptyF1 === 'one' ? 1 : undefined));
  return {
    hammingAccuracy: mean(cells.flat().map((c) => (c.isTrue === c.isPredicted ? 1 : 0))),
    exampleF1: mean(perRow.filter((value) => value !== undefined)),
    microF1: f1(cells.flat()) ?? 0,
    macroF1: mean(truth[0].map((_, l) => f1(cells.map((row) => row[l])) ?? 0)),
  };
}
