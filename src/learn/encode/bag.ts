// An encoder that does not look at the order of tokens: a weighted mean of their vectors, and one layer on top. Trains
// in minutes on two cores.

import { Random } from '../../math/random.ts';
import { softmax } from '../../nn/layers.ts';
import { add, div, gather, matmul, mul, relu, reshape, sub, sum } from '../../nn/ops.ts';
import type { Parameters } from '../../nn/parameters.ts';
import type { TokenRows } from '../../text/subwords.ts';
import type { Network } from './encoder.ts';

export interface BagShape {
  kind: 'bag';
  /** Tokens known, and numbers in a vector. */
  tokens: number;
  width: number;
  /** All tokens alike, or by a weight learned with them. */
  pooling: 'mean' | 'attention';
}

const [tableName, importanceName] = ['tokens', 'importance'];

/**
 * What tokens weigh at the start, as logarithms: the rarer the more. So a new bag is a random projection of TF-IDF, which
 * already finds texts by their words; from tokens that all weigh the same, hard negatives lead training nowhere.
 */
export function startImportance({ rows, indptr, ids }: TokenRows, tokens: number): Map<string, Float32Array> {
  const [counts, last] = [new Uint32Array(tokens), new Int32Array(tokens).fill(-1)];
  for (let row = 0; row < rows; row++)
    for (let i = indptr[row]; i < indptr[row + 1]; i++) {
      if (last[ids[i]] === row) continue;
      last[ids[i]] = row;
      counts[ids[i]]++;
    }
  // Tokens that all texts have, such as those put around them, weigh next to nothing.
  const weights = Float32Array.from(counts, (count) => Math.log(Math.log((rows + 2) / (count + 1)) + 0.01));
  return new Map([[importanceName, weights]]);
}

/**
 * Vectors of tokens at the start: of words that are known those given, about their mean and of length one. The rest is
 * chance: other tokens, and columns beyond those of the words.
 */
export function startTokens(
  tokens: readonly string[],
  width: number,
  known: ReadonlyMap<string, Float32Array>,
  seed: number,
): Map<string, Float32Array> {
  const random = new Random(seed, 'tokens without a word');
  const table = Float32Array.from(
    { length: tokens.length * width },
    () => random.normal() / Math.sqrt(width),
  );
  const mean = meanOf([...known.values()]);
  tokens.forEach((token, i) => {
    const vector = known.get(token)?.map((x, j) => x - mean[j]);
    if (!vector) return;
    const length = Math.hypot(...vector) || 1;
    table.set(
      vector.map((x) => x / length),
      i * width,
    );
  });
  return new Map([[tableName, table]]);
}

function meanOf(vectors: readonly Float32Array[]): Float32Array {
  const mean = new Float32Array(vectors[0]?.length ?? 0);
  for (const vector of vectors) for (let j = 0; j < mean.length; j++) mean[j] += vector[j] / vectors.length;
  return mean;
}

export function bagNetwork({ tokens, width, pooling }: BagShape, parameters: Parameters): Network {
  const table = parameters.make(tableName, [tokens, width], { deviation: 1 / Math.sqrt(width) });
  const importance =
    pooling === 'attention' ? parameters.make(importanceName, [tokens, 1], { all: 0 }) : undefined;
  const inner = parameters.linear('inner', width, 2 * width);
  const outer = parameters.linear('outer', 2 * width, width, 0.1);
  return ({ ids, mask }) => {
    const [rows, length] = ids.shape;
    const vectors = gather(table, ids);
    const weights = importance
      ? softmax(add(reshape(gather(importance, ids), [rows, length]), mul(sub(mask, 1), 1e9)))
      : div(mask, sum(mask, [1], true));
    const pooled = reshape(matmul(reshape(weights, [rows, 1, length]), vectors), [rows, width]);
    return add(pooled, outer(relu(inner(pooled))));
  };
}
