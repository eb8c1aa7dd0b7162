// Levels laid out in one kernel memory for beam search, and the search itself. A forest never grows after it is
// made, so its arrays may be looked at at any time. Runs in browsers; threads are the caller's business.
import { Arena, align, createMemory } from '../../kernels/memory.ts';
import { claimSlot, releaseSlot, slotFlags } from '../../kernels/slots.ts';
import { type Kernels, loadKernels } from '../../kernels/wasm.ts';
import type { Csr, Found, Pattern } from '../../math/csr.ts';
import type { Level } from './level.ts';

/** Addresses and numbers a thread needs to search. */
export interface Forest {
  memory: WebAssembly.Memory;
  trees: { header: number; levels: number }[];
  labels: number;
  /** Features without the bias, which is the feature after the last. */
  features: number;
  bias: number;
  beam: number;
  /** Power of the hinge; 0 the sigmoid; -1 each level's own margin. */
  power: number;
  merge: Merge;
  slots: number;
  slotBytes: number;
  slotFlags: Int32Array;
  maxChildren: number;
  /** Of the trees whose labels have several copies; 0 where none has. */
  clusters: number;
}

export interface ForestOptions {
  features: number;
  labels: number;
  bias: number;
  beam: number;
  power: number;
  merge?: Merge;
}

/** How the scores of a label's copies become one; matters only where a label has several in one tree. */
export type Merge = 'mean' | 'max';

const headerBytes = 52;

/** Moves levels into a memory of their own; the levels returned look into it. */
export function plantForest(
  trees: Level[][],
  o: ForestOptions,
  shared: boolean,
): { forest: Forest; trees: Level[][] } {
  const words = Math.ceil((o.features + 1) / 32);
  const flags = slotFlags(shared);
  const maxChildren = Math.max(1, ...trees.flat().map(({ shape }) => widest(shape.indptr)));
  const copies = trees.map((levels) => findCopies(levels[levels.length - 1].shape));
  const clusters = Math.max(0, ...copies.map((found) => found?.clusters ?? 0));
  const slot = slotLayout({ ...o, maxChildren, clusters, trees: trees.length });
  const arraysOf = (level: Level) => [
    level.shape.indptr,
    level.shape.indices,
    level.chunkStart,
    level.features,
    level.rowStart,
    level.children,
    level.values,
  ];
  const levelBytes = (level: Level) =>
    arraysOf(level).reduce(
      (sum, { byteLength }) => sum + align(byteLength),
      align(bitmapBytes(level, words)),
    );
  const copyBytes = copies.reduce(
    (sum, found) => sum + (found ? found.start.byteLength + found.places.byteLength : 0),
    0,
  );
  const bytes = trees
    .flat()
    .reduce((sum, level) => sum + levelBytes(level), flags.length * slot.bytes + copyBytes);
  const arena = new Arena(createMemory(bytes + trees.flat().length * 64 + (1 << 16), shared));
  const { memory } = arena;
  const planted = trees.map((levels, t) => {
    const header = arena.allocate(levels.length * headerBytes);
    const views = levels.map((level, depth) => {
      const view = placeLevel(arena, level);
      const size = bitmapBytes(level, words);
      const bitmap = size && arena.allocate(size);
      if (size) markRows(new Uint32Array(memory.buffer, bitmap, size / 4), view, words);
      const fields = [
        bitmap,
        words,
        view.rowStart.byteOffset,
        view.children.byteOffset,
        view.values.byteOffset,
        view.shape.indptr.byteOffset,
        view.shape.indices.byteOffset,
        view.features.byteOffset,
        view.chunkStart.byteOffset,
        ...(depth === levels.length - 1 ? placeCopyMap(arena, copies[t]) : [0, 0, 0]),
        childrenStride(maxChildren),
      ];
      new Uint32Array(memory.buffer, header + depth * headerBytes, fields.length).set(fields);
      return view;
    });
    return { header, views };
  });
  const forest: Forest = {
    ...o,
    memory,
    maxChildren,
    clusters,
    merge: o.merge ?? 'mean',
    trees: planted.map(({ header, views }) => ({ header, levels: views.length })),
    slots: arena.allocate(flags.length * slot.bytes),
    slotBytes: slot.bytes,
    slotFlags: flags,
  };
  return { forest, trees: planted.map(({ views }) => views) };
}

/** Where the copies of each label are. */
interface CopyMap {
  clusters: number;
  /** Copies of one label at most. */
  most: number;
  /** labels + 1 offsets into `places`, which has a cluster and a position among its children for each copy. */
  start: Uint32Array;
  places: Uint32Array;
}

/** Undefined where no label has more than one copy. */
function findCopies({ rows, cols, indptr, indices }: Pattern): CopyMap | undefined {
  const start = new Uint32Array(cols + 1);
  for (const label of indices) start[label + 1]++;
  const most = start.reduce((most, count) => Math.max(most, count), 0);
  if (most < 2) return undefined;
  for (let label = 0; label < cols; label++) start[label + 1] += start[label];
  const next = start.slice();
  const places = new Uint32Array(2 * indices.length);
  for (let cluster = 0; cluster < rows; cluster++) {
    for (let i = indptr[cluster]; i < indptr[cluster + 1]; i++) {
      const place = 2 * next[indices[i]]++;
      places[place] = cluster;
      places[place + 1] = i - indptr[cluster];
    }
  }
  return { clusters: rows, most, start, places };
}

/** The three fields of a header that tell of copies. */
const placeCopyMap = (arena: Arena, copies: CopyMap | undefined): number[] =>
  copies ? [arena.place(copies.start), arena.place(copies.places), copies.most] : [0, 0, 0];

/** Bytes for the scores of one cluster's children. */
const childrenStride = (maxChildren: number): number => align(maxChildren * 4);

/** None where there are so many features that the bitmaps would be far larger than the weights. */
function bitmapBytes({ shape, values }: Level, words: number): number {
  const bytes = shape.rows * words * 8;
  return bytes <= Math.max(1 << 20, 24 * values.length) ? bytes : 0;
}

function widest(indptr: Uint32Array): number {
  let most = 0;
  for (let i = 1; i < indptr.length; i++) most = Math.max(most, indptr[i] - indptr[i - 1]);
  return most;
}

function placeLevel(arena: Arena, level: Level): Level {
  const { buffer } = arena.memory;
  const u32 = (data: Uint32Array) => new Uint32Array(buffer, arena.place(data), data.length);
  return {
    shape: { ...level.shape, indptr: u32(level.shape.indptr), indices: u32(level.shape.indices) },
    chunkStart: u32(level.chunkStart),
    features: u32(level.features),
    rowStart: u32(level.rowStart),
    children: new Uint16Array(buffer, arena.place(level.children), level.children.length),
    values: new Float32Array(buffer, arena.place(level.values), level.values.length),
  };
}

/** Two numbers per 32 features: the bits of those that have a row, and the row of the first of them. */
function markRows(words: Uint32Array, { shape, chunkStart, features }: Level, perChunk: number): void {
  for (let chunk = 0; chunk < shape.rows; chunk++) {
    const base = chunk * perChunk * 2;
    for (let row = chunkStart[chunk]; row < chunkStart[chunk + 1]; row++) {
      const word = base + (features[row] >>> 5) * 2;
      if (words[word] === 0) words[word + 1] = row;
      words[word] |= 1 << (features[row] & 31);
    }
  }
}

/** What one search in progress needs. */
function slotLayout(o: ForestOptions & { maxChildren: number; clusters: number; trees: number }) {
  let bytes = 0;
  const take = (size: number) => {
    const offset = bytes;
    bytes += align(size);
    return offset;
  };
  const candidates = o.beam * o.maxChildren + o.beam + 1;
  const several = o.trees > 1;
  const layout = {
    features: take((o.features + 1) * 4),
    values: take((o.features + 1) * 4),
    excluded: take(o.labels),
    margins: take(o.maxChildren * 4),
    hits: take((o.features + 2) * 16),
    best: take(Math.max(candidates, several ? o.labels : 0) * 8),
    spare: take(candidates * 8),
    sums: take(several ? o.labels * 8 : 0),
    reached: take(several ? o.labels * 4 : 0),
    scores: take(o.clusters > 0 ? o.beam * childrenStride(o.maxChildren) : 0),
    ranks: take(o.clusters * 4),
  };
  return { ...layout, bytes };
}

export type Search = ReturnType<typeof openSearch>;

/** A searcher on this thread. */
export async function openForest(forest: Forest) {
  return openSearch(forest, await loadKernels(forest.memory));
}

function openSearch(forest: Forest, kernels: Kernels) {
  const { memory, trees, power, beam } = forest;
  const merge = forest.merge === 'max' ? 1 : 0;
  const layout = slotLayout({ ...forest, trees: trees.length });

  /** Ranks rows `from` to `to` of unit-length inputs; empty rows find nothing. */
  return (x: Csr, from: number, to: number, top: number, excluded?: Uint8Array): Found => {
    const slot = claimSlot(forest.slotFlags);
    const at = (key: keyof typeof layout) => forest.slots + slot * forest.slotBytes + layout[key];
    const [features, values] = [at('features'), at('values')];
    const [margins, hits, best, spare] = [at('margins'), at('hits'), at('best'), at('spare')];
    const [sums, reached] = trees.length > 1 ? [at('sums'), at('reached')] : [0, 0];
    const [scoresOfAll, ranks] = [at('scores'), at('ranks')];
    const featureView = new Uint32Array(memory.buffer, features, forest.features + 1);
    const valueView = new Float32Array(memory.buffer, values, forest.features + 1);
    const mask = excluded ? at('excluded') : 0;
    if (excluded) new Uint8Array(memory.buffer, mask, excluded.length).set(excluded);
    const limit = Math.min(top, trees.length > 1 ? forest.labels : beam * forest.maxChildren);

    const searchRow = (row: number): number => {
      const [start, end] = [x.indptr[row], x.indptr[row + 1]];
      const count = end - start;
      if (count === 0) return 0;
      featureView.set(x.indices.subarray(start, end));
      valueView.set(x.values.subarray(start, end));
      featureView[count] = forest.features;
      valueView[count] = forest.bias;
      let found = 0;
      for (const tree of trees) {
        found = kernels.searchTree(
          tree.header,
          tree.levels,
          features,
          values,
          count + 1,
          beam,
          limit,
          power,
          mask,
          margins,
          hits,
          best,
          spare,
          sums,
          reached,
          found,
          merge,
          scoresOfAll,
          ranks,
        );
      }
      return sums ? kernels.rankGathered(sums, reached, found, trees.length, limit, best) : found;
    };

    try {
      const counts = new Uint32Array(to - from);
      let [labels, scores] = [new Uint32Array(limit * (to - from)), new Float32Array(limit * (to - from))];
      const ids = new Uint32Array(memory.buffer, best, limit * 2);
      const logs = new Float32Array(memory.buffer, best, limit * 2);
      let size = 0;
      for (let row = from; row < to; row++) {
        const found = searchRow(row);
        counts[row - from] = found;
        for (let k = 0; k < found; k++, size++) {
          labels[size] = ids[2 * k + 1];
          scores[size] = logs[2 * k];
        }
      }
      if (size < labels.length) [labels, scores] = [labels.slice(0, size), scores.slice(0, size)];
      return { counts, labels, scores };
    } finally {
      releaseSlot(forest.slotFlags, slot);
    }
  };
}
