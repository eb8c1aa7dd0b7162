// A symbolic tensor program: values with fixed shapes, checked when the program is written. Nothing is computed here;
// onnx.ts writes programs down and session.ts runs them.
import { badUsage, type UmbelError } from '../errors.ts';

/** Kinds of numbers, as ONNX counts them. */
export const typeNumbers = { float32: 1, int32: 6, int64: 7, bool: 9 };
export type Kind = keyof typeof typeNumbers;
export type Shape = readonly number[];
export type Attributes = Readonly<Record<string, number | string | readonly number[]>>;

/** How the gradient of a value reaches its inputs: one gradient per input, as programs again. */
export type Backward = (gradient: Value) => (Value | undefined)[];

export interface Value {
  /** Later values have higher numbers: sorted by them, every value follows its inputs. */
  readonly id: number;
  /** An ONNX operator, or `Input`, `Constant`, `Output` (a further output of its first input's operator). */
  readonly op: string;
  readonly inputs: readonly Value[];
  readonly attributes: Attributes;
  readonly shape: Shape;
  readonly kind: Kind;
  readonly backward?: Backward;
  /** Of an input. */
  readonly name?: string;
  /** Of an input that whoever runs the program draws anew for every run. */
  readonly random?: RandomInput;
  /** Of a constant. */
  readonly data?: readonly number[] | Float32Array;
}

/** A dropout mask holds 0 with this chance and 1/(1 - chance) otherwise; noise is standard normal. */
export type RandomInput = { draw: 'mask'; rate: number } | { draw: 'normal' };

/** A number stands for a constant of its own. */
export type Operand = Value | number;

let values = 0;
type Details = Partial<Pick<Value, 'attributes' | 'kind' | 'name' | 'random' | 'data' | 'backward'>>;

export function makeValue(op: string, inputs: readonly Value[], shape: Shape, details: Details = {}): Value {
  return { id: values++, op, inputs, shape, attributes: {}, kind: 'float32', ...details };
}

/** What is fed in by name: data, parameters, masks. */
export function input(name: string, shape: Shape, kind: Kind = 'float32', random?: RandomInput): Value {
  const fits = shape.every((size) => Number.isInteger(size) && size > 0);
  if (!fits) throw badUsage(`input ${name}: sizes must be positive integers`, { value: show(shape) });
  return makeValue('Input', [], shape, { name, kind, random });
}

/** Standard normal noise, drawn anew for every step. */
export const noise = (name: string, shape: Shape): Value => input(name, shape, 'float32', { draw: 'normal' });

export function constant(
  data: readonly number[] | Float32Array,
  shape: Shape,
  kind: Kind = 'float32',
): Value {
  if (data.length !== sizeOf(shape))
    throw badUsage(`constant: ${show(shape)} needs ${sizeOf(shape)} numbers`, { value: data.length });
  return makeValue('Constant', [], shape, { data, kind });
}

export const lift = (operand: Operand): Value =>
  typeof operand === 'number' ? constant([operand], []) : operand;

export const sizeOf = (shape: Shape): number => shape.reduce((product, size) => product * size, 1);
export const show = (shape: Shape): string => `[${shape.join(', ')}]`;
export const sameShape = (a: Shape, b: Shape): boolean =>
  a.length === b.length && a.every((size, i) => size === b[i]);

/** The error for shapes that an operation cannot take: `matmul: inner sizes must agree, got [2, 3] and [4, 5]`. */
export const badShapes = (op: string, rule: string, ...shapes: Shape[]): UmbelError =>
  badUsage(`${op}: ${rule}, got ${shapes.map(show).join(' and ')}`);

/** The shape two operands take together; sizes agree from the right, or are 1, or absent. */
export function broadcast(op: string, a: Shape, b: Shape): Shape {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const [left, right] = [a[i - rank + a.length] ?? 1, b[i - rank + b.length] ?? 1];
    if (left !== right && left !== 1 && right !== 1) throw badShapes(op, 'shapes must broadcast', a, b);
    return left === 1 ? right : left;
  });
}

/** An axis counted from the front; negative ones count from the back. */
export function axisOf(op: string, shape: Shape, axis: number): number {
  const positive = axis < 0 ? axis + shape.length : axis;
  if (!Number.isInteger(axis) || positive < 0 || positive >= shape.length)
    throw badShapes(op, `axis ${axis} must exist`, shape);
  return positive;
}

/** All that the values are made from, themselves included, inputs before what uses them. */
export function ancestors(roots: Iterable<Value>): Value[] {
  const seen = new Set<Value>(roots);
  // A set visits what is added while it is walked.
  for (const value of seen) for (const from of value.inputs) seen.add(from);
  return [...seen].sort((a, b) => a.id - b.id);
}
