// The memory that kernels work in, and who has which part of it.
import { UmbelError } from '../errors.ts';

/** Memory grows by pages; there are as many at most as a page has bytes. */
const page = 65536;

/** A memory that only this thread sees, or one that can be sent to others. */
export function createMemory(bytes: number, shared: boolean): WebAssembly.Memory {
  const initial = Math.ceil(bytes / page) + 1;
  if (initial > page) throw tooLarge(bytes);
  return new WebAssembly.Memory({ initial, maximum: page, shared });
}

export const isShared = (memory: WebAssembly.Memory): boolean =>
  typeof SharedArrayBuffer !== 'undefined' && memory.buffer instanceof SharedArrayBuffer;

/** Hands out addresses from the bottom of a memory up. The first page is the kernels' own. */
export class Arena {
  readonly memory: WebAssembly.Memory;
  #next = page;

  constructor(memory: WebAssembly.Memory) {
    this.memory = memory;
  }

  get next(): number {
    return this.#next;
  }

  /** Bytes that may still be allocated. */
  get left(): number {
    return page * page - this.#next;
  }

  /** Room for this many bytes; the memory grows where it must. Contents are whatever was there before. */
  allocate(bytes: number): number {
    const address = this.#next;
    this.#next = align(address + bytes);
    const missing = this.#next - this.memory.buffer.byteLength;
    if (missing > 0) grow(this.memory, Math.ceil(missing / page), this.#next);
    return address;
  }

  place(data: Uint32Array | Float32Array | Uint16Array | Uint8Array): number {
    const address = this.allocate(data.byteLength);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    new Uint8Array(this.memory.buffer, address, bytes.length).set(bytes);
    return address;
  }

  /** Everything allocated since the arena's `next` was this address is free again. */
  release(address: number): void {
    this.#next = address;
  }
}

function grow(memory: WebAssembly.Memory, pages: number, bytes: number): void {
  try {
    memory.grow(pages);
  } catch {
    throw tooLarge(bytes);
  }
}

const tooLarge = (bytes: number) =>
  new UmbelError('too-large', 'the data and the working memory must fit into 4 GB', {
    value: `${(bytes / 2 ** 30).toFixed(1)} GB`,
    hint: 'use fewer rows or features, fewer threads, or a higher threshold',
  });

export const align = (bytes: number): number => Math.ceil(bytes / 16) * 16;
