// The plug point for text encoders: sequences of tokens in, vectors of length one out. What an encoder is made of is a
// small description, from which training, saved models and threads each build the same network.
import type { Value } from '../../nn/graph.ts';
import { unit } from '../../nn/layers.ts';
import { Parameters } from '../../nn/parameters.ts';
import { type BagShape, bagNetwork } from './bag.ts';
import { type TransformerShape, transformerNetwork } from './transformer.ts';

/** Inputs of a program: `ids` (int32) and `mask` (1 where there is a token), both [rows, length]. */
export interface Sequences {
  ids: Value;
  mask: Value;
}

/** One vector per row. Where `chance` is given numbers drop out, by masks of that name. */
export type Network = (sequences: Sequences, chance?: string) => Value;

export type EncoderShape = BagShape | TransformerShape;

export interface Encoder {
  shape: EncoderShape;
  parameters: Parameters;
  /** Vectors of length one. */
  encode: Network;
}

export function buildEncoder(shape: EncoderShape): Encoder {
  const parameters = new Parameters();
  const network = networkOf(shape, parameters);
  return { shape, parameters, encode: (sequences, chance) => unit(network(sequences, chance)) };
}

function networkOf(shape: EncoderShape, parameters: Parameters): Network {
  switch (shape.kind) {
    case 'bag':
      return bagNetwork(shape, parameters);
    case 'transformer':
      return transformerNetwork(shape, parameters);
    default:
      return shape satisfies never;
  }
}
