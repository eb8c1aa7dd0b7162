import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../math/random.ts';
import { gradients } from './gradient.ts';
import { constant, input, type Shape, sizeOf, type Value } from './graph.ts';
import * as layers from './layers.ts';
import { encodeModel, inputsOf } from './onnx.ts';
import * as ops from './ops.ts';
import { evaluate } from './reference.ts';
import { Session } from './session.ts';

const runtime = await import('onnxruntime-node').then(
  () => true,
  () => false,
);

const { add, div, matmul, mul, neg, sub, sum } = ops;
const sizes = (least: number, most: number) =>
  fc.array(fc.integer({ min: 1, max: 4 }), { minLength: least, maxLength: most });
const anyShape = sizes(0, 3);
const someAxis = sizes(1, 3);
const one = (shape: fc.Arbitrary<number[]>) => shape.map((found): Shape[] => [found]);

/** Two shapes that broadcast: axes of either may be 1 or missing in front. */
const pairOfShapes = fc
  .tuple(anyShape, fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }), fc.nat(3), fc.boolean())
  .map(([full, ones, dropped, swapped]): Shape[] => {
    const other = full.map((size, axis) => (ones[axis] ? 1 : size)).slice(Math.min(dropped, full.length));
    return swapped ? [other, full] : [full, other];
  });

const matrices = fc
  .tuple(sizes(0, 2), sizes(3, 3), fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean())
  .map(([batch, [rows, inner, columns], flipA, flipB, ones, bare]) => {
    const before = bare ? [] : batch.map((size) => (ones ? 1 : size));
    const shapes = [
      [...batch, ...(flipA ? [inner, rows] : [rows, inner])],
      [...before, ...(flipB ? [columns, inner] : [inner, columns])],
    ];
    return { shapes, transposed: { a: flipA, b: flipB } };
  });

interface Case {
  shapes: fc.Arbitrary<Shape[]>;
  build: (...x: Value[]) => Value;
  /** Values lie between these; -2 and 2 unless told. */
  between?: [number, number];
}

const smooth = (build: Case['build'], between?: Case['between']): Case => ({
  shapes: one(anyShape),
  build,
  between,
});
const rows = (numbers: number[], shape: Shape = [numbers.length]) => constant(numbers, shape, 'int64');

const cases: Record<string, Case> = {
  add: { shapes: pairOfShapes, build: add },
  sub: { shapes: pairOfShapes, build: sub },
  mul: { shapes: pairOfShapes, build: mul },
  div: { shapes: pairOfShapes, build: div, between: [0.5, 2.5] },
  where: { shapes: pairOfShapes, build: (a, b) => ops.where(ops.greater(a, 0.1), mul(a, a), neg(b)) },
  neg: smooth(neg),
  exp: smooth(ops.exp),
  log: smooth(ops.log, [0.5, 2.5]),
  sqrt: smooth(ops.sqrt, [0.5, 2.5]),
  tanh: smooth(ops.tanh),
  sigmoid: smooth(ops.sigmoid),
  softplus: smooth(layers.softplus),
  erf: smooth(ops.erf, [-4, 4]),
  gelu: smooth(layers.gelu),
  relu: smooth(ops.relu),
  leakyRelu: smooth((x) => layers.leakyRelu(x, 0.01)),
  unit: { shapes: one(someAxis), build: layers.unit, between: [0.5, 2] },
  abs: smooth(ops.abs),
  clip: smooth((x) => ops.clip(x, -0.91, 1.23)),
  reshape: smooth((x) => ops.reshape(mul(x, x), [sizeOf(x.shape), 1])),
  transpose: { shapes: one(sizes(2, 3)), build: (x) => ops.transpose(x) },
  'transpose in an order': { shapes: one(sizes(3, 3)), build: (x) => ops.transpose(x, [2, 0, 1]) },
  expand: { shapes: one(sizes(0, 1)), build: (x) => ops.expand(x, [2, 3, ...x.shape]) },
  concat: {
    shapes: fc
      .tuple(someAxis, fc.integer({ min: 1, max: 3 }))
      .map(([shape, size]) => [shape, shape.with(-1, size)]),
    build: (a, b) => ops.concat([a, b, a], -1),
  },
  slice: { shapes: one(sizes(2, 3)), build: (x) => ops.slice(x, 1, x.shape[1] > 1 ? 1 : 0, x.shape[1]) },
  gather: { shapes: one(someAxis), build: (x) => ops.gather(x, rows([0, x.shape[0] - 1, 0, 0], [2, 2])) },
  gatherElements: {
    shapes: one(sizes(1, 1)),
    build: (x) => ops.gatherElements(x, rows([0, x.shape[0] - 1, 0])),
  },
  topK: { shapes: one(someAxis), build: (x) => ops.topK(x, Math.min(2, x.shape[x.shape.length - 1])).values },
  sum: { shapes: one(anyShape), build: (x) => sum(mul(x, x)) },
  'sum over the last axis': { shapes: one(someAxis), build: (x) => sum(x, [-1], true) },
  'sum over the first axes': { shapes: one(sizes(3, 3)), build: (x) => sum(x, [1, 0]) },
  mean: { shapes: one(sizes(2, 3)), build: (x) => ops.mean(x, [0, -1]) },
  max: { shapes: one(sizes(2, 3)), build: (x) => ops.max(x, [1]) },
  'max over all': { shapes: one(someAxis), build: (x) => ops.max(x, undefined, true) },
  softmax: { shapes: one(someAxis), build: (x) => layers.softmax(x) },
  'softmax over the first axis': { shapes: one(sizes(2, 3)), build: (x) => layers.softmax(x, 0) },
  logSumExp: { shapes: one(sizes(2, 3)), build: (x) => layers.logSumExp(x, [1]) },
  logSoftmax: { shapes: one(sizes(1, 3)), build: (x) => layers.logSoftmax(x, 0) },
  layerNorm: {
    shapes: sizes(1, 3).map((shape): Shape[] => {
      const wide = shape.with(-1, shape[shape.length - 1] + 2);
      return [wide, wide.slice(-1), wide.slice(-1)];
    }),
    build: (x, scale, bias) => layers.layerNorm(x, scale, bias),
  },
  linear: {
    shapes: fc
      .tuple(someAxis, fc.integer({ min: 1, max: 3 }))
      .map(([shape, out]) => [shape, [shape[shape.length - 1], out], [out]]),
    build: layers.linear,
  },
};

/** Numbers that differ from each other and from zero, so that no finite step crosses a kink. */
function spread(size: number, [low, high]: [number, number], seed: number): number[] {
  return [...new Random(seed).permutation(size)].map((i) => low + ((i + 0.37) / size) * (high - low));
}

/** One number that weighs every element of a value differently. */
function weighed(x: Value, seed: number): Value {
  return sum(mul(x, constant(spread(sizeOf(x.shape), [-1, 1.5], seed), x.shape)));
}

/** Central differences in double precision. */
function slopes(loss: Value, inputs: Value[], data: number[][]): number[][] {
  const step = 1e-5;
  const at = (numbers: number[][]) =>
    evaluate([loss], new Map(inputs.map((value, i) => [value, numbers[i]])))[0][0];
  const moved = (i: number, j: number, by: number) => at(data.with(i, data[i].with(j, data[i][j] + by)));
  return data.map((numbers, i) =>
    numbers.map((_, j) => (moved(i, j, step) - moved(i, j, -step)) / (2 * step)),
  );
}

function expectClose(found: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number) {
  expect(found.length).toBe(expected.length);
  for (let i = 0; i < found.length; i++)
    expect(Math.abs(found[i] - expected[i])).toBeLessThan(tolerance * (1 + Math.abs(expected[i])));
}

/** Gradients by the program and by differences, then the same for the gradient of the gradients. */
function checkGradients(output: Value, inputs: Value[], data: number[][], seed: number) {
  const feeds = new Map(inputs.map((value, i) => [value, data[i]]));
  const check = (loss: Value) => {
    const found = gradients(loss, inputs);
    const expected = slopes(loss, inputs, data);
    evaluate(found, feeds).forEach((numbers, i) => {
      expectClose(numbers, expected[i], 1e-6);
    });
    return found;
  };
  const first = check(weighed(output, seed));
  check(first.map((gradient, i) => weighed(gradient, seed + i + 1)).reduce((a, b) => add(a, b)));
}

async function checkRuntime(wanted: Value[], inputs: Value[], data: number[][]) {
  const outputs = Object.fromEntries(wanted.map((value, i) => [`output ${i}`, value]));
  const session = await Session.open(encodeModel(outputs), { threads: 1 });
  const used = new Set(inputsOf(wanted));
  const feeds = inputs
    .filter((value) => used.has(value))
    .map((value) => [value.name, Float32Array.from(data[inputs.indexOf(value)])]);
  const results = await session.run(Object.fromEntries(feeds));
  await session.close();
  const expected = evaluate(wanted, new Map(inputs.map((value, i) => [value, data[i]])));
  expected.forEach((numbers, i) => {
    expectClose(results[`output ${i}`] as Float32Array, numbers, 1e-4);
  });
}

function prepare(
  { build, between = [-2, 2] }: Pick<Case, 'build' | 'between'>,
  shapes: Shape[],
  seed: number,
) {
  const inputs = shapes.map((shape, i) => input(`x${i}`, shape));
  const data = shapes.map((shape, i) => spread(sizeOf(shape), between, seed + i));
  return { inputs, data, output: build(...inputs) };
}

describe('operations', () => {
  it.each(Object.entries(cases))('%s has the gradient that differences show, twice over', (_, found) => {
    const property = fc.property(found.shapes, fc.nat(1000), (shapes, seed) => {
      const { inputs, data, output } = prepare(found, shapes, seed);
      checkGradients(output, inputs, data, seed);
    });
    fc.assert(property, { numRuns: 12 });
  });

  it('matmul has the gradient that differences show, twice over, transposed or not', () => {
    const property = fc.property(matrices, fc.nat(1000), ({ shapes, transposed }, seed) => {
      const { inputs, data, output } = prepare({ build: (a, b) => matmul(a, b, transposed) }, shapes, seed);
      checkGradients(output, inputs, data, seed);
    });
    fc.assert(property, { numRuns: 25 });
  });

  it.runIf(runtime).each(Object.entries(cases))(
    '%s and its gradients run as the reference says',
    async (_, found) => {
      const property = fc.asyncProperty(found.shapes, fc.nat(1000), async (shapes, seed) => {
        const { inputs, data, output } = prepare(found, shapes, seed);
        await checkRuntime([output, ...gradients(weighed(output, seed), inputs)], inputs, data);
      });
      await fc.assert(property, { numRuns: 4 });
    },
  );

  it.runIf(runtime)('matmul and its gradients run as the reference says', async () => {
    const property = fc.asyncProperty(matrices, fc.nat(1000), async ({ shapes, transposed }, seed) => {
      const { inputs, data, output } = prepare({ build: (a, b) => matmul(a, b, transposed) }, shapes, seed);
      await checkRuntime([output, ...gradients(weighed(output, seed), inputs)], inputs, data);
    });
    await fc.assert(property, { numRuns: 15 });
  });

  it('tied maxima share the gradient', () => {
    const x = input('x', [3]);
    const [gradient] = gradients(ops.max(x), [x]);
    expect([...evaluate([gradient], new Map([[x, [2, 1, 2]]]))[0]]).toEqual([0.5, 0, 0.5]);
  });

  it('no gradient passes what is stopped, cut off or flat', () => {
    const x = input('x', [2]);
    const [gradient] = gradients(sum(mul(x, ops.stopGradient(x))), [x]);
    expect([...evaluate([gradient], new Map([[x, [2, 3]]]))[0]]).toEqual([2, 3]);
    const [none] = gradients(sum(ops.sign(x)), [x]);
    expect([...evaluate([none], new Map([[x, [2, 3]]]))[0]]).toEqual([0, 0]);
    const [clipped] = gradients(sum(ops.clip(x, 0, 2)), [x]);
    expect([...evaluate([clipped], new Map([[x, [2, 3]]]))[0]]).toEqual([1, 0]);
  });
});

/** A transformer layer: attention over 2 heads, residuals, layer norms, gelu. */
function attentionBlock(x: Value, [qkv, out, up, down, scale, bias]: Value[]): Value {
  const [batch, length, width] = x.shape;
  const parts = matmul(x, qkv);
  const heads = [0, 1, 2].map((i) =>
    ops.transpose(
      ops.reshape(ops.slice(parts, 2, i * width, (i + 1) * width), [batch, length, 2, width / 2]),
      [0, 2, 1, 3],
    ),
  );
  const weights = layers.softmax(mul(matmul(heads[0], heads[1], { b: true }), Math.sqrt(2 / width)));
  const mixed = ops.reshape(ops.transpose(matmul(weights, heads[2]), [0, 2, 1, 3]), x.shape);
  const normal = layers.layerNorm(add(x, matmul(mixed, out)), scale, bias);
  return layers.layerNorm(add(normal, matmul(layers.gelu(matmul(normal, up)), down)), scale, bias);
}

describe('whole programs', () => {
  const blockShapes: Shape[] = [[2, 3, 4], [4, 12], [4, 4], [4, 6], [6, 4], [4], [4]];
  const block = (...x: Value[]) => attentionBlock(x[0], x.slice(1));

  it('the gradients of an attention block are what differences show', () => {
    const { inputs, data, output } = prepare({ build: block, between: [-0.9, 1] }, blockShapes, 3);
    const loss = weighed(output, 5);
    const found = evaluate(gradients(loss, inputs), new Map(inputs.map((value, i) => [value, data[i]])));
    const expected = slopes(loss, inputs, data);
    found.forEach((numbers, i) => {
      expectClose(numbers, expected[i], 1e-5);
    });
  });

  it.runIf(runtime)('an attention block runs as the reference says', async () => {
    const { inputs, data, output } = prepare({ build: block, between: [-0.9, 1] }, blockShapes, 4);
    await checkRuntime([output, ...gradients(weighed(output, 5), inputs)], inputs, data);
  });

  it('a small network with cross-entropy has the gradients that differences show, twice over', () => {
    const shapes: Shape[] = [[3, 4], [4, 5], [5], [5, 3], [3]];
    const targets = rows([0, 2, 1], [3, 1]);
    const build = (...[x, w, b, v, c]: Value[]) =>
      neg(
        ops.gatherElements(layers.logSoftmax(layers.linear(ops.tanh(layers.linear(x, w, b)), v, c)), targets),
      );
    const { inputs, data, output } = prepare({ build }, shapes, 8);
    checkGradients(output, inputs, data, 2);
  });
});

describe('shapes that do not fit', () => {
  const x = input('x', [2, 3]);
  const y = input('y', [4, 5]);
  it.each<[string, () => unknown, string]>([
    ['add', () => add(x, y), 'add: shapes must broadcast, got [2, 3] and [4, 5]'],
    ['matmul', () => matmul(x, y), 'matmul: inner sizes must agree, got [2, 3] and [4, 5]'],
    ['reshape', () => ops.reshape(x, [5]), 'reshape: sizes must agree, got [2, 3] and [5]'],
    [
      'transpose',
      () => ops.transpose(x, [0, 0]),
      'transpose: order [0, 0] must name every axis once, got [2, 3]',
    ],
    ['concat', () => ops.concat([x, y], 0), 'concat: all axes but 0 must agree, got [2, 3] and [4, 5]'],
    ['slice', () => ops.slice(x, 1, 1, 4), 'slice: 1 to 4 must lie on axis 1, got [2, 3]'],
    ['sum', () => sum(x, [2]), 'sum: axis 2 must exist, got [2, 3]'],
    [
      'layerNorm',
      () => layers.layerNorm(x, y, y),
      'layerNorm: scale and bias must be as long as a row, got [2, 3] and [4, 5] and [4, 5]',
    ],
    ['topK', () => ops.topK(x, 4), 'topK: 4 must not exceed the last axis, got [2, 3]'],
    ['gradients', () => gradients(x, [x]), 'gradients: the loss must be one number, got [2, 3]'],
    ['input', () => input('x', [0]), 'input x: sizes must be positive integers, got "[0]"'],
    ['gather', () => ops.gather(x, y), 'gather: row numbers must be integers, got "float32"'],
  ])('%s names itself and the shapes', (_, build, message) => {
    expect(build).toThrow(message);
  });
});
