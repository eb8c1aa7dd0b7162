import { describe, expect, it } from 'vitest';
import { Arena, createMemory } from '../../kernels/memory.ts';
import { type Csr, CsrBuilder, type Pattern } from '../../math/csr.ts';
import { Random } from '../../math/random.ts';
import { placeMatrix } from './chain.ts';
import { type Chunk, joinChunks, type Level } from './level.ts';
import {
  describeSenses,
  findSenses,
  keepTexts,
  sensesFrom,
  senseTensors,
  textsFrom,
  textTensors,
} from './senses.ts';

/**
 * Label 0 lies in clusters 0 and 1, label 1 in 0, label 2 in 1. Feature 0 speaks for label 0 everywhere, feature 1 in
 * cluster 0 (and for label 1), feature 2 in cluster 1 (and for label 2); feature 3 is the bias.
 */
const shape: Pattern = {
  rows: 2,
  cols: 3,
  indptr: Uint32Array.of(0, 2, 4),
  indices: Uint32Array.of(0, 1, 0, 2),
};
const chunkOf = (own: number): Chunk => ({
  features: Uint32Array.of(0, own, 3),
  counts: Uint32Array.of(1, 2, 1),
  children: Uint16Array.of(0, 0, 1, 0),
  values: Float32Array.of(1.5, 1, 2, -0.5),
});
const leaves: Level = joinChunks(shape, [chunkOf(1), chunkOf(2)]);

function rowsOf(...rows: number[][]): Csr {
  const x = new CsrBuilder('values');
  for (const row of rows) {
    const columns = [...row.keys()].filter((c) => row[c] !== 0);
    x.add(
      columns,
      columns.map((c) => row[c]),
    );
  }
  return x.csr(3);
}

/** Rows of label 0: three of the first sense, two of the second, one that reaches neither. */
const x = rowsOf([0.6, 0.8, 0], [0.9, 0.1, 0], [0, 1, 0], [0.6, 0, 0.8], [0, 0, 1], [1, 0, 0]);
const byLabel: Pattern = {
  rows: 3,
  cols: 6,
  indptr: Uint32Array.of(0, 6, 6, 6),
  indices: x.indptr.map((_, i) => i).slice(0, 6),
};
const reached: Pattern = {
  rows: 6,
  cols: 2,
  indptr: Uint32Array.of(0, 2, 4, 5, 7, 8, 8),
  indices: Uint32Array.of(0, 1, 0, 1, 0, 1, 0, 1),
};

function sensesOf(features: Csr, ...rest: [Pattern, Pattern, Pattern, number]) {
  const arena = new Arena(createMemory(1 << 16, true));
  return findSenses(arena, placeMatrix(arena, features), ...rest);
}

describe('the senses of a label', () => {
  it('draw each row to the copy the beam prefers, and keep the rows the copy is surest of', async () => {
    const record = await sensesOf(x, byLabel, reached, shape, 2);
    expect([...record.labels]).toEqual([0]);
    expect([...record.copies]).toEqual([0, 2]);
    expect([...record.rows]).toEqual([3, 2]);
    expect([...record.exampleStart]).toEqual([0, 2, 4]);
    expect([...record.examples]).toEqual([2, 0, 4, 3]);
    expect((await sensesOf(x, byLabel, reached, shape, 0)).examples).toHaveLength(0);
  });

  it('are told by their words, their neighbours, their share and their texts', async () => {
    const { records, texts } = keepTexts(
      [await sensesOf(x, byLabel, reached, shape, 1)],
      (row) => `text ${row}`,
    );
    const [first, second] = describeSenses(0, 4, leaves, records[0], texts, 5);
    expect(first).toMatchObject({ tree: 4, cluster: 0, rows: 3, share: 0.6, examples: ['text 2'] });
    expect(second).toMatchObject({ tree: 4, cluster: 1, rows: 2, share: 0.4, examples: ['text 4'] });
    // Feature 0 is in rows of both senses, feature 1 in rows of one.
    expect(first.words.map(({ feature }) => feature)).toEqual([1, 0]);
    expect(first.words[0].weight).toBeCloseTo(1.9 / 3, 6);
    expect(first.words[1].weight).toBeCloseTo(1.5 / 3, 6);
    expect(first.words[1].elsewhere).toBeCloseTo(0.6 / 2, 6);
    expect(second.words[0]).toMatchObject({ feature: 2 });
    expect(first.neighbours).toHaveLength(1);
    expect(first.neighbours[0].label).toBe(1);
    const [one, zero] = first.words.map(({ weight, elsewhere }) => weight - elsewhere);
    expect(first.neighbours[0].similarity).toBeCloseTo(one / Math.hypot(one, zero), 6);
  });

  it('are one where a label has one place', async () => {
    const record = await sensesOf(x, byLabel, reached, shape, 1);
    const [only, ...others] = describeSenses(2, 0, leaves, record, [], 5);
    expect(others).toEqual([]);
    expect(only).toMatchObject({ cluster: 1, share: 1, examples: [] });
    expect(describeSenses(7, 0, leaves, record, [], 5)).toEqual([]);
  });

  it('lie as far apart as their rows differ, and never far with few rows', async () => {
    const random = new Random(2);
    /** `n` rows for each sense; `shared` is how much of each row is noise that both senses have. */
    const apart = async (n: number, shared: number) => {
      const [rows, near] = [new CsrBuilder('values'), new CsrBuilder('binary')];
      for (let i = 0; i < 2 * n; i++) {
        const sense = i % 2;
        const [own, noise] = [Math.sqrt(1 - shared), Math.sqrt(shared)];
        rows.add([sense, 2 + random.integer(5)], [own, noise]);
        near.add([sense]);
      }
      const all = Uint32Array.from({ length: 2 * n }, (_, i) => i);
      const own: Pattern = {
        rows: 3,
        cols: 2 * n,
        indptr: Uint32Array.of(0, 2 * n, 2 * n, 2 * n),
        indices: all,
      };
      const features = { ...rows.csr(7) };
      return (await sensesOf(features, own, near.pattern(2), shape, 0)).apart[0];
    };
    expect(await apart(400, 0)).toBeGreaterThan(0.95);
    expect(await apart(400, 1)).toBeLessThan(0.05);
    expect(await apart(400, 0.5)).toBeGreaterThan(await apart(400, 0.9));
    expect(await apart(3, 0)).toBeLessThan(0.3);
    expect(await apart(1, 0)).toBeUndefined();
    expect(await apart(40, 0)).toBeGreaterThan(await apart(4, 0));
  });

  it('survive saving, with every text once and no longer than 200 characters', async () => {
    const record = await sensesOf(x, byLabel, reached, shape, 2);
    const long = `${'näyttö '.repeat(40)}\u{1f33c}`;
    const { records, texts } = keepTexts([record, record], (row) => (row === 0 ? long : `😀 ${row}`));
    expect(texts).toHaveLength(4);
    expect(Math.max(...texts.map((text) => text.length))).toBe(200);
    expect(textsFrom(textTensors(texts))).toEqual(texts);
    expect(textsFrom(textTensors([]))).toEqual([]);
    expect(sensesFrom(senseTensors(records[1]))).toEqual(records[0]);
  });
});
