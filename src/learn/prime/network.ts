// PRIME as a program: an encoder for samples and labels alike, the prototypes of labels, and what training lowers.
import { input, type Value } from '../../nn/graph.ts';
import { add, gather, matmul, mul, sub, transpose } from '../../nn/ops.ts';
import { Parameters } from '../../nn/parameters.ts';
import type { Objective } from '../../nn/train.ts';
import { buildEncoder, type EncoderShape } from '../encode/encoder.ts';
import { sequences } from '../encode/tokens.ts';
import { regulariser, tripletLoss } from './losses.ts';
import type { Settings } from './options.ts';
import { prototypeNetwork } from './prototype.ts';

/** What a prototype is made of. */
export type Make = Pick<Settings, 'centroids'> & { free: boolean };

/** Fixed for all steps. */
export interface BatchShape {
  queries: number;
  pool: number;
  queryLength: number;
  labelLength: number;
}

export const freeTable = 'free';
const dropoutRate = 0.1;

export type PrimeNetwork = ReturnType<typeof buildPrime>;

export function buildPrime(shape: EncoderShape, make: Make | undefined) {
  const encoder = buildEncoder(shape);
  const ofPrototypes = new Parameters();
  const network = make && prototypeNetwork(shape.width, dropoutRate, ofPrototypes);
  /** Prototypes of `rows` labels from the vectors of their texts and what is fed beside them. */
  const prototype = (texts: Value, free: Value | undefined, chance?: string): Value => {
    if (!network) return texts;
    const rows = texts.shape[0];
    const centroids = input('centroids', [rows, shape.width]);
    const hasText = input('has text', [rows, 1]);
    // Without a text the centroid stands in for it.
    const texted = add(mul(texts, hasText), mul(centroids, sub(1, hasText)));
    const tokens = [texted, ...(make.centroids ? [centroids] : []), ...(free ? [free] : [])];
    return network(tokens, chance);
  };
  return { shape, make, encoder, ofPrototypes, prototype };
}

/** What training lowers, for batches of this shape; also gives the vectors of the queries. */
export function primeObjective(net: PrimeNetwork, o: Settings, size: BatchShape): Objective {
  const { queries, pool } = size;
  const matrix = (name: string) => input(name, [queries, pool]);
  const positive = matrix('positive');
  const usableText = matrix('usable text');
  const vectors = net.encoder.encode(sequences('query', queries, size.queryLength), 'query mask');
  const texts = net.encoder.encode(sequences('label', pool, size.labelLength), 'label mask');
  const byText = matmul(vectors, texts, { b: true });
  const terms: Record<string, Value> = {};
  const weighted: Value[] = [];
  const lower = (name: string, value: Value, weight = 1) => {
    terms[name] = value;
    weighted.push(weight === 1 ? value : mul(value, weight));
  };
  if (o.textLoss || !net.make) lower('text', tripletLoss(byText, positive, usableText, o));
  if (o.backLoss)
    lower('back', tripletLoss(transpose(byText), transpose(positive), transpose(usableText), o));
  const rows: Record<string, Value> = {};
  if (net.make) {
    const usable = matrix('usable');
    let free: Value | undefined;
    if (net.make.free) {
      rows[freeTable] = input('free rows', [pool, net.shape.width]);
      free = gather(rows[freeTable], input('free places', [pool], 'int32'));
    }
    const byPrototype = matmul(vectors, net.prototype(texts, free, 'prototype mask'), { b: true });
    lower('prototype', tripletLoss(byPrototype, positive, usable, o));
    if (o.regulariser !== 'off') {
      const settings = { regulariser: o.regulariser, slack: o.slack };
      const behind = regulariser(byPrototype, byText, positive, usableText, settings);
      lower('behind', behind, o.regulariserWeight);
    }
  }
  return { loss: weighted.reduce(add), terms, rows, outputs: { vectors } };
}
