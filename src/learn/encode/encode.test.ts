import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyBert, tinyDistilBert, writeCheckpoint } from '../../../test/tiny-bert.ts';
import { readPretrainedFolder } from '../../data/pretrained-folder.ts';
import { Random } from '../../math/random.ts';
import { gradients } from '../../nn/gradient.ts';
import { input, type Value } from '../../nn/graph.ts';
import { mul, sum } from '../../nn/ops.ts';
import { evaluate } from '../../nn/reference.ts';
import type { Tensors } from '../../parts.ts';
import { trainSubwords } from '../../text/subword-trainer.ts';
import { buildEncoder, type EncoderShape } from './encoder.ts';
import { readPretrained } from './pretrained.ts';
import type { TransformerShape } from './transformer.ts';

const transformer: TransformerShape = {
  kind: 'transformer',
  tokens: 11,
  width: 8,
  layers: 2,
  heads: 2,
  inner: 12,
  places: 6,
  activation: 'gelu',
  epsilon: 1e-5,
  dropout: 0.1,
};
const bag = { kind: 'bag', tokens: 11, width: 8 } as const;
const shapes: Record<string, EncoderShape> = {
  'a bag with mean': { ...bag, pooling: 'mean' },
  'a bag with attention': { ...bag, pooling: 'attention' },
  'a transformer': transformer,
};

/** Vectors of some sequences, all filled up to one length. */
function vectors(
  shape: EncoderShape,
  sequences: number[][],
  length: number,
  given?: Map<string, Float32Array>,
) {
  const encoder = buildEncoder(shape);
  const ids = input('ids', [sequences.length, length], 'int32');
  const mask = input('mask', [sequences.length, length]);
  const [filled, present] = [0, 1].map((side) =>
    sequences.flatMap((tokens) =>
      Array.from({ length }, (_, i) => (side ? Number(i < tokens.length) : (tokens[i] ?? 0))),
    ),
  );
  const drawn = [...encoder.parameters.draw(3)].map(([value, numbers]): [Value, ArrayLike<number>] => {
    // Zeros at the start would hide what they are multiplied with.
    const random = new Random('start', value.name ?? '');
    const own = numbers.every((number) => number === numbers[0])
      ? numbers.map((x) => x + 0.3 * random.normal())
      : numbers;
    return [value, given?.get(value.name ?? '') ?? own];
  });
  const values = new Map<Value, ArrayLike<number>>([...drawn, [ids, filled], [mask, present]]);
  return { encoder, values, answer: encoder.encode({ ids, mask }) };
}

const rowsOf = (numbers: ArrayLike<number>, width: number): number[][] =>
  Array.from({ length: numbers.length / width }, (_, row) =>
    Array.from(numbers).slice(row * width, (row + 1) * width),
  );

function encodeAll(...args: Parameters<typeof vectors>): number[][] {
  const { values, answer } = vectors(...args);
  return rowsOf(evaluate([answer], values)[0], answer.shape[1]);
}

const close = (a: number[], b: number[]) => {
  a.forEach((x, i) => {
    expect(x).toBeCloseTo(b[i], 5);
  });
};

describe.each(Object.entries(shapes))('%s', (_, shape) => {
  it('gives vectors of length one that do not depend on the texts beside nor on what fills them up', () => {
    const texts = [[1, 2, 3], [4], [5, 6, 7, 8]];
    const together = encodeAll(shape, texts, 6);
    together.forEach((vector, i) => {
      expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
      close(vector, encodeAll(shape, [texts[i]], texts[i].length)[0]);
    });
  });

  it(`${shape.kind === 'bag' ? 'does not look' : 'looks'} at the order of tokens`, () => {
    const [one, other] = encodeAll(
      shape,
      [
        [1, 2, 3],
        [3, 1, 2],
      ],
      3,
    );
    const apart = Math.hypot(...one.map((x, i) => x - other[i]));
    if (shape.kind === 'bag') expect(apart).toBeLessThan(1e-6);
    else expect(apart).toBeGreaterThan(1e-3);
  });

  it('passes gradients to every weight', () => {
    const { encoder, values, answer } = vectors(shape, [[1, 2, 3], [4]], 4);
    const mixed = sum(mul(answer, input('toward', answer.shape)));
    const toward = [...mixed.inputs[0].inputs].find(({ name }) => name === 'toward') as Value;
    const random = new Random('toward');
    values.set(
      toward,
      Array.from({ length: 16 }, () => random.normal()),
    );
    const slopes = evaluate(gradients(mixed, encoder.parameters.values), values);
    slopes.forEach((slope, i) => {
      const name = encoder.parameters.values[i].name ?? '';
      // A key's bias adds the same to all scores of a row, which a softmax does not see.
      if (!name.includes('key.bias')) expect([name, slope.some((x) => x !== 0)]).toEqual([name, true]);
    });
  });
});

/** BERT for one text, number by number. */
function slowBert(
  tensors: Tensors,
  ids: number[],
  { width, layers, heads, epsilon }: TransformerShape,
): number[] {
  const at = (name: string, row: number) =>
    Array.from(tensors[name].data).slice(row * width, (row + 1) * width);
  const apply = (x: number[], name: string) => {
    const [rows, cols] = tensors[`${name}.weight`].shape;
    const [w, b] = [tensors[`${name}.weight`].data, tensors[`${name}.bias`].data];
    return Array.from({ length: rows }, (_, o) =>
      x.reduce((total, xi, i) => total + xi * w[o * cols + i], b[o]),
    );
  };
  const norm = (x: number[], name: string) => {
    const mean = x.reduce((a, b) => a + b) / width;
    const spread = Math.sqrt(x.reduce((a, b) => a + (b - mean) ** 2, 0) / width + epsilon);
    const [w, b] = [tensors[`${name}.weight`].data, tensors[`${name}.bias`].data];
    return x.map((xi, i) => ((xi - mean) / spread) * w[i] + b[i]);
  };
  const plus = (a: number[], b: number[]) => a.map((x, i) => x + b[i]);
  const gelu = (x: number) => {
    let integral = 0;
    for (let i = 0; i < 4000; i++) integral += Math.exp(-0.5 * (((i + 0.5) * x) / 4000) ** 2);
    return x * (0.5 + (integral * x) / 4000 / Math.sqrt(2 * Math.PI));
  };
  let states = ids.map((id, place) =>
    norm(
      plus(
        plus(at('embeddings.word_embeddings.weight', id), at('embeddings.position_embeddings.weight', place)),
        at('embeddings.token_type_embeddings.weight', 0),
      ),
      'embeddings.LayerNorm',
    ),
  );
  const size = width / heads;
  for (let i = 0; i < layers; i++) {
    const base = `encoder.layer.${i}`;
    const [q, k, v] = ['query', 'key', 'value'].map((part) =>
      states.map((x) => apply(x, `${base}.attention.self.${part}`)),
    );
    states = states.map((x, t) => {
      const mixed = Array.from({ length: heads }, (_, head) => {
        const part = (y: number[]) => y.slice(head * size, (head + 1) * size);
        const scores = k.map(
          (key) => part(q[t]).reduce((s, qi, j) => s + qi * part(key)[j], 0) / Math.sqrt(size),
        );
        const exps = scores.map((s) => Math.exp(s));
        const total = exps.reduce((a, b) => a + b);
        return Array.from({ length: size }, (_, j) =>
          exps.reduce((s, e, u) => s + (e / total) * part(v[u])[j], 0),
        );
      }).flat();
      const attended = norm(
        plus(x, apply(mixed, `${base}.attention.output.dense`)),
        `${base}.attention.output.LayerNorm`,
      );
      const inner = apply(attended, `${base}.intermediate.dense`).map(gelu);
      return norm(plus(attended, apply(inner, `${base}.output.dense`)), `${base}.output.LayerNorm`);
    });
  }
  const pooled = states.reduce(plus).map((x) => x / ids.length);
  return pooled.map((x) => x / Math.hypot(...pooled));
}

const { config } = tinyBert(transformer);
const bertTensors = () => tinyBert(transformer).tensors;

describe('a pretrained encoder', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'umbel-pretrained-'));
    const file = trainSubwords(['aa ab'], { size: 11, minCount: 1, lowercase: true });
    await writeCheckpoint(folder, file, tinyBert(transformer));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('computes what BERT computes from its files', async () => {
    const read = await readPretrainedFolder(folder);
    const { shape, weights } = readPretrained(read.config, read.tensors);
    expect(shape).toEqual(transformer);
    for (const ids of [[1, 2, 3, 4], [7], [10, 0, 10]])
      close(encodeAll(shape, [ids], 5, weights)[0], slowBert(read.tensors, ids, shape));
  });

  it('reads DistilBERT, which calls everything by other names, and names with the family before them', () => {
    const given = bertTensors();
    given['embeddings.token_type_embeddings.weight'].data.fill(0);
    const distil = tinyDistilBert(transformer);
    const { shape, weights } = readPretrained(distil.config, distil.tensors);
    close(encodeAll(shape, [[4, 5, 6]], 3, weights)[0], slowBert(given, [4, 5, 6], shape));
  });

  it('refuses families, sizes and weights that do not fit, naming them', () => {
    const tensors = bertTensors();
    expect(() => readPretrained({ ...config, model_type: 'gpt2' }, tensors)).toThrow(
      'config.json: model_type must be one of bert, distilbert, got "gpt2"',
    );
    expect(() => readPretrained({ ...config, hidden_size: 9 }, tensors)).toThrow(
      'num_attention_heads must divide 9, got 2',
    );
    expect(() => readPretrained({ ...config, num_hidden_layers: -1 }, tensors)).toThrow(
      'num_hidden_layers must be a positive integer, got -1',
    );
    expect(() => readPretrained({ ...config, vocab_size: 12 }, tensors)).toThrow(
      'embeddings.word_embeddings.weight must have the shape that config.json says, [12, 8], got "[11, 8]"',
    );
    expect(() => readPretrained({ ...config, num_hidden_layers: 3 }, tensors)).toThrow(
      'must hold every weight of the network, got "encoder.layer.2.attention.self.query.weight"',
    );
  });

  it('refuses folders that lack a file or hold a broken one, naming it', async () => {
    await expect(readPretrainedFolder(join(folder, 'absent'))).rejects.toThrow(
      /absent.*tokenizer\.json: a pretrained/,
    );
    const broken = await mkdtemp(join(tmpdir(), 'umbel-broken-'));
    await writeFile(join(broken, 'tokenizer.json'), '{}');
    await writeFile(join(broken, 'config.json'), '{"model_type"');
    await expect(readPretrainedFolder(broken)).rejects.toThrow(/config\.json: file must be JSON/);
    await writeFile(join(broken, 'config.json'), '[]');
    await expect(readPretrainedFolder(broken)).rejects.toThrow(/config\.json: file must hold a JSON object/);
    await writeFile(join(broken, 'config.json'), '{}');
    await writeFile(join(broken, 'model.safetensors'), 'short');
    await expect(readPretrainedFolder(broken)).rejects.toThrow(
      /model\.safetensors: safetensors: file must have/,
    );
    await rm(broken, { recursive: true });
  });
});
