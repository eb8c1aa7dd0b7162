// The safetensors format: an 8-byte length, a JSON header, raw little-endian data. Pure bytes, so it also runs in a
// browser. Every number in a header is checked before it is used: files come from strangers.
import { UmbelError } from '../errors.ts';
import type { Tensor, TensorData, Tensors } from '../parts.ts';

const types = {
  F64: Float64Array,
  F32: Float32Array,
  U32: Uint32Array,
  I32: Int32Array,
  U16: Uint16Array,
  U8: Uint8Array,
  I8: Int8Array,
} as const;
type TypeName = keyof typeof types;

/** Types that no typed array has, or none of ours: read as the next wider one, never written. */
const widened: Record<string, { bytes: number; read: (view: DataView, count: number) => TensorData }> = {
  F16: {
    bytes: 2,
    read: (view, count) =>
      Float32Array.from({ length: count }, (_, i) => fromHalf(view.getUint16(2 * i, true))),
  },
  BF16: {
    bytes: 2,
    read: (view, count) => {
      const bits = Uint32Array.from({ length: count }, (_, i) => view.getUint16(2 * i, true) << 16);
      return new Float32Array(bits.buffer);
    },
  },
  I64: {
    bytes: 8,
    read: (view, count) =>
      Float64Array.from({ length: count }, (_, i) => Number(view.getBigInt64(8 * i, true))),
  },
};

/** A number of 16 bits: sign, five bits of exponent, ten of fraction. */
function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

const headerLimit = 100 * 2 ** 20;

const typeName = (data: TensorData): TypeName => {
  const found = (Object.keys(types) as TypeName[]).find((name) => data instanceof types[name]);
  if (!found) throw new TypeError('tensor data must be a typed array');
  return found;
};

/** The pieces of the file, in order; tensor data is passed on without a copy. Widest types first keeps all aligned. */
export function encodeTensors(tensors: Tensors): Uint8Array[] {
  const entries = Object.entries(tensors).sort(
    ([, a], [, b]) => b.data.BYTES_PER_ELEMENT - a.data.BYTES_PER_ELEMENT,
  );
  const header: Record<string, unknown> = {};
  let offset = 0;
  for (const [name, { data, shape }] of entries) {
    const end = offset + data.byteLength;
    header[name] = { dtype: typeName(data), shape, data_offsets: [offset, end] };
    offset = end;
  }
  const json = JSON.stringify(header);
  const unpadded = new TextEncoder().encode(json);
  const length = Math.ceil(unpadded.length / 8) * 8;
  const head = new Uint8Array(8 + length).fill(0x20, 8);
  new DataView(head.buffer).setBigUint64(0, BigInt(length), true);
  head.set(unpadded, 8);
  return [head, ...entries.map(([, { data }]) => asBytes(data))];
}

const asBytes = (data: TensorData) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

const broken = (rule: string, value?: unknown) => new UmbelError('model', `safetensors: ${rule}`, { value });

/** The tensors of a file; views into `bytes` where alignment allows. */
export function decodeTensors(bytes: Uint8Array): Tensors {
  if (bytes.length < 8) throw broken('file must have at least 8 bytes', bytes.length);
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (length > headerLimit || length > bytes.length - 8) throw broken('header must fit in the file', length);
  const data = bytes.subarray(8 + length);
  const tensors: Tensors = {};
  for (const [name, entry] of Object.entries(parseHeader(bytes.subarray(8, 8 + length)))) {
    if (name !== '__metadata__') tensors[name] = decodeTensor(name, entry, data);
  }
  return tensors;
}

function parseHeader(bytes: Uint8Array): Record<string, unknown> {
  try {
    const header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (typeof header === 'object' && header !== null && !Array.isArray(header)) return header;
  } catch {
    // Falls through to the one message for every kind of broken header.
  }
  throw broken('header must be a JSON object');
}

function decodeTensor(name: string, entry: unknown, data: Uint8Array): Tensor {
  const { dtype, shape, data_offsets: offsets } = (entry ?? {}) as Record<string, unknown>;
  const known = { ...types, ...widened };
  if (typeof dtype !== 'string' || !Object.hasOwn(known, dtype)) {
    throw broken(`dtype of ${name} must be one of ${Object.keys(known).join(', ')}`, dtype);
  }
  const sizes = (list: unknown): list is number[] =>
    Array.isArray(list) && list.every((size) => Number.isSafeInteger(size) && size >= 0);
  if (!sizes(shape)) throw broken(`shape of ${name} must be a list of sizes`, JSON.stringify(shape));
  if (!sizes(offsets) || offsets.length !== 2 || offsets[0] > offsets[1] || offsets[1] > data.length) {
    throw broken(`data of ${name} must lie inside the file`, JSON.stringify(offsets));
  }
  const wider = Object.hasOwn(widened, dtype) ? widened[dtype] : undefined;
  const Type = types[dtype as TypeName];
  const [start, end] = offsets;
  const count = shape.reduce((product, size) => product * size, 1);
  if (count * (wider?.bytes ?? Type.BYTES_PER_ELEMENT) !== end - start) {
    throw broken(`data of ${name} must have the length its shape says`, end - start);
  }
  if (wider) {
    const view = new DataView(data.buffer, data.byteOffset + start, end - start);
    return { shape, data: wider.read(view, count) };
  }
  const aligned = (data.byteOffset + start) % Type.BYTES_PER_ELEMENT === 0;
  const own = data.subarray(start, end);
  // Not slice: that of a Buffer is a view.
  const raw = aligned ? own : new Uint8Array(own);
  return { shape, data: new Type(raw.buffer as ArrayBuffer, raw.byteOffset, count) };
}
