// Token sequences as programs take them: rows of one length with a mask, in arrays that are used again and again.
import type { Dense } from '../../math/dense.ts';
import { input } from '../../nn/graph.ts';
import type { Feeds, Program } from '../../nn/train.ts';
import type { TokenRows } from '../../text/subwords.ts';
import type { Sequences } from './encoder.ts';

/** Samples and labels are fed beside each other. */
type Side = 'query' | 'label';

export const sequences = (side: Side, rows: number, length: number): Sequences => ({
  ids: input(`${side} ids`, [rows, length], 'int32'),
  mask: input(`${side} mask`, [rows, length]),
});

export class TokenFeeds {
  readonly #ids: Int32Array;
  readonly #mask: Float32Array;
  readonly #side: Side;
  readonly #length: number;

  constructor(side: Side, rows: number, length: number) {
    this.#side = side;
    this.#length = length;
    this.#ids = new Int32Array(rows * length);
    this.#mask = new Float32Array(rows * length);
  }

  /** The sequences of these rows; rows without tokens, and those after the last, hold token 0 alone. */
  of(tokens: TokenRows, rows: ArrayLike<number>): Feeds {
    const [ids, mask, length] = [this.#ids, this.#mask, this.#length];
    ids.fill(0);
    mask.fill(0);
    for (let at = 0; at < mask.length; at += length) mask[at] = 1;
    for (let i = 0; i < rows.length; i++) {
      const [start, end] = [tokens.indptr[rows[i]], tokens.indptr[rows[i] + 1]];
      const count = Math.min(end - start, length);
      ids.set(tokens.ids.subarray(start, start + count), i * length);
      mask.fill(1, i * length, i * length + count);
    }
    return { [`${this.#side} ids`]: ids, [`${this.#side} mask`]: mask };
  }
}

/** The longest sequence, but at least one token. */
export function longestOf({ rows, indptr }: TokenRows): number {
  let longest = 1;
  for (let row = 0; row < rows; row++) longest = Math.max(longest, indptr[row + 1] - indptr[row]);
  return longest;
}

/** The output `vectors` of a program for all rows, batch after batch. */
export async function vectorsOf(
  rows: number,
  width: number,
  batch: number,
  program: Pick<Program, 'run'>,
  feeds: (numbers: Uint32Array) => Feeds,
  between: (done: number) => void | Promise<void>,
): Promise<Dense> {
  const all: Dense = { rows, cols: width, values: new Float32Array(rows * width) };
  for (let at = 0; at < rows; at += batch) {
    const numbers = Uint32Array.from({ length: Math.min(batch, rows - at) }, (_, i) => at + i);
    const { vectors } = await program.run(feeds(numbers));
    all.values.set((vectors as Float32Array).subarray(0, numbers.length * width), at * width);
    await between(at + numbers.length);
  }
  return all;
}
