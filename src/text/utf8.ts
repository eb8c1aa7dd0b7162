// Strings as UTF-8 in typed arrays, so that no strings are made for the words of a text. Texts and names are packed as
// bytes; words are cut into blocks of four bytes, zeros at the end, to be hashed and compared four bytes at a time.

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export const decode = (bytes: Uint8Array, start = 0, end = bytes.length): string =>
  decoder.decode(bytes.subarray(start, end));

/** Strings one after the other: string i is `bytes[offsets[i]..offsets[i + 1])`. */
export interface Packed {
  bytes: Uint8Array;
  offsets: Uint32Array;
}

/** Packs `texts[first..last)`. */
export function pack(texts: readonly string[], first = 0, last = texts.length): Packed {
  const offsets = new Uint32Array(last - first + 1);
  let length = 0;
  for (let i = first; i < last; i++) length += texts[i].length;
  let bytes = new Uint8Array(length + 1024);
  let end = 0;
  for (let i = first; i < last; i++) {
    // A UTF-16 unit takes at most three bytes, most take one.
    const needed = end + 3 * texts[i].length;
    if (needed > bytes.length) bytes = enlarge(bytes, needed + (length >> 2));
    end += encoder.encodeInto(texts[i], bytes.subarray(end)).written;
    offsets[i - first + 1] = end;
  }
  return { bytes: bytes.slice(0, end), offsets };
}

/** The given strings, in the given order. */
export function selectPacked({ bytes, offsets }: Packed, order: Uint32Array): Packed {
  const selected = new Uint32Array(order.length + 1);
  for (let i = 0; i < order.length; i++)
    selected[i + 1] = selected[i] + offsets[order[i] + 1] - offsets[order[i]];
  const copied = new Uint8Array(selected[order.length]);
  for (let i = 0; i < order.length; i++) {
    const shift = offsets[order[i]] - selected[i];
    for (let p = selected[i]; p < selected[i + 1]; p++) copied[p] = bytes[p + shift];
  }
  return { bytes: copied, offsets: selected };
}

/** A string as whole blocks. */
export function toBlocks(text: string): Int32Array {
  const blocks = new Int32Array(((3 * text.length) >> 2) + 1);
  const { written } = encoder.encodeInto(text, new Uint8Array(blocks.buffer));
  return blocks.subarray(0, (written + 3) >> 2);
}

export function fromBlocks(blocks: Int32Array, start: number, end: number): string {
  const bytes = new Uint8Array(blocks.buffer, blocks.byteOffset);
  return decode(bytes, 4 * start, 4 * start + bytesInBlocks(bytes, start, end));
}

/** How many bytes of `blocks[start..end)`, seen as bytes, are not padding. */
export function bytesInBlocks(bytes: Uint8Array, start: number, end: number): number {
  let last = 4 * end;
  while (last > 4 * start && bytes[last - 1] === 0) last--;
  return last - 4 * start;
}

/** A longer copy; what is new is zero. */
export function enlarge<T extends Uint8Array | Uint32Array | Int32Array>(old: T, length: number): T {
  const larger = new (old.constructor as new (length: number) => T)(length);
  larger.set(old);
  return larger;
}
