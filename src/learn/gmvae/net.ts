// The networks of C-GMVAE as programs: features, and label embeddings, become Gaussians; codes become embeddings that
// are held against the labels'. What training makes of them is in objective.ts.
import { Random } from '../../math/random.ts';
import { constant, input, type Shape, sizeOf, type Value } from '../../nn/graph.ts';
import { leakyRelu, linear, unit } from '../../nn/layers.ts';
import { add, clip, concat, matmul, mul, relu, sigmoid, sub } from '../../nn/ops.ts';
import type { Scaling } from '../scaling.ts';
import type { Gaussians } from './losses.ts';
import type { Settings } from './options.ts';

const encoderWidths = [256, 512, 256];
const labelWidths = [512, 256];
const decoderWidth = 512;
/**
 * Label embeddings start the shorter the more labels there are, but logits need room: with embeddings shorter than this
 * it takes many epochs to say how rare labels are.
 */
const leastLength = 3;
/** The parameter that holds the label embeddings. */
export const labelsName = 'labels';

interface Layer {
  weights: Value;
  bias: Value;
}

/** Hidden layers, and the two that make Gaussians of them. */
interface Encoder {
  name: string;
  hidden: Layer[];
  mean: Layer;
  logVariance: Layer;
}

export interface Sizes {
  features: number;
  labels: number;
  /** Of all rows, those with each label; a bias starts from it. */
  shares?: ArrayLike<number>;
}

export interface Network extends Sizes {
  settings: Settings;
  /** How features are scaled before all else. */
  scaling?: Scaling;
  /** All there are, with what they start from; which of them have a part in the loss depends on the settings. */
  parameters: ReadonlyMap<Value, Float32Array>;
  encoder: Encoder;
  embeddings: Value;
  embeddingBias: Value;
  /** Times the product of embeddings. */
  logitScale: number;
  /** What is added for each label, where that is asked for. */
  labelBias?: Value;
  labelEncoder: Encoder;
  decoder: { ofCode: Value; ofFeatures?: Value; bias: Value; hidden: Layer[]; exit: Layer };
  /** From codes back to features, where that is asked for. */
  featureDecoder?: { hidden: Layer[]; exit: Layer };
}

export function makeNetwork(sizes: Sizes, settings: Settings, seed: number, scaling?: Scaling): Network {
  const { features, labels, shares = new Float64Array(labels).fill(0.5) } = sizes;
  const { embedding, latent } = settings;
  const { parameters, make, makeFrom, layer, chain } = parameterMaker(seed);
  const encoder = (name: string, from: number, widths: readonly number[]): Encoder => ({
    name,
    hidden: chain(name, from, widths),
    mean: layer(`${name}.mean`, widths[widths.length - 1], latent),
    logVariance: layer(`${name}.variance`, widths[widths.length - 1], latent),
  });
  const skips = settings.decoderInput === 'features+latent';
  const decoded = latent + (skips ? features : 0);
  return {
    ...sizes,
    settings,
    scaling,
    parameters,
    encoder: encoder('features', features, encoderWidths),
    // A layer from labels to embeddings, read as one embedding per label: hence the number of inputs.
    embeddings: make(labelsName, [labels, embedding], labels),
    embeddingBias: make(`${labelsName}.bias`, [embedding], labels),
    logitScale: settings.logitScale || Math.max(1, leastLength * Math.sqrt((3 * labels) / embedding)),
    labelBias: settings.labelBias
      ? makeFrom(
          'bias',
          Float32Array.from(shares, (share) => Math.log(share / (1 - share))),
        )
      : undefined,
    labelEncoder: encoder(labelsName, embedding, labelWidths),
    decoder: {
      ofCode: make('decoder.code', [latent, decoderWidth], decoded),
      ofFeatures: skips ? make('decoder.features', [features, decoderWidth], decoded) : undefined,
      bias: make('decoder.bias', [decoderWidth], decoded),
      hidden: chain('decoder', decoderWidth, Array(settings.decoderLayers - 1).fill(decoderWidth)),
      exit: layer('decoder.exit', decoderWidth, embedding),
    },
    featureDecoder:
      settings.reconstruct === 'features'
        ? {
            hidden: chain('reconstruction', latent, [decoderWidth, decoderWidth]),
            exit: layer('reconstruction.exit', decoderWidth, features),
          }
        : undefined,
  };
}

/** Parameters by name, started as PyTorch starts its linear layers: uniformly, by the number of inputs. */
function parameterMaker(seed: number) {
  const parameters = new Map<Value, Float32Array>();
  const makeFrom = (name: string, numbers: Float32Array, shape: Shape = [numbers.length]): Value => {
    const value = input(name, shape);
    parameters.set(value, numbers);
    return value;
  };
  const make = (name: string, shape: Shape, inputs: number): Value => {
    const random = new Random(seed, 'gmvae', name);
    const bound = 1 / Math.sqrt(inputs);
    const numbers = Float32Array.from({ length: sizeOf(shape) }, () => (2 * random.uniform() - 1) * bound);
    return makeFrom(name, numbers, shape);
  };
  const layer = (name: string, from: number, to: number): Layer => ({
    weights: make(`${name}.weights`, [from, to], from),
    bias: make(`${name}.bias`, [to], from),
  });
  const chain = (name: string, from: number, widths: readonly number[]): Layer[] =>
    widths.map((width, i) => layer(`${name}.${i + 1}`, i === 0 ? from : widths[i - 1], width));
  return { parameters, make, makeFrom, layer, chain };
}

/** Leaves numbers out of a layer while training, nowhere else; the name tells masks apart. */
export type Drop = (x: Value, name: string) => Value;
const keepAll: Drop = (x) => x;

const apply = (x: Value, { weights, bias }: Layer): Value => linear(x, weights, bias);

const hiddenOf = (x: Value, layers: readonly Layer[], drop: Drop = keepAll, name = ''): Value =>
  layers.reduce((h, layer, i) => drop(relu(apply(h, layer)), `${name} mask ${i + 1}`), x);

const gaussiansOf = (x: Value, { name, hidden, mean, logVariance }: Encoder, drop: Drop): Gaussians => {
  const last = hiddenOf(x, hidden, drop, name);
  return { mean: apply(last, mean), logVariance: clip(apply(last, logVariance), -10, 10) };
};

export function scaled({ features, scaling }: Network, x: Value): Value {
  if (!scaling) return x;
  return mul(sub(x, constant(scaling.mean, [features])), constant(scaling.scale, [features]));
}

export const encode = ({ encoder }: Network, x: Value, drop: Drop = keepAll): Gaussians =>
  gaussiansOf(x, encoder, drop);

/** Of each row of (sums of) label embeddings. */
export function encodeLabels({ settings, embeddingBias, labelEncoder }: Network, sums: Value, drop: Drop) {
  const entry = settings.labelInput === 'relu' ? relu(add(sums, embeddingBias)) : sums;
  return gaussiansOf(drop(entry, `${labelsName} mask 0`), labelEncoder, drop);
}

/** Embeddings of length one for several codes of the same rows: one after the other in the answer. */
export function decode({ decoder }: Network, x: Value, codes: readonly Value[], drop: Drop = keepAll): Value {
  const { ofCode, ofFeatures, bias, hidden, exit } = decoder;
  const fromCodes = linear(concat(codes, 0), ofCode, bias);
  // What the features add is the same for every code of a row.
  const fromFeatures = ofFeatures && matmul(x, ofFeatures);
  const entry = fromFeatures
    ? add(
        fromCodes,
        concat(
          codes.map(() => fromFeatures),
          0,
        ),
      )
    : fromCodes;
  const first = drop(relu(entry), 'decoder mask 0');
  const last = leakyRelu(apply(hiddenOf(first, hidden, drop, 'decoder'), exit), 0.01);
  return unit(last);
}

/** The features that a code gives back. */
export const decodeFeatures = (
  code: Value,
  { hidden, exit }: NonNullable<Network['featureDecoder']>,
): Value => apply(hiddenOf(code, hidden), exit);

/** How close each label is to each embedding. */
export const productsOf = ({ embeddings, logitScale }: Network, w: Value): Value =>
  matmul(logitScale === 1 ? w : mul(w, logitScale), embeddings, { b: true });

export const logitsOf = ({ labelBias }: Network, products: Value): Value =>
  labelBias ? add(products, labelBias) : products;

/** How likely each label is, for this many rows of features fed as `x`. */
export function predict(net: Network, rows: number): Value {
  const x = scaled(net, input('x', [rows, net.features]));
  return sigmoid(logitsOf(net, productsOf(net, decode(net, x, [encode(net, x).mean]))));
}
