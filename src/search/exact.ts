// Exact top-k over vectors in a kernel memory, which threads share. Runs in browsers; threads are loaded when asked for.
import { badUsage } from '../errors.ts';
import { Arena, align, createMemory } from '../kernels/memory.ts';
import type { Prepare, Task } from '../kernels/pool.ts';
import { claimSlot, releaseSlot, slotFlags } from '../kernels/slots.ts';
import { inNode, type Kernels, loadKernels } from '../kernels/wasm.ts';
import { type Found, joinFound } from '../math/csr.ts';
import { type Dense, denseRow } from '../math/dense.ts';
import { breathe, checkCancelled } from '../progress.ts';
import type { SearchOptions, VectorSearch } from './search.ts';

/** Queries that pass over the vectors together: as many as stay in the nearest cache beside them. */
const blockQueries = 32;
/** Vectors come in panels of so many. */
const panel = 4;
/** More would overflow the kernel's whole numbers. */
const mostDimensions = 4096;
/** Bytes of what the kernel knows of a vector, and of a query. */
const factBytes = 12;

/** Addresses and numbers a thread needs to search. */
interface Shelf {
  memory: WebAssembly.Memory;
  count: number;
  dimensions: number;
  /** Dimensions with the zeros that fill them up. */
  width: number;
  vectors: number;
  codes: number;
  facts: number;
  slots: number;
  slotFlags: Int32Array;
}

interface Block {
  queries: Dense;
  top: number;
  excluded?: Uint8Array;
}

/** The vectors are copied; their memory is about five bytes per number. */
export async function exactSearch(vectors: Dense): Promise<VectorSearch> {
  const { rows: count, cols: dimensions } = vectors;
  if (dimensions > mostDimensions)
    throw badUsage(`vectors must have at most ${mostDimensions} dimensions`, { value: dimensions });
  const shelf = fillShelf(vectors);
  const kernels = await loadKernels(shelf.memory);
  kernels.encodeVectors(shelf.vectors, count, shelf.width, shelf.codes, shelf.facts);
  return {
    async search(queries, options) {
      if (queries.cols !== dimensions)
        throw badUsage(`queries must have ${dimensions} dimensions`, { value: queries.cols });
      return joinFound(await searchBlocks(shelf, kernels, queries, options), count);
    },
  };
}

function fillShelf({ rows: count, cols: dimensions, values }: Dense): Shelf {
  const width = Math.ceil(dimensions / 8) * 8;
  const padded = Math.ceil(count / panel) * panel;
  const flags = slotFlags(inNode);
  const sizes = [count * width * 4, padded * width, padded * factBytes];
  const slotBytes = slotLayout({ count, width }).bytes;
  const bytes = sizes.reduce((sum, size) => sum + align(size), flags.length * slotBytes);
  const arena = new Arena(createMemory(bytes, inNode));
  const [rows, codes, facts] = sizes.map((size) => arena.allocate(size));
  const slots = arena.allocate(flags.length * slotBytes);
  const { memory } = arena;
  for (let row = 0; row < count; row++) {
    const from = values.subarray(row * dimensions, (row + 1) * dimensions);
    new Float32Array(memory.buffer, rows + row * width * 4, dimensions).set(from);
  }
  return { memory, count, dimensions, width, vectors: rows, codes, facts, slots, slotFlags: flags };
}

/** What one block in progress needs. */
function slotLayout({ count, width }: Pick<Shelf, 'count' | 'width'>) {
  let bytes = 0;
  const take = (size: number) => {
    const offset = bytes;
    bytes += align(size);
    return offset;
  };
  // Where many are asked for, fewer queries share the room; one may always ask for all.
  const room = Math.max(count, blockQueries * 64);
  return {
    room,
    queries: take(blockQueries * width * 4),
    codes: take(blockQueries * width * 2),
    facts: take(blockQueries * factBytes),
    excluded: take(count),
    heaps: take(room * 8),
    sizes: take(blockQueries * 4),
    bytes,
  };
}

async function searchBlocks(
  shelf: Shelf,
  kernels: Kernels,
  queries: Dense,
  { top, excluded, threads = 1, signal, progress }: SearchOptions,
): Promise<Found[]> {
  checkCancelled(signal);
  const wanted = Math.min(top, shelf.count);
  let done = 0;
  const onResult = ({ counts }: Found) => {
    done += counts.length;
    progress?.({ phase: 'search', done, total: queries.rows, unit: 'rows' });
  };
  const blocks = cutBlocks(shelf, queries, wanted, excluded);
  if (threads > 1 && queries.rows > blockQueries) {
    const { runJobs } = await import('../kernels/pool.ts');
    return runJobs(blockTask, shelf, blocks, { threads, signal, onResult, ahead: 1 });
  }
  const parts: Found[] = [];
  for (const block of blocks) {
    if (parts.length > 0) await breathe();
    checkCancelled(signal);
    const found = searchBlock(shelf, kernels, block);
    onResult(found);
    parts.push(found);
  }
  return parts;
}

function* cutBlocks(
  shelf: Shelf,
  queries: Dense,
  top: number,
  excluded: Uint8Array | undefined,
): Generator<Block> {
  const { cols } = queries;
  const size = Math.min(blockQueries, Math.max(1, Math.floor(slotLayout(shelf).room / Math.max(top, 1))));
  for (let from = 0; from < queries.rows; from += size) {
    const rows = Math.min(size, queries.rows - from);
    const values = queries.values.slice(from * cols, (from + rows) * cols);
    yield { queries: { rows, cols, values }, top, excluded };
  }
}

const blockTask: Task<Shelf, Block, Found> = { module: import.meta.url, name: 'prepareBlocks' };

export const prepareBlocks: Prepare<Shelf, Block, Found> = async (shelf) => {
  const kernels = await loadKernels(shelf.memory);
  return (block) => searchBlock(shelf, kernels, block);
};

function searchBlock(shelf: Shelf, kernels: Kernels, { queries, top, excluded }: Block): Found {
  const { memory, width, count } = shelf;
  const layout = slotLayout(shelf);
  const slot = claimSlot(shelf.slotFlags);
  const at = (part: Exclude<keyof typeof layout, 'bytes' | 'room'>) =>
    shelf.slots + slot * layout.bytes + layout[part];
  try {
    for (let row = 0; row < queries.rows; row++) {
      const place = new Float32Array(memory.buffer, at('queries') + row * width * 4, width);
      place.fill(0).set(denseRow(queries, row));
    }
    if (excluded) new Uint8Array(memory.buffer, at('excluded'), count).set(excluded.subarray(0, count));
    kernels.encodeQueries(at('queries'), queries.rows, width, at('codes'), at('facts'));
    kernels.findNearest(
      shelf.vectors,
      shelf.codes,
      shelf.facts,
      count,
      width,
      excluded ? at('excluded') : 0,
      at('queries'),
      at('codes'),
      at('facts'),
      queries.rows,
      top,
      at('heaps'),
      at('sizes'),
    );
    const counts = new Uint32Array(memory.buffer, at('sizes'), queries.rows).slice();
    return readHeaps(memory, at('heaps'), counts, top);
  } finally {
    releaseSlot(shelf.slotFlags, slot);
  }
}

/** Lists of (product, number) pairs, each with room for `top`, without the gaps between them. */
function readHeaps(memory: WebAssembly.Memory, heaps: number, counts: Uint32Array, top: number): Found {
  const size = counts.reduce((sum, count) => sum + count, 0);
  const [labels, scores] = [new Uint32Array(size), new Float32Array(size)];
  const numbers = new Uint32Array(memory.buffer, heaps, counts.length * top * 2);
  const products = new Float32Array(memory.buffer, heaps, counts.length * top * 2);
  let entry = 0;
  counts.forEach((count, row) => {
    for (let rank = 0; rank < count; rank++, entry++) {
      labels[entry] = numbers[2 * (row * top + rank) + 1];
      scores[entry] = products[2 * (row * top + rank)];
    }
  });
  return { counts, labels, scores };
}
