import { describe, expect, it } from 'vitest';
import { Vocabulary } from '../data/vocabulary.ts';
import { mapLabels } from './label-map.ts';

const vectors = { rows: 4, cols: 2, values: Float32Array.of(2, 0, 0, 3, 1, 0.1, 0.2, 1) };
const known = {
  labels: Uint32Array.of(0, 1, 2, 4),
  vectors,
  vocabulary: new Vocabulary([
    { id: 'a', name: 'A' },
    { id: 'b' },
    { id: 'c' },
    { id: 'unused' },
    { id: 'd' },
  ]),
  counts: Uint32Array.of(9, 5, 3, 0, 4),
};

describe('a map of labels', () => {
  it('puts like beside like and says how alike they are', () => {
    const { labels, similarities, groups } = mapLabels(known, 10);
    expect(labels.map(({ label }) => label)).toEqual(['a', 'c', 'd', 'b']);
    expect(labels[0]).toEqual({ label: 'a', name: 'A', samples: 9 });
    const at = (i: number, j: number) => similarities.values[i * 4 + j];
    expect(at(0, 1)).toBeCloseTo(1 / Math.hypot(1, 0.1), 6);
    expect(at(3, 2)).toBeCloseTo(1 / Math.hypot(0.2, 1), 6);
    for (let i = 0; i < 4; i++) {
      expect(at(i, i)).toBe(0);
      for (let j = 0; j < 4; j++) expect(at(i, j)).toBe(at(j, i));
    }
    expect(groups).toBeUndefined();
  });

  it('holds the most frequent labels alone where there are too many', () => {
    expect(mapLabels(known, 2).labels.map(({ label }) => label)).toEqual(['a', 'b']);
  });

  it('keeps labels of one broader label together, and compares them with others', () => {
    const of = (id: string, parent: string) => ({ id, parents: [parent] });
    const vocabulary = new Vocabulary([
      of('a', 'x'),
      of('b', 'x'),
      of('c', 'y'),
      { id: 'unused' },
      of('d', 'y'),
    ]);
    const { labels, groups } = mapLabels({ ...known, vocabulary }, 10);
    expect(labels.map(({ label }) => label)).toEqual(['a', 'b', 'd', 'c']);
    expect(labels.map(({ group }) => group)).toEqual(['x', 'x', 'y', 'y']);
    const cosine = (a: number[], b: number[]) =>
      (a[0] * b[0] + a[1] * b[1]) / Math.hypot(...a) / Math.hypot(...b);
    expect(groups?.within).toBeCloseTo((0 + cosine([1, 0.1], [0.2, 1])) / 2, 6);
    expect(groups?.between).toBeGreaterThan(groups?.within ?? 1);
  });
});
