// Terms → numbers. A term is a string in blocks, or a pair of terms (an n-gram is the pair of its first n-1 words and its
// last), so that an n-gram costs two numbers and no text. Open addressing over typed arrays; no strings are made.
import { bytesInBlocks, enlarge, type Packed } from './utf8.ts';

/** Numbers terms; -1 for one it does not know. */
export interface TermIndex {
  string(blocks: Int32Array, start: number, end: number): number;
  /** -1 also when either part is. */
  pair(first: number, last: number): number;
}

/** Terms in the order they were added: for a string -1 and its length, for a pair its two terms. */
export interface TermList {
  first: Int32Array;
  second: Int32Array;
  /** The strings, one after the other. */
  blocks: Int32Array;
}

export class Lexicon implements TermIndex {
  /** Unknown terms are refused, not added. */
  frozen = false;
  /**
   * Four numbers per slot, side by side so that a look-up touches memory once: hash, term + 1, and what the term is:
   * -1 - offset of its blocks and its length, or the two terms of a pair. At most half the slots are taken.
   */
  #slots = new Int32Array(4 * 2048);
  /** What each term is, as in its slot. */
  #terms = new Int32Array(2 * 1024);
  #blocks = new Int32Array(2048);
  #blocksUsed = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  string(blocks: Int32Array, start: number, end: number): number {
    const hash = hashBlocks(blocks, start, end);
    const length = end - start;
    const slots = this.#slots;
    const known = this.#blocks;
    let at = slotOf(hash, slots);
    search: for (; slots[at + 1] !== 0; at = (at + 4) & (slots.length - 1)) {
      if (slots[at] !== hash || slots[at + 3] !== length) continue;
      const offset = -1 - slots[at + 2];
      if (offset < 0) continue;
      for (let i = 0; i < length; i++) if (known[offset + i] !== blocks[start + i]) continue search;
      return slots[at + 1] - 1;
    }
    if (this.frozen) return -1;
    const offset = this.#blocksUsed;
    this.#blocksUsed = offset + length;
    if (this.#blocksUsed > known.length) this.#blocks = enlarge(known, 2 * this.#blocksUsed);
    this.#blocks.set(blocks.subarray(start, end), offset);
    return this.#add(at, hash, -1 - offset, length);
  }

  pair(first: number, last: number): number {
    if (first < 0 || last < 0) return -1;
    const hash = hashPair(first, last);
    const slots = this.#slots;
    let at = slotOf(hash, slots);
    for (; slots[at + 1] !== 0; at = (at + 4) & (slots.length - 1)) {
      if (slots[at + 2] === first && slots[at + 3] === last) return slots[at + 1] - 1;
    }
    return this.frozen ? -1 : this.#add(at, hash, first, last);
  }

  /** Terms added since there were `from` of them. */
  list(from = 0): TermList {
    const count = this.#size - from;
    const [first, second] = [new Int32Array(count), new Int32Array(count)];
    let blocksFrom = this.#blocksUsed;
    for (let i = count - 1; i >= 0; i--) {
      const term = 2 * (from + i);
      first[i] = Math.max(this.#terms[term], -1);
      second[i] = this.#terms[term + 1];
      if (first[i] < 0) blocksFrom = -1 - this.#terms[term];
    }
    return { first, second, blocks: this.#blocks.slice(blocksFrom, this.#blocksUsed) };
  }

  /** Adds the next of another lexicon's terms; `numbers` says what its first `known` terms are here, and is continued. */
  merge({ first, second, blocks }: TermList, numbers: Int32Array, known: number): void {
    let offset = 0;
    for (let i = 0; i < first.length; i++) {
      if (first[i] >= 0) {
        numbers[known + i] = this.pair(numbers[first[i]], numbers[second[i]]);
      } else {
        numbers[known + i] = this.string(blocks, offset, offset + second[i]);
        offset += second[i];
      }
    }
  }

  /** The names of the given terms: an n-gram's words have a space between. */
  names(terms: Uint32Array): Packed {
    const offsets = new Uint32Array(terms.length + 1);
    const known = new Uint8Array(this.#blocks.buffer);
    let bytes = new Uint8Array(16 * terms.length);
    let end = 0;
    for (let i = 0; i < terms.length; i++) {
      const longest = end + this.#longestName(terms[i]);
      if (longest > bytes.length) bytes = enlarge(bytes, 2 * longest);
      end = this.#writeName(terms[i], known, bytes, end);
      offsets[i + 1] = end;
    }
    return { bytes: bytes.slice(0, end), offsets };
  }

  /** The length of a name with its padding. */
  #longestName(term: number): number {
    const [first, second] = [this.#terms[2 * term], this.#terms[2 * term + 1]];
    return first < 0 ? 4 * second : this.#longestName(first) + 1 + this.#longestName(second);
  }

  #writeName(term: number, known: Uint8Array, bytes: Uint8Array, start: number): number {
    const [first, second] = [this.#terms[2 * term], this.#terms[2 * term + 1]];
    if (first >= 0) {
      const middle = this.#writeName(first, known, bytes, start);
      bytes[middle] = 0x20;
      return this.#writeName(second, known, bytes, middle + 1);
    }
    const offset = -1 - first;
    const length = bytesInBlocks(known, offset, offset + second);
    for (let i = 0; i < length; i++) bytes[start + i] = known[4 * offset + i];
    return start + length;
  }

  #add(at: number, hash: number, first: number, second: number): number {
    const term = this.#size++;
    if (2 * term >= this.#terms.length) this.#terms = enlarge(this.#terms, 4 * term);
    this.#terms[2 * term] = first;
    this.#terms[2 * term + 1] = second;
    fillSlot(this.#slots, at, hash, term + 1, first, second);
    if (8 * this.#size > this.#slots.length) this.#rehash();
    return term;
  }

  #rehash(): void {
    const old = this.#slots;
    const slots = new Int32Array(2 * old.length);
    for (let i = 0; i < old.length; i += 4) {
      if (old[i + 1] === 0) continue;
      let at = slotOf(old[i], slots);
      while (slots[at + 1] !== 0) at = (at + 4) & (slots.length - 1);
      fillSlot(slots, at, old[i], old[i + 1], old[i + 2], old[i + 3]);
    }
    this.#slots = slots;
  }
}

/** Numbers terms by a hash of their blocks alone: nothing to learn or keep, and different terms may share a number. */
export const hashedTerms: TermIndex = {
  string: (blocks, start, end) => hashBlocks(blocks, start, end) & 0x7fffffff,
  pair: (first, last) => (first < 0 || last < 0 ? -1 : hashPair(first, last) & 0x7fffffff),
};

const slotOf = (hash: number, slots: Int32Array) => (hash << 2) & (slots.length - 1);

function fillSlot(slots: Int32Array, at: number, hash: number, term: number, first: number, second: number) {
  slots[at] = hash;
  slots[at + 1] = term;
  slots[at + 2] = first;
  slots[at + 3] = second;
}

function hashBlocks(blocks: Int32Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) {
    hash = Math.imul(hash ^ blocks[i], 0x9e3779b1);
    // A multiplication only carries upwards: without this, the last letters of a block would not reach the low bits.
    hash ^= hash >>> 15;
  }
  return mix(hash);
}

const hashPair = (first: number, last: number) => mix(Math.imul(first, 0x9e3779b1) ^ last);

function mix(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}
