// How anything that can be saved hands itself over: named parts, each a handful of tensors, plus a small JSON
// description. The store decides where parts live; whoever saves or loads never sees a path.

export type TensorData =
  | Float32Array
  | Float64Array
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int32Array
  | Uint32Array;

export interface Tensor {
  shape: number[];
  data: TensorData;
}

export type Tensors = Record<string, Tensor>;

/** Anything JSON can hold. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

export interface PartWriter {
  /** Writes one part; names are lowercase words (`weights`, `level-2`), each used once. */
  write(name: string, tensors: Tensors): Promise<void>;
  /** Writes an ONNX program as a file of its own, so that any runtime can load it. */
  writeProgram(name: string, onnx: Uint8Array): Promise<void>;
}

export interface PartReader {
  /** Reads one part, checked against its checksum. */
  read(name: string): Promise<Tensors>;
  readProgram(name: string): Promise<Uint8Array>;
}

/** A vector as a tensor. */
export const vector = (data: TensorData): Tensor => ({ shape: [data.length], data });

/** A writer whose parts have this word before their names. */
export const prefixedWriter = (prefix: string, parts: PartWriter): PartWriter => ({
  write: (name, tensors) => parts.write(`${prefix}-${name}`, tensors),
  writeProgram: (name, onnx) => parts.writeProgram(`${prefix}-${name}`, onnx),
});

export const prefixedReader = (prefix: string, parts: PartReader): PartReader => ({
  read: (name) => parts.read(`${prefix}-${name}`),
  readProgram: (name) => parts.readProgram(`${prefix}-${name}`),
});
