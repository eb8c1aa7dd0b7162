import { describe, expect, it } from 'vitest';
import { groupRows, randomGroups } from '../../data/group.ts';
import type { GroupedRows } from '../../data/grouped.ts';
import { Vocabulary } from '../../data/vocabulary.ts';
import { Arena, createMemory } from '../../kernels/memory.ts';
import { loadKernels } from '../../kernels/wasm.ts';
import {
  type Csr,
  CsrBuilder,
  columnCounts,
  nnz,
  type Pattern,
  rowIndices,
  selectRows,
  unitRows,
} from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { parseOptions } from '../../options.ts';
import { quiet } from '../../progress.ts';
import { solveSvm } from '../one-vs-rest.ts';
import { chooseMethod } from './auto.ts';
import { impute, imputeSet } from './impute.ts';
import { type ImputeOptions, imputeOptions } from './options.ts';
import { labelWeight } from './plus.ts';

const context = { seed: 1, threads: 1, progress: quiet };

/** Texts of words: each label brings some of its own three words, beside words that all use. Labels come in families. */
function words(rows: number, seed: number) {
  const random = new Random(seed, 'words');
  const [families, size, common] = [10, 8, 30];
  const texts = new CsrBuilder('values');
  const labels = new CsrBuilder('binary');
  for (let row = 0; row < rows; row++) {
    const first = size * random.integer(families);
    const family = Array.from({ length: size }, (_, i) => first + i);
    const own = family.filter((label) => label === first || random.uniform() < 0.6);
    const found = new Set(Array.from({ length: 15 }, () => Math.floor(common * random.uniform() ** 2)));
    for (const label of own)
      for (let word = 0; word < 3; word++) if (random.uniform() < 0.1) found.add(common + 3 * label + word);
    const columns = [...found].sort((a, b) => a - b);
    texts.add(
      columns,
      columns.map(() => 1),
    );
    labels.add(own);
  }
  return { sparse: texts.csr(common + 3 * families * size), labels: labels.pattern(families * size) };
}

/** Of every label, a row with one of its words. */
function named(cols: number, words: number[]): Csr {
  const rows = new CsrBuilder('values');
  for (const word of words) rows.add([word], [1]);
  return rows.csr(cols);
}

const share = (imputed: Pattern, truth: Pattern) => {
  let right = 0;
  for (let row = 0; row < truth.rows; row++) {
    const own = new Set(rowIndices(truth, row));
    right += rowIndices(imputed, row).filter((label) => own.has(label)).length;
  }
  return right / nnz(imputed);
};

async function imputed(sparse: Csr, labels: Pattern, options: Partial<ImputeOptions>, threads = 1) {
  const groups = groupRows(randomGroups(labels.rows, 8, 1), labels, 'list');
  return impute({ features: { sparse } }, groups, parseOptions(imputeOptions, options), {
    ...context,
    threads,
  });
}

/** Groups of eight, some of whose pairs are corrected: which share of the others is right, with corrections or without. */
function correcting(seed: number) {
  const { sparse, labels } = words(seed === 1 ? 1200 : 400, seed);
  const groups = groupRows(randomGroups(labels.rows, 8, 1), labels, 'list');
  const set = { rows: labels.rows, labels, vocabulary: Vocabulary.numbered(80), features: { sparse } };
  const rightWith = async (isCorrected: (group: number, label: number) => boolean, given: boolean) => {
    const truth = (group: number, label: number) =>
      [...rowIndices(groups.members, group)].filter((row) => rowIndices(labels, row).includes(label));
    const pairs = groups.names.flatMap((_, group) =>
      Array.from(rowIndices(groups.labels, group), (label) => ({ group, label, rows: truth(group, label) })),
    );
    const corrections = pairs.filter(({ group, label }) => isCorrected(group, label));
    const o = parseOptions(imputeOptions, { method: 'eagle-plus' });
    const grouped: GroupedRows = { groups, corrections: given ? corrections : [] };
    const { labels: found } = await imputeSet(set, grouped, o, context);
    let [right, all] = [0, 0];
    for (const { group, label, rows } of pairs) {
      if (isCorrected(group, label)) continue;
      const got = [...rowIndices(groups.members, group)].filter((row) =>
        rowIndices(found, row).includes(label),
      );
      right += got.filter((row) => rows.includes(row)).length;
      all += got.length;
    }
    return right / all;
  };
  return { set, groups, rightWith };
}

describe('eagle-plus', () => {
  it('gains by what the paper has not, and by classifiers', async () => {
    const { sparse, labels } = words(1200, 1);
    const of = async (options: Partial<ImputeOptions>) =>
      share((await imputed(sparse, labels, options)).labels, labels);
    const eagle = await of({ method: 'eagle' });
    const centred = await of({ method: 'eagle-plus', rounds: 0 });
    const once = await of({ method: 'eagle-plus', rounds: 1 });
    const whole = await of({ method: 'eagle-plus' });
    expect(centred).toBeGreaterThan(eagle + 0.3);
    expect(once).toBeGreaterThan(centred + 0.03);
    expect(whole).toBeGreaterThan(once + 0.01);
  });

  it('gives a label to as many members as the group carries it', async () => {
    const { sparse, labels } = words(400, 2);
    const { labels: given } = await imputed(sparse, labels, { method: 'eagle-plus' });
    expect(nnz(given)).toBe(nnz(labels));
  });

  it('knows labels by their names, if those have words of the texts', async () => {
    const { sparse, labels } = words(160, 3);
    const groups = groupRows(randomGroups(labels.rows, 8, 1), labels, 'list');
    const rows = Array.from({ length: labels.cols }, (_, label) => sparse.cols - 3 * (labels.cols - label));
    const nameFeatures = named(sparse.cols, rows);
    const known = { features: { sparse }, nameFeatures };
    const plain = parseOptions(imputeOptions, { method: 'eagle-plus' });
    const without = await impute({ features: { sparse } }, groups, plain, context);
    const withNames = await impute(known, groups, plain, context);
    expect(share(withNames.labels, labels)).toBeGreaterThan(share(without.labels, labels) + 0.03);
    expect(withNames.assignment?.scores.offsets).toEqual(without.assignment?.scores.offsets);
    expect(await impute(known, groups, { ...plain, names: false }, context)).toEqual(without);
    const hollow = { ...nameFeatures, indptr: nameFeatures.indptr.map(() => 0) };
    expect(await impute({ ...known, nameFeatures: hollow }, groups, plain, context)).toEqual(without);
  });

  it('is the same for any number of threads', async () => {
    const { sparse, labels } = words(400, 3);
    const one = await imputed(sparse, labels, { method: 'eagle-plus' });
    expect(await imputed(sparse, labels, { method: 'eagle-plus' }, 3)).toEqual(one);
  });

  it('learns from what people put right, also about labels that they left alone', async () => {
    const { rightWith } = correcting(1);
    const isCorrected = (_: number, label: number) => label % 2 === 0;
    expect(await rightWith(isCorrected, true)).toBeGreaterThan((await rightWith(isCorrected, false)) + 0.1);
  });

  it('leaves members their other labels, however many of their labels are put right', async () => {
    const { rightWith } = correcting(4);
    for (const share of [0.3, 0.7]) {
      const random = new Random('corrected', share);
      const drawn = Array.from({ length: 50 * 80 }, () => random.uniform() < share);
      const isCorrected = (group: number, label: number) => drawn[80 * group + label];
      expect(await rightWith(isCorrected, true)).toBeGreaterThan(
        (await rightWith(isCorrected, false)) + 0.05,
      );
    }
  });

  it('draws members of labels that more samples carry than there are features, unless told not to', async () => {
    const { sparse, labels } = words(400, 9);
    // Of thirty features only common words are left, which tell next to nothing.
    const few = new CsrBuilder('values');
    for (let row = 0; row < sparse.rows; row++) {
      const columns = rowIndices(sparse, row).filter((column) => column < 30);
      few.add(columns, new Float32Array(columns.length).fill(1));
    }
    const found = await imputed(few.csr(30), labels, { method: 'eagle-plus' });
    const frequent = columnCounts(labels).filter((count) => count > 30).length;
    expect(found.assignment?.drawn?.size).toBe(frequent);
    expect(found.reasons.join()).toContain(`more samples carry than there are features: ${frequent};`);
    const still = await imputed(few.csr(30), labels, { method: 'eagle-plus', draw: false });
    expect(still.assignment?.drawn).toBeUndefined();
    expect(still.labels).not.toEqual(found.labels);
  });

  it('lets other labels of a row count less where members of a group are alike', () => {
    const { sparse, labels } = words(800, 8);
    const families = Array.from({ length: labels.rows }, (_, row) => row);
    families.sort((a, b) => rowIndices(labels, a)[0] - rowIndices(labels, b)[0] || a - b);
    const alike = new CsrBuilder('binary');
    for (let at = 0; at < families.length; at += 8)
      alike.add(families.slice(at, at + 8).sort((a, b) => a - b));
    const weightOf = (members: Pattern) => labelWeight(unitRows(sparse), groupRows(members, labels, 'list'));
    const mixed = weightOf(randomGroups(labels.rows, 8, 1));
    expect(mixed).toBeGreaterThan(0.9);
    expect(weightOf(alike.pattern(labels.rows))).toBeLessThan(0.95 * mixed);
    // A row of thousands of labels says so much by them that the most is reached even so.
    const often = groupRows(alike.pattern(labels.rows), labels, 'list');
    const more = { ...often.labels, values: often.labels.values.map((count) => 1000 * count) };
    expect(labelWeight(unitRows(sparse), { ...often, labels: more })).toBe(1.2);
  });
});

describe('auto', () => {
  it('assigns where groups are mixed', async () => {
    const { sparse, labels } = words(800, 5);
    const { method, reasons } = await imputed(sparse, labels, { method: 'auto' });
    expect(method).toBe('eagle-plus');
    expect(reasons[0]).toMatch(/differ (9\d|10\d)% as much/);
    expect(reasons.at(-1)).toBe('so eagle-plus');
  });

  it('judges by the groups as they came, whatever is corrected, and not at all where everything is', async () => {
    const { set, groups } = correcting(1);
    const { members, labels } = groups;
    const pairs = groups.names.flatMap((_, group) =>
      Array.from(rowIndices(labels, group), (label) => ({
        group,
        label,
        rows: [rowIndices(members, group)[0]],
      })),
    );
    const o = parseOptions(imputeOptions, { method: 'auto', rounds: 1 });
    const reasonsWith = async (corrections: typeof pairs) =>
      (await imputeSet(set, { groups, corrections }, o, context)).reasons;
    const plain = await reasonsWith([]);
    expect(await reasonsWith(pairs.slice(0, 40))).toEqual(plain);
    expect(await reasonsWith(pairs)).toEqual([expect.stringContaining('nothing is left to be decided')]);
  });

  it('wins nothing by naming one label throughout', async () => {
    const { sparse, labels } = words(400, 7);
    const groups = groupRows(randomGroups(labels.rows, 8, 1), labels, 'list');
    const always = async (x: Csr) => {
      const indptr = Uint32Array.from({ length: x.rows + 1 }, (_, row) => row);
      return { rows: x.rows, cols: labels.cols, indptr, indices: new Uint32Array(x.rows) };
    };
    const { reasons } = await chooseMethod(sparse, groups, [{ method: 'always', impute: always }], context);
    expect(reasons[1]).toMatch(/: always -?0\.0$/);
  });

  it('gives all members all labels where groups are families and say no counts', async () => {
    const { sparse, labels } = words(1600, 6);
    const byLabel = new CsrBuilder('binary');
    const rows = Array.from({ length: 1600 }, (_, row) => row);
    rows.sort((a, b) => rowIndices(labels, a)[0] - rowIndices(labels, b)[0]);
    for (let at = 0; at < 1600; at += 5) byLabel.add(rows.slice(at, at + 5).sort((a, b) => a - b));
    const groups = groupRows(byLabel.pattern(1600), labels, 'set');
    const o = parseOptions(imputeOptions, { method: 'auto' });
    const { method } = await impute({ features: { sparse } }, groups, o, context);
    expect(method).toBe('baseline');
  });
});

describe('the classifiers of one label', () => {
  it('have the weights of the exact reference on the rows outside their fold', async () => {
    const { sparse: x, labels } = words(80, 4);
    const isPositive = (row: number) => rowIndices(labels, row).some((label) => label < 16);
    // Groups of two rows; the last ones belong to no fold.
    const [groups, folds] = [x.rows / 2, 3];
    const foldOf = (row: number) => (row < 60 ? (row >> 1) % folds : 4);
    const arena = new Arena(createMemory(1 << 20, true));
    const cells = new Uint32Array(2 * nnz(x));
    x.indices.forEach((column, p) => {
      cells[2 * p] = 8 * column;
    });
    new Float32Array(cells.buffer).forEach((_, p, values) => {
      if (p % 2 === 1) values[p] = x.values[p >> 1];
    });
    const firsts = arena.place(Uint32Array.from({ length: groups + 1 }, (_, group) => 2 * group));
    const ends = arena.place(x.indptr.slice(1).map((end) => 8 * end));
    const sides = Uint8Array.from({ length: x.rows }, (_, row) => 2 * foldOf(row) + Number(isPositive(row)));
    const sums = arena.allocate(16 * (x.cols + 1));
    const rows = [groups, firsts, ends, arena.place(cells), x.cols, sums] as const;
    const work = [16 * x.rows, 4 * groups, 4 * x.rows, 4 * x.rows].map((bytes) => arena.allocate(bytes));
    const [alphas, shuffled, order, steps] = work;
    const kernels = await loadKernels(arena.memory);
    const spaces = [folds, arena.place(sides), alphas, shuffled, order, steps] as const;
    kernels.solveFolds(...rows, ...spaces, 0.4, 1, 1e-6, 5000, 7);
    const found = new Float32Array(arena.memory.buffer, sums, 4 * (x.cols + 1));
    const settings = { cost: 0.4, epsilon: 1e-9, iterations: 5000, bias: 1, threshold: 0 };
    for (let fold = 0; fold < folds; fold++) {
      const learnt = Array.from({ length: x.rows }, (_, row) => row).filter((row) => foldOf(row) !== fold);
      const positives = learnt.flatMap((row, i) => (isPositive(row) ? i : []));
      const exact = solveSvm(selectRows(x, learnt), positives, settings, new Random(1));
      for (let j = 0; j <= x.cols; j++) expect(found[4 * j + fold]).toBeCloseTo(exact[j], 4);
    }
    // No weights for the fold that is not there.
    for (let j = 0; j <= x.cols; j++) expect(found[4 * j + folds]).toBe(0);
  });
});
