// Parameters, their gradients and Adam's moments in one memory, and the updates that kernels make there in place. The
// runtime reads parameters and writes gradients where they lie. Knows nothing of programs.
import { badInput, badUsage } from '../errors.ts';
import { Arena, align, createMemory } from '../kernels/memory.ts';
import { type AdamUpdate, type Kernels, loadKernels } from '../kernels/wasm.ts';
import type { Tensors } from '../parts.ts';

export interface AdamOptions {
  beta1?: number;
  beta2?: number;
  epsilon?: number;
  /** The longest that all gradients together may be; longer ones are scaled down. */
  maxNorm?: number;
}

/** How a group of parameters or a table differs from others. */
export interface Update {
  /** Decoupled weight decay: the share, times the learning rate, that parameters lose each step. */
  decay?: number;
  /** Weight decay as a part of the gradient, which goes through the moments. */
  l2?: number;
  /** Times the learning rate of the step. */
  rate?: number;
}

export interface Block {
  name: string;
  shape: readonly number[];
  initial: Float32Array;
}

/** Parameters that are updated alike. */
export interface BlockGroup extends Update {
  blocks: readonly Block[];
}

/** Rows of which only those touched in a step are updated; their moments stand still between. */
export interface Table extends Update {
  name: string;
  width: number;
  initial: Float32Array;
}

/** Addresses of the numbers of a block or table and of their moments. */
interface Place {
  shape: readonly number[];
  numbers: number;
  first: number;
  second: number;
}

interface TablePlace extends Place {
  update: Update;
  /** The step in which each row was last touched. */
  touched: Uint32Array;
}

/** Room for some rows of a table: their numbers in it, what they hold, their gradients. */
export interface Rows {
  table: string;
  count: number;
  at: number;
  values: number;
  gradients: number;
}

export class Adam {
  /** Steps made so far. */
  step = 0;
  readonly #options: AdamOptions;
  readonly #arena: Arena;
  readonly #kernels: Kernels;
  readonly #blocks = new Map<string, Place & { gradients: number }>();
  readonly #tables = new Map<string, TablePlace>();
  /** Groups lie one after the other, so that each is updated at once. */
  readonly #groups: (Place & { update: Update; gradients: number })[] = [];

  private constructor(options: AdamOptions, arena: Arena, kernels: Kernels) {
    this.#options = options;
    this.#arena = arena;
    this.#kernels = kernels;
  }

  static async create(
    groups: readonly BlockGroup[],
    tables: readonly Table[],
    options: AdamOptions,
  ): Promise<Adam> {
    const bytes = [...groups.flatMap(({ blocks }) => [...blocks]), ...tables].map(
      ({ initial }) => 4 * align(4 * initial.length),
    );
    const memory = createMemory(
      bytes.reduce((total, size) => total + size, 0),
      false,
    );
    const adam = new Adam(options, new Arena(memory), await loadKernels(memory));
    for (const group of groups) adam.#addGroup(group);
    for (const table of tables) adam.#addTable(table);
    return adam;
  }

  parameters(name: string): Float32Array {
    const place = this.#blocks.get(name) ?? this.#table(name);
    return this.view(place.numbers, sizeOf(place));
  }

  gradients(name: string): Float32Array {
    const place = this.#blocks.get(name);
    if (!place) throw badUsage('unknown parameter', { value: name });
    return this.view(place.gradients, sizeOf(place));
  }

  /** Room for so many numbers that stays theirs. */
  reserve(count: number): number {
    return this.#arena.allocate(4 * count);
  }

  widthOf(table: string): number {
    return this.#table(table).shape[1];
  }

  reserveRows(table: string, count: number): Rows {
    const size = count * this.widthOf(table);
    return {
      table,
      count,
      at: this.reserve(count),
      values: this.reserve(size),
      gradients: this.reserve(size),
    };
  }

  /** The numbers at an address, until the memory grows. */
  view(address: number, count: number): Float32Array {
    return new Float32Array(this.#arena.memory.buffer, address, count);
  }

  /** A dropout mask: 0 with this chance, else what keeps the mean at 1. */
  drawMask(address: number, count: number, rate: number, seeds: [number, number, number]): void {
    this.#kernels.drawMask(address, count, Math.round(rate * 2 ** 32), 1 / (1 - rate), ...seeds);
  }

  /** Copies rows of a table to where a program reads them. */
  gather({ table, count, at, values }: Rows, numbers: Uint32Array | undefined): void {
    const { shape, numbers: from, touched } = this.#table(table);
    if (numbers?.length !== count)
      throw badUsage(`a step must be given ${count} rows of ${table}`, { value: numbers?.length ?? 'none' });
    for (const row of numbers) {
      if (row >= shape[0]) throw badUsage(`rows of ${table} must be below ${shape[0]}`, { value: row });
      if (touched[row] === this.step + 1) throw badUsage(`rows of ${table} must differ`, { value: row });
      touched[row] = this.step + 1;
    }
    new Uint32Array(this.#arena.memory.buffer, at, count).set(numbers);
    this.#kernels.gatherRows(from, at, count, shape[1], values);
  }

  /** Updates all parameters, and these rows, by the gradients that lie in their places. */
  update(rate: number, rows: readonly Rows[]): void {
    const scale = this.#scale(rows);
    this.step++;
    for (const { update, numbers, gradients, first, second, shape } of this.#groups)
      this.#kernels.stepAdam(
        numbers,
        gradients,
        first,
        second,
        shape[0],
        ...this.#arguments(update, rate, scale),
      );
    for (const { table, count, at, gradients } of rows) {
      const { update, numbers, first, second, shape } = this.#table(table);
      const how = this.#arguments(update, rate, scale);
      this.#kernels.stepAdamRows(numbers, gradients, first, second, at, count, shape[1], ...how);
    }
  }

  /** Everything a run needs to go on. */
  state(): Tensors {
    const tensors = this.#parts().map(([name, address, { shape }]) => {
      const data = this.view(address, sizeOf({ shape })).slice();
      return [name, { shape: [...shape], data }];
    });
    return { ...Object.fromEntries(tensors), step: { shape: [1], data: Uint32Array.of(this.step) } };
  }

  restore(state: Tensors): void {
    const dataOf = (name: string, size: number) => {
      const data = state[name]?.data;
      if (data?.length === size) return data;
      throw badInput(`a checkpoint must hold ${size} numbers as ${name}`, { value: data?.length ?? 'none' });
    };
    const parts = this.#parts().map(([name, address, place]) => ({
      address,
      data: dataOf(name, sizeOf(place)),
    }));
    this.step = dataOf('step', 1)[0];
    for (const { address, data } of parts) this.view(address, data.length).set(data);
    for (const { touched } of this.#tables.values()) touched.fill(0);
  }

  #parts(): [name: string, address: number, place: Place][] {
    return [...this.#blocks, ...this.#tables].flatMap(([name, place]) => [
      [name, place.numbers, place],
      [`${name}.first`, place.first, place],
      [`${name}.second`, place.second, place],
    ]);
  }

  #addGroup({ blocks, ...update }: BlockGroup): void {
    const count = blocks.reduce((total, { initial }) => total + align(4 * initial.length) / 4, 0);
    const [numbers, gradients, first, second] = [1, 2, 3, 4].map(() => this.reserve(count));
    this.#groups.push({ update, numbers, gradients, first, second, shape: [count] });
    let offset = 0;
    for (const { name, shape, initial } of blocks) {
      this.#check(name, shape, initial);
      const at = {
        numbers: numbers + offset,
        gradients: gradients + offset,
        first: first + offset,
        second: second + offset,
      };
      this.#blocks.set(name, { ...at, shape });
      this.view(at.numbers, initial.length).set(initial);
      offset += align(4 * initial.length);
    }
  }

  #addTable({ name, width, initial, ...update }: Table): void {
    const rows = Math.ceil(initial.length / width);
    this.#check(name, [rows, width], initial);
    const [numbers, first, second] = [1, 2, 3].map(() => this.reserve(initial.length));
    this.#tables.set(name, {
      update,
      numbers,
      first,
      second,
      shape: [rows, width],
      touched: new Uint32Array(rows),
    });
    this.view(numbers, initial.length).set(initial);
  }

  #check(name: string, shape: readonly number[], { length }: Float32Array): void {
    const size = sizeOf({ shape });
    if (length !== size) throw badUsage(`${name} must start with ${size} numbers`, { value: length });
    if (this.#blocks.has(name) || this.#tables.has(name))
      throw badUsage('names of parameters must differ', { value: name });
  }

  #table(name: string): TablePlace {
    const table = this.#tables.get(name);
    if (!table) throw badUsage('unknown table', { value: name });
    return table;
  }

  /** What brings the gradients down to the longest allowed. */
  #scale(rows: readonly Rows[]): number {
    const { maxNorm } = this.#options;
    if (maxNorm === undefined) return 1;
    const parts = [
      ...this.#groups.map(({ gradients, shape }) => this.#kernels.sumOfSquares(gradients, shape[0])),
      ...rows.map(({ table, count, gradients }) =>
        this.#kernels.sumOfSquares(gradients, count * this.widthOf(table)),
      ),
    ];
    const norm = Math.sqrt(parts.reduce((total, part) => total + part, 0));
    if (!Number.isFinite(norm))
      throw badUsage(`gradients must be finite at step ${this.step + 1}`, { value: norm });
    return norm > maxNorm ? maxNorm / norm : 1;
  }

  #arguments({ decay = 0, l2 = 0, rate: factor = 1 }: Update, base: number, scale: number): AdamUpdate {
    const { beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8 } = this.#options;
    const rate = base * factor;
    const [start1, start2] = [1 - beta1 ** this.step, 1 - beta2 ** this.step];
    return [scale, l2, 1 - rate * decay, beta1, beta2, rate / start1, 1 / Math.sqrt(start2), epsilon];
  }
}

const sizeOf = ({ shape }: Pick<Place, 'shape'>): number =>
  shape.reduce((product, size) => product * size, 1);
