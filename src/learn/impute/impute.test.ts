import { describe, expect, it } from 'vitest';
import { countLabels, type Groups, groupRows } from '../../data/group.ts';
import type { GroupedRows } from '../../data/grouped.ts';
import { datasetOf } from '../../data/plain-samples.ts';
import { Skipped } from '../../data/skipped.ts';
import { Vocabulary } from '../../data/vocabulary.ts';
import { CsrBuilder, rowIndices } from '../../math/csr.ts';
import { parseOptions } from '../../options.ts';
import { quiet } from '../../progress.ts';
import { Classifier } from '../classifier.ts';
import { findLearner } from '../registry.ts';
import { pinGroups } from './corrections.ts';
import { evidenceOf } from './evidence.ts';
import { imputeSet } from './impute.ts';
import { type ImputeOptions, imputeMethods, imputeOptions } from './options.ts';

const context = { seed: 1, threads: 1, progress: quiet };

/** Five groups of a cat and a dog text; every group carries both labels. */
function pets() {
  const plain = datasetOf(
    Array.from({ length: 10 }, (_, i) => ({
      features: { [i % 2]: 1, 2: 0.1 * i },
      labels: i % 2 === 0 ? ['cat'] : ['dog'],
    })),
  );
  const members = new CsrBuilder('binary');
  for (let j = 0; j < 5; j++) members.add([2 * j, 2 * j + 1]);
  const groups = groupRows(members.pattern(10), plain.labels, 'list');
  const set = { ...plain, features: plain.features ?? {} };
  return { set, groups };
}
const imputed = (given: Partial<GroupedRows> & { groups: Groups }, options: Partial<ImputeOptions> = {}) =>
  imputeSet(pets().set, given, parseOptions(imputeOptions, options), context);
const labelsOf = ({ set }: Awaited<ReturnType<typeof imputeSet>>) =>
  Array.from({ length: set.rows }, (_, row) => [...rowIndices(set.labels, row)].join());

describe('imputing a data set', () => {
  it.each(imputeMethods)('%s gives every group its labels, in groups of one exactly', async (method) => {
    const { set, groups } = pets();
    const alone = new CsrBuilder('binary');
    for (let row = 0; row < 10; row++) alone.add([row]);
    const single = groupRows(alone.pattern(10), set.labels, 'list');
    expect((await imputed({ groups: single }, { method })).set.labels).toEqual(set.labels);
    const result = await imputed({ groups }, { method });
    for (let group = 0; group < 5; group++) {
      const given = [2 * group, 2 * group + 1].flatMap((row) => [...rowIndices(result.set.labels, row)]);
      expect(new Set(given)).toEqual(new Set([0, 1]));
    }
  });

  it('keeps a corrected pair where people put it, and takes away a label they deny', async () => {
    const { groups } = pets();
    const corrections = [
      { group: 0, label: 0, rows: [1] },
      { group: 1, label: 1, rows: [] },
    ];
    for (const method of imputeMethods) {
      const labels = labelsOf(await imputed({ groups, corrections }, { method }));
      expect(labels[1].split(',')).toContain('0');
      expect(labels[0].split(',')).not.toContain('0');
      expect([labels[2], labels[3]].join().split(',')).not.toContain('1');
    }
  });

  it('refuses a group with labels whose instances are all empty, or leaves its labels out and counts it', async () => {
    const { set, groups } = pets();
    const empty = new CsrBuilder('values');
    const { sparse } = set.features;
    if (!sparse) throw new Error('pets are sparse');
    for (let row = 0; row < 10; row++) {
      const [from, to] = [sparse.indptr[row], sparse.indptr[row + 1]];
      if (row < 2) empty.add([]);
      else empty.add(sparse.indices.subarray(from, to), sparse.values.subarray(from, to));
    }
    const hollow = { ...set, features: { sparse: empty.csr(sparse.cols) } };
    const o = parseOptions(imputeOptions);
    await expect(imputeSet(hollow, { groups }, o, context)).rejects.toThrow(
      'a group with labels must have an instance that is not empty, got "0"',
    );
    const skipped = new Skipped();
    const labels = labelsOf(await imputeSet(hollow, { groups, skipped }, o, context));
    expect(skipped.count).toBe(1);
    expect(labels.slice(0, 2)).toEqual(['', '']);
  });

  it('says in the evidence what was drawn, and how far from the best', async () => {
    const { set, groups } = pets();
    const result = await imputed({ groups }, { method: 'eagle-plus' });
    const { assignment } = result;
    if (!assignment) throw new Error('eagle-plus has evidence');
    const drawn = { ...result, assignment: { ...assignment, drawn: new Set([1]) } };
    const records = [...evidenceOf(drawn, set, { groups })];
    const ofLabel = (label: string) => records.filter((record) => record.label === label);
    for (const record of ofLabel('dog'))
      expect(record).toMatchObject({ drawn: true, margin: expect.any(Number) });
    for (const record of ofLabel('cat')) expect(record.drawn).toBeUndefined();
    expect(records.length).toBe(10);
  });

  it('takes numbers of labels as counts if they were counts, even where the last such pair is corrected', () => {
    const { groups } = pets();
    const { labels } = groups;
    // The first group names its first label twice.
    const twice = {
      ...groups,
      labels: { ...labels, values: labels.values.map((_, i) => (i === 0 ? 2 : 1)) },
    };
    expect([groups, twice].map(countLabels)).toEqual([false, true]);
    const pinned = pinGroups(twice, [{ group: 0, label: 0, rows: [0, 1] }]);
    expect(pinned.labels.values.every((count) => count === 1)).toBe(true);
    expect(countLabels(pinned)).toBe(true);
  });

  it('makes rows of sparse and dense parts as long as others', async () => {
    // The second member has the label's word and nothing else; the first half of it, and a dense part like the label's.
    const sparse = new CsrBuilder('values');
    for (const row of [[0, 1], [0], [0], [2]]) sparse.add(row, new Float32Array(row.length).fill(1));
    const dense = { rows: 4, cols: 1, values: Float32Array.of(1, 0, 0, 0) };
    const [members, labels] = [new CsrBuilder('binary'), new CsrBuilder('binary')];
    for (const row of [
      [0, 1],
      [2, 3],
    ])
      members.add(row);
    for (const row of [[0], [], [0], []]) labels.add(row);
    const set = {
      rows: 4,
      labels: labels.pattern(1),
      vocabulary: Vocabulary.numbered(1),
      features: { sparse: sparse.csr(3), dense },
    };
    const groups = groupRows(members.pattern(4), set.labels, 'list');
    const o = parseOptions(imputeOptions, { method: 'eagle-0' });
    const { assignment } = await imputeSet(set, { groups }, o, context);
    for (const score of assignment?.scores.values ?? [2]) expect(score).toBeLessThanOrEqual(1 + 1e-6);
  });

  it('drops instances without labels when asked to', async () => {
    const { groups } = pets();
    const corrections = [
      { group: 0, label: 0, rows: [1] },
      { group: 0, label: 1, rows: [1] },
    ];
    const { set, kept } = await imputed({ groups, corrections }, { dropUnlabelled: true });
    expect(kept).not.toContain(0);
    const rows = [set.rows, set.labels.rows, set.features.sparse?.rows];
    expect(rows).toEqual(new Array(3).fill(kept?.length));
  });

  it.each(['one-vs-rest', 'tree', 'prime-lite'])('comes before a learner: %s', async (learner) => {
    const { set, groups } = pets();
    const none = new CsrBuilder('binary');
    for (let row = 0; row < set.rows; row++) none.add([]);
    set.vocabulary.describe(['cat', 'dog'].map((id) => ({ id, name: id })));
    const { readsText } = await findLearner(learner);
    const texts = Array.from({ length: set.rows }, (_, row) => (row % 2 === 0 ? 'purrs' : 'barks'));
    const unlabelled = {
      ...set,
      ...(readsText && { texts, features: undefined }),
      labels: none.pattern(2),
    };
    const classifier = await Classifier.train(unlabelled, {
      learner,
      impute: async (given) => (await imputeSet(given, { groups }, parseOptions(imputeOptions), context)).set,
    });
    expect(classifier.seconds?.impute).toBeGreaterThanOrEqual(0);
    expect(classifier.counts.reduce((sum, count) => sum + count, 0)).toBe(10);
  });
});
