// Matrix files as rows in order: SciPy's compressed sparse rows (.npz) and NumPy's dense arrays (.npy), read piece by
// piece so that they need not fit in memory. Knows numbers, not samples.
import { open } from 'node:fs/promises';
import { badInput } from '../errors.ts';
import { ByteReader } from './bytes.ts';
import { readBytes } from './file.ts';
import { NumberReader, type Numbers, readText } from './ndarray.ts';
import { readEntry, readZip } from './zip.ts';

/** A dense row has no indices; those of a sparse one ascend and are unique. */
export interface MatrixRow {
  indices?: Uint32Array;
  values: Float32Array;
}

export interface MatrixFile {
  sparse: boolean;
  rows: number;
  cols: number;
  /** The next rows: at least one, at most `limit`, about a megabyte. */
  take(limit: number): Promise<MatrixRow[]>;
  /** Checks that the file ends with the last row. */
  end(): Promise<void>;
  close(): Promise<void>;
}

/** Rows taken together hold about this many numbers. */
const batchNumbers = 2 ** 16;
/** An array that must be held whole to be turned. */
const maxTurnedNumbers = 2 ** 29;

/** A .npz or .npy file, told apart by its first bytes. */
export async function openMatrix(path: string): Promise<MatrixFile> {
  return (await startsLikeZip(path)) ? openCsr(path) : openDense(path);
}

async function startsLikeZip(path: string): Promise<boolean> {
  const handle = await open(path).catch(() => {
    throw badInput('file must exist and be readable', { file: path });
  });
  try {
    const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.readUInt16BE(0) === 0x504b;
  } finally {
    await handle.close();
  }
}

async function openDense(file: string): Promise<MatrixFile> {
  const bytes = new ByteReader(readBytes(file), file);
  try {
    const numbers = await NumberReader.open(bytes, file);
    if (numbers.shape.length !== 2)
      throw badInput('array must have two dimensions', { file, value: numbers.shape.length });
    const [rows, cols] = numbers.shape;
    const turned = numbers.fortran ? await turn(numbers, file) : undefined;
    let done = 0;
    return {
      sparse: false,
      rows,
      cols,
      async take(limit) {
        const count = Math.min(limit, rows - done, Math.max(1, Math.floor(batchNumbers / cols)));
        const values = turned
          ? turned.subarray(done * cols, (done + count) * cols)
          : new Float32Array(await numbers.take(count * cols));
        done += count;
        return Array.from({ length: count }, (_, i) => ({
          values: values.subarray(i * cols, (i + 1) * cols),
        }));
      },
      end: () => numbers.end(),
      close: () => bytes.close(),
    };
  } catch (error) {
    await bytes.close();
    throw error;
  }
}

/** Column after column becomes row after row. */
async function turn(numbers: NumberReader, file: string): Promise<Float32Array> {
  const [rows, cols] = numbers.shape;
  if (numbers.size > maxTurnedNumbers)
    throw badInput(`array in Fortran order must have at most ${maxTurnedNumbers} numbers`, {
      file,
      value: numbers.size,
      hint: 'save it with numpy.ascontiguousarray',
    });
  const columns = await numbers.take(numbers.size);
  const values = new Float32Array(numbers.size);
  for (let col = 0; col < cols; col++)
    for (let row = 0; row < rows; row++) values[row * cols + col] = columns[col * rows + row];
  return values;
}

async function openCsr(file: string): Promise<MatrixFile> {
  const entries = await readZip(file);
  const readers: ByteReader[] = [];
  const close = async () => {
    for (const reader of readers) await reader.close();
  };
  const bytesOf = (name: string) => {
    const entry = entries.get(`${name}.npy`);
    if (!entry)
      throw badInput(`npz must hold ${name}.npy`, { file, hint: 'write it with scipy.sparse.save_npz' });
    const reader = new ByteReader(readEntry(file, entry), file);
    readers.push(reader);
    return reader;
  };
  const numbersOf = (name: string) => NumberReader.open(bytesOf(name), file);
  try {
    const format = await readText(bytesOf('format'), file);
    if (format !== 'csr')
      throw badInput('sparse matrix must be in csr format', {
        file,
        value: format,
        hint: 'call .tocsr() on it',
      });
    const shape = await numbersOf('shape');
    if (shape.size !== 2) throw badInput('shape must be two numbers', { file, value: shape.size });
    const [rows, cols] = await shape.take(2);
    const matrix = {
      indptr: await numbersOf('indptr'),
      indices: await numbersOf('indices'),
      data: await numbersOf('data'),
    };
    checkCsr(rows, cols, matrix, file);
    return { ...(await csrRows(rows, cols, matrix, file)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface CsrNumbers {
  indptr: NumberReader;
  indices: NumberReader;
  data: NumberReader;
}

function checkCsr(rows: number, cols: number, { indptr, indices, data }: CsrNumbers, file: string): void {
  const shape = `${rows}x${cols}`;
  if (!(rows >= 0 && rows < 2 ** 32 && cols >= 0 && cols < 2 ** 32))
    throw badInput('matrix sides must be from 0 to 2^32 - 1', { file, value: shape });
  if (indptr.size !== rows + 1)
    throw badInput(`indptr must have one more value than the ${rows} rows`, { file, value: indptr.size });
  if (!indptr.integers || !indices.integers) throw badInput('indptr and indices must be integers', { file });
  if (data.size !== indices.size)
    throw badInput(`data must have as many values as indices (${indices.size})`, { file, value: data.size });
}

async function csrRows(rows: number, cols: number, { indptr, indices, data }: CsrNumbers, file: string) {
  let last = (await indptr.take(1))[0];
  if (last !== 0) throw badInput('indptr must start with 0', { file, value: last });
  let unread = rows;
  /** Lengths of the rows whose pointers were read. */
  let lengths: number[] = [];

  async function readLengths(): Promise<void> {
    const pointers = await indptr.take(Math.min(unread, 4096));
    unread -= pointers.length;
    lengths = Array.from(pointers, (pointer) => {
      if (!(pointer >= last && pointer <= indices.size))
        throw badInput(`indptr must ascend from 0 to ${indices.size}`, { file, value: pointer });
      const length = pointer - last;
      last = pointer;
      return length;
    });
    if (unread === 0 && last !== indices.size)
      throw badInput(`indptr must end with the number of values, ${indices.size}`, { file, value: last });
  }

  async function take(limit: number): Promise<MatrixRow[]> {
    if (lengths.length === 0) await readLengths();
    let [count, size] = [0, 0];
    while (count < Math.min(limit, lengths.length) && (count === 0 || size + lengths[count] <= batchNumbers))
      size += lengths[count++];
    const columns = checkColumns(await indices.take(size), cols, file);
    const values = new Float32Array(await data.take(size));
    let start = 0;
    return lengths.splice(0, count).map((length) => {
      const [from, to] = [start, start + length];
      start = to;
      return ascending({ indices: columns.subarray(from, to), values: values.subarray(from, to) });
    });
  }

  async function end(): Promise<void> {
    for (const numbers of [indptr, indices, data]) await numbers.end();
  }
  return { sparse: true, rows, cols, take, end };
}

function checkColumns(columns: Numbers, cols: number, file: string): Uint32Array {
  for (let p = 0; p < columns.length; p++)
    if (!(columns[p] >= 0 && columns[p] < cols))
      throw badInput(`column must be from 0 to ${cols - 1}`, { file, value: columns[p] });
  return new Uint32Array(columns);
}

/** SciPy allows columns in any order, and adds up those that come twice. */
function ascending(row: { indices: Uint32Array; values: Float32Array }): MatrixRow {
  let sorted = true;
  for (let p = 1; p < row.indices.length && sorted; p++) sorted = row.indices[p - 1] < row.indices[p];
  if (sorted) return row;
  const sums = new Map<number, number>();
  row.indices.forEach((column, p) => {
    sums.set(column, (sums.get(column) ?? 0) + row.values[p]);
  });
  const indices = Uint32Array.from(sums.keys()).sort();
  return { indices, values: Float32Array.from(indices, (column) => sums.get(column) ?? 0) };
}
