// NumPy's array file: a small header (type, order, shape), then the numbers. Little-endian numbers only; pickled objects
// are refused, nothing in a file is ever evaluated.
import { badInput } from '../errors.ts';
import type { ByteReader } from './bytes.ts';

export interface ArrayHeader {
  dtype: string;
  fortran: boolean;
  shape: number[];
}

const magic = Buffer.from('\x93NUMPY', 'latin1');
const maxHeaderBytes = 2 ** 16;

export async function readArrayHeader(bytes: ByteReader, file: string): Promise<ArrayHeader> {
  const start = await bytes.take(8);
  if (!start.subarray(0, 6).equals(magic)) throw badInput('NumPy array must start with \\x93NUMPY', { file });
  const version = start[6];
  if (version < 1 || version > 3) throw badInput('NumPy version must be 1 to 3', { file, value: version });
  const length =
    version === 1 ? (await bytes.take(2)).readUInt16LE(0) : (await bytes.take(4)).readUInt32LE(0);
  if (length > maxHeaderBytes)
    throw badInput(`NumPy header must have at most ${maxHeaderBytes} bytes`, { file, value: length });
  return parseHeader((await bytes.take(length)).toString('utf8'), file);
}

/** `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }` */
function parseHeader(text: string, file: string): ArrayHeader {
  const dtype = /'descr'\s*:\s*'([^']*)'/.exec(text)?.[1];
  const order = /'fortran_order'\s*:\s*(True|False)/.exec(text)?.[1];
  const shape = /'shape'\s*:\s*\(([\d\sL,]*)\)/.exec(text)?.[1];
  if (dtype === undefined || order === undefined || shape === undefined)
    throw badInput('NumPy header must name one type, an order and a shape', { file, value: text.trim() });
  return { dtype, fortran: order === 'True', shape: Array.from(shape.matchAll(/\d+/g), Number) };
}

/** Numbers of an array: 64-bit integers become doubles (exact below 2^53). */
export type Numbers =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array;

interface NumberType {
  bytes: number;
  decode(data: ArrayBuffer): Numbers;
}

const numberTypes = new Map<string, NumberType>([
  ['f4', { bytes: 4, decode: (data) => new Float32Array(data) }],
  ['f8', { bytes: 8, decode: (data) => new Float64Array(data) }],
  ['b1', { bytes: 1, decode: (data) => new Uint8Array(data) }],
  ['u1', { bytes: 1, decode: (data) => new Uint8Array(data) }],
  ['i1', { bytes: 1, decode: (data) => new Int8Array(data) }],
  ['u2', { bytes: 2, decode: (data) => new Uint16Array(data) }],
  ['i2', { bytes: 2, decode: (data) => new Int16Array(data) }],
  ['u4', { bytes: 4, decode: (data) => new Uint32Array(data) }],
  ['i4', { bytes: 4, decode: (data) => new Int32Array(data) }],
  ['u8', { bytes: 8, decode: (data) => wideIntegers(new Uint32Array(data), new Uint32Array(data)) }],
  ['i8', { bytes: 8, decode: (data) => wideIntegers(new Uint32Array(data), new Int32Array(data)) }],
]);

function wideIntegers(low: Uint32Array, high: Uint32Array | Int32Array): Float64Array {
  const values = new Float64Array(low.length / 2);
  for (let i = 0; i < values.length; i++) values[i] = low[2 * i] + high[2 * i + 1] * 2 ** 32;
  return values;
}

/** Takes the numbers of an array from its bytes, piece by piece. */
export class NumberReader {
  readonly shape: number[];
  /** Number of values. */
  readonly size: number;
  readonly integers: boolean;
  readonly fortran: boolean;
  readonly #bytes: ByteReader;
  readonly #type: NumberType;

  static async open(bytes: ByteReader, file: string): Promise<NumberReader> {
    return new NumberReader(bytes, await readArrayHeader(bytes, file), file);
  }

  private constructor(bytes: ByteReader, { dtype, fortran, shape }: ArrayHeader, file: string) {
    const [, order, code] = /^([<>|=])(.*)$/.exec(dtype) ?? [];
    if (code?.startsWith('O')) throw badInput('arrays of Python objects are refused', { file, value: dtype });
    const type = numberTypes.get(code);
    if (type === undefined)
      throw badInput(`array type must be one of ${[...numberTypes.keys()].join(', ')}`, {
        file,
        value: dtype,
      });
    if (order === '>') throw badInput('array must be little-endian', { file, value: dtype });
    const size = shape.reduce((product, length) => product * length, 1);
    if (!Number.isSafeInteger(size * type.bytes) || shape.some((length) => length >= 2 ** 32))
      throw badInput('array lengths must be below 2^32', { file, value: shape.join('x') });
    this.shape = shape;
    this.size = size;
    this.integers = /^[biu]/.test(code);
    this.fortran = fortran;
    this.#bytes = bytes;
    this.#type = type;
  }

  async take(count: number): Promise<Numbers> {
    const bytes = await this.#bytes.take(count * this.#type.bytes);
    // A copy: typed arrays need aligned memory, and rows outlive the chunk they came in.
    return this.#type.decode(new Uint8Array(bytes).buffer);
  }

  end(): Promise<void> {
    return this.#bytes.end();
  }
}

/** Reads a short text scalar, such as the name of a sparse format. */
export async function readText(bytes: ByteReader, file: string): Promise<string> {
  const { dtype, shape } = await readArrayHeader(bytes, file);
  const [, kind, length] = /^[<|]([SU])(\d{1,3})$/.exec(dtype) ?? [];
  if (kind === undefined || shape.length > 0)
    throw badInput('entry must be a short text', { file, value: dtype });
  const width = kind === 'S' ? 1 : 4;
  const raw = await bytes.take(Number(length) * width);
  const text = Array.from({ length: Number(length) }, (_, i) => String.fromCharCode(raw[i * width])).join('');
  return text.replace(/\0+$/, '');
}

/** Header bytes, padded so that the data after it is aligned, as NumPy does. */
export function arrayHeader(dtype: string, shape: readonly number[]): Buffer {
  const tuple = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${dtype}', 'fortran_order': False, 'shape': (${tuple}), }`;
  const padded = `${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`;
  const length = Buffer.alloc(2);
  length.writeUInt16LE(padded.length);
  return Buffer.concat([magic, Buffer.from([1, 0]), length, Buffer.from(padded)]);
}
