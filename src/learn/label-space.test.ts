import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { datasetOf } from '../data/plain-samples.ts';
import { CsrBuilder } from '../math/csr.ts';
import { Classifier } from './classifier.ts';
import { LabelSpace } from './label-space.ts';

describe('the label space', () => {
  it('has the neighbours that the cosines of what speaks for labels give', () => {
    const weight = fc.constantFrom(-1, 0, 0, 0.5, 1, 2);
    const row = fc.array(weight, { minLength: 5, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(row, { minLength: 2, maxLength: 8 }), (weights) => {
        const builder = new CsrBuilder('values');
        for (const values of weights) {
          const columns = [0, 1, 2, 3, 4].filter((i) => values[i] !== 0);
          builder.add(
            columns,
            columns.map((i) => values[i]),
          );
        }
        const space = new LabelSpace(builder.csr(5));
        const positive = weights.map((values) => values.map((value) => Math.max(0, value)));
        const cosine = (a: number[], b: number[]) =>
          a.reduce((sum, value, i) => sum + value * b[i], 0) / (Math.hypot(...a) * Math.hypot(...b) || 1);
        const expected = positive
          .map((other, label) => ({ label, similarity: cosine(positive[0], other) }))
          .filter(({ label, similarity }) => label !== 0 && similarity > 0);
        const found = space.neighbours(0, 10);
        expect(found.map(({ label }) => label).sort()).toEqual(expected.map(({ label }) => label).sort());
        for (const { label, similarity } of found) {
          expect(similarity).toBeCloseTo(cosine(positive[0], positive[label]), 5);
          expect(space.similarity(0, label)).toBeCloseTo(similarity, 5);
        }
        const similarities = found.map(({ similarity }) => similarity);
        expect(similarities).toEqual([...similarities].sort((a, b) => b - a));
      }),
    );
  });

  it('of a deep tree finds labels of the same kind near each other', async () => {
    const rows = Array.from({ length: 600 }, (_, i) => {
      const kind = (i % 30) % 6;
      return { text: `kind${kind}a kind${kind}b own${i % 30} noise${i % 7}`, labels: [`${i % 30}`] };
    });
    const options = { flatSize: 1, leafSize: 5, branching: 2 };
    const classifier = await Classifier.train(datasetOf(rows), { learner: 'tree', options });
    const space = classifier.labelSpace();
    const kindOf = (label: number) => Number(classifier.vocabulary.label(label).id) % 6;
    const near = Array.from({ length: 30 }, (_, label) =>
      space.neighbours(label, 4).map((found) => kindOf(found.label) === kindOf(label)),
    ).flat();
    expect(near.length).toBeGreaterThan(60);
    expect(near.every(Boolean)).toBe(true);
  });
});
