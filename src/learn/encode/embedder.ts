// A trained encoder with its tokens: texts in, vectors of length one out. A model of its own for `prime`, and a maker of
// features for models that take them.

import { type Dense, unitDenseRows } from '../../math/dense.ts';
import type { Value } from '../../nn/graph.ts';
import { encodeModel } from '../../nn/onnx.ts';
import { Session } from '../../nn/session.ts';
import type { Feeds } from '../../nn/train.ts';
import { type Json, type PartReader, type PartWriter, type Tensors, vector } from '../../parts.ts';
import { breathe, type Context, checkCancelled } from '../../progress.ts';
import { Subwords } from '../../text/subwords.ts';
import { buildEncoder, type Encoder, type EncoderShape } from './encoder.ts';
import { sequences, TokenFeeds, vectorsOf } from './tokens.ts';

/** The JSON side of a saved one. */
export interface EmbedderConfig {
  shape: EncoderShape;
  /** Tokens of the longest text. */
  length: number;
  /** Of the runtime. */
  threads: number;
}

export interface EmbedderParts extends EmbedderConfig {
  /** The content of tokenizer.json. */
  tokenizer: Json;
  /** By name; more than those of the encoder do no harm. */
  weights: Tensors;
}

/** Texts that are encoded at once; one alone does not wait for the others. */
const batchRows = 64;

export class Embedder {
  readonly #parts: EmbedderParts;
  readonly #subwords: Subwords;
  readonly #encoder: Encoder;
  /** By rows; they open when they are first needed. */
  readonly #sessions = new Map<number, Promise<Session>>();

  private constructor(parts: EmbedderParts, subwords: Subwords) {
    this.#parts = parts;
    this.#subwords = subwords;
    this.#encoder = buildEncoder(parts.shape);
  }

  static async open(parts: EmbedderParts): Promise<Embedder> {
    return new Embedder(parts, await Subwords.from(parts.tokenizer));
  }

  /** Numbers in a vector. */
  get width(): number {
    return this.#parts.shape.width;
  }

  async embed(
    texts: readonly string[],
    { signal, progress }: Partial<Pick<Context, 'signal' | 'progress'>> = {},
  ): Promise<Dense> {
    const { length } = this.#parts;
    const tokens = this.#subwords.encode(texts, length);
    const rows = texts.length > 1 ? batchRows : 1;
    const session = await this.#open(rows);
    const feeds = new TokenFeeds('query', rows, length);
    const vectors = await vectorsOf(
      texts.length,
      this.width,
      rows,
      { run: (given: Feeds) => session.run(given) },
      (numbers) => feeds.of(tokens, numbers),
      async (done) => {
        progress?.({ phase: 'encode', done, total: texts.length, unit: 'rows' });
        await breathe();
        checkCancelled(signal);
      },
    );
    return unitDenseRows(vectors);
  }

  #open(rows: number): Promise<Session> {
    const { length, weights, threads } = this.#parts;
    const vectors = () => this.#encoder.encode(sequences('query', rows, length));
    const session =
      this.#sessions.get(rows) ??
      Session.open(encodeModel({ vectors: vectors() }, weightsOf(this.#encoder.parameters.values, weights)), {
        threads,
      });
    this.#sessions.set(rows, session);
    return session;
  }

  async save(writer: PartWriter): Promise<EmbedderConfig> {
    const { tokenizer, weights, shape, length, threads } = this.#parts;
    await writer.write('network', weights);
    await writer.write('tokenizer', { json: vector(new TextEncoder().encode(JSON.stringify(tokenizer))) });
    return { shape, length, threads };
  }

  static async load(config: EmbedderConfig, reader: PartReader): Promise<Embedder> {
    return Embedder.open(await readEmbedder(config, reader));
  }
}

/** What `save` wrote. */
export async function readEmbedder(config: EmbedderConfig, reader: PartReader): Promise<EmbedderParts> {
  const { json } = await reader.read('tokenizer');
  return {
    ...config,
    weights: await reader.read('network'),
    tokenizer: JSON.parse(new TextDecoder().decode(json.data as Uint8Array)),
  };
}

/** Saved numbers by the inputs they stand for. */
export const weightsOf = (values: readonly Value[], weights: Tensors): Map<Value, Float32Array> =>
  new Map(values.map((value) => [value, weights[value.name ?? ''].data as Float32Array]));
