// What is fed of labels beside their texts: centroids, and free vectors that labels which are alike share.
import { balancedGroups } from '../../math/balanced-two-means.ts';
import type { Dense } from '../../math/dense.ts';
import type { Feeds } from '../../nn/train.ts';
import type { Tensors } from '../../parts.ts';
import { Centroids, meanOfQueries } from './centroids.ts';
import { type BatchShape, freeTable } from './network.ts';
import type { PrimeSetup } from './train.ts';

export class LabelSide {
  readonly centroids: Centroids;
  /** By label, its free vector. */
  readonly places: Uint32Array;
  readonly #free: number;
  readonly #width: number;
  readonly #hasText: Uint8Array;
  readonly #feeds: { centroids: Float32Array; 'has text': Float32Array; 'free places': Int32Array };
  readonly #rows: Uint32Array;
  readonly #vectors: Float32Array;

  private constructor(
    setup: PrimeSetup,
    size: BatchShape,
    free: number,
    centroids: Float32Array,
    places: Uint32Array,
  ) {
    const width = centroids.length / setup.labels.cols;
    this.#width = width;
    this.#free = free;
    this.centroids = new Centroids(centroids, width, setup.settings.momentum);
    this.places = places;
    this.#hasText = Uint8Array.from(setup.labelTexts, (text) => Number(text !== null));
    this.#feeds = {
      centroids: new Float32Array(size.pool * width),
      'has text': new Float32Array(size.pool),
      'free places': new Int32Array(size.pool),
    };
    this.#rows = new Uint32Array(size.pool);
    this.#vectors = new Float32Array(size.pool * width);
  }

  /** At the start labels are where the untrained encoder has their queries, and share free vectors by their texts. */
  static async open(
    setup: PrimeSetup,
    size: BatchShape,
    free: number,
    encodeQueries: () => Promise<Dense>,
    encodeLabels: () => Promise<Dense>,
  ): Promise<LabelSide> {
    const { kept, labels, seed } = setup;
    const own = kept && { centroids: kept.centroids?.data, places: kept.places?.data };
    if (own?.centroids instanceof Float32Array && own.places instanceof Uint32Array)
      return new LabelSide(setup, size, free, own.centroids, own.places);
    const texts = await encodeLabels();
    const centroids = meanOfQueries(labels, await encodeQueries(), texts);
    const identity = free === 0 || free >= labels.cols;
    const places = identity
      ? Uint32Array.from({ length: labels.cols }, (_, label) => (free === 0 ? 0 : label))
      : balancedGroups({ dense: texts }, Math.log2(free), seed);
    return new LabelSide(setup, size, free, centroids, places);
  }

  feeds(pool: Uint32Array): Feeds {
    const { centroids, 'has text': hasText, 'free places': places } = this.#feeds;
    centroids.fill(0);
    this.centroids.write(pool, centroids);
    hasText.fill(0);
    pool.forEach((label, i) => {
      hasText[i] = this.#hasText[label];
    });
    if (this.#free === 0) return { centroids, 'has text': hasText };
    const row = new Map<number, number>();
    pool.forEach((label, i) => {
      const free = this.places[label];
      if (!row.has(free)) row.set(free, row.size);
      places[i] = row.get(free) ?? 0;
    });
    return { centroids, 'has text': hasText, 'free places': places };
  }

  /** The rows that `free places` counts in, filled up with rows that are nobody's. */
  freeRows(pool: Uint32Array): Record<string, Uint32Array> {
    if (this.#free === 0) return {};
    const needed = [...new Set(Array.from(pool, (label) => this.places[label]))];
    this.#rows.set(needed);
    for (let i = needed.length; i < this.#rows.length; i++) this.#rows[i] = this.#free + i;
    return { [freeTable]: this.#rows };
  }

  freeVectors(labels: Uint32Array, table: Float32Array): Feeds {
    if (this.#free === 0) return {};
    const width = this.#width;
    labels.forEach((label, i) => {
      const at = this.places[label] * width;
      this.#vectors.set(table.subarray(at, at + width), i * width);
    });
    return { free: this.#vectors };
  }

  state(): Tensors {
    const { values } = this.centroids;
    return {
      centroids: { shape: [values.length / this.#width, this.#width], data: values.slice() },
      places: { shape: [this.places.length], data: this.places.slice() },
    };
  }
}
