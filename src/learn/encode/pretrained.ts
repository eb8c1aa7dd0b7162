// Weights of BERT, MiniLM and DistilBERT as Hugging Face saves them, for our transformer. Pure: the folder is read by
// data/pretrained-folder.ts.
import { badInput } from '../../errors.ts';
import { sizeOf, type Value } from '../../nn/graph.ts';
import type { Tensor, Tensors } from '../../parts.ts';
import { buildEncoder } from './encoder.ts';
import type { TransformerShape } from './transformer.ts';

/** What the families call things. */
interface Family {
  /** Keys of config.json. */
  config: { width: string; layers: string; heads: string; inner: string; activation: string };
  /** Where a layer's parts are. */
  layer: (i: number) => string;
  parts: Record<'query' | 'key' | 'value' | 'mixed' | 'attended' | 'first' | 'second' | 'finished', string>;
}

const bert: Family = {
  config: {
    width: 'hidden_size',
    layers: 'num_hidden_layers',
    heads: 'num_attention_heads',
    inner: 'intermediate_size',
    activation: 'hidden_act',
  },
  layer: (i) => `encoder.layer.${i}`,
  parts: {
    query: 'attention.self.query',
    key: 'attention.self.key',
    value: 'attention.self.value',
    mixed: 'attention.output.dense',
    attended: 'attention.output.LayerNorm',
    first: 'intermediate.dense',
    second: 'output.dense',
    finished: 'output.LayerNorm',
  },
};

const distilbert: Family = {
  config: {
    width: 'dim',
    layers: 'n_layers',
    heads: 'n_heads',
    inner: 'hidden_dim',
    activation: 'activation',
  },
  layer: (i) => `transformer.layer.${i}`,
  parts: {
    query: 'attention.q_lin',
    key: 'attention.k_lin',
    value: 'attention.v_lin',
    mixed: 'attention.out_lin',
    attended: 'sa_layer_norm',
    first: 'ffn.lin1',
    second: 'ffn.lin2',
    finished: 'output_layer_norm',
  },
};

const families: Record<string, Family> = { bert, distilbert };

/** The network that config.json describes, and its weights by the names of our parameters. */
export function readPretrained(
  config: Record<string, unknown>,
  tensors: Tensors,
): { shape: TransformerShape; weights: Map<string, Float32Array> } {
  const kind = String(config.model_type);
  if (!Object.hasOwn(families, kind))
    throw badInput(`config.json: model_type must be one of ${Object.keys(families).join(', ')}`, {
      value: config.model_type,
    });
  const family = families[kind];
  const shape = shapeOf(config, family);
  const found = finder(kind, tensors);
  const weights = buildEncoder(shape).parameters.values.map((value): [string, Float32Array] => {
    const name = value.name ?? '';
    return [name, name === 'places' ? placesOf(value, found) : weightOf(value, family, found)];
  });
  return { shape, weights: new Map(weights) };
}

function shapeOf(config: Record<string, unknown>, { config: keys }: Family): TransformerShape {
  const size = (key: string): number => {
    const value = config[key];
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
    throw badInput(`config.json: ${key} must be a positive integer`, { value });
  };
  const activation = config[keys.activation] ?? 'gelu';
  if (activation !== 'gelu' && activation !== 'relu')
    throw badInput(`config.json: ${keys.activation} must be gelu or relu`, { value: activation });
  const [width, heads] = [size(keys.width), size(keys.heads)];
  if (width % heads !== 0)
    throw badInput(`config.json: ${keys.heads} must divide ${width}`, { value: heads });
  return {
    kind: 'transformer',
    tokens: size('vocab_size'),
    width,
    layers: size(keys.layers),
    heads,
    inner: size(keys.inner),
    places: size('max_position_embeddings'),
    activation,
    epsilon: typeof config.layer_norm_eps === 'number' ? config.layer_norm_eps : 1e-12,
    dropout: 0.1,
  };
}

type Find = (name: string, shape: readonly number[]) => Tensor;

/** A tensor by its name, with or without that of the family before it, which must have this shape. */
function finder(kind: string, tensors: Tensors): Find {
  return (name, shape) => {
    // The first files of BERT call a scale gamma and a bias beta.
    const old = name
      .replace(/LayerNorm\.weight$/, 'LayerNorm.gamma')
      .replace(/LayerNorm\.bias$/, 'LayerNorm.beta');
    const at = [name, old]
      .flatMap((one) => [one, `${kind}.${one}`])
      .find((one) => Object.hasOwn(tensors, one));
    if (at === undefined)
      throw badInput('model.safetensors must hold every weight of the network', { value: name });
    const tensor = tensors[at];
    if (tensor.shape.join() !== shape.join())
      throw badInput(
        `model.safetensors: ${at} must have the shape that config.json says, [${shape.join(', ')}]`,
        {
          value: `[${tensor.shape.join(', ')}]`,
        },
      );
    return tensor;
  };
}

const floats = ({ data }: Tensor): Float32Array => new Float32Array(data);

/** BERT adds a vector for the first of two texts to every place; ours has it in the places. */
function placesOf({ shape }: Value, find: Find): Float32Array {
  const places = floats(find('embeddings.position_embeddings.weight', shape));
  const types = typeRows(find, shape[1]);
  return types ? places.map((number, i) => number + types[i % shape[1]]) : places;
}

function typeRows(find: Find, width: number): Float32Array | undefined {
  for (const rows of [2, 1]) {
    try {
      return floats(find('embeddings.token_type_embeddings.weight', [rows, width])).subarray(0, width);
    } catch {
      // DistilBERT has none; of others that lack a weight the rest of the names tells.
    }
  }
  return undefined;
}

function weightOf({ name = '', shape }: Value, family: Family, find: Find): Float32Array {
  if (name === 'tokens') return floats(find('embeddings.word_embeddings.weight', shape));
  const norm = /^norm\.(scale|bias)$/.exec(name);
  if (norm) return floats(find(`embeddings.LayerNorm.${norm[1] === 'scale' ? 'weight' : 'bias'}`, shape));
  const [, i, part, what] = /^layer (\d+) (\w+)\.(\w+)$/.exec(name) ?? [];
  const at = `${family.layer(Number(i))}.${family.parts[part as keyof Family['parts']]}`;
  if (what !== 'weights') return floats(find(`${at}.${what === 'scale' ? 'weight' : 'bias'}`, shape));
  return transposed(floats(find(`${at}.weight`, [shape[1], shape[0]])), shape[1], shape[0]);
}

/** PyTorch has a row per output, we one per input. */
function transposed(numbers: Float32Array, rows: number, columns: number): Float32Array {
  const turned = new Float32Array(sizeOf([rows, columns]));
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      turned[column * rows + row] = numbers[row * columns + column];
  return turned;
}
