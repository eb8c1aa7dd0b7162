// Trains the parameters of programs: the runtime computes losses and gradients, adam.ts updates. What is trained, on
// which batches and how long is the caller's business.
import { badUsage } from '../errors.ts';
import { Random } from '../math/random.ts';
import type { Tensors } from '../parts.ts';
import { Adam, type AdamOptions, type Rows, type Table, type Update } from './adam.ts';
import { gradients } from './gradient.ts';
import { sizeOf, type Value } from './graph.ts';
import { encodeModel, inputsOf } from './onnx.ts';
import { type RuntimeOptions, Session, type TensorArray } from './session.ts';

/** Inputs of the programs that training changes, with what they start from; updated alike. */
export interface Group extends Update {
  parameters: ReadonlyMap<Value, Float32Array>;
}

export interface TrainerOptions extends AdamOptions {
  groups: readonly Group[];
  /** Embeddings too large for programs, which are fed some of their rows. */
  tables?: readonly Table[];
  /** Of dropout masks and noise. */
  seed: number;
  runtime?: RuntimeOptions;
}

/** What steps lower. */
export interface Objective {
  loss: Value;
  /** Parts of the loss to report, and to name when one is not finite. */
  terms?: Readonly<Record<string, Value>>;
  /** By table, the input that is fed some of its rows. */
  rows?: Readonly<Record<string, Value>>;
  /** What else to compute along the way, with the parameters as they were before the update. */
  outputs?: Readonly<Record<string, Value>>;
}

export type Feeds = Readonly<Record<string, TensorArray>>;

export interface StepOptions {
  /** The learning rate. */
  rate: number;
  /** By table, the numbers of the rows to feed, each once. */
  rows?: Readonly<Record<string, Uint32Array>>;
  /** Where to write the objective's further outputs. */
  into?: Feeds;
}

/** One step after the other: returns `loss` and the terms as they were before the update. */
export interface Steps {
  run(feeds: Feeds, options: StepOptions): Promise<Record<string, number>>;
  close(): Promise<void>;
}

/** Outputs for these feeds and the parameters as they are now. */
export interface Program {
  run(feeds: Feeds): Promise<Record<string, TensorArray>>;
  close(): Promise<void>;
}

export class Trainer {
  readonly #adam: Adam;
  readonly #parameters: readonly Value[];
  readonly #seed: number;
  readonly #runtime: RuntimeOptions | undefined;

  private constructor(adam: Adam, parameters: readonly Value[], { seed, runtime }: TrainerOptions) {
    this.#adam = adam;
    this.#parameters = parameters;
    this.#seed = seed;
    this.#runtime = runtime;
  }

  static async create(options: TrainerOptions): Promise<Trainer> {
    const groups = options.groups.map(({ parameters, ...update }) => ({
      ...update,
      blocks: Array.from(parameters, ([value, initial]) => ({
        name: nameOf(value),
        shape: value.shape,
        initial,
      })),
    }));
    const adam = await Adam.create(groups, options.tables ?? [], options);
    return new Trainer(
      adam,
      options.groups.flatMap(({ parameters }) => [...parameters.keys()]),
      options,
    );
  }

  /** Steps made so far. */
  get step(): number {
    return this.#adam.step;
  }

  /** Prepares steps. Shapes are fixed: a batch of another size is another objective over the same parameters. */
  async compile({ loss, terms = {}, rows = {}, outputs = {} }: Objective): Promise<Steps> {
    const used = new Set(inputsOf([loss]));
    const unused = this.#parameters.find((value) => !used.has(value));
    if (unused) throw badUsage('every parameter must have a part in the loss', { value: nameOf(unused) });
    const areas = Object.entries(rows).map(([table, input]) => this.#rowArea(table, input));
    const trained = [...this.#parameters, ...areas.map(({ input }) => input)];
    const slopes = gradients(loss, trained).map((slope, i) => [slopeOf(trained[i]), slope]);
    const told = { ...terms, loss };
    const run = await this.#open({ ...outputs, ...told, ...Object.fromEntries(slopes) });
    const rowViews = (name: (input: Value) => string, at: 'values' | 'gradients') =>
      areas.map((area) => [name(area.input), this.#adam.view(area[at], sizeOf(area.input.shape))]);
    const step = async (feeds: Feeds, { rate, rows: numbers = {}, into: wanted = {} }: StepOptions) => {
      for (const area of areas) this.#adam.gather(area, numbers[area.table]);
      const slots = this.#parameters.map((value) => [slopeOf(value), this.#adam.gradients(nameOf(value))]);
      const results = await run.run(
        { ...feeds, ...Object.fromEntries(rowViews(nameOf, 'values')) },
        { ...wanted, ...Object.fromEntries([...slots, ...rowViews(slopeOf, 'gradients')]) },
      );
      const losses = Object.keys(told).map((name): [string, number] => [name, Number(results[name][0])]);
      this.#refuseInfinite(losses, rate);
      this.#adam.update(rate, areas);
      return Object.fromEntries(losses);
    };
    return { run: step, close: run.close };
  }

  /** Prepares a program over the parameters, to validate with. */
  program(outputs: Readonly<Record<string, Value>>): Promise<Program> {
    return this.#open(outputs);
  }

  /** What every parameter is now; the arrays change with the next step. */
  weights(): Map<Value, Float32Array> {
    return new Map(this.#parameters.map((value) => [value, this.#adam.parameters(nameOf(value))]));
  }

  /** What a table holds now; the array changes with the next step. */
  table(name: string): Float32Array {
    return this.#adam.parameters(name);
  }

  /** Parameters, moments and the number of steps: a run that restores them goes on as if it had never ended. */
  state(): Tensors {
    return this.#adam.state();
  }

  restore(state: Tensors): void {
    this.#adam.restore(state);
  }

  #rowArea(table: string, input: Value): Rows & { input: Value } {
    const width = this.#adam.widthOf(table);
    if (input.shape.length !== 2 || input.shape[1] !== width)
      throw badUsage(`rows of ${table} must be fed as [count, ${width}]`, {
        value: `[${input.shape.join(', ')}]`,
      });
    return { ...this.#adam.reserveRows(table, input.shape[0]), input };
  }

  /** A session that is fed parameters, masks and noise without being told. */
  async #open(outputs: Readonly<Record<string, Value>>) {
    const session = await Session.open(encodeModel(outputs), this.#runtime);
    const inputs = inputsOf(Object.values(outputs));
    const parameters = this.#parameters.filter((value) => inputs.includes(value));
    const drawn = inputs.flatMap((value) =>
      value.random ? [{ value, at: this.#adam.reserve(sizeOf(value.shape)) }] : [],
    );
    return {
      run: (feeds: Feeds, into: Feeds = {}) => {
        const known = parameters.map((value) => [nameOf(value), this.#adam.parameters(nameOf(value))]);
        const random = drawn.map(({ value, at }) => [nameOf(value), this.#draw(value, at)]);
        return session.run({ ...Object.fromEntries([...known, ...random]), ...feeds }, into);
      },
      close: () => session.close(),
    };
  }

  /** What an input of chance is in this step; it depends on the seed, the step and the name alone. */
  #draw({ shape, random, name }: Value, at: number): Float32Array {
    const stream = new Random(this.#seed, name ?? '', this.step);
    const numbers = this.#adam.view(at, sizeOf(shape));
    if (random?.draw === 'mask')
      this.#adam.drawMask(at, numbers.length, random.rate, [
        stream.uint32(),
        stream.uint32(),
        stream.uint32(),
      ]);
    else for (let i = 0; i < numbers.length; i++) numbers[i] = stream.normal();
    return numbers;
  }

  #refuseInfinite(losses: [string, number][], rate: number): void {
    for (const [name, value] of losses) {
      if (Number.isFinite(value)) continue;
      const term = name === 'loss' ? 'the loss' : `the loss term ${name}`;
      const hint = `lower the learning rate, now ${rate}, or the longest gradient allowed`;
      throw badUsage(`${term} must be finite at step ${this.step + 1}`, { value, hint });
    }
  }
}

const nameOf = ({ name }: Value): string => name ?? '';
const slopeOf = (value: Value): string => `gradient of ${value.name}`;
