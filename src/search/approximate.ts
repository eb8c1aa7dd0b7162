// Approximate top-k over very many vectors, by the graphs of the optional package usearch, with the products of what it
// finds computed in full. Node only. The package saves and loads graphs as files and in no other way: they pass through
// the folder for temporary files.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UmbelError } from '../errors.ts';
import { CsrBuilder, type Ranking, rowIndices } from '../math/csr.ts';
import { type Dense, denseRow, selectDenseRows } from '../math/dense.ts';
import { topK } from '../math/topk.ts';
import { breathe, checkCancelled, type Progress } from '../progress.ts';
import { exactSearch } from './exact.ts';
import type { VectorSearch } from './search.ts';

/** What we use of the package. */
interface Index {
  add(keys: BigUint64Array, vectors: Float32Array, threads: number): void;
  search(
    vectors: Float32Array,
    top: number,
    threads: number,
  ): { keys: BigUint64Array; counts?: BigUint64Array };
  save(path: string): void;
  load(path: string): void;
}
type IndexMaker = new (options: Record<string, unknown>) => Index;

export interface ApproximateOptions {
  /** Share of the true ten nearest that must be found. */
  recall?: number;
  /** Queries to measure by, such as those of the training data; without them some of the vectors themselves. */
  sample?: Dense;
  /** What an earlier search was built of: these vectors, or the first of them. */
  saved?: SavedGraph;
  progress?: Progress;
  signal?: AbortSignal;
}

export interface SavedGraph {
  graph: Uint8Array;
  /** Vectors in it. */
  rows: number;
  /** How many candidates a search keeps in view. */
  expansion: number;
  recall: number;
}

export interface ApproximateSearch extends VectorSearch {
  /** Share of the true ten nearest that it found, measured when it was built. */
  readonly recall: number;
  /** What opens the same search again, without building it. */
  save(): Promise<SavedGraph>;
}

/** Neighbours of a vector in the graph, and candidates in view while it is built. */
const [connectivity, buildExpansion] = [16, 128];
const expansions = [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
const usualRecall = 0.95;
const sampleSize = 256;
const measuredDepth = 10;
/** Vectors added, and queries searched, between two breaths: the package blocks its thread. */
const [addedAtOnce, searchedAtOnce] = [512, 256];

/** Builds the graph on one thread, so that it is always the same, and widens searches until they find enough. */
export async function approximateSearch(
  vectors: Dense,
  options: ApproximateOptions = {},
): Promise<ApproximateSearch> {
  const Graph = loadPackage();
  const make = (expansion: number) =>
    new Graph({
      metric: 'ip',
      dimensions: vectors.cols,
      quantization: 'f16',
      connectivity,
      expansion_add: buildExpansion,
      expansion_search: expansion,
    });
  const { saved } = options;
  const index = make(saved?.expansion ?? expansions[0]);
  if (saved) await fill(index, saved.graph);
  if (saved?.rows === vectors.rows) return searcher(vectors, { ...saved, index });
  await addRest(index, vectors, saved?.rows ?? 0, options);
  return searcher(vectors, await widen(vectors, await graphOf(index), make, options));
}

/** A graph with how far its searches look. */
interface Opened extends Omit<SavedGraph, 'graph' | 'rows'> {
  index: Index;
}

async function addRest(
  index: Index,
  { rows, cols, values }: Dense,
  start: number,
  { progress, signal }: ApproximateOptions,
) {
  for (let from = start; from < rows; from += addedAtOnce) {
    const to = Math.min(from + addedAtOnce, rows);
    const keys = BigUint64Array.from({ length: to - from }, (_, i) => BigInt(from + i));
    index.add(keys, values.slice(from * cols, to * cols), 1);
    progress?.({ phase: 'index', done: to, total: rows, unit: 'labels' });
    await breathe();
    checkCancelled(signal);
  }
}

/** The narrowest search that finds enough, or the widest there is. */
async function widen(
  vectors: Dense,
  graph: Uint8Array,
  make: (expansion: number) => Index,
  { recall: wanted = usualRecall, sample }: ApproximateOptions,
): Promise<Opened> {
  const spread = Math.max(1, Math.floor(vectors.rows / sampleSize));
  const queries = sample ?? selectDenseRows(vectors, everyNth(vectors.rows, spread));
  const truth = await (await exactSearch(vectors)).search(queries, { top: measuredDepth });
  let best: Opened | undefined;
  for (const expansion of expansions) {
    const index = make(expansion);
    await fill(index, graph);
    const search = searcher(vectors, { index, expansion, recall: 0 });
    const found = await search.search(queries, { top: measuredDepth });
    best = { index, expansion, recall: recallOf(found, truth) };
    if (best.recall >= wanted) break;
  }
  if (!best) throw new Error('there must be a search to choose');
  return best;
}

const everyNth = (count: number, n: number): Uint32Array =>
  Uint32Array.from({ length: Math.floor((count + n - 1) / n) }, (_, i) => i * n);

/** Share of the true nearest that were found. */
export function recallOf(found: Ranking, truth: Ranking): number {
  let hits = 0;
  for (let row = 0; row < truth.rows; row++) {
    const own = new Set(rowIndices(found, row));
    for (const label of rowIndices(truth, row)) if (own.has(label)) hits++;
  }
  return truth.indices.length === 0 ? 1 : hits / truth.indices.length;
}

function searcher(vectors: Dense, { index, expansion, recall }: Opened): ApproximateSearch {
  return {
    recall,
    save: async () => ({ graph: await graphOf(index), rows: vectors.rows, expansion, recall }),
    async search(queries, { top, excluded, threads = 1, signal, progress }) {
      const hidden = excluded?.reduce((count, one) => count + one, 0) ?? 0;
      const most = Math.min(vectors.rows, top + hidden);
      const ranking = new CsrBuilder('values');
      for (let from = 0; from < queries.rows; from += searchedAtOnce) {
        checkCancelled(signal);
        const rows = Math.min(searchedAtOnce, queries.rows - from);
        const some = {
          ...queries,
          rows,
          values: queries.values.slice(from * queries.cols, (from + rows) * queries.cols),
        };
        const candidates = askAround(index, some, { top, most, excluded }, threads);
        candidates.forEach((found, row) => {
          addBest(ranking, vectors, denseRow(some, row), found, top);
        });
        progress?.({ phase: 'search', done: from + rows, total: queries.rows, unit: 'rows' });
        await breathe();
      }
      return ranking.csr(vectors.rows);
    },
  };
}

/** Excluded vectors must not crowd out the others: more are asked for until there are enough. */
function askAround(
  index: Index,
  queries: Dense,
  { top, most, excluded }: { top: number; most: number; excluded?: Uint8Array },
  threads: number,
): number[][] {
  if (most === 0) return Array.from({ length: queries.rows }, () => []);
  for (let asked = Math.min(most, excluded ? 2 * top : top); ; asked = Math.min(most, 4 * asked)) {
    const found = ask(index, queries, asked, threads);
    const kept = excluded ? found.map((near) => near.filter((i) => !excluded[i])) : found;
    if (asked === most || kept.every(({ length }) => length >= top)) return kept;
  }
}

/** Vectors near each query, in no order to rely on. */
function ask(index: Index, queries: Dense, top: number, threads: number): number[][] {
  const { keys, counts } = index.search(queries.values, top, threads);
  return Array.from({ length: queries.rows }, (_, row) => {
    const count = counts ? Number(counts[row]) : keys.length;
    return Array.from(keys.subarray(row * top, row * top + count), Number);
  });
}

/** The package's own products are of rounded numbers. */
function addBest(
  ranking: CsrBuilder,
  vectors: Dense,
  query: Float32Array,
  found: number[],
  top: number,
): void {
  const ascending = found.sort((a, b) => a - b);
  const scores = ascending.map((i) => {
    const vector = denseRow(vectors, i);
    let sum = 0;
    for (let j = 0; j < query.length; j++) sum += vector[j] * query[j];
    return sum;
  });
  const best = Array.from(topK(scores, top));
  ranking.add(
    best.map((at) => ascending[at]),
    best.map((at) => scores[at]),
  );
}

const fill = (index: Index, graph: Uint8Array): Promise<void> =>
  throughFile((file) => writeFile(file, graph).then(() => index.load(file)));

const graphOf = (index: Index): Promise<Uint8Array> =>
  throughFile((file) => {
    index.save(file);
    return readFile(file);
  });

async function throughFile<T>(use: (file: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'umbel-graph-'));
  try {
    return await use(join(folder, 'graph'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function loadPackage(): IndexMaker {
  try {
    // Its ES module looks for its binary in the wrong place.
    return (createRequire(import.meta.url)('usearch') as { Index: IndexMaker }).Index;
  } catch (error) {
    throw new UmbelError('missing-package', 'approximate search needs the package usearch', {
      hint: `npm install usearch@2.25.3; ${(error as Error).message.split('\n')[0]}`,
    });
  }
}

export const canApproximate = (): boolean => {
  try {
    return Boolean(loadPackage());
  } catch {
    return false;
  }
};
