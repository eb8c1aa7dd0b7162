// A trained PRIME: texts become vectors, and the nearest vectors of labels are the answer.
import type { Ranking } from '../../math/csr.ts';
import { type Dense, selectDenseRows } from '../../math/dense.ts';
import { type Json, type PartReader, type PartWriter, vector } from '../../parts.ts';
import { checkCancelled } from '../../progress.ts';
import type { SavedGraph } from '../../search/approximate.ts';
import { exactSearch } from '../../search/exact.ts';
import { isExact, type OpenOptions, openSearch } from '../../search/open.ts';
import type { SearchMaker, VectorSearch } from '../../search/search.ts';
import { Embedder, type EmbedderConfig, type EmbedderParts, readEmbedder } from '../encode/embedder.ts';
import type { Model } from '../learner.ts';
import type { Make } from './network.ts';
import type { Settings } from './options.ts';
import type { Trained } from './train.ts';

type SearchSettings = Pick<Settings, 'exactLabels' | 'recall'>;

/** The JSON side of a saved model. */
interface PrimeConfig extends EmbedderConfig {
  make: Make | null;
  labels: number;
  /** Absent in older models. */
  search?: SearchSettings;
  /** Where a graph is saved that finds labels. */
  graph?: { expansion: number; recall: number };
}

/** Of labels that point the other way altogether. */
const leastScore = 1e-30;

export interface PrimeParts extends EmbedderParts, Pick<Trained, 'vectors' | 'prototypes'> {
  make: Make | null;
  search?: SearchSettings;
  /** Labels that may be suggested. */
  known: Uint8Array;
}

interface Searching extends Pick<OpenOptions, 'saved' | 'progress' | 'signal'> {
  /** Texts by which to measure what a graph finds; without them the labels themselves. */
  sample?: readonly string[];
  /** Whoever searches in place of our own. */
  outside?: SearchMaker;
}

/** Where labels are very many, the graph that finds them is read or built here and now; else nothing is opened yet. */
export async function openPrime(parts: PrimeParts, searching: Searching = {}): Promise<Model> {
  const { shape, known, search: asked } = parts;
  const { outside, sample, ...options } = searching;
  const limit = (asked?.exactLabels ?? 0) * shape.width || undefined;
  const vectors: Dense = { rows: known.length, cols: shape.width, values: parts.vectors };
  const embedder = await Embedder.open(parts);
  const graph =
    outside || isExact(vectors, limit)
      ? undefined
      : await openSearch(vectors, {
          ...options,
          limit,
          recall: asked?.recall,
          sample: sample && (await embedder.embed(sample)),
        });
  let search: Promise<VectorSearch> | undefined = graph && Promise.resolve(graph);
  return {
    width: { sparse: 0, dense: 0 },
    embedder,
    searchRecall: graph?.recall,
    async predict({ texts = [] }, { top, excluded, threads, signal, progress }) {
      checkCancelled(signal);
      search ??= (outside ?? exactSearch)(vectors);
      const queries = await embedder.embed(texts, { signal, progress });
      const hidden = known.map((may, label) => (may && !excluded?.[label] ? 0 : 1));
      const ranking = await (await search).search(queries, { top, excluded: hidden, threads, signal });
      return asScores(ranking);
    },
    labelVectors() {
      const labels = Uint32Array.from(known.keys()).filter((label) => known[label] === 1);
      return { labels, vectors: selectDenseRows(vectors, labels) };
    },
    withLabels: async (added) => {
      const { addLabels } = await import('./new-labels.ts');
      const saved = await graph?.save?.();
      return openPrime(await addLabels(parts, added, embedder), { outside, saved });
    },
    withColumns: async (columns) => {
      const { keepLabels } = await import('./new-labels.ts');
      return openPrime(keepLabels(parts, columns), { outside });
    },
    withSearch: (maker) => openPrime(parts, { outside: maker }),
    save: async (writer) => savePrime(writer, parts, await embedder.save(writer), await graph?.save?.()),
  };
}

/** From -1 to 1 becomes from 0 to 1, and 0 is no score. Where rounding makes scores equal the lowest column is first. */
function asScores(ranking: Ranking): Ranking {
  const values = ranking.values.map((cosine) => Math.min(1, Math.max(leastScore, (1 + cosine) / 2)));
  const { rows, indptr, indices } = ranking;
  for (let row = 0; row < rows; row++) {
    for (let from = indptr[row], to = from; from < indptr[row + 1]; from = to) {
      while (to < indptr[row + 1] && values[to] === values[from]) to++;
      indices.subarray(from, to).sort();
    }
  }
  return { ...ranking, values };
}

async function savePrime(
  writer: PartWriter,
  { shape, vectors, prototypes, known, make, search }: PrimeParts,
  ofEmbedder: EmbedderConfig,
  saved: SavedGraph | undefined,
): Promise<Json> {
  await writer.write('labels', {
    vectors: { shape: [known.length, shape.width], data: vectors },
    known: vector(known),
    ...(prototypes && {
      centroids: { shape: [known.length, shape.width], data: prototypes.centroids },
      free: { shape: [prototypes.free.length / shape.width, shape.width], data: prototypes.free },
      places: vector(prototypes.places),
    }),
  });
  if (saved) await writer.write('graph', { graph: vector(saved.graph) });
  const graph = saved && { expansion: saved.expansion, recall: saved.recall };
  const config: PrimeConfig = { ...ofEmbedder, make, labels: known.length, search, graph };
  return config as unknown as Json;
}

export async function loadPrime(json: Json, reader: PartReader): Promise<Model> {
  const { labels: rows, graph, make, search, ...ofEmbedder } = json as unknown as PrimeConfig;
  const labels = await reader.read('labels');
  const saved = graph && { ...graph, rows, graph: (await reader.read('graph')).graph.data as Uint8Array };
  const parts: PrimeParts = {
    ...(await readEmbedder(ofEmbedder, reader)),
    make,
    search,
    vectors: labels.vectors.data as Float32Array,
    known: labels.known.data as Uint8Array,
    ...(labels.centroids && {
      prototypes: {
        centroids: labels.centroids.data as Float32Array,
        free: labels.free.data as Float32Array,
        places: labels.places.data as Uint32Array,
      },
    }),
  };
  return openPrime(parts, { saved });
}
