// Programs as ONNX files: standard operators, fixed shapes, so that any ONNX runtime loads them. The encoder knows just
// the protobuf messages that are needed.
import { badUsage } from '../errors.ts';
import type { Tensors } from '../parts.ts';
import { type Attributes, ancestors, type Kind, type Shape, typeNumbers, type Value } from './graph.ts';

/** Layer normalisation is an operator since 17, all reductions take their axes as an input since 18. */
const operatorSet = 18;
const fileVersion = 8;

/**
 * The program that computes the named values from its inputs. Inputs with an entry in `weights` are not fed: the file
 * holds their numbers. With `rows` the first axis of all inputs and outputs goes by that name and may have any size: only
 * for programs in which rows meet nothing but weights.
 */
export function encodeModel(
  outputs: Readonly<Record<string, Value>>,
  weights: ReadonlyMap<Value, Float32Array> = new Map(),
  rows?: string,
): Uint8Array {
  const program = ancestors(Object.values(outputs));
  const names = nameValues(program, outputs);
  const nameOf = (value: Value) => names.get(value) ?? '';
  const parts: Message = [];
  const further = furtherOutputs(program);
  for (const value of program) {
    const data = weights.get(value) ?? value.data;
    if (data) parts.push(field(5, tensor(nameOf(value), value, data)));
    else if (value.op === 'Input') parts.push(field(11, valueInfo(nameOf(value), value, rows)));
    else if (value.op !== 'Output')
      parts.push(
        field(
          1,
          node(
            value.op,
            value.inputs.map(nameOf),
            [nameOf(value), ...further(value, nameOf)],
            value.attributes,
          ),
        ),
      );
  }
  for (const [name, value] of Object.entries(outputs)) {
    if (nameOf(value) !== name) parts.push(field(1, node('Identity', [nameOf(value)], [name], {})));
    parts.push(field(12, valueInfo(name, value, rows)));
  }
  const graph = [field(2, text('umbel')), ...parts];
  return join([
    field(1, fileVersion),
    field(2, text('umbel')),
    field(7, graph),
    field(8, [field(1, text('')), field(2, operatorSet)]),
  ]);
}

/** The numbers that a program written here holds as weights, by name. */
export function readWeights(model: Uint8Array): Tensors {
  const tensors = fieldsOf(model)
    .filter(({ number }) => number === 7)
    .flatMap(({ bytes }) => fieldsOf(bytes))
    .filter(({ number }) => number === 5)
    .map(({ bytes }) => fieldsOf(bytes));
  const weights = tensors.flatMap((fields) => {
    const named = fields.find(({ number }) => number === 8)?.bytes;
    const data = fields.find(({ number }) => number === 9)?.bytes;
    const name = new TextDecoder().decode(named);
    const isFloat = fields.some(({ number, value }) => number === 2 && value === typeNumbers.float32);
    // Constants are numbered, weights keep the names of the inputs they stand for.
    if (!data || !isFloat || name.startsWith('#')) return [];
    const shape = fields.filter(({ number }) => number === 1).map(({ value }) => value);
    return [[name, { shape, data: new Float32Array(data.slice().buffer) }]];
  });
  return Object.fromEntries(weights);
}

/** Inputs that must be fed to compute these values. */
export const inputsOf = (values: Iterable<Value>): Value[] =>
  ancestors(values).filter(({ op }) => op === 'Input');

/** Inputs keep their names; a value asked for gets the name it is asked by; all others are numbered. */
function nameValues(program: readonly Value[], outputs: Readonly<Record<string, Value>>): Map<Value, string> {
  const taken = new Set(Object.keys(outputs));
  const names = new Map<Value, string>();
  for (const value of program) {
    if (value.op !== 'Input' || value.name === undefined) continue;
    if (taken.has(value.name))
      throw badUsage('names of inputs and outputs must differ', { value: value.name });
    taken.add(value.name);
    names.set(value, value.name);
  }
  const unnamed = (value: Value) => !names.has(value) && value.op !== 'Constant' && value.op !== 'Output';
  for (const [name, value] of Object.entries(outputs)) if (unnamed(value)) names.set(value, name);
  for (const value of program) {
    if (names.has(value)) continue;
    const { index } = value.attributes;
    const main = value.op === 'Output' ? names.get(value.inputs[0]) : undefined;
    names.set(value, main === undefined ? `#${value.id}` : index === 0 ? main : `${main}#${index}`);
  }
  return names;
}

/** Names of an operator's outputs beyond the first; one that nobody uses before one that is used has no name. */
function furtherOutputs(program: readonly Value[]) {
  const used = new Map<Value, Value[]>();
  for (const value of program) {
    const index = Number(value.attributes.index);
    if (value.op !== 'Output' || index === 0) continue;
    const outputs = used.get(value.inputs[0]) ?? [];
    outputs[index - 1] = value;
    used.set(value.inputs[0], outputs);
  }
  return (value: Value, nameOf: (value: Value) => string): string[] =>
    Array.from(used.get(value) ?? [], (output) => (output ? nameOf(output) : ''));
}

// Messages of the ONNX format, by field number.

const node = (op: string, inputs: string[], outputs: string[], attributes: Attributes): Message => [
  ...inputs.map((name) => field(1, text(name))),
  ...outputs.map((name) => field(2, text(name))),
  field(4, text(op)),
  ...Object.entries(attributes).map(([name, value]) => field(5, attribute(name, value))),
];

/** Attributes that are not whole numbers. */
const fractions = ['alpha', 'epsilon'];

function attribute(name: string, value: Attributes[string]): Message {
  const head = field(1, text(name));
  if (typeof value === 'string') return [head, field(4, text(value)), field(20, 3)];
  if (typeof value !== 'number') return [head, ...value.map((item) => field(8, item)), field(20, 7)];
  return fractions.includes(name)
    ? [head, float(2, value), field(20, 1)]
    : [head, field(3, value), field(20, 2)];
}

const tensor = (name: string, { shape, kind }: Value, data: readonly number[] | Float32Array): Message => [
  ...shape.map((size) => field(1, size)),
  field(2, typeNumbers[kind]),
  field(8, text(name)),
  field(9, rawData(kind, data)),
];

function rawData(kind: Kind, data: readonly number[] | Float32Array): Uint8Array {
  switch (kind) {
    case 'float32':
      return bytesOf(data instanceof Float32Array ? data : Float32Array.from(data));
    case 'int32':
      return bytesOf(Int32Array.from(data));
    case 'int64':
      return bytesOf(BigInt64Array.from(Array.from(data), BigInt));
    case 'bool':
      return Uint8Array.from(data);
    default:
      return kind satisfies never;
  }
}

const valueInfo = (name: string, { shape, kind }: Value, rows: string | undefined): Message => [
  field(1, text(name)),
  field(2, [field(1, [field(1, typeNumbers[kind]), field(2, dimensions(shape, rows))])]),
];

const dimensions = (shape: Shape, rows: string | undefined): Message =>
  shape.map((size, axis) => field(1, [axis === 0 && rows ? field(2, text(rows)) : field(1, size)]));

// Protobuf: a field is a number, a length and bytes, or an integer.

type Message = Uint8Array[];

function field(number: number, content: number | Uint8Array | Message): Uint8Array {
  if (typeof content === 'number') return join([varint(number << 3), varint(content)]);
  const parts = content instanceof Uint8Array ? [content] : content;
  const length = parts.reduce((total, part) => total + part.length, 0);
  return join([varint((number << 3) | 2), varint(length), ...parts]);
}

const float = (number: number, value: number): Uint8Array =>
  join([varint((number << 3) | 5), bytesOf(Float32Array.of(value))]);

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Uint8Array.from([...bytes, Number(rest)]);
}

/** The fields of a message; those that are integers have no bytes, the others no value. */
function fieldsOf(message: Uint8Array): { number: number; value: number; bytes: Uint8Array }[] {
  const fields = [];
  for (let at = 0; at < message.length; ) {
    const integer = () => {
      let value = 0;
      for (let scale = 1; ; scale *= 128) {
        const byte = message[at++];
        value += (byte & 127) * scale;
        if (!(byte & 128)) return value;
      }
    };
    const key = integer();
    const [number, isInteger] = [key >> 3, (key & 7) === 0];
    const value = integer();
    const end = isInteger ? at : at + value;
    fields.push({ number, value, bytes: message.subarray(at, end) });
    at = end;
  }
  return fields;
}

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

function join(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
