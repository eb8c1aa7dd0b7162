// Runs ONNX files. The runtime is an optional package, loaded when the first session opens; everything else in the
// house works without it.
import type { InferenceSession, Slot as RuntimeSlot, Tensor } from 'onnxruntime-node';
import { badUsage, UmbelError } from '../errors.ts';
import { inNode } from '../kernels/wasm.ts';

export interface RuntimeOptions {
  /**
   * Threads for one run, the caller's among them; 0 lets the runtime choose. The same number gives the same bits on any
   * number of cores; another number may split matrices elsewhere and round differently.
   */
  threads?: number;
  /** Where to compute, by preference, as the runtime names them; `cpu` is what is tested. */
  providers?: readonly string[];
}

export type TensorArray = Float32Array | Int32Array | BigInt64Array | Uint8Array;
type Runtime = typeof import('onnxruntime-node');

/** What a program takes or gives: `{ name: 'x', shape: [128, 500], kind: 'float32' }`. */
export interface Slot {
  name: string;
  /** An axis that may have any size is NaN; at most one. */
  shape: number[];
  kind: string;
}

const arrays = { float32: Float32Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array } as const;

export class Session {
  readonly inputs: readonly Slot[];
  readonly outputs: readonly Slot[];
  readonly #runtime: Runtime;
  readonly #session: InferenceSession;

  private constructor(runtime: Runtime, session: InferenceSession) {
    this.#runtime = runtime;
    this.#session = session;
    this.inputs = session.inputMetadata.map(slotOf);
    this.outputs = session.outputMetadata.map(slotOf);
  }

  static async open(
    model: Uint8Array,
    { threads = 0, providers = ['cpu'] }: RuntimeOptions = {},
  ): Promise<Session> {
    const runtime = await loadRuntime();
    try {
      const session = await runtime.InferenceSession.create(model, {
        executionProviders: [...providers],
        intraOpNumThreads: threads,
        // Warnings about what the optimiser did are not for users.
        logSeverityLevel: 3,
      });
      return new Session(runtime, session);
    } catch (error) {
      const rule = `the runtime must be able to open the program on ${providers.join(', ')}`;
      throw new UmbelError('model', rule, { value: (error as Error).message });
    }
  }

  /**
   * Feeds arrays by name and returns the outputs. The arrays are read where they lie, and outputs with an array in
   * `into` are written there; arrays over shared memory are refused by the runtime.
   */
  async run(
    feeds: Readonly<Record<string, TensorArray>>,
    into: Readonly<Record<string, TensorArray>> = {},
  ): Promise<Record<string, TensorArray>> {
    const given = Object.fromEntries(
      this.inputs.map((slot) => [slot.name, this.#tensor(slot, feeds[slot.name])]),
    );
    const wanted = Object.fromEntries(
      this.outputs.map((slot) => [slot.name, into[slot.name] ? this.#tensor(slot, into[slot.name]) : null]),
    );
    const results = await this.#session.run(given, wanted);
    return Object.fromEntries(this.outputs.map(({ name }) => [name, results[name].data as TensorArray]));
  }

  close(): Promise<void> {
    return this.#session.release();
  }

  #tensor({ name, shape, kind }: Slot, data: TensorArray | undefined): Tensor {
    const type = kind as keyof typeof arrays;
    const open = shape.findIndex(Number.isNaN);
    const fixed = shape.reduce((product, size, axis) => (axis === open ? product : product * size), 1);
    const rows = open < 0 ? 1 : (data?.length ?? 0) / fixed;
    if (!(data instanceof arrays[type]) || data.length !== fixed * rows || !Number.isInteger(rows)) {
      const size = open < 0 ? fixed : `a multiple of ${fixed}`;
      throw badUsage(`${name} must be ${size} numbers of ${kind}`, { value: describe(data) });
    }
    return new this.#runtime.Tensor(type, data, open < 0 ? shape : shape.with(open, rows));
  }
}

const describe = (data: TensorArray | undefined) =>
  data === undefined ? 'nothing' : `${data.length} in a ${data.constructor.name}`;

const slotOf = ({ name, shape, type }: RuntimeSlot): Slot => ({ name, shape: shape.map(Number), kind: type });

async function loadRuntime(): Promise<Runtime> {
  if (!inNode) return loadWebRuntime();
  try {
    return await import('onnxruntime-node');
  } catch (error) {
    throw new UmbelError('missing-package', 'neural learners need the package onnxruntime-node', {
      hint: `npm install onnxruntime-node@1.30.0 --onnxruntime-node-install=skip; ${(error as Error).message}`,
    });
  }
}

async function loadWebRuntime(): Promise<Runtime> {
  try {
    // It speaks as its sister does.
    return (await import('onnxruntime-web')) as unknown as Runtime;
  } catch {
    throw new UmbelError('missing-package', 'neural learners need the package onnxruntime-web in a page', {
      hint: 'a page without a bundler needs an import map that says where it is, as an ES module',
    });
  }
}
