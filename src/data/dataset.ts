// What the house works on: samples as readers deliver them, and the data set they are collected into.
import { badInput } from '../errors.ts';
import { type Csr, CsrBuilder, type Pattern, selectRows } from '../math/csr.ts';
import { type Dense, selectDenseRows } from '../math/dense.ts';
import type { Vocabulary } from './vocabulary.ts';

/** One sample, as a reader delivers it and a writer takes it. */
export interface Sample {
  id?: string;
  text?: string;
  /** Columns ascend and are unique; values are finite. */
  sparse?: { indices: ArrayLike<number>; values: ArrayLike<number> };
  /** Finite values; the same length in every sample. */
  dense?: Float32Array;
  /** Columns in the stream's vocabulary, ascending and unique. */
  labels: ArrayLike<number>;
  group?: string;
}

/** What a reader opens: samples in batches (about a megabyte of input each), so that files need not fit in memory. */
export interface SampleStream {
  /** Label ids; grows while batches arrive unless the file declares its labels. */
  vocabulary: Vocabulary;
  /** Number of sparse features, where the file declares it. */
  width?: number;
  /** Names of the features (sparse or dense), where the file has them. */
  featureNames?: string[];
  batches: AsyncIterable<Sample[]>;
}

/** Sparse columns, dense columns, or dense beside sparse. */
export interface Features {
  sparse?: Csr;
  dense?: Dense;
}

export interface Dataset {
  rows: number;
  /** rows x vocabulary.size */
  labels: Pattern;
  vocabulary: Vocabulary;
  ids?: string[];
  texts?: string[];
  features?: Features;
  featureNames?: string[];
  groups?: string[];
}

/** Reads a whole stream into memory. Every sample must have the same fields as the first. */
export async function collect(stream: SampleStream): Promise<Dataset> {
  const labels = new CsrBuilder('binary');
  const sparse = new CsrBuilder('values');
  const dense: Float32Array[] = [];
  const [ids, texts, groups]: string[][] = [[], [], []];
  let rows = 0;
  for await (const batch of stream.batches) {
    for (const sample of batch) {
      labels.add(sample.labels);
      if (sample.sparse) sparse.add(sample.sparse.indices, sample.sparse.values);
      if (sample.dense) dense.push(sample.dense);
      if (sample.id !== undefined) ids.push(sample.id);
      if (sample.text !== undefined) texts.push(sample.text);
      if (sample.group !== undefined) groups.push(sample.group);
      rows++;
    }
  }
  const everyRow = <T>(field: string, count: number, value: () => T): T | undefined => {
    if (count === 0) return undefined;
    if (count === rows) return value();
    throw badInput(`every sample or none must have ${field}`, { value: `${count} of ${rows}` });
  };
  const features: Features = {
    sparse: everyRow('sparse features', sparse.rows, () => sparse.csr(stream.width)),
    dense: everyRow('dense features', dense.length, () => stack(dense)),
  };
  return {
    rows,
    labels: labels.pattern(stream.vocabulary.size),
    vocabulary: stream.vocabulary,
    ids: everyRow('an id', ids.length, () => ids),
    texts: everyRow('a text', texts.length, () => texts),
    groups: everyRow('a group', groups.length, () => groups),
    features: features.sparse || features.dense ? features : undefined,
    featureNames: stream.featureNames,
  };
}

function stack(rows: Float32Array[]): Dense {
  const cols = rows[0].length;
  const values = new Float32Array(rows.length * cols);
  rows.forEach((row, i) => {
    values.set(row, i * cols);
  });
  return { rows: rows.length, cols, values };
}

/** The given rows, in the given order; the vocabulary is shared. */
export function selectSamples(dataset: Dataset, rows: ArrayLike<number>): Dataset {
  const pick = <T>(list: T[] | undefined) => list && Array.from(rows, (row) => list[row]);
  return {
    ...dataset,
    rows: rows.length,
    labels: selectRows(dataset.labels, rows),
    ids: pick(dataset.ids),
    texts: pick(dataset.texts),
    groups: pick(dataset.groups),
    features: dataset.features && selectFeatures(dataset.features, rows),
  };
}

export function selectFeatures({ sparse, dense }: Features, rows: ArrayLike<number>): Features {
  return { sparse: sparse && selectRows(sparse, rows), dense: dense && selectDenseRows(dense, rows) };
}

/** A data set as a stream again, for a writer. */
export function stream(dataset: Dataset, batchRows = 1024): SampleStream {
  async function* batches() {
    for (let start = 0; start < dataset.rows; start += batchRows) {
      const size = Math.min(batchRows, dataset.rows - start);
      yield Array.from({ length: size }, (_, i) => sampleAt(dataset, start + i));
    }
  }
  const { vocabulary, featureNames, features } = dataset;
  return { vocabulary, featureNames, width: features?.sparse?.cols, batches: batches() };
}

function sampleAt({ labels, ids, texts, groups, features }: Dataset, row: number): Sample {
  const { sparse, dense } = features ?? {};
  const between = (m: Pattern): [number, number] => [m.indptr[row], m.indptr[row + 1]];
  return {
    id: ids?.[row],
    text: texts?.[row],
    group: groups?.[row],
    labels: labels.indices.subarray(...between(labels)),
    sparse: sparse && {
      indices: sparse.indices.subarray(...between(sparse)),
      values: sparse.values.subarray(...between(sparse)),
    },
    dense: dense?.values.subarray(row * dense.cols, (row + 1) * dense.cols),
  };
}
