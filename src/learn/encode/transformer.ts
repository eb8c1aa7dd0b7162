// The transformer of BERT: tokens and their places, layers of attention, the mean over the tokens. Trained from nothing,
// or from the weights that pretrained.ts reads.

import type { Value } from '../../nn/graph.ts';
import { dropout, gelu, softmax } from '../../nn/layers.ts';
import { add, div, gather, matmul, mul, relu, reshape, slice, sub, sum, transpose } from '../../nn/ops.ts';
import type { Parameters } from '../../nn/parameters.ts';
import type { Network } from './encoder.ts';

export interface TransformerShape {
  kind: 'transformer';
  tokens: number;
  width: number;
  layers: number;
  /** Must divide the width. */
  heads: number;
  /** Numbers inside a layer's second half. */
  inner: number;
  /** Tokens of the longest sequence that has places. */
  places: number;
  activation: 'gelu' | 'relu';
  /** Of the layer norms. */
  epsilon: number;
  dropout: number;
}

export function transformerNetwork(shape: TransformerShape, parameters: Parameters): Network {
  const { width } = shape;
  // BERT's own start.
  const table = parameters.make('tokens', [shape.tokens, width], { deviation: 0.02 });
  const places = parameters.make('places', [shape.places, width], { deviation: 0.02 });
  const norm = parameters.layerNorm('norm', width, shape.epsilon);
  const layers = Array.from({ length: shape.layers }, (_, i) => layer(`layer ${i}`, shape, parameters));
  return ({ ids, mask }, chance) => {
    const [rows, length] = ids.shape;
    const drop = dropper(shape.dropout, chance);
    // What is added to a weight before the softmax: nothing, or enough to leave a token out.
    const absent = reshape(mul(sub(mask, 1), 1e9), [rows, 1, 1, length]);
    const start = drop(norm(add(gather(table, ids), slice(places, 0, 0, length))));
    const last = layers.reduce((x, next) => next(x, absent, drop), start);
    const weights = div(mask, sum(mask, [1], true));
    return reshape(matmul(reshape(weights, [rows, 1, length]), last), [rows, width]);
  };
}

type Drop = (x: Value) => Value;

/** Dropout whose masks are numbered in the order they are met. */
export function dropper(rate: number, chance: string | undefined): Drop {
  let masks = 0;
  return (x) => (chance === undefined ? x : dropout(x, rate, `${chance} ${masks++}`));
}

type LayerShape = Pick<TransformerShape, 'width' | 'heads' | 'inner' | 'activation' | 'epsilon'>;

/** Attention, then two linear steps, each added to what came in and brought to one scale. */
export function layer(name: string, shape: LayerShape, parameters: Parameters) {
  const { width, heads, inner } = shape;
  const part = (of: string) => parameters.linear(`${name} ${of}`, width, width);
  const [query, key, value, mixed] = ['query', 'key', 'value', 'mixed'].map(part);
  const attended = parameters.layerNorm(`${name} attended`, width, shape.epsilon);
  const first = parameters.linear(`${name} first`, width, inner);
  const second = parameters.linear(`${name} second`, inner, width);
  const finished = parameters.layerNorm(`${name} finished`, width, shape.epsilon);
  const activate = shape.activation === 'gelu' ? gelu : relu;
  /** `absent` is added to the weights of attention, [rows, heads or 1, length or 1, length]. */
  return (x: Value, absent: Value | undefined, drop: Drop): Value => {
    const [rows, length] = x.shape;
    const split = (y: Value) => transpose(reshape(y, [rows, length, heads, width / heads]), [0, 2, 1, 3]);
    const scores = mul(matmul(split(query(x)), split(key(x)), { b: true }), 1 / Math.sqrt(width / heads));
    const weights = drop(softmax(absent ? add(scores, absent) : scores));
    const joined = reshape(transpose(matmul(weights, split(value(x))), [0, 2, 1, 3]), x.shape);
    const between = attended(add(x, drop(mixed(joined))));
    return finished(add(between, drop(second(activate(first(between))))));
  };
}
