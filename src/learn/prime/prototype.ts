// The Label Prototype Network: a label's text, its centroid and its free vector look at each other in one transformer
// layer; their mean is the prototype.
import type { Value } from '../../nn/graph.ts';
import { unit } from '../../nn/layers.ts';
import { concat, mean, reshape } from '../../nn/ops.ts';
import type { Parameters } from '../../nn/parameters.ts';
import { dropper, layer } from '../encode/transformer.ts';

/** One vector per row, from as many vectors of the same width; the order of the vectors does not matter. */
export type PrototypeNetwork = (vectors: readonly Value[], chance?: string) => Value;

export function prototypeNetwork(width: number, dropout: number, parameters: Parameters): PrototypeNetwork {
  const look = layer(
    'prototype',
    { width, heads: 1, inner: Math.round((4 * width) / 3), activation: 'relu', epsilon: 1e-5 },
    parameters,
  );
  return (vectors, chance) => {
    const [rows] = vectors[0].shape;
    const together = concat(
      vectors.map((vector) => reshape(vector, [rows, 1, width])),
      1,
    );
    return unit(mean(look(together, undefined, dropper(dropout, chance)), [1]));
  };
}
