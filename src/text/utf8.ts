// Strings as UTF-8 bytes in typed arrays: what tokenising, hashing and saving work on, so that no strings are made for
// the words of a text.

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export const encode = (text: string): Uint8Array => encoder.encode(text);

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

/** A longer copy; what is new is zero. */
export function enlarge<T extends Uint8Array | Uint32Array | Int32Array>(old: T, length: number): T {
  const larger = new (old.constructor as new (length: number) => T)(length);
  larger.set(old);
  return larger;
}
