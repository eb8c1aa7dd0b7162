import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CsrBuilder } from '../math/csr.ts';
import { type Dataset, type Sample, stream } from './dataset.ts';
import { streamStatistics } from './stats.ts';
import { Vocabulary } from './vocabulary.ts';

function labelled(rows: number[][], cols: number, more: Partial<Dataset> = {}): Dataset {
  const builder = new CsrBuilder('binary');
  for (const row of rows) builder.add(row);
  return { rows: rows.length, labels: builder.pattern(cols), vocabulary: Vocabulary.numbered(cols), ...more };
}
const statistics = (dataset: Dataset, batchRows?: number) => streamStatistics(stream(dataset, batchRows));
const labelRows = (cols: number) => fc.array(fc.subarray([...Array(cols).keys()]), { maxLength: 40 });
const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
const median = (values: number[]) => {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return sorted.length === 0 ? 0 : (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2;
};

async function* batchesOf(samples: Sample[]) {
  yield samples;
}

describe('streamStatistics', () => {
  it('counts labels as the definitions say', async () => {
    await fc.assert(
      fc.asyncProperty(labelRows(9), async (rows) => {
        const found = await statistics(labelled(rows, 9));
        const counts = Array.from(
          { length: 9 },
          (_, label) => rows.filter((row) => row.includes(label)).length,
        );
        const used = counts.filter((count) => count > 0);
        const positives = sum(counts);
        expect(found.rows).toBe(rows.length);
        expect(found.labels).toEqual({ total: 9, used: used.length, sets: new Set(rows.map(String)).size });
        expect(found.labelsPerSample).toEqual({
          mean: rows.length ? positives / rows.length : 0,
          max: Math.max(0, ...rows.map((row) => row.length)),
        });
        expect(found.samplesPerLabel).toEqual({
          mean: used.length ? positives / used.length : 0,
          median: median(used),
          max: Math.max(0, ...used),
        });
        const byCount = [...counts.keys()].sort((a, b) => counts[b] - counts[a] || a - b);
        expect(found.mostFrequent).toEqual(
          byCount.slice(0, Math.min(5, used.length)).map((label) => ({
            label: String(label),
            samples: counts[label],
          })),
        );
        expect(found.tail).toEqual({
          shareWithOneSample: used.length ? used.filter((count) => count === 1).length / used.length : 0,
          shareWithAtMostFive: used.length ? used.filter((count) => count <= 5).length / used.length : 0,
          shareOfPositivesInTopPercent: positives ? Math.max(...used) / positives : 0,
        });
        expect(found.emptyRows.withoutLabels).toBe(rows.filter((row) => row.length === 0).length);
      }),
    );
  });

  it('does not depend on the order of samples or on batches', async () => {
    await fc.assert(
      fc.asyncProperty(labelRows(6), fc.integer({ min: 1, max: 7 }), async (rows, batchRows) => {
        expect(await statistics(labelled([...rows].reverse(), 6), batchRows)).toEqual(
          await statistics(labelled(rows, 6)),
        );
      }),
    );
  });

  it('gives the median and longest text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string(), { minLength: 1, maxLength: 20 }), async (texts) => {
        const dataset = labelled(Array(texts.length).fill([]), 0, { texts });
        const lengths = texts.map((text) => text.length);
        const { textLength, emptyRows } = await statistics(dataset);
        expect(textLength).toEqual({ median: median(lengths), max: Math.max(...lengths) });
        expect(emptyRows.withoutInput).toBe(texts.filter((text) => text.trim() === '').length);
      }),
    );
  });

  it('tells sparse from dense features, declared from used columns, and rows without input', async () => {
    const samples: Sample[] = [
      { labels: [], sparse: { indices: [0, 4], values: [1, 2] }, dense: Float32Array.of(0, 0) },
      { labels: [], sparse: { indices: [], values: [] }, dense: Float32Array.of(0, 1) },
      { labels: [], sparse: { indices: [2], values: [0] }, dense: Float32Array.of(0, 0), group: 'a' },
    ];
    const vocabulary = new Vocabulary();
    const found = await streamStatistics({ vocabulary, batches: batchesOf(samples) });
    expect(found.sparseFeatures).toEqual({ columns: 5, meanPerRow: 1, maxPerRow: 2 });
    expect(found.denseFeatures).toEqual({ columns: 2 });
    expect(found.groups).toBe(1);
    expect(found.textLength).toBeUndefined();
    expect(found.emptyRows).toEqual({ withoutInput: 1, withoutLabels: 3 });
    const declared = await streamStatistics({ vocabulary, width: 100, batches: batchesOf(samples) });
    expect(declared.sparseFeatures?.columns).toBe(100);
  });

  it('gives the hundredth of the most frequent labels its share of the positives', async () => {
    const rows = [
      ...Array.from({ length: 200 }, (_, label) => [label]),
      ...Array(50).fill([7]),
      ...Array(50).fill([9]),
    ];
    const { tail } = await statistics(labelled(rows, 200));
    expect(tail.shareOfPositivesInTopPercent).toBe(102 / 300);
    expect(tail.shareWithOneSample).toBe(198 / 200);
  });

  it('holds no gaps, so that it can be shown and sent as it is', async () => {
    const found = await statistics(labelled([], 0));
    expect(JSON.stringify(found)).not.toContain('null');
    expect(found.samplesPerLabel).toEqual({ mean: 0, median: 0, max: 0 });
  });

  it('keeps a hundred thousand different label sets apart', async () => {
    const rows = Array.from({ length: 100_000 }, (_, i) => [i % 317, 400 + Math.floor(i / 317)]);
    expect((await statistics(labelled(rows, 1000))).labels.sets).toBe(100_000);
  });
});
