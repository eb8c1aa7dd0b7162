import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtFile } from '../kernels/pool.ts';
import { openDatabase } from './database.ts';

const first = 'create table notes (id integer primary key, words text not null)';
const second =
  "alter table notes add column seen integer not null default 0; update notes set words = words || '!'";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-database-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const wordsIn = async (file: string, migrations: string[]) => {
  const database = await openDatabase(file, migrations);
  const rows = database.all<{ words: string }>('select words from notes order by id');
  database.close();
  return rows.map(({ words }) => words);
};

describe('the database', () => {
  it('keeps what a process wrote that was killed in the middle of a transaction', async () => {
    const file = join(folder, 'killed.db');
    const module = builtFile(import.meta.url.replace('.test.ts', '.ts'));
    const script = `
      const { openDatabase } = await import('${module}');
      const database = await openDatabase(${JSON.stringify(file)}, ['${first}']);
      for (let i = 0; i < 20; i++) database.run('insert into notes (words) values (?)', 'kept ' + i);
      database.atomically(() => {
        database.run('insert into notes (words) values (?)', 'half');
        process.kill(process.pid, 'SIGKILL');
      });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    expect(await wordsIn(file, [first])).toEqual(Array.from({ length: 20 }, (_, i) => `kept ${i}`));
  });

  it('brings an older file up to date once, and refuses a newer one', async () => {
    const file = join(folder, 'older.db');
    const database = await openDatabase(file, [first]);
    database.run('insert into notes (words) values (?)', 'old');
    database.close();
    expect(await wordsIn(file, [first, second])).toEqual(['old!']);
    expect(await wordsIn(file, [first, second])).toEqual(['old!']);
    await expect(openDatabase(file, [first])).rejects.toThrow(/at most version 1, got 2 \(.*newer umbel/);
  });

  it('leaves an old file as it was where a migration fails', async () => {
    const file = join(folder, 'failing.db');
    await wordsIn(file, [first]);
    await expect(openDatabase(file, [first, `${second}; select nothing`])).rejects.toThrow('nothing');
    expect(await wordsIn(file, [first, second])).toEqual([]);
  });

  it('undoes all of a transaction that fails', async () => {
    const database = await openDatabase(join(folder, 'atomic.db'), [first]);
    const fail = () =>
      database.atomically(() => {
        database.run('insert into notes (words) values (?)', 'half');
        throw new Error('stop');
      });
    expect(fail).toThrow('stop');
    expect(database.get('select * from notes')).toBeUndefined();
    database.close();
  });

  it('says in a sentence what is in its way', async () => {
    const file = join(folder, 'used.db');
    const database = await openDatabase(file, [first]);
    await expect(openDatabase(file, [first])).rejects.toThrow('in use by another server');
    database.close();
    await writeFile(join(folder, 'text.db'), 'no database at all\n'.repeat(100));
    await expect(openDatabase(join(folder, 'text.db'), [first])).rejects.toThrow('damaged or something else');
    await expect(openDatabase(join(folder, 'no', 'x.db'), [first])).rejects.toThrow('can be written');
  });
});
