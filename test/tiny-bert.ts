// Tiny BERTs and DistilBERTs with random weights, as Hugging Face would save them.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeTensors } from '../src/data/safetensors.ts';
import type { TransformerShape } from '../src/learn/encode/transformer.ts';
import { Random } from '../src/math/random.ts';
import type { Json, Tensors } from '../src/parts.ts';

export type Checkpoint = { config: Record<string, Json>; tensors: Tensors };

/** The larger the deviation, the wilder. */
export function tinyBert(
  { tokens, width, layers, heads, inner, places }: TransformerShape,
  deviation = 0.5,
): Checkpoint {
  const shapesOf: [string, number[]][] = [
    ['embeddings.word_embeddings.weight', [tokens, width]],
    ['embeddings.position_embeddings.weight', [places, width]],
    ['embeddings.token_type_embeddings.weight', [2, width]],
    ['embeddings.LayerNorm.weight', [width]],
    ['embeddings.LayerNorm.bias', [width]],
  ];
  const dense = (name: string, to: number, from: number) => {
    shapesOf.push([`${name}.weight`, [to, from]], [`${name}.bias`, [to]]);
  };
  for (let i = 0; i < layers; i++) {
    const base = `encoder.layer.${i}`;
    for (const part of ['self.query', 'self.key', 'self.value', 'output.dense'])
      dense(`${base}.attention.${part}`, width, width);
    dense(`${base}.intermediate.dense`, inner, width);
    dense(`${base}.output.dense`, width, inner);
    for (const norm of ['attention.output', 'output'])
      shapesOf.push(
        [`${base}.${norm}.LayerNorm.weight`, [width]],
        [`${base}.${norm}.LayerNorm.bias`, [width]],
      );
  }
  const tensors = shapesOf.map(([name, shape]) => {
    const random = new Random('bert', name);
    const size = shape.reduce((a, b) => a * b);
    const middle = name.endsWith('LayerNorm.weight') ? 1 : 0;
    const draw = () => middle + deviation * random.normal();
    return [name, { shape, data: Float32Array.from({ length: size }, draw) }];
  });
  const config = {
    model_type: 'bert',
    vocab_size: tokens,
    hidden_size: width,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    intermediate_size: inner,
    max_position_embeddings: places,
    hidden_act: 'gelu',
    layer_norm_eps: 1e-5,
  };
  return { config, tensors: Object.fromEntries(tensors) };
}

const typeName = 'embeddings.token_type_embeddings.weight';

/** The same network as DistilBERT, which has no types of tokens and calls everything by other names. */
export function tinyDistilBert(shape: TransformerShape, deviation?: number): Checkpoint {
  const { [typeName]: _, ...others } = tinyBert(shape, deviation).tensors;
  const renamed = Object.entries(others).map(([name, tensor]) => [distilName(name), tensor]);
  const config = {
    model_type: 'distilbert',
    vocab_size: shape.tokens,
    dim: shape.width,
    n_layers: shape.layers,
    n_heads: shape.heads,
    hidden_dim: shape.inner,
    max_position_embeddings: shape.places,
    activation: 'gelu',
    layer_norm_eps: 1e-5,
  };
  return { config, tensors: Object.fromEntries(renamed) };
}

const distilName = (name: string) =>
  `distilbert.${name
    .replace('encoder.layer', 'transformer.layer')
    .replace(
      /attention\.self\.(q)uery|attention\.self\.(k)ey|attention\.self\.(v)alue/,
      'attention.$1$2$3_lin',
    )
    .replace('attention.output.dense', 'attention.out_lin')
    .replace('attention.output.LayerNorm', 'sa_layer_norm')
    .replace('intermediate.dense', 'ffn.lin1')
    .replace('output.dense', 'ffn.lin2')
    .replace(/(layer\.\d+)\.output\.LayerNorm/, '$1.output_layer_norm')}`;

/** Makes the folder if there is none. */
export async function writeCheckpoint(folder: string, tokenizer: Json, { config, tensors }: Checkpoint) {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'config.json'), JSON.stringify(config));
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  await writeFile(join(folder, 'model.safetensors'), Buffer.concat(encodeTensors(tensors)));
}
