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

/** Sparse columns, dense columns, or dense beside sparse; or texts as they are, for learners that read them. */
export interface Features {
  sparse?: Csr;
  dense?: Dense;
  /** Of dense rows where sparse ones have length one; 1 where nothing is said. */
  denseLength?: number;
  texts?: string[];
  /** inputs x rows: the rows (instances) of each input, where inputs are bags; otherwise every row is one. */
  bags?: Pattern;
}

export interface Dataset {
  rows: number;
  /** rows x vocabulary.size */
  labels: Pattern;
  /** How often a sample carries each of its labels, in their order, where it may be more than once: in bags. */
  labelCounts?: Float32Array;
  vocabulary: Vocabulary;
  ids?: string[];
  texts?: string[];
  features?: Features;
  featureNames?: string[];
  groups?: string[];
}

/** Reads a whole stream into memory. Every sample must have the same fields as the first. */
export async function collect(stream: SampleStream): Promise<Dataset> {
  const collector = new Collector();
  for await (const batch of stream.batches) for (const sample of batch) collector.add(sample);
  return collector.dataset(stream);
}

/** Takes samples one by one, and then gives the data set they make. */
export class Collector {
  rows = 0;
  readonly #labels = new CsrBuilder('binary');
  readonly #sparse = new CsrBuilder('values');
  readonly #dense: Float32Array[] = [];
  readonly #ids: string[] = [];
  readonly #texts: string[] = [];
  readonly #groups: string[] = [];

  add(sample: Sample): void {
    this.#labels.add(sample.labels);
    if (sample.sparse) this.#sparse.add(sample.sparse.indices, sample.sparse.values);
    if (sample.dense) this.#dense.push(sample.dense);
    if (sample.id !== undefined) this.#ids.push(sample.id);
    if (sample.text !== undefined) this.#texts.push(sample.text);
    if (sample.group !== undefined) this.#groups.push(sample.group);
    this.rows++;
  }

  dataset({ vocabulary, width, featureNames }: Omit<SampleStream, 'batches'>): Dataset {
    const features: Features = {
      sparse: this.#everyRow('sparse features', this.#sparse.rows, () => this.#sparse.csr(width)),
      dense: this.#everyRow('dense features', this.#dense.length, () => stack(this.#dense)),
    };
    return {
      rows: this.rows,
      labels: this.#labels.pattern(vocabulary.size),
      vocabulary,
      ids: this.#everyRow('an id', this.#ids.length, () => this.#ids),
      texts: this.#everyRow('a text', this.#texts.length, () => this.#texts),
      groups: this.#everyRow('a group', this.#groups.length, () => this.#groups),
      features: features.sparse || features.dense ? features : undefined,
      featureNames,
    };
  }

  #everyRow<T>(field: string, count: number, value: () => T): T | undefined {
    if (count === 0) return undefined;
    if (count === this.rows) return value();
    throw badInput(`every sample or none must have ${field}`, { value: `${count} of ${this.rows}` });
  }
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
  const { labels, labelCounts } = dataset;
  return {
    ...dataset,
    rows: rows.length,
    labels: selectRows(labels, rows),
    labelCounts: labelCounts && selectRows({ ...labels, values: labelCounts }, rows).values,
    ids: pick(dataset.ids),
    texts: pick(dataset.texts),
    groups: pick(dataset.groups),
    features: dataset.features && selectFeatures(dataset.features, rows),
  };
}

export function selectFeatures(features: Features, rows: ArrayLike<number>): Features {
  const { sparse, dense, denseLength, texts, bags } = features;
  if (bags) {
    const own = selectRows(bags, rows);
    const indices = Uint32Array.from(own.indices.keys());
    const taken = { ...own, cols: indices.length, indices };
    return { ...selectFeatures({ sparse, dense, denseLength, texts }, own.indices), bags: taken };
  }
  return {
    sparse: sparse && selectRows(sparse, rows),
    dense: dense && selectDenseRows(dense, rows),
    denseLength,
    texts: texts && Array.from(rows, (row) => texts[row]),
  };
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
