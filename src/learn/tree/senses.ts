// What the copies of a label in an overlapping tree stand for: which training rows each of them draws, how far apart
// these are, their words and the labels beside them. Found while training, read from saved models.
import type { Arena } from '../../kernels/memory.ts';
import { CsrBuilder, type Pattern, rowIndices, selectRows, transpose } from '../../math/csr.ts';
import { type Tensors, vector } from '../../parts.ts';
import { breathe, checkCancelled } from '../../progress.ts';
import type { Sense } from '../learner.ts';
import type { Placed } from './chain.ts';
import { mostWords, openGroups } from './groups.ts';
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

/** Labels with fewer rows have no senses worth telling. */
const minRows = 5;
const labelsPerBreath = 64;

/**
 * Deals the rows of every label with several copies out to them: a row goes to the copy whose cluster comes first in
 * `reached` (rows x clusters, best first), and to none where the beam reaches none of them. The words and the typical
 * rows of a copy are told from its rows, not from its weights: these only tell it from the other labels of its
 * cluster, so that words of the other senses weigh most in them. `x` is in the arena, where room is taken before
 * anything is awaited.
 */
export async function findSenses(
  arena: Arena,
  x: Placed,
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
  const tell = await openGroups(arena, x, mostCopies, mostExamples);
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
    const told = tell(parts);
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
