// What a data set looks like in numbers, gathered while its samples stream by: memory grows with the labels and the
// different label sets, not with the file. For a data set in memory: `streamStatistics(stream(dataset))`.
import { topK } from '../math/topk.ts';
import type { Sample, SampleStream } from './dataset.ts';

export interface Statistics {
  rows: number;
  sparseFeatures?: { columns: number; meanPerRow: number; maxPerRow: number };
  denseFeatures?: { columns: number };
  /** In UTF-16 units. */
  textLength?: { median: number; max: number };
  groups?: number;
  /** `used` have at least one sample; `sets` counts different label sets, the empty one too. */
  labels: { total: number; used: number; sets: number };
  labelsPerSample: { mean: number; max: number };
  /** Of used labels. */
  samplesPerLabel: { mean: number; median: number; max: number };
  /** Label ids, at most five: where they look wrong, the label delimiter is. */
  mostFrequent: { label: string; samples: number }[];
  /** Shares of used labels that are rare, and of all positives that the most frequent hundredth of labels has. */
  tail: { shareWithOneSample: number; shareWithAtMostFive: number; shareOfPositivesInTopPercent: number };
  /** `withoutInput`: no text and no feature other than zero. */
  emptyRows: { withoutInput: number; withoutLabels: number };
}

export async function streamStatistics(stream: SampleStream): Promise<Statistics> {
  const tally = new Tally();
  for await (const batch of stream.batches) for (const sample of batch) tally.add(sample);
  return tally.statistics(stream);
}

class Tally {
  #rows = 0;
  readonly #labelCounts: number[] = [];
  readonly #labelSets = new LabelSets();
  readonly #labelsPerSample = new Histogram();
  readonly #sparsePerRow = new Histogram();
  #sparseColumns = 0;
  #denseColumns = 0;
  readonly #textLengths = new Histogram();
  readonly #groups = new Set<string>();
  #withoutInput = 0;

  add(sample: Sample): void {
    const { labels, sparse, dense, text, group } = sample;
    this.#rows++;
    for (let i = 0; i < labels.length; i++) {
      while (this.#labelCounts.length <= labels[i]) this.#labelCounts.push(0);
      this.#labelCounts[labels[i]]++;
    }
    this.#labelSets.add(labels);
    this.#labelsPerSample.add(labels.length);
    if (sparse) {
      this.#sparsePerRow.add(sparse.indices.length);
      const last = sparse.indices[sparse.indices.length - 1] ?? -1;
      this.#sparseColumns = Math.max(this.#sparseColumns, last + 1);
    }
    if (dense) this.#denseColumns = Math.max(this.#denseColumns, dense.length);
    if (text !== undefined) this.#textLengths.add(text.length);
    if (group !== undefined) this.#groups.add(group);
    if (!hasInput(sample)) this.#withoutInput++;
  }

  /** The vocabulary and the width are what the file declares: more may be declared than seen. */
  statistics({ vocabulary, width = 0 }: SampleStream): Statistics {
    const counts = Float64Array.from(this.#labelCounts.filter((count) => count > 0)).sort();
    const positives = this.#labelsPerSample.sum;
    const atMost = (most: number) => share(counts.filter((count) => count <= most).length, counts.length);
    const top = counts.subarray(counts.length - Math.ceil(counts.length / 100));
    const { sum, max } = this.#sparsePerRow;
    return {
      rows: this.#rows,
      sparseFeatures: this.#sparsePerRow.size
        ? {
            columns: Math.max(width, this.#sparseColumns),
            meanPerRow: share(sum, this.#rows),
            maxPerRow: max,
          }
        : undefined,
      denseFeatures: this.#denseColumns ? { columns: this.#denseColumns } : undefined,
      textLength: this.#textLengths.size
        ? { median: this.#textLengths.median, max: this.#textLengths.max }
        : undefined,
      groups: this.#groups.size || undefined,
      labels: { total: vocabulary.size, used: counts.length, sets: this.#labelSets.size },
      labelsPerSample: { mean: share(positives, this.#rows), max: this.#labelsPerSample.max },
      samplesPerLabel: {
        mean: share(positives, counts.length),
        median: medianOf(counts),
        max: counts.at(-1) ?? 0,
      },
      mostFrequent: Array.from(topK(this.#labelCounts, Math.min(5, counts.length)), (column) => ({
        label: vocabulary.label(column).id,
        samples: this.#labelCounts[column],
      })),
      tail: {
        shareWithOneSample: atMost(1),
        shareWithAtMostFive: atMost(5),
        shareOfPositivesInTopPercent: share(
          top.reduce((total, count) => total + count, 0),
          positives,
        ),
      },
      emptyRows: { withoutInput: this.#withoutInput, withoutLabels: this.#labelsPerSample.count(0) },
    };
  }
}

const share = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);

function hasInput({ sparse, dense, text }: Sample): boolean {
  if (text !== undefined && text.trim() !== '') return true;
  const nonZero = (values: ArrayLike<number>) => Array.prototype.some.call(values, (value) => value !== 0);
  return (sparse !== undefined && nonZero(sparse.values)) || (dense !== undefined && nonZero(dense));
}

/** Of ascending numbers; the mean of the two in the middle if there are two. */
function medianOf(sorted: Float64Array): number {
  if (sorted.length === 0) return 0;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** How often each whole number was seen: exact medians without keeping what was counted. */
class Histogram {
  readonly #counts = new Map<number, number>();
  size = 0;
  sum = 0;
  max = 0;

  add(value: number): void {
    this.#counts.set(value, this.count(value) + 1);
    this.size++;
    this.sum += value;
    this.max = Math.max(this.max, value);
  }

  count(value: number): number {
    return this.#counts.get(value) ?? 0;
  }

  get median(): number {
    const ascending = [...this.#counts].sort(([a], [b]) => a - b);
    const at = (position: number) => {
      let passed = 0;
      for (const [value, count] of ascending) {
        passed += count;
        if (passed > position) return value;
      }
      return 0;
    };
    return (at((this.size - 1) >> 1) + at(this.size >> 1)) / 2;
  }
}

/** Counts different label sets by a 53-bit hash: among ten million sets, one chance in 180 that two are taken for one. */
class LabelSets {
  /** Several sets, because one holds 2^24 values at most. */
  readonly #hashes = Array.from({ length: 64 }, () => new Set<number>());

  get size(): number {
    return this.#hashes.reduce((sum, { size }) => sum + size, 0);
  }

  add(labels: ArrayLike<number>): void {
    let [a, b] = [0x811c9dc5, 0x9e3779b9];
    for (let i = 0; i < labels.length; i++) {
      a = Math.imul(a ^ labels[i], 0x85ebca6b);
      a ^= a >>> 13;
      b = Math.imul(b ^ labels[i], 0xc2b2ae35);
      b ^= b >>> 16;
    }
    this.#hashes[a & 63].add((a >>> 0) * 2 ** 21 + (b >>> 11));
  }
}
