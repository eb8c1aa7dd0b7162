// Gathers what threads have counted, whatever the order they answer in, and chooses the columns.
import { badInput } from '../errors.ts';
import { usedColumns } from './encode.ts';
import type { Counted } from './jobs.ts';
import { Lexicon } from './lexicon.ts';
import { enlarge, type Packed, selectPacked } from './utf8.ts';
import type { TextOptions } from './vectoriser.ts';

/** What one thread has counted so far. */
interface Lane {
  /** How many terms it has numbered, and what each is in the tally's lexicon. */
  size: number;
  numbers: Int32Array;
  /** Per term of its own, how many rows have it. */
  documents: Uint32Array;
}

export class Tally {
  readonly #options: TextOptions;
  readonly #lexicon = new Lexicon();
  readonly #lanes: Lane[] = [];

  constructor(options: TextOptions) {
    this.#options = options;
  }

  /** Takes a counted chunk and returns its number of rows. */
  add({ lane: number, counts, terms }: Counted): number {
    const { hashBits } = this.#options;
    const size = hashBits > 0 ? 2 ** hashBits : 0;
    this.#lanes[number] ??= { size, numbers: new Int32Array(0), documents: new Uint32Array(size) };
    const lane = this.#lanes[number];
    const known = lane.size;
    lane.size += terms.first.length;
    if (lane.size > lane.documents.length) {
      lane.numbers = enlarge(lane.numbers, 2 * lane.size);
      lane.documents = enlarge(lane.documents, 2 * lane.size);
    }
    this.#lexicon.merge(terms, lane.numbers, known);
    for (let i = 0; i < counts.terms.length; i++) lane.documents[counts.terms[i]]++;
    return counts.indptr.length - 1;
  }

  /** The columns, and for each lane which of them its terms are. */
  choose(rows: number): { names: Packed; documents: Uint32Array; columns: Int32Array[] } {
    const { hashBits, minDocuments, maxShare } = this.#options;
    const documents = this.#documents();
    for (let i = 0; i < documents.length; i++)
      if (documents[i] < minDocuments || documents[i] > maxShare * rows) documents[i] = 0;
    if (!documents.some((count) => count > 0)) {
      const hint = 'the texts may be empty, minDocuments too high or maxShare too low';
      throw badInput('texts must have at least one feature to learn', { hint });
    }
    if (hashBits > 0) {
      const names = { bytes: new Uint8Array(0), offsets: new Uint32Array(1) };
      return { names, documents, columns: this.#lanes.map(() => usedColumns(documents)) };
    }
    const kept = positive(documents);
    const names = this.#lexicon.names(kept);
    const order = this.#order(names, kept, documents);
    const columns = new Int32Array(documents.length).fill(-1);
    const inOrder = new Uint32Array(order.length);
    for (let column = 0; column < order.length; column++) {
      const term = kept[order[column]];
      columns[term] = column;
      inOrder[column] = documents[term];
    }
    return {
      names: selectPacked(names, order),
      documents: inOrder,
      columns: this.#lanes.map(({ numbers, size }) => numbers.subarray(0, size).map((term) => columns[term])),
    };
  }

  /** Per term, or per hashed column, how many rows have it. */
  #documents(): Uint32Array {
    const isHashed = this.#options.hashBits > 0;
    const documents = new Uint32Array(isHashed ? 2 ** this.#options.hashBits : this.#lexicon.size);
    for (const lane of this.#lanes) {
      for (let i = 0; i < lane.size; i++) documents[isHashed ? i : lane.numbers[i]] += lane.documents[i];
    }
    return documents;
  }

  /** The kept terms, those of most rows first, ties by name, as places in `kept`. */
  #order(names: Packed, kept: Uint32Array, documents: Uint32Array): Uint32Array {
    const groups = new Map<number, number[]>();
    for (let i = 0; i < kept.length; i++) {
      const count = documents[kept[i]];
      const group = groups.get(count);
      if (group) group.push(i);
      else groups.set(count, [i]);
    }
    const byName = new NameOrder(names);
    const { maxFeatures } = this.#options;
    const order = new Uint32Array(maxFeatures > 0 ? Math.min(maxFeatures, kept.length) : kept.length);
    let size = 0;
    for (const [, group] of [...groups].sort(([a], [b]) => b - a)) {
      if (size === order.length) break;
      group.sort((a, b) => byName.compare(a, b));
      const taken = group.slice(0, order.length - size);
      order.set(taken, size);
      size += taken.length;
    }
    return order;
  }
}

/** The places of numbers above 0. */
function positive(numbers: Uint32Array): Uint32Array {
  const places = new Uint32Array(numbers.length);
  let size = 0;
  for (let i = 0; i < numbers.length; i++) if (numbers[i] > 0) places[size++] = i;
  return places.slice(0, size);
}

/** Compares names by code point, most of them by one number: the first six bytes. */
class NameOrder {
  readonly #names: Packed;
  readonly #starts: Float64Array;

  constructor(names: Packed) {
    const { bytes, offsets } = names;
    this.#names = names;
    this.#starts = new Float64Array(offsets.length - 1);
    for (let i = 0; i < this.#starts.length; i++) {
      let start = 0;
      for (let p = offsets[i]; p < offsets[i] + 6; p++)
        start = start * 256 + (p < offsets[i + 1] ? bytes[p] : 0);
      this.#starts[i] = start;
    }
  }

  compare(a: number, b: number): number {
    if (this.#starts[a] !== this.#starts[b]) return this.#starts[a] - this.#starts[b];
    const { bytes, offsets } = this.#names;
    const shift = offsets[b] - offsets[a];
    for (let p = offsets[a] + 6; p < offsets[a + 1] && p + shift < offsets[b + 1]; p++)
      if (bytes[p] !== bytes[p + shift]) return bytes[p] - bytes[p + shift];
    return offsets[a + 1] - offsets[a] - (offsets[b + 1] - offsets[b]);
  }
}
