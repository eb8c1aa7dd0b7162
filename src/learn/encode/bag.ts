// An encoder that does not look at the order of tokens: a weighted mean of their vectors, and one layer on top. Trains
// in minutes on two cores.

import { softmax } from '../../nn/layers.ts';
import { add, div, gather, matmul, mul, relu, reshape, sub, sum } from '../../nn/ops.ts';
import type { Parameters } from '../../nn/parameters.ts';
import type { Network } from './encoder.ts';

export interface BagShape {
  kind: 'bag';
  /** Tokens known, and numbers in a vector. */
  tokens: number;
  width: number;
  /** All tokens alike, or by a weight learned with them. */
  pooling: 'mean' | 'attention';
}

export function bagNetwork({ tokens, width, pooling }: BagShape, parameters: Parameters): Network {
  const table = parameters.make('tokens', [tokens, width], { deviation: 1 / Math.sqrt(width) });
  // Zeros at the start: all tokens weigh the same.
  const attention =
    pooling === 'attention' ? parameters.make('attention', [width, 1], { all: 0 }) : undefined;
  const inner = parameters.linear('inner', width, 2 * width);
  const outer = parameters.linear('outer', 2 * width, width, 0.1);
  return ({ ids, mask }) => {
    const [rows, length] = ids.shape;
    const vectors = gather(table, ids);
    const weights = attention
      ? softmax(add(reshape(matmul(vectors, attention), [rows, length]), mul(sub(mask, 1), 1e9)))
      : div(mask, sum(mask, [1], true));
    const pooled = reshape(matmul(reshape(weights, [rows, 1, length]), vectors), [rows, width]);
    return add(pooled, outer(relu(inner(pooled))));
  };
}
