// The networks of C-GMVAE as programs: features, and label embeddings, become Gaussians; codes become embeddings that
// are held against the labels'. What training makes of them is in objective.ts.
import { Random } from '../../math/random.ts';
import { constant, input, type Shape, sizeOf, type Value } from '../../nn/graph.ts';
import { leakyRelu, linear } from '../../nn/layers.ts';
import { add, clip, concat, div, matmul, mul, relu, sigmoid, sqrt, sub, sum } from '../../nn/ops.ts';
import type { Scaling } from '../scaling.ts';
import type { Gaussians } from './losses.ts';
import type { Settings } from './options.ts';

const encoderWidths = [256, 512, 256];
const labelWidths = [512, 256];
const decoderWidth = 512;
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
  labelEncoder: Encoder;
  decoder: { ofCode: Value; ofFeatures?: Value; bias: Value; hidden: Layer[]; exit: Layer };
  /** From codes back to features, where that is asked for. */
  featureDecoder?: { hidden: Layer[]; exit: Layer };
}

export function makeNetwork(sizes: Sizes, settings: Settings, seed: number, scaling?: Scaling): Network {
  const { features, labels } = sizes;
  const { embedding, latent } = settings;
  const { parameters, make, layer, chain } = parameterMaker(seed);
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
  const make = (name: string, shape: Shape, inputs: number): Value => {
    const value = input(name, shape);
    const random = new Random(seed, 'gmvae', name);
    const bound = 1 / Math.sqrt(inputs);
    parameters.set(
      value,
      Float32Array.from({ length: sizeOf(shape) }, () => (2 * random.uniform() - 1) * bound),
    );
    return value;
  };
  const layer = (name: string, from: number, to: number): Layer => ({
    weights: make(`${name}.weights`, [from, to], from),
    bias: make(`${name}.bias`, [to], from),
  });
  const chain = (name: string, from: number, widths: readonly number[]): Layer[] =>
    widths.map((width, i) => layer(`${name}.${i + 1}`, i === 0 ? from : widths[i - 1], width));
  return { parameters, make, layer, chain };
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
export function decode({ decoder }: Network, x: Value, codes: readonly Value[]): Value {
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
  const last = leakyRelu(apply(hiddenOf(relu(entry), hidden), exit), 0.01);
  return div(last, rowLengths(last));
}

export const rowLengths = (x: Value): Value => sqrt(add(sum(mul(x, x), [1], true), 1e-24));

/** The features that a code gives back. */
export const decodeFeatures = (
  code: Value,
  { hidden, exit }: NonNullable<Network['featureDecoder']>,
): Value => apply(hiddenOf(code, hidden), exit);

/** How well each label goes with each embedding. */
export const logitsOf = ({ embeddings }: Network, w: Value): Value => matmul(w, embeddings, { b: true });

/** How likely each label is, for this many rows of features fed as `x`. */
export function predict(net: Network, rows: number): Value {
  const x = scaled(net, input('x', [rows, net.features]));
  return sigmoid(logitsOf(net, decode(net, x, [encode(net, x).mean])));
}
