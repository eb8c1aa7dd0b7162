// Exact pieces out of a stream of chunks, for binary formats. Memory is taken only for bytes that have arrived, so a
// length that lies costs nothing.
import { badInput } from '../errors.ts';

export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #file: string;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>, file: string) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#file = file;
  }

  /** Exactly `size` bytes; fewer left is an error. */
  async take(size: number): Promise<Buffer> {
    const parts = [this.#rest];
    let length = this.#rest.length;
    while (length < size) {
      const next = await this.#chunks.next();
      if (next.done)
        throw badInput('file must not be cut short', {
          file: this.#file,
          value: `${length} of ${size} bytes wanted next`,
        });
      parts.push(next.value);
      length += next.value.length;
    }
    const bytes = parts.length === 1 ? parts[0] : Buffer.concat(parts, length);
    this.#rest = bytes.subarray(size);
    return bytes.subarray(0, size);
  }

  /** Bytes after the last piece are an error. */
  async end(): Promise<void> {
    const next = this.#rest.length > 0 ? undefined : await this.#chunks.next();
    if (!next?.done) throw badInput('file must end after its last value', { file: this.#file });
  }

  /** Lets go of the file. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}
