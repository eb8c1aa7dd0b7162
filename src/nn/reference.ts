// What every operator computes, slowly and in double precision: the obvious reference beside the runtime. Only tests
// use it.
import { ancestors, type Shape, sizeOf, type Value } from './graph.ts';

type Numbers = Float64Array;

/** The numbers of these values, given those of all inputs. */
export function evaluate(wanted: readonly Value[], feeds: ReadonlyMap<Value, ArrayLike<number>>): Numbers[] {
  const known = new Map<Value, Numbers>();
  for (const value of ancestors(wanted)) {
    const given = value.data ?? feeds.get(value);
    if (given) known.set(value, Float64Array.from(given));
    else
      known.set(
        value,
        compute(
          value,
          value.inputs.map((input) => known.get(input) ?? new Float64Array()),
        ),
      );
  }
  return wanted.map((value) => known.get(value) ?? new Float64Array());
}

const elementwise: Record<string, (...x: number[]) => number> = {
  Add: (a, b) => a + b,
  Sub: (a, b) => a - b,
  Mul: (a, b) => a * b,
  Div: (a, b) => a / b,
  Greater: (a, b) => Number(a > b),
  Equal: (a, b) => Number(a === b),
  Where: (condition, a, b) => (condition ? a : b),
  Clip: (x, low, high) => Math.min(Math.max(x, low), high),
  Neg: (x) => -x,
  Exp: Math.exp,
  Log: Math.log,
  Sqrt: Math.sqrt,
  Tanh: Math.tanh,
  Sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  Relu: (x) => Math.max(x, 0),
  Abs: Math.abs,
  Sign: Math.sign,
  Erf: erf,
  Identity: (x) => x,
  Cast: (x) => x,
};

function compute(value: Value, x: Numbers[]): Numbers {
  const { op, shape, inputs, attributes } = value;
  const of = inputs.map((input) => input.shape);
  const simple = elementwise[op];
  if (simple) return fill(shape, (at) => simple(...x.map((data, i) => data[broadcastPlace(at, of[i])])));
  const along = Number(attributes.axis);
  switch (op) {
    case 'LeakyRelu':
      return x[0].map((number) => (number > 0 ? 1 : Number(attributes.alpha)) * number);
    case 'Reshape':
      return x[0];
    case 'Expand':
      return fill(shape, (at) => x[0][broadcastPlace(at, of[0])]);
    case 'Transpose':
      return fill(shape, (at) => {
        const order = attributes.perm as number[];
        return x[0][
          place(
            of[0].map((_, axis) => at[order.indexOf(axis)]),
            of[0],
          )
        ];
      });
    case 'Concat':
      return fill(shape, (at) => {
        let part = 0;
        let rest = at[along];
        while (rest >= of[part][along]) rest -= of[part++][along];
        return x[part][place(at.with(along, rest), of[part])];
      });
    case 'Slice':
      return fill(shape, (at) => x[0][place(at.with(x[3][0], at[x[3][0]] + x[1][0]), of[0])]);
    case 'Pad':
      return fill(shape, (at) => {
        const from = at.map((i, axis) => i - x[1][axis]);
        return from.every((i, axis) => i >= 0 && i < of[0][axis]) ? x[0][place(from, of[0])] : 0;
      });
    case 'MatMul':
      return multiply(shape, x, of, false, false);
    case 'Gemm':
      return multiply(shape, x, of, attributes.transA === 1, attributes.transB === 1);
    case 'Gather': {
      const width = sizeOf(of[0].slice(1));
      return Float64Array.from(
        { length: sizeOf(shape) },
        (_, i) => x[0][x[1][Math.floor(i / width)] * width + (i % width)],
      );
    }
    case 'GatherElements':
      return fill(shape, (at, i) => x[0][place(at.with(along, x[1][i]), of[0])]);
    case 'ScatterND': {
      const [sum, width] = [x[0].slice(), sizeOf(shape.slice(1))];
      x[2].forEach((number, i) => {
        sum[x[1][Math.floor(i / width)] * width + (i % width)] += number;
      });
      return sum;
    }
    case 'ScatterElements': {
      const sum = x[0].slice();
      each(of[2], (at, i) => {
        sum[place(at.with(along, x[1][i]), shape)] += x[2][i];
      });
      return sum;
    }
    case 'ReduceSum':
      return reduce(x[0], of[0], [...x[1]], 0, (a, b) => a + b);
    case 'ReduceMax':
      return reduce(x[0], of[0], [...x[1]], Number.NEGATIVE_INFINITY, Math.max);
    case 'Softmax':
      return logSoftmax(x[0], of[0], along).map(Math.exp);
    case 'LogSoftmax':
      return logSoftmax(x[0], of[0], along);
    case 'TopK':
      return topK(x[0], of[0], shape, (row, i) => row[i]);
    case 'LayerNormalization': {
      const [means, spreads] = moments(x[0], of[0], Number(attributes.epsilon));
      const width = of[1][0];
      return x[0].map((number, i) => {
        const row = Math.floor(i / width);
        return (number - means[row]) * spreads[row] * x[1][i % width] + x[2][i % width];
      });
    }
    case 'Output':
      return further(value, x);
    default:
      throw new Error(`the reference must know ${op}`);
  }
}

/** A further output of an operator, made again from its inputs. */
function further({ inputs, attributes, shape }: Value, x: Numbers[]): Numbers {
  const index = Number(attributes.index);
  if (index === 0) return x[0];
  if (inputs[0].op === 'LayerNormalization')
    return moments(x[1], inputs[1].shape, Number(inputs[0].attributes.epsilon))[index - 1];
  return topK(x[1], inputs[1].shape, shape, (_, i) => i);
}

function multiply(shape: Shape, [a, b]: Numbers[], of: Shape[], flipA: boolean, flipB: boolean): Numbers {
  const inner = of[0][of[0].length - (flipA ? 2 : 1)];
  return fill(shape, (at) => {
    const [batch, row, column] = [at.slice(0, -2), at[at.length - 2], at[at.length - 1]];
    let total = 0;
    for (let k = 0; k < inner; k++) {
      const left = broadcastPlace([...batch, ...(flipA ? [k, row] : [row, k])], of[0]);
      const right = broadcastPlace([...batch, ...(flipB ? [column, k] : [k, column])], of[1]);
      total += a[left] * b[right];
    }
    return total;
  });
}

function reduce(
  x: Numbers,
  shape: Shape,
  axes: number[],
  start: number,
  join: (a: number, b: number) => number,
): Numbers {
  const kept = shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  const out = new Float64Array(sizeOf(kept)).fill(start);
  each(shape, (at, i) => {
    const to = broadcastPlace(at, kept);
    out[to] = join(out[to], x[i]);
  });
  return out;
}

function logSoftmax(x: Numbers, shape: Shape, axis: number): Numbers {
  const kept = shape.with(axis, 1);
  const sums = reduce(x.map(Math.exp), shape, [axis], 0, (a, b) => a + b);
  return fill(shape, (at, i) => x[i] - Math.log(sums[broadcastPlace(at, kept)]));
}

/** Means and inverse standard deviations of rows. */
function moments(x: Numbers, shape: Shape, epsilon: number): [Numbers, Numbers] {
  const rows = rowsOf(x, shape);
  const mean = (row: Numbers) => row.reduce((a, b) => a + b, 0) / row.length;
  const means = Float64Array.from(rows, mean);
  const spread = (row: Numbers, i: number) =>
    1 / Math.sqrt(mean(row.map((number) => (number - means[i]) ** 2)) + epsilon);
  return [means, Float64Array.from(rows.map(spread))];
}

function topK(x: Numbers, shape: Shape, wanted: Shape, pick: (row: Numbers, i: number) => number): Numbers {
  const best = (row: Numbers) =>
    [...row.keys()].sort((a, b) => row[b] - row[a] || a - b).slice(0, wanted[wanted.length - 1]);
  return Float64Array.from(rowsOf(x, shape).flatMap((row) => best(row).map((i) => pick(row, i))));
}

function rowsOf(x: Numbers, shape: Shape): Numbers[] {
  const width = shape[shape.length - 1];
  return Array.from({ length: x.length / width }, (_, row) => x.slice(row * width, (row + 1) * width));
}

/** Series for small numbers, continued fraction for large ones. */
function erf(x: number): number {
  const z = Math.abs(x);
  const scale = (2 / Math.sqrt(Math.PI)) * Math.exp(-z * z);
  if (z < 2.5) {
    let [sum, term] = [z, z];
    for (let n = 1; n < 60; n++) sum += term *= (2 * z * z) / (2 * n + 1);
    return Math.sign(x) * scale * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (z + fraction);
  return Math.sign(x) * (1 - scale / 2 / (z + fraction));
}

function fill(shape: Shape, number: (at: number[], i: number) => number): Numbers {
  const out = new Float64Array(sizeOf(shape));
  each(shape, (at, i) => {
    out[i] = number(at, i);
  });
  return out;
}

function each(shape: Shape, visit: (at: number[], i: number) => void): void {
  for (let i = 0; i < sizeOf(shape); i++) {
    let rest = i;
    const at = shape.map(() => 0);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      at[axis] = rest % shape[axis];
      rest = Math.floor(rest / shape[axis]);
    }
    visit(at, i);
  }
}

const place = (at: readonly number[], shape: Shape): number =>
  shape.reduce((index, size, axis) => index * size + at[axis], 0);

/** Where a larger tensor's place lies in one that is repeated to its size. */
const broadcastPlace = (at: readonly number[], shape: Shape): number =>
  place(
    at.slice(at.length - shape.length).map((i, axis) => (shape[axis] === 1 ? 0 : i)),
    shape,
  );
