// The only source of randomness: sfc32, seeded by words or numbers, so that every consumer can own a stream that
// depends on its key and not on who drew before it.

export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;
  #spare: number | undefined;

  /** Streams with different keys are independent: `new Random(seed, 'split', epoch)`. */
  constructor(...key: (number | string)[]) {
    const hash = fnv(key.join('\u0000'));
    [this.#a, this.#b, this.#c] = [hash, hash ^ 0x9e3779b9, Math.imul(hash, 0x85ebca6b) ^ 0xc2b2ae35];
    for (let i = 0; i < 16; i++) this.uint32();
  }

  uint32(): number {
    const t = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0;
    return t >>> 0;
  }

  /** Uniform in [0, 1), 53 bits. */
  uniform(): number {
    return ((this.uint32() >>> 5) * 67108864 + (this.uint32() >>> 6)) / 9007199254740992;
  }

  /** Uniform integer in [0, n), n up to 2^32; unbiased by rejection. */
  integer(n: number): number {
    const limit = 4294967296 - (4294967296 % n);
    for (;;) {
      const x = this.uint32();
      if (x < limit) return x % n;
    }
  }

  /** Standard normal (Box-Muller, both values used). */
  normal(): number {
    if (this.#spare !== undefined) {
      const value = this.#spare;
      this.#spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.#spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** Fisher-Yates, in place; returns the same array. */
  shuffle<T extends { length: number; [i: number]: unknown }>(items: T): T {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.integer(i + 1);
      [items[i], items[j]] = [items[j], items[i]];
    }
    return items;
  }

  /** 0..n-1 in random order. */
  permutation(n: number): Uint32Array {
    return this.shuffle(Uint32Array.from({ length: n }, (_, i) => i));
  }
}

/** FNV-1a over UTF-16 units, finished with an avalanche: seeds 1 and 2 must not give similar streams. */
function fnv(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
