// The data that runs may train on: files named when the server was started, and uploads, which get file names of ours.
// A request names a source; it never names a file.
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { badUsage, unknownName } from '../../errors.ts';
import { receive } from '../evaluation.ts';
import type { Limits } from '../limits.ts';
import { Problem } from '../problem.ts';
import { kept, now, type State } from '../state.ts';
import type { DataEntry, DataQuery } from './schemas.ts';

/** How a file is read. */
export interface Reading {
  format?: string;
  columns?: string;
  labelDelimiter?: string;
}

export interface NamedFile extends Reading {
  name: string;
  /** Or `file,companion`. */
  file: string;
}

interface Row {
  id: number;
  name: string;
  options: string;
  bytes: number;
  added: string;
}

/** Uploads kept at once. */
const mostUploads = 100;

export class Sources {
  readonly #files: Map<string, NamedFile>;
  readonly #state: State | undefined;
  readonly #limits: Limits;

  constructor(files: NamedFile[], state: State | undefined, limits: Limits) {
    this.#files = new Map(files.map((file) => [file.name, file]));
    this.#state = state;
    this.#limits = limits;
  }

  /** Refuses what does not exist before anybody waits for it. */
  async check(): Promise<void> {
    for (const { file } of this.#files.values()) {
      const found = await Promise.all(partsOf(file).map(sizeOf));
      if (found.every((size) => size === undefined))
        throw badUsage('data file must exist and be readable', { file });
    }
  }

  async list(): Promise<DataEntry[]> {
    const named = Array.from(this.#files.values(), async ({ name, file }) => {
      const sizes = await Promise.all(partsOf(file).map(sizeOf));
      return { name, bytes: sizes.reduce<number>((sum, size = 0) => sum + size, 0), added: null };
    });
    return [
      ...(await Promise.all(named)),
      ...this.#uploads().map(({ name, bytes, added }) => ({ name, bytes, added })),
    ];
  }

  find(name: string): NamedFile {
    const named = this.#files.get(name);
    if (named) return named;
    const upload = this.#uploads().find((row) => row.name === name);
    if (upload) return { name, file: this.#path(upload.id), ...(JSON.parse(upload.options) as Reading) };
    const known = [...this.#files.keys(), ...this.#uploads().map((row) => row.name)];
    const { message, detail } = unknownName('data', name, known);
    throw new Problem(
      'not-found',
      message,
      known.length > 0 ? detail.hint : 'upload a file, or start the server with --data name=FILE',
    );
  }

  async add(name: string, upload: AsyncIterable<Buffer>, options: DataQuery): Promise<DataEntry> {
    const { database } = kept(this.#state);
    const uploads = this.#uploads();
    if (this.#files.has(name) || uploads.some((row) => row.name === name))
      throw new Problem('conflict', 'data must have a name of its own', 'choose another name');
    if (uploads.length >= mostUploads)
      throw new Problem('conflict', `at most ${mostUploads} uploads may be kept`, 'remove one first');
    const added = now();
    const row = database.get<{ id: number }>(
      'insert into data (name, options, bytes, added) values (?, ?, 0, ?) returning id',
      name,
      JSON.stringify(options),
      added,
    );
    const id = row?.id ?? 0;
    try {
      await mkdir(join(kept(this.#state).folder, 'data'), { recursive: true });
      const bytes = await receive(upload, this.#path(id), this.#limits.uploadBytes);
      database.run('update data set bytes = ? where id = ?', bytes, id);
      return { name, bytes, added };
    } catch (error) {
      database.run('delete from data where id = ?', id);
      throw error;
    }
  }

  async remove(name: string): Promise<void> {
    const upload = this.#uploads().find((row) => row.name === name);
    if (!upload) {
      this.find(name);
      throw new Problem('conflict', 'data named at the start of the server cannot be removed');
    }
    kept(this.#state).database.run('delete from data where id = ?', upload.id);
    await rm(this.#path(upload.id), { force: true });
  }

  #uploads(): Row[] {
    return this.#state?.database.all<Row>('select * from data order by id') ?? [];
  }

  #path(id: number): string {
    return join(kept(this.#state).folder, 'data', String(id));
  }
}

/** A path may itself have commas. */
const partsOf = (file: string) =>
  [file, ...file.split(',')].filter((part, i, all) => all.indexOf(part) === i);

const sizeOf = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ size }) => size,
    () => undefined,
  );
