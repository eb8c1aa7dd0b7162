// What session.ts uses of the optional package, so that the house compiles without it.
declare module 'onnxruntime-node' {
  export class Tensor {
    constructor(type: string, data: ArrayBufferView, dims: readonly number[]);
    readonly data: ArrayBufferView;
  }
  export interface Slot {
    readonly name: string;
    readonly type: string;
    readonly shape: readonly (number | string)[];
  }
  export class InferenceSession {
    static create(model: Uint8Array, options: Record<string, unknown>): Promise<InferenceSession>;
    readonly inputMetadata: readonly Slot[];
    readonly outputMetadata: readonly Slot[];
    run(
      feeds: Record<string, Tensor>,
      fetches: Record<string, Tensor | null>,
    ): Promise<Record<string, Tensor>>;
    release(): Promise<void>;
  }
}
