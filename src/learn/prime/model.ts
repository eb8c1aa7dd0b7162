// A trained PRIME: texts become vectors, and the nearest vectors of labels are the answer.
import type { Ranking } from '../../math/csr.ts';
import { type Dense, unitDenseRows } from '../../math/dense.ts';
import type { Value } from '../../nn/graph.ts';
import { encodeModel } from '../../nn/onnx.ts';
import { Session } from '../../nn/session.ts';
import type { Feeds } from '../../nn/train.ts';
import { type Json, type PartReader, type PartWriter, type Tensors, vector } from '../../parts.ts';
import { breathe, checkCancelled } from '../../progress.ts';
import { openSearch } from '../../search/open.ts';
import type { VectorSearch } from '../../search/search.ts';
import { Subwords } from '../../text/subwords.ts';
import type { Model } from '../learner.ts';
import { buildPrime, type Make, sequences } from './network.ts';
import { TokenFeeds, vectorsOf } from './tokens.ts';
import type { Trained } from './train.ts';

/** The JSON side of a saved model. */
interface PrimeConfig extends Pick<Trained, 'shape'> {
  /** Tokens of the longest text. */
  length: number;
  make: Make | null;
  labels: number;
  threads: number;
}

/** Texts that are encoded at once; one alone does not wait for the others. */
const batchRows = 64;

/** Of labels that point the other way altogether. */
const leastScore = 1e-30;

export interface PrimeParts extends Trained, Omit<PrimeConfig, 'shape' | 'labels'> {
  /** Labels that may be suggested. */
  known: Uint8Array;
}

export async function primeModel(parts: PrimeParts): Promise<Model> {
  const { shape, vectors, known } = parts;
  const labels = known.length;
  const subwords = await Subwords.from(parts.tokenizer);
  const encode = textEncoder(parts, subwords);
  let search: Promise<VectorSearch> | undefined;
  const ofLabels: Dense = { rows: labels, cols: shape.width, values: vectors };
  return {
    width: { sparse: 0, dense: 0 },
    async predict({ texts = [] }, { top, excluded, threads, signal, progress }) {
      checkCancelled(signal);
      search ??= openSearch(ofLabels);
      const told = (done: number) =>
        progress?.({ phase: 'predict', done, total: texts.length, unit: 'rows' });
      const queries = await encode(texts, async (done) => {
        told(done);
        await breathe();
        checkCancelled(signal);
      });
      const hidden = known.map((may, label) => (may && !excluded?.[label] ? 0 : 1));
      const ranking = await (await search).search(queries, { top, excluded: hidden, threads, signal });
      return asScores(ranking);
    },
    labelVectors() {
      const columns = Uint32Array.from(known.keys()).filter((label) => known[label] === 1);
      const values = new Float32Array(columns.length * shape.width);
      columns.forEach((label, i) => {
        values.set(vectors.subarray(label * shape.width, (label + 1) * shape.width), i * shape.width);
      });
      return { labels: columns, vectors: { rows: columns.length, cols: shape.width, values } };
    },
    withLabels: async (added) => {
      const { addLabels } = await import('./new-labels.ts');
      return primeModel(await addLabels(parts, added, (texts) => encode(texts, async () => {})));
    },
    withColumns: async (columns) => {
      const { keepLabels } = await import('./new-labels.ts');
      return primeModel(keepLabels(parts, columns));
    },
    save: (writer) => savePrime(writer, parts),
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

/** Vectors of length one. */
export type EncodeTexts = (texts: readonly string[]) => Promise<Dense>;

/** Vectors of texts; sessions open when they are first needed. */
function textEncoder({ shape, make, weights, length, threads }: PrimeParts, subwords: Subwords) {
  const net = buildPrime(shape, make ?? undefined);
  const sessions = new Map<number, Promise<Session>>();
  const open = (rows: number): Promise<Session> => {
    const session =
      sessions.get(rows) ??
      Session.open(
        encodeModel(
          { vectors: net.encoder.encode(sequences('query', rows, length)) },
          weightsOf(net.encoder.parameters.values, weights),
        ),
        { threads },
      );
    sessions.set(rows, session);
    return session;
  };
  return async (texts: readonly string[], between: (done: number) => Promise<void>): Promise<Dense> => {
    const tokens = subwords.encode(texts, length);
    const rows = texts.length > 1 ? batchRows : 1;
    const session = await open(rows);
    const feeds = new TokenFeeds('query', rows, length);
    const vectors = await vectorsOf(
      texts.length,
      shape.width,
      rows,
      { run: (given: Feeds) => session.run(given) },
      (numbers) => feeds.of(tokens, numbers),
      between,
    );
    return unitDenseRows(vectors);
  };
}

/** Saved numbers by the inputs they stand for. */
export const weightsOf = (values: readonly Value[], weights: Tensors): Map<Value, Float32Array> =>
  new Map(values.map((value) => [value, weights[value.name ?? ''].data as Float32Array]));

async function savePrime(writer: PartWriter, parts: PrimeParts): Promise<Json> {
  const { tokenizer, shape, weights, vectors, prototypes, known, length, make, threads } = parts;
  await writer.write('network', weights);
  await writer.write('labels', {
    vectors: { shape: [known.length, shape.width], data: vectors },
    known: vector(known),
    ...(prototypes && {
      centroids: { shape: [known.length, shape.width], data: prototypes.centroids },
      free: { shape: [prototypes.free.length / shape.width, shape.width], data: prototypes.free },
      places: vector(prototypes.places),
    }),
  });
  await writer.write('tokenizer', { json: vector(new TextEncoder().encode(JSON.stringify(tokenizer))) });
  const config: PrimeConfig = { shape, length, make, labels: known.length, threads };
  return config as unknown as Json;
}

export async function loadPrime(json: Json, reader: PartReader): Promise<Model> {
  const { labels: _, ...config } = json as unknown as PrimeConfig;
  const [weights, labels, tokenizer] = await Promise.all(
    ['network', 'labels', 'tokenizer'].map((name) => reader.read(name)),
  );
  return primeModel({
    ...config,
    weights,
    tokenizer: JSON.parse(new TextDecoder().decode(tokenizer.json.data as Uint8Array)),
    vectors: labels.vectors.data as Float32Array,
    known: labels.known.data as Uint8Array,
    ...(labels.centroids && {
      prototypes: {
        centroids: labels.centroids.data as Float32Array,
        free: labels.free.data as Float32Array,
        places: labels.places.data as Uint32Array,
      },
    }),
  });
}
