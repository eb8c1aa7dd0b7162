// What the copies of a label in an overlapping tree stand for: which training rows each of them draws, how far apart
// these are, their words and the labels beside them. Found while training, read from saved models.
import { type Csr, CsrBuilder, type Pattern, rowIndices, selectRows, transpose } from '../../math/csr.ts';
import { type Tensors, vector } from '../../parts.ts';
import { breathe, checkCancelled } from '../../progress.ts';
import type { Sense } from '../learner.ts';
import type { Level } from './level.ts';

/** What one tree keeps of its training rows, for labels with several copies and enough rows only. */
export interface SenseRecord {
  labels: Uint32Array;
  /** How far apart the copies of each of these labels are, from 0 to 1. */
  apart: Float32Array;
  /** Positions of their copies among the leaves' children, ascending. */
  copies: Uint32Array;
  /** Training rows each copy draws. */
  rows: Uint32Array;
  /** copies + 1 offsets into `words` (features), `weights` and `elsewhere`. */
  wordStart: Uint32Array;
  words: Uint32Array;
  weights: Float32Array;
  elsewhere: Float32Array;
  /** copies + 1 offsets into `examples`: training rows at first, in a model numbers of kept texts. */
  exampleStart: Uint32Array;
  examples: Uint32Array;
}

/** Words kept for each copy. */
const mostWords = 8;
/** The distance of two copies counts half where the smaller one draws so many rows, and less where fewer. */
const fewRows = 10;
/** Labels with fewer rows have no senses worth telling. */
const minRows = 5;
/** Of more rows than this a copy is known by some, evenly taken. */
const enoughRows = 64;
const labelsPerBreath = 64;

/**
 * Deals the rows of every label with several copies out to them: a row goes to the copy whose cluster comes first in
 * `reached` (rows x clusters, best first), and to none where the beam reaches none of them. The words and the typical
 * rows of a copy are told from its rows, not from its weights: these only tell it from the other labels of its
 * cluster, so that words of the other senses weigh most in them.
 */
export async function findSenses(
  x: Csr,
  byLabel: Pattern,
  reached: Pattern,
  leaves: Pattern,
  mostExamples: number,
  signal?: AbortSignal,
): Promise<SenseRecord> {
  const clustersOf = transpose(leaves);
  const size = ({ indptr }: Pattern, row: number) => indptr[row + 1] - indptr[row];
  const labels = Uint32Array.from({ length: leaves.cols }, (_, label) => label).filter(
    (label) => size(clustersOf, label) > 1 && size(byLabel, label) >= minRows,
  );
  const mostCopies = labels.reduce((most, label) => Math.max(most, size(clustersOf, label)), 0);
  const apart = new Float32Array(labels.length);
  const [weights, elsewhere] = [new CsrBuilder('values'), new CsrBuilder('values')];
  const examples = new CsrBuilder('binary');
  const [places, counts]: number[][] = [[], []];
  const groups = new Groups(x, mostCopies);
  /** For the label at hand: one more than the number of its copy in each cluster. */
  const copyIn = new Uint32Array(leaves.rows);
  for (const [i, label] of labels.entries()) {
    if (i % labelsPerBreath === 0) {
      await breathe();
      checkCancelled(signal);
    }
    const clusters = rowIndices(clustersOf, label);
    clusters.forEach((cluster, k) => {
      copyIn[cluster] = k + 1;
    });
    const parts = Array.from(clusters, () => [] as number[]);
    for (let p = byLabel.indptr[label]; p < byLabel.indptr[label + 1]; p++) {
      const row = byLabel.indices[p];
      let q = reached.indptr[row];
      while (q < reached.indptr[row + 1] && copyIn[reached.indices[q]] === 0) q++;
      if (q < reached.indptr[row + 1]) parts[copyIn[reached.indices[q]] - 1].push(row);
    }
    for (const cluster of clusters) copyIn[cluster] = 0;
    const told = groups.tell(parts, mostExamples);
    apart[i] = told.apart;
    clusters.forEach((cluster, k) => {
      places.push(leaves.indptr[cluster] + rowIndices(leaves, cluster).indexOf(label));
      counts.push(parts[k].length);
      const words = told.words[k];
      const features = words.map(({ feature }) => feature);
      weights.add(
        features,
        words.map(({ weight }) => weight),
      );
      elsewhere.add(
        features,
        words.map((word) => word.elsewhere),
      );
      examples.add(told.examples[k]);
    });
  }
  const order = Uint32Array.from(places, (_, i) => i).sort((a, b) => places[a] - places[b]);
  const words = selectRows(weights.csr(x.cols), order);
  const kept = selectRows(examples.pattern(x.rows), order);
  return {
    labels,
    apart,
    copies: order.map((i) => places[i]),
    rows: order.map((i) => counts[i]),
    wordStart: words.indptr,
    words: words.indices,
    weights: words.values,
    elsewhere: selectRows(elsewhere.csr(x.cols), order).values,
    exampleStart: kept.indptr,
    examples: kept.indices,
  };
}

function someOf(rows: number[]): number[] {
  if (rows.length <= enoughRows) return rows;
  return Array.from({ length: enoughRows }, (_, i) => rows[Math.floor((i * rows.length) / enoughRows)]);
}

/** What groups of rows, those that a label's copies draw, have each to itself. */
interface Told {
  apart: number;
  /** Words that tell each group from the others, with their mean values. */
  words: Sense['words'][];
  /** Rows of each that have most of such words. */
  examples: number[][];
}

/** Compares groups of rows. The rows of every label pass here: long loops over as few arrays as possible. */
class Groups {
  readonly #x: Csr;
  readonly #most: number;
  /** Of each feature, beside one another for all groups: the sums of their rows, zero between labels. */
  readonly #sums: Float32Array;
  /** The same: how much more it is in the group than in any other; up to date for features of the label at hand. */
  readonly #telling: Float32Array;
  /** Features of the label at hand, each marked as seen with the label's number. */
  readonly #found: Uint32Array;
  readonly #seen: Uint32Array;
  #number = 0;

  constructor(x: Csr, most: number) {
    this.#x = x;
    this.#most = most;
    this.#sums = new Float32Array(x.cols * most);
    this.#telling = new Float32Array(x.cols * most);
    this.#found = new Uint32Array(x.cols);
    this.#seen = new Uint32Array(x.cols);
  }

  tell(drawn: number[][], mostExamples: number): Told {
    const groups = drawn.map(someOf);
    const features = this.#add(groups);
    const shares = groups.map((rows) => 1 / Math.max(1, rows.length));
    const { products, telling } = this.#compare(shares, features);
    const words = telling.map((few, g) =>
      few.best.map(({ item: feature, score }) => {
        const weight = this.#sums[feature * this.#most + g] * shares[g];
        return { feature, weight, elsewhere: weight - score };
      }),
    );
    const examples = groups.map((rows, g) => this.#examples(rows, g, mostExamples));
    this.#clear(features, groups.length);
    return { apart: farthest(drawn, groups, products), words, examples };
  }

  /** Sums up the rows of each group; returns the features they have. */
  #add(groups: number[][]): Uint32Array {
    const { indptr, indices, values } = this.#x;
    const [most, sums, found, seen, number] = [
      this.#most,
      this.#sums,
      this.#found,
      this.#seen,
      ++this.#number,
    ];
    let size = 0;
    for (let g = 0; g < groups.length; g++) {
      for (const row of groups[g]) {
        for (let p = indptr[row]; p < indptr[row + 1]; p++) {
          const feature = indices[p];
          sums[feature * most + g] += values[p];
          if (seen[feature] === number) continue;
          seen[feature] = number;
          found[size++] = feature;
        }
      }
    }
    return found.subarray(0, size);
  }

  #clear(features: Uint32Array, groups: number): void {
    for (let i = 0; i < features.length; i++)
      for (let g = 0; g < groups; g++) this.#sums[features[i] * this.#most + g] = 0;
  }

  /** What tells most of each group; and, groups x groups, the sums of the cosines of all pairs of rows. */
  #compare(shares: number[], features: Uint32Array): { telling: Few[]; products: Float64Array } {
    const [most, sums, telling, n] = [this.#most, this.#sums, this.#telling, shares.length];
    const few = shares.map(() => new Few(mostWords, 0));
    const products = new Float64Array(n * n);
    for (let i = 0; i < features.length; i++) {
      const at = features[i] * most;
      for (let a = 0; a < n; a++) {
        let elsewhere = 0;
        for (let b = 0; b < n; b++) {
          products[a * n + b] += sums[at + a] * sums[at + b];
          if (b !== a && sums[at + b] * shares[b] > elsewhere) elsewhere = sums[at + b] * shares[b];
        }
        const more = sums[at + a] * shares[a] - elsewhere;
        telling[at + a] = more;
        if (more > few[a].least) few[a].add(features[i], more);
      }
    }
    return { telling: few, products };
  }

  #examples(rows: number[], group: number, most: number): number[] {
    const { indptr, indices, values } = this.#x;
    const few = new Few(most, Number.NEGATIVE_INFINITY);
    for (let i = 0; i < rows.length; i++) {
      let sum = 0;
      for (let p = indptr[rows[i]]; p < indptr[rows[i] + 1]; p++)
        sum += values[p] * this.#telling[indices[p] * this.#most + group];
      if (sum > few.least) few.add(rows[i], sum);
    }
    return few.best.map(({ item }) => item);
  }
}

/** The few best of many, which come one by one; of equals the first. */
class Few {
  /** What a score must be above. */
  least: number;
  readonly #most: number;
  readonly best: { item: number; score: number }[] = [];

  constructor(most: number, least: number) {
    this.#most = most;
    this.least = most > 0 ? least : Number.POSITIVE_INFINITY;
  }

  add(item: number, score: number): void {
    const kept = this.best;
    let at = kept.length;
    while (at > 0 && score > kept[at - 1].score) at--;
    kept.splice(at, 0, { item, score });
    if (kept.length > this.#most) kept.pop();
    if (kept.length === this.#most) this.least = kept[this.#most - 1].score;
  }
}

/**
 * For the two groups that differ most: one minus the mean cosine of pairs across them over that of pairs within
 * them, which is 0 for two random halves of the same rows however few they are; then less where a copy draws few.
 * `groups` are the rows that were compared, some of those drawn.
 */
function farthest(drawn: number[][], groups: number[][], products: Float64Array): number {
  const count = groups.length;
  let most = 0;
  for (let a = 0; a < count; a++) {
    for (let b = 0; b < a; b++) {
      const [n, m] = [groups[a].length, groups[b].length];
      const within = products[a * count + a] - n + products[b * count + b] - m;
      if (Math.min(n, m) === 0 || within <= 0) continue;
      const alike = products[a * count + b] / (n * m) / (within / (n * (n - 1) + m * (m - 1)));
      const fewer = Math.min(drawn[a].length, drawn[b].length);
      const trust = fewer / (fewer + fewRows);
      most = Math.max(most, trust * Math.min(1, 1 - alike));
    }
  }
  return most;
}

/** What a model knows of the senses of a label in one of its trees. `texts` are what the record's examples number. */
export function describeSenses(
  label: number,
  tree: number,
  leaves: Level,
  record: SenseRecord,
  texts: string[],
  most: number,
): Sense[] {
  const { shape } = leaves;
  const senses: Sense[] = [];
  for (let cluster = 0; cluster < shape.rows; cluster++) {
    const child = rowIndices(shape, cluster).indexOf(label);
    if (child < 0) continue;
    const weights = clusterWeights(leaves, cluster);
    const at = record.copies.indexOf(shape.indptr[cluster] + child);
    const [from, to] = [record.exampleStart[at], record.exampleStart[at + 1]];
    const words = at < 0 ? strongest(weights[child], mostWords) : keptWords(record, at);
    senses.push({
      tree,
      cluster,
      rows: at < 0 ? 0 : record.rows[at],
      share: 1,
      words,
      neighbours: nearest(weights, words)
        .filter(({ child: other }) => other !== child)
        .slice(0, most)
        .map((found) => {
          return { label: rowIndices(shape, cluster)[found.child], similarity: found.similarity };
        }),
      examples: Array.from(at < 0 ? [] : record.examples.subarray(from, to), (text) => texts[text]),
    });
  }
  const drawn = senses.reduce((sum, { rows }) => sum + rows, 0);
  return senses.map((sense) => ({ ...sense, share: drawn > 0 ? sense.rows / drawn : 1 / senses.length }));
}

function keptWords({ wordStart, words, weights, elsewhere }: SenseRecord, at: number): Sense['words'] {
  const positions = Array.from({ length: wordStart[at + 1] - wordStart[at] }, (_, i) => wordStart[at] + i);
  return positions.map((p) => ({ feature: words[p], weight: weights[p], elsewhere: elsewhere[p] }));
}

/** The weights of one child; the bias is the feature after the last. */
type Weights = Map<number, number>;

function clusterWeights(level: Level, cluster: number): Weights[] {
  const { shape, chunkStart, features, rowStart, children, values } = level;
  const columns = Array.from(rowIndices(shape, cluster), (): Weights => new Map());
  for (let row = chunkStart[cluster]; row < chunkStart[cluster + 1]; row++) {
    for (let e = rowStart[row]; e < rowStart[row + 1]; e++)
      columns[children[e]].set(features[row], values[e]);
  }
  return columns;
}

/** For a label with one copy, or with hardly any rows, its weights are all there is. */
const strongest = (weights: Weights, most: number): Sense['words'] =>
  Array.from(weights, ([feature, weight]) => ({ feature, weight, elsewhere: 0 }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || a.feature - b.feature)
    .slice(0, most);

/** Children of a cluster, those first that the words speak for: by their cosine with the weights above zero. */
function nearest(columns: Weights[], words: Sense['words']) {
  const length = (values: Iterable<number>) => {
    let sum = 0;
    for (const value of values) sum += Math.max(0, value) ** 2;
    return Math.sqrt(sum);
  };
  const own = length(words.map(({ weight, elsewhere }) => weight - elsewhere));
  return columns
    .map((column, child) => {
      const product = words.reduce((sum, { feature, weight, elsewhere }) => {
        return sum + (weight - elsewhere) * Math.max(0, column.get(feature) ?? 0);
      }, 0);
      return { child, similarity: product / (own * length(column.values()) || 1) };
    })
    .sort((a, b) => b.similarity - a.similarity || a.child - b.child);
}

/** Turns the training rows of all trees' records into numbers of texts that are kept once, at most 200 characters each. */
export function keepTexts(records: SenseRecord[], textOf: (row: number) => string) {
  const numbers = new Map<number, number>();
  for (const { examples } of records)
    for (const row of examples) numbers.set(row, numbers.get(row) ?? numbers.size);
  const texts = Array.from(numbers.keys(), (row) => shorten(textOf(row)));
  const numbered = records.map((record) => {
    return { ...record, examples: record.examples.map((row) => numbers.get(row) ?? 0) };
  });
  return { records: numbered, texts };
}

const textLength = 200;

/** Cut between characters, never within one. */
function shorten(text: string): string {
  const flat = text.replace(/\s{2,}|[^\S ]/g, ' ').trim();
  return flat.length <= textLength ? flat : `${[...flat.slice(0, textLength)].slice(0, -1).join('')}…`;
}

export const senseTensors = (record: SenseRecord): Tensors =>
  Object.fromEntries(Object.entries(record).map(([name, data]) => [name, vector(data)]));

export function sensesFrom(tensors: Tensors): SenseRecord {
  return Object.fromEntries(
    Object.entries(tensors).map(([name, { data }]) => [name, data]),
  ) as unknown as SenseRecord;
}

export function textTensors(texts: string[]): Tensors {
  const encoded = texts.map((text) => new TextEncoder().encode(text));
  const start = new Uint32Array(texts.length + 1);
  encoded.forEach((bytes, i) => {
    start[i + 1] = start[i] + bytes.length;
  });
  const bytes = new Uint8Array(start[texts.length]);
  encoded.forEach((text, i) => {
    bytes.set(text, start[i]);
  });
  return { start: vector(start), bytes: vector(bytes) };
}

export function textsFrom({ start, bytes }: Tensors): string[] {
  const decoder = new TextDecoder();
  const all = bytes.data as Uint8Array;
  return Array.from({ length: start.data.length - 1 }, (_, i) =>
    decoder.decode(all.subarray(start.data[i], start.data[i + 1])),
  );
}
