// The operations of programs, each with its shape rule and its gradient. Every one is a standard ONNX operator or made
// of a few; gradients are written with the same operations.
import { badUsage } from '../errors.ts';
import {
  axisOf,
  type Backward,
  badShapes,
  broadcast,
  constant,
  type Kind,
  lift,
  makeValue,
  type Operand,
  type Shape,
  sameShape,
  show,
  sizeOf,
  typeNumbers,
  type Value,
} from './graph.ts';

// One number at a time.

type Derivative = (gradient: Value, x: Value, y: Value) => Value;

const unary =
  (op: string, derivative?: Derivative) =>
  (x: Value): Value => {
    const y: Value = makeValue(op, [x], x.shape, {
      kind: x.kind,
      backward: derivative && ((gradient) => [derivative(gradient, x, y)]),
    });
    return y;
  };

export const neg = unary('Neg', (gradient) => neg(gradient));
export const exp = unary('Exp', (gradient, _, y) => mul(gradient, y));
export const log = unary('Log', (gradient, x) => div(gradient, x));
export const sqrt = unary('Sqrt', (gradient, _, y) => div(mul(gradient, 0.5), y));
export const tanh = unary('Tanh', (gradient, _, y) => mul(gradient, sub(1, mul(y, y))));
export const sigmoid = unary('Sigmoid', (gradient, _, y) => mul(gradient, mul(y, sub(1, y))));
export const relu = unary('Relu', (gradient, _, y) => mul(gradient, toFloat(greater(y, 0))));
export const abs = unary('Abs', (gradient, x) => mul(gradient, sign(x)));
const erfSlope = 2 / Math.sqrt(Math.PI);
export const erf = unary('Erf', (gradient, x) => mul(mul(gradient, erfSlope), exp(neg(mul(x, x)))));
/** -1, 0 or 1; flat, so no gradient passes. */
export const sign = unary('Sign');
/** The value itself, through which no gradient passes. */
export const stopGradient = unary('Identity');

/** `value`, whose gradient reaches `sources` by a rule of its own: shorter than through all that `value` is made of. */
export const withGradient = (value: Value, sources: readonly Value[], backward: Backward): Value =>
  makeValue('Output', [value, ...sources], value.shape, {
    attributes: { index: 0 },
    backward: (gradient) => [undefined, ...backward(gradient)],
  });

/** Values outside the bounds become the bound; no gradient passes there. */
export function clip(x: Value, low: number, high: number): Value {
  if (!(low <= high)) throw badUsage('clip: the bounds must be in order', { value: `${low} to ${high}` });
  const y: Value = makeValue('Clip', [x, lift(low), lift(high)], x.shape, {
    backward: (gradient) => [mul(gradient, toFloat(equal(x, y)))],
  });
  return y;
}

// Two operands; shapes broadcast.

function binary(
  op: string,
  left: Operand,
  right: Operand,
  backward?: (gradient: Value, a: Value, b: Value, y: Value) => [Value, Value],
  kind: Kind = 'float32',
): Value {
  const [a, b] = [lift(left), lift(right)];
  if (a.kind !== b.kind)
    throw badUsage(`${op}: both sides must be of one kind`, { value: `${a.kind} and ${b.kind}` });
  const y: Value = makeValue(op, [a, b], broadcast(op.toLowerCase(), a.shape, b.shape), {
    kind,
    backward:
      backward &&
      ((gradient) => {
        const [forA, forB] = backward(gradient, a, b, y);
        return [sumTo(forA, a.shape), sumTo(forB, b.shape)];
      }),
  });
  return y;
}

export const add = (left: Operand, right: Operand): Value =>
  binary('Add', left, right, (gradient) => [gradient, gradient]);
export const sub = (left: Operand, right: Operand): Value =>
  binary('Sub', left, right, (gradient) => [gradient, neg(gradient)]);
export const mul = (left: Operand, right: Operand): Value =>
  binary('Mul', left, right, (gradient, a, b) => [mul(gradient, b), mul(gradient, a)]);
export const div = (left: Operand, right: Operand): Value =>
  binary('Div', left, right, (gradient, _, b, y) => [div(gradient, b), neg(div(mul(gradient, y), b))]);
export const greater = (left: Operand, right: Operand): Value =>
  binary('Greater', left, right, undefined, 'bool');
export const equal = (left: Operand, right: Operand): Value =>
  binary('Equal', left, right, undefined, 'bool');

/** `yes` where the condition holds, `no` elsewhere. */
export function where(condition: Value, yes: Operand, no: Operand): Value {
  if (condition.kind !== 'bool')
    throw badUsage('where: the condition must be bool', { value: condition.kind });
  const [a, b] = [lift(yes), lift(no)];
  const shape = broadcast('where', condition.shape, broadcast('where', a.shape, b.shape));
  return makeValue('Where', [condition, a, b], shape, {
    backward: (gradient) => [
      undefined,
      sumTo(where(condition, gradient, 0), a.shape),
      sumTo(where(condition, 0, gradient), b.shape),
    ],
  });
}

const cast = (x: Value, kind: Kind): Value =>
  x.kind === kind ? x : makeValue('Cast', [x], x.shape, { kind, attributes: { to: typeNumbers[kind] } });
/** 1 for true, 0 for false; integers as they are. */
export const toFloat = (x: Value): Value => cast(x, 'float32');

// Shapes.

const integers = (numbers: readonly number[]): Value => constant(numbers, [numbers.length], 'int64');

export function reshape(x: Value, shape: Shape): Value {
  if (sizeOf(shape) !== sizeOf(x.shape)) throw badShapes('reshape', 'sizes must agree', x.shape, shape);
  if (sameShape(shape, x.shape)) return x;
  // The first size is left to the runtime: a program saved for any number of rows has another there.
  return makeValue('Reshape', [x, integers(shape.map((size, axis) => (axis === 0 ? -1 : size)))], shape, {
    kind: x.kind,
    backward: (gradient) => [reshape(gradient, x.shape)],
  });
}

/** Axis i of the result is axis `order[i]` of x; without an order, the last two axes change places. */
export function transpose(x: Value, order: readonly number[] = lastSwapped(x.shape.length)): Value {
  const complete = order.length === x.shape.length && x.shape.every((_, axis) => order.includes(axis));
  if (!complete) throw badShapes('transpose', `order ${show(order)} must name every axis once`, x.shape);
  const back = x.shape.map((_, axis) => order.indexOf(axis));
  const shape = order.map((axis) => x.shape[axis]);
  return makeValue('Transpose', [x], shape, {
    attributes: { perm: order },
    kind: x.kind,
    backward: (gradient) => [transpose(gradient, back)],
  });
}

function lastSwapped(rank: number): number[] {
  const order = Array.from({ length: rank }, (_, axis) => axis);
  return rank < 2 ? order : [...order.slice(0, -2), rank - 1, rank - 2];
}

/** Repeats x along the axes it lacks or has with size 1. */
export function expand(x: Value, shape: Shape): Value {
  if (sameShape(shape, x.shape)) return x;
  if (!sameShape(broadcast('expand', x.shape, shape), shape))
    throw badShapes('expand', 'the shape must be larger', x.shape, shape);
  return makeValue('Expand', [x, integers(shape)], shape, {
    kind: x.kind,
    backward: (gradient) => [sumTo(gradient, x.shape)],
  });
}

export const fill = (number: number, shape: Shape): Value => expand(lift(number), shape);

/** Sums over the axes along which `shape` was repeated to become x's. */
export function sumTo(x: Value, shape: Shape): Value {
  if (sameShape(x.shape, shape)) return x;
  const added = x.shape.length - shape.length;
  const axes = x.shape.flatMap((size, axis) =>
    axis < added || (shape[axis - added] === 1 && size !== 1) ? [axis] : [],
  );
  return reshape(sum(x, axes), shape);
}

export function concat(parts: readonly Value[], axis: number): Value {
  const first = parts[0];
  if (!first) throw badUsage('concat: there must be a part');
  const along = axisOf('concat', first.shape, axis);
  for (const { shape } of parts)
    if (!sameShape(shape.with(along, 0), first.shape.with(along, 0)))
      throw badShapes('concat', `all axes but ${axis} must agree`, first.shape, shape);
  const size = parts.reduce((total, part) => total + part.shape[along], 0);
  return makeValue('Concat', parts, first.shape.with(along, size), {
    attributes: { axis: along },
    kind: first.kind,
    backward: (gradient) => {
      let start = 0;
      return parts.map((part) => {
        const from = start;
        start += part.shape[along];
        return slice(gradient, along, from, start);
      });
    },
  });
}

/** Places `from` to before `to` of an axis. */
export function slice(x: Value, axis: number, from: number, to: number): Value {
  const along = axisOf('slice', x.shape, axis);
  const size = x.shape[along];
  if (!(from >= 0 && from < to && to <= size))
    throw badShapes('slice', `${from} to ${to} must lie on axis ${axis}`, x.shape);
  if (from === 0 && to === size) return x;
  return makeValue(
    'Slice',
    [x, integers([from]), integers([to]), integers([along])],
    x.shape.with(along, to - from),
    {
      kind: x.kind,
      backward: (gradient) => [pad(gradient, along, from, size - to)],
    },
  );
}

/** Zeros before and after, along one axis. */
function pad(x: Value, axis: number, before: number, after: number): Value {
  const pads = [
    ...x.shape.map((_, i) => (i === axis ? before : 0)),
    ...x.shape.map((_, i) => (i === axis ? after : 0)),
  ];
  const size = before + x.shape[axis] + after;
  return makeValue('Pad', [x, integers(pads)], x.shape.with(axis, size), {
    backward: (gradient) => [slice(gradient, axis, before, size - after)],
  });
}

/** Rows of x (places on its first axis) by number; the numbers' shape comes first in the result's. */
export function gather(x: Value, rows: Value): Value {
  if (rows.kind !== 'int32' && rows.kind !== 'int64')
    throw badUsage('gather: row numbers must be integers', { value: rows.kind });
  const width = x.shape.slice(1);
  return makeValue('Gather', [x, rows], [...rows.shape, ...width], {
    attributes: { axis: 0 },
    kind: x.kind,
    backward: (gradient) => [scatter(x.shape, rows, gradient)],
  });
}

/** Zeros to which each row of x is added at its row number. */
function scatter(shape: Shape, rows: Value, x: Value): Value {
  const places = reshape(cast(rows, 'int64'), [...rows.shape, 1]);
  return makeValue('ScatterND', [fill(0, shape), places, x], shape, {
    attributes: { reduction: 'add' },
    backward: (gradient) => [undefined, undefined, gather(gradient, rows)],
  });
}

/** The k largest along the last axis, in descending order, and where they were (int64). */
export function topK(x: Value, k: number): { values: Value; indices: Value } {
  const last = x.shape.length - 1;
  if (!(k > 0 && k <= x.shape[last])) throw badShapes('topK', `${k} must not exceed the last axis`, x.shape);
  const shape = x.shape.with(last, k);
  const largest: Value = makeValue('TopK', [x, integers([k])], shape, {
    attributes: { axis: last },
    backward: (gradient) => [scatterElements(x.shape, indices, gradient)],
  });
  const indices = makeValue('Output', [largest, x], shape, { attributes: { index: 1 }, kind: 'int64' });
  return { values: largest, indices };
}

/** Along the last axis, the element each index names. */
export function gatherElements(x: Value, indices: Value): Value {
  const last = x.shape.length - 1;
  if (!sameShape(x.shape.with(last, 0), indices.shape.with(-1, 0)))
    throw badShapes('gatherElements', 'all axes but the last must agree', x.shape, indices.shape);
  return makeValue('GatherElements', [x, indices], indices.shape, {
    attributes: { axis: last },
    backward: (gradient) => [scatterElements(x.shape, indices, gradient)],
  });
}

function scatterElements(shape: Shape, indices: Value, x: Value): Value {
  return makeValue('ScatterElements', [fill(0, shape), indices, x], shape, {
    attributes: { axis: shape.length - 1, reduction: 'add' },
    backward: (gradient) => [undefined, undefined, gatherElements(gradient, indices)],
  });
}

// Sums, products and what is made of them.

function reduce(op: string, x: Value, axes: readonly number[] | undefined, keep: boolean) {
  const name = op.replace('Reduce', '').toLowerCase();
  const over = (axes ?? x.shape.map((_, axis) => axis)).map((axis) => axisOf(name, x.shape, axis));
  if (new Set(over).size !== over.length) throw badShapes(name, `axes ${show(over)} must differ`, x.shape);
  const kept = x.shape.map((size, axis) => (over.includes(axis) ? 1 : size));
  const shape = keep ? kept : x.shape.filter((_, axis) => !over.includes(axis));
  return { over, kept, shape, attributes: { keepdims: keep ? 1 : 0 } };
}

/** Over these axes, or all; `keep` leaves them in place with size 1. */
export function sum(x: Value, axes?: readonly number[], keep = false): Value {
  const { over, kept, shape, attributes } = reduce('ReduceSum', x, axes, keep);
  if (over.length === 0) return x;
  const backward = (gradient: Value) => [expand(reshape(gradient, kept), x.shape)];
  const leading = over.length < x.shape.length && over.every((axis) => axis < over.length);
  if (!leading) return makeValue('ReduceSum', [x, integers(over)], shape, { attributes, backward });
  // Down the columns, a product with ones is several times as fast as the reduction.
  const rows = sizeOf(x.shape.slice(0, over.length));
  const table = reshape(x, [rows, sizeOf(x.shape) / rows]);
  return withGradient(reshape(matmul(fill(1, [1, rows]), table), shape), [x], backward);
}

export function mean(x: Value, axes?: readonly number[], keep = false): Value {
  const total = sum(x, axes, keep);
  return mul(total, sizeOf(total.shape) / sizeOf(x.shape));
}

/** The largest over these axes, or all; values that tie share the gradient. */
export function max(x: Value, axes?: readonly number[], keep = false): Value {
  const { over, kept, shape, attributes } = reduce('ReduceMax', x, axes, keep);
  if (over.length === 0) return x;
  const y: Value = makeValue('ReduceMax', [x, integers(over)], shape, {
    attributes,
    backward: (gradient) => {
      const winners = toFloat(equal(x, reshape(y, kept)));
      return [mul(winners, div(reshape(gradient, kept), sum(winners, over, true)))];
    },
  });
  return y;
}

export interface Transposed {
  a?: boolean;
  b?: boolean;
}

/** Matrix product over the last two axes, each side as it is or transposed; the axes before them broadcast. */
export function matmul(a: Value, b: Value, transposed: Transposed = {}): Value {
  const { a: flipA = false, b: flipB = false } = transposed;
  if (a.shape.length < 2 || b.shape.length < 2)
    throw badShapes('matmul', 'both sides must have two axes or more', a.shape, b.shape);
  // Many matrices times one are one tall matrix times it.
  if (a.shape.length > 2 && b.shape.length === 2 && !flipA)
    return withRows(a, (rows) => matmul(rows, b, transposed));
  const [rows, inner] = flipA ? a.shape.slice(-2).reverse() : a.shape.slice(-2);
  const [other, columns] = flipB ? b.shape.slice(-2).reverse() : b.shape.slice(-2);
  if (inner !== other) {
    const [x, y] = [flipA ? ' (transposed)' : '', flipB ? ' (transposed)' : ''];
    throw badUsage(`matmul: inner sizes must agree, got ${show(a.shape)}${x} and ${show(b.shape)}${y}`);
  }
  const batch = broadcast('matmul', a.shape.slice(0, -2), b.shape.slice(0, -2));
  const backward = (gradient: Value) => [
    sumTo(flipA ? matmul(b, gradient, { a: flipB, b: true }) : matmul(gradient, b, { b: !flipB }), a.shape),
    sumTo(flipB ? matmul(gradient, a, { a: true, b: flipA }) : matmul(a, gradient, { a: !flipA }), b.shape),
  ];
  const shape = [...batch, rows, columns];
  if (shape.length === 2 && (flipA || flipB)) {
    const attributes = { transA: flipA ? 1 : 0, transB: flipB ? 1 : 0 };
    return makeValue('Gemm', [a, b], shape, { attributes, backward });
  }
  const turned = [flipA ? transpose(a) : a, flipB ? transpose(b) : b];
  if (!flipA && !flipB) return makeValue('MatMul', turned, shape, { backward });
  // The gradient goes to a and b themselves, past their transposes.
  return withGradient(makeValue('MatMul', turned, shape), [a, b], backward);
}

/** Applies a function of matrices to all rows (the last axis) of x at once. */
export const withRows = (x: Value, apply: (rows: Value) => Value): Value => {
  const y = apply(reshape(x, [sizeOf(x.shape.slice(0, -1)), x.shape[x.shape.length - 1]]));
  return reshape(y, [...x.shape.slice(0, -1), y.shape[y.shape.length - 1]]);
};
