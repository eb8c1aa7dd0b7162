// An embedded SQLite file (package libsql) for what must outlive a killed process: every statement that returns has
// reached the disk. Its shape grows by migrations. Knows nothing of what is kept in it.
import { rmSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { UmbelError } from '../errors.ts';
import { isRunning } from './folder.ts';

export type Cell = string | number | null;

export interface Database {
  run(sql: string, ...cells: Cell[]): void;
  all<Row>(sql: string, ...cells: Cell[]): Row[];
  get<Row>(sql: string, ...cells: Cell[]): Row | undefined;
  /** All of what `action` changes, or nothing. */
  atomically<T>(action: () => T): T;
  close(): void;
}

/** The part of libsql that is used here. */
interface Statement {
  run(...cells: Cell[]): unknown;
  all(...cells: Cell[]): unknown[];
}
interface Connection {
  exec(sql: string): unknown;
  prepare(sql: string): Statement;
  close(): void;
}

/** Opens the file, which need not exist, and brings it up to date. One process at a time may have it. */
export async function openDatabase(file: string, migrations: readonly string[]): Promise<Database> {
  const Connection = await loadPackage();
  const release = await lock(`${file}.pid`, file);
  try {
    const database = connect(new Connection(file));
    migrate(database, migrations, file);
    return {
      ...database,
      close() {
        database.close();
        release();
      },
    };
  } catch (error) {
    release();
    throw explain(error, file);
  }
}

/** Files this process has open: in a container the next process may well have the same number. */
const held = new Set<string>();

/** SQLite's own locks let several processes in, and two servers on one file would both run its runs. */
async function lock(pidFile: string, file: string): Promise<() => void> {
  for (;;) {
    try {
      await writeFile(pidFile, String(process.pid), { flag: 'wx' });
      held.add(pidFile);
      return () => {
        held.delete(pidFile);
        rmSync(pidFile, { force: true });
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw explain(error, file);
      // Left behind by a process that was killed, or held by one that runs.
      const pid = Number(await readFile(pidFile, 'utf8'));
      const inUse = pid === process.pid ? held.has(pidFile) : pid > 0 && isRunning(pid);
      if (inUse) throw explain({ code: 'SQLITE_BUSY' }, file);
      await rm(pidFile, { force: true });
    }
  }
}

async function loadPackage(): Promise<new (file: string) => Connection> {
  try {
    return (await import('libsql')).default as unknown as new (
      file: string,
    ) => Connection;
  } catch (error) {
    throw new UmbelError('missing-package', 'keeping state needs the package libsql', {
      hint: `npm install libsql; ${(error as Error).message.split('\n')[0]}`,
    });
  }
}

function connect(connection: Connection): Database {
  const statements = new Map<string, Statement>();
  const prepared = (sql: string): Statement => {
    const known = statements.get(sql) ?? connection.prepare(sql);
    statements.set(sql, known);
    return known;
  };
  const all = <Row>(sql: string, ...cells: Cell[]) => prepared(sql).all(...cells) as Row[];
  return {
    run: (sql, ...cells) => {
      prepared(sql).run(...cells);
    },
    all,
    get: <Row>(sql: string, ...cells: Cell[]) => all<Row>(sql, ...cells)[0],
    atomically(action) {
      connection.exec('begin immediate');
      try {
        const result = action();
        connection.exec('commit');
        return result;
      } catch (error) {
        connection.exec('rollback');
        throw error;
      }
    },
    close: () => connection.close(),
  };
}

function migrate(database: Database, migrations: readonly string[], file: string): void {
  const { all, run, atomically } = database;
  all('pragma journal_mode = wal');
  all('pragma synchronous = full');
  all('pragma foreign_keys = on');
  const version = all<{ user_version: number }>('pragma user_version')[0].user_version;
  if (version > migrations.length) {
    const hint = 'it was written by a newer umbel: update umbel to use it';
    throw new UmbelError('usage', `state must have at most version ${migrations.length}`, {
      file,
      value: version,
      hint,
    });
  }
  atomically(() => {
    for (const script of migrations.slice(version))
      for (const statement of script.split(';')) if (statement.trim() !== '') run(statement);
    all(`pragma user_version = ${migrations.length}`);
  });
}

/** SQLite's words for what users can mend, as sentences. */
function explain(error: unknown, file: string): unknown {
  const { message = '', code = '' } = error as { message?: string; code?: string };
  const refuse = (rule: string, hint?: string) => new UmbelError('usage', rule, { file, hint });
  if (error instanceof UmbelError) return error;
  if (/SQLITE_BUSY|locked/.test(code + message))
    return refuse('state must not be in use by another server', 'stop the other one, or name another folder');
  if (/SQLITE_NOTADB|SQLITE_CORRUPT|not a database|malformed/.test(code + message))
    return refuse('state must be a database of umbel: it is damaged or something else');
  if (
    /ENOENT|ENOTDIR|EACCES|EROFS|SQLITE_CANTOPEN|SQLITE_READONLY|unable to open|readonly/i.test(
      code + message,
    )
  )
    return refuse('state must be in a place that can be written');
  return error;
}
