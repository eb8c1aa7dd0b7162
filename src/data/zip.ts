// Just enough zip for NumPy's .npz: named entries, stored or deflated, any size (zip64). Entries are streams; names are
// looked up, never used as paths.
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createDeflateRaw, createInflateRaw } from 'node:zlib';
import { badInput } from '../errors.ts';
import type { AtomicFile } from './file.ts';

export interface ZipEntry {
  name: string;
  method: number;
  packedSize: number;
  size: number;
  crc: number;
  /** Of the local header. */
  offset: number;
}

const signature = {
  local: 0x04034b50,
  descriptor: 0x08074b50,
  central: 0x02014b50,
  end: 0x06054b50,
  end64: 0x06064b50,
  locator64: 0x07064b50,
};
const [stored, deflated] = [0, 8];
/** Says that the true number is in the zip64 part. */
const elsewhere = 0xffffffff;
const maxDirectoryBytes = 2 ** 20;

/** The entries of a zip file, by name. */
export async function readZip(path: string): Promise<Map<string, ZipEntry>> {
  const handle = await open(path).catch(() => {
    throw badInput('file must exist and be readable', { file: path });
  });
  try {
    return await readDirectory(handle, path);
  } finally {
    await handle.close();
  }
}

async function readDirectory(handle: FileHandle, file: string): Promise<Map<string, ZipEntry>> {
  const { size } = await handle.stat();
  const slice = async (start: number, length: number) => {
    if (!(start >= 0 && length >= 0 && start + length <= size))
      throw badInput('zip file must be whole', { file, value: `${start}+${length} of ${size} bytes` });
    return (await handle.read(Buffer.alloc(length), 0, length, start)).buffer;
  };
  // The end record is 22 bytes and a comment of at most 65,535.
  const tailStart = Math.max(0, size - 22 - 0xffff);
  const tail = await slice(tailStart, size - tailStart);
  const at = tail.lastIndexOf(record(4, [signature.end, 4]));
  if (at < 0 || at + 22 > tail.length) throw badInput('file must be a zip file', { file });
  let length = tail.readUInt32LE(at + 12);
  let offset = tail.readUInt32LE(at + 16);
  const locator = tailStart + at - 20;
  if ((length === elsewhere || offset === elsewhere) && locator >= 0) {
    const end64 = await slice(uint64(await slice(locator, 20), 8), 56);
    [length, offset] = [uint64(end64, 40), uint64(end64, 48)];
  }
  if (length > maxDirectoryBytes)
    throw badInput(`zip directory must have at most ${maxDirectoryBytes} bytes`, { file, value: length });
  return parseDirectory(await slice(offset, length), size, file);
}

function parseDirectory(bytes: Buffer, fileSize: number, file: string): Map<string, ZipEntry> {
  const entries = new Map<string, ZipEntry>();
  const damaged = () => badInput('zip directory must be intact', { file });
  for (let at = 0; at < bytes.length; ) {
    if (at + 46 > bytes.length || bytes.readUInt32LE(at) !== signature.central) throw damaged();
    const [nameLength, extraLength] = [bytes.readUInt16LE(at + 28), bytes.readUInt16LE(at + 30)];
    const extraStart = at + 46 + nameLength;
    const next = extraStart + extraLength + bytes.readUInt16LE(at + 32);
    if (next > bytes.length) throw damaged();
    const wide = zip64Numbers(bytes.subarray(extraStart, extraStart + extraLength));
    const number = (position: number) => {
      const value = bytes.readUInt32LE(position);
      return value === elsewhere ? (wide.shift() ?? value) : value;
    };
    const entry: ZipEntry = {
      name: bytes.toString('utf8', at + 46, extraStart),
      method: bytes.readUInt16LE(at + 10),
      crc: bytes.readUInt32LE(at + 16),
      size: number(at + 24),
      packedSize: number(at + 20),
      offset: number(at + 42),
    };
    const flags = bytes.readUInt16LE(at + 8);
    if (flags & 1) throw badInput('zip entries must not be encrypted', { file, value: entry.name });
    if (entry.method !== stored && entry.method !== deflated)
      throw badInput('zip entries must be stored or deflated', { file, value: entry.name });
    if (entry.offset + 30 + entry.packedSize > fileSize) throw damaged();
    entries.set(entry.name, entry);
    at = next;
  }
  return entries;
}

/** The numbers of the zip64 extra field, in the order they replace others. */
function zip64Numbers(extra: Buffer): number[] {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue;
    const count = Math.floor(Math.min(extra.readUInt16LE(at + 2), extra.length - at - 4) / 8);
    return Array.from({ length: count }, (_, i) => uint64(extra, at + 4 + 8 * i));
  }
  return [];
}

const uint64 = (bytes: Buffer, at: number) => Number(bytes.readBigUInt64LE(at));

/** The unpacked bytes of an entry: as many as its directory says, with the checksum it says, or an error. */
export async function* readEntry(path: string, entry: ZipEntry): AsyncGenerator<Buffer> {
  const start = await dataStart(path, entry);
  if (entry.packedSize === 0) return;
  const file = createReadStream(path, { start, end: start + entry.packedSize - 1, highWaterMark: 2 ** 16 });
  const source = entry.method === stored ? file : file.pipe(createInflateRaw({ chunkSize: 2 ** 16 }));
  file.on('error', (error) => source.destroy(error));
  const damaged = (value: unknown) =>
    badInput(`zip entry ${entry.name} must be intact`, { file: path, value });
  let size = 0;
  let crc = 0;
  try {
    for await (const chunk of source) {
      size += chunk.length;
      if (size > entry.size) throw damaged(`more than its ${entry.size} bytes`);
      crc = crc32(chunk, crc);
      yield chunk as Buffer;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code?.startsWith('Z_')) throw damaged((error as Error).message);
    throw error;
  } finally {
    file.destroy();
    source.destroy();
  }
  if (size < entry.size) throw damaged(`${size} of ${entry.size} bytes`);
  if (crc !== entry.crc) throw damaged('a wrong checksum');
}

async function dataStart(path: string, { offset, name }: ZipEntry): Promise<number> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(30), 0, 30, offset);
    if (bytesRead < 30 || buffer.readUInt32LE(0) !== signature.local)
      throw badInput(`zip entry ${name} must be intact`, { file: path, value: 'no header' });
    return offset + 30 + buffer.readUInt16LE(26) + buffer.readUInt16LE(28);
  } finally {
    await handle.close();
  }
}

/** Writes a zip file entry by entry, always in zip64 form so that no size needs a special case. */
export class ZipWriter {
  readonly #file: AtomicFile;
  readonly #entries: ZipEntry[] = [];
  #offset = 0;

  constructor(file: AtomicFile) {
    this.#file = file;
  }

  async add(name: string, chunks: Iterable<Buffer>): Promise<void> {
    const entry: ZipEntry = { name, method: deflated, packedSize: 0, size: 0, crc: 0, offset: this.#offset };
    const local = record(
      30,
      [signature.local, 4],
      [45, 2],
      [streamed, 2],
      [deflated, 2],
      [0, 2],
      [dosDate, 2],
    );
    local.set(record(12, [elsewhere, 4], [elsewhere, 4], [name.length, 2], [20, 2]), 18);
    const wide = record(20, [1, 2], [16, 2]);
    await this.#write(Buffer.concat([local, Buffer.from(name), wide]));
    const counted = function* () {
      for (const chunk of chunks) {
        entry.size += chunk.length;
        entry.crc = crc32(chunk, entry.crc);
        yield chunk;
      }
    };
    for await (const packed of Readable.from(counted()).pipe(createDeflateRaw())) {
      entry.packedSize += packed.length;
      await this.#write(packed);
    }
    const sizes = [BigInt(entry.packedSize), BigInt(entry.size)] as const;
    await this.#write(record(24, [signature.descriptor, 4], [entry.crc, 4], [sizes[0], 8], [sizes[1], 8]));
    this.#entries.push(entry);
  }

  /** Writes the directory; the file itself is the caller's to close. */
  async finish(): Promise<void> {
    const start = BigInt(this.#offset);
    for (const entry of this.#entries) await this.#write(centralRecord(entry));
    const end = BigInt(this.#offset);
    const count = BigInt(this.#entries.length);
    const end64 = record(56, [signature.end64, 4], [44n, 8], [45, 2], [45, 2], [0, 4], [0, 4], [count, 8]);
    end64.set(record(24, [count, 8], [end - start, 8], [start, 8]), 32);
    const locator = record(20, [signature.locator64, 4], [0, 4], [end, 8], [1, 4]);
    const last = record(
      22,
      [signature.end, 4],
      [0, 4],
      [0xffff, 2],
      [0xffff, 2],
      [elsewhere, 4],
      [elsewhere, 4],
    );
    await this.#write(Buffer.concat([end64, locator, last]));
  }

  async #write(bytes: Buffer): Promise<void> {
    this.#offset += bytes.length;
    await this.#file.write(bytes);
  }
}

/** Flag: sizes and checksum follow the data. */
const streamed = 8;
/** 1980-01-01, the first day zip knows: the same data gives the same file. */
const dosDate = 0x21;

function centralRecord({ name, method, crc, packedSize, size, offset }: ZipEntry): Buffer {
  const fields = record(
    46,
    [signature.central, 4],
    [45, 2],
    [45, 2],
    [streamed, 2],
    [method, 2],
    [0, 2],
    [dosDate, 2],
  );
  fields.set(record(30, [crc, 4], [elsewhere, 4], [elsewhere, 4], [name.length, 2], [28, 2]), 16);
  fields.writeUInt32LE(elsewhere, 42);
  const wide = record(28, [1, 2], [24, 2], [BigInt(size), 8], [BigInt(packedSize), 8], [BigInt(offset), 8]);
  return Buffer.concat([fields, Buffer.from(name), wide]);
}

/** Little-endian fields one after the other, padded with zeros. */
function record(length: number, ...fields: ([bigint, 8] | [number, 2 | 4])[]): Buffer {
  const bytes = Buffer.alloc(length);
  let at = 0;
  for (const [value, width] of fields) {
    if (typeof value === 'bigint') bytes.writeBigUInt64LE(value, at);
    else bytes.writeUIntLE(value, at, width);
    at += width;
  }
  return bytes;
}

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  let crc = n;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1;
  return crc;
});

// zlib.crc32 came with Node 20.15; we run on all of Node 20.
function crc32(bytes: Uint8Array, previous: number): number {
  let crc = ~previous;
  for (let i = 0; i < bytes.length; i++) crc = crcTable[(crc ^ bytes[i]) & 0xff] ^ (crc >>> 8);
  return ~crc >>> 0;
}
