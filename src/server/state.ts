// What the server keeps beside its models: a folder with a database and the models of its runs. Without one it keeps
// nothing, and says so where it is asked to.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { badUsage } from '../errors.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { Problem } from './problem.ts';

/** Only ever added to: a file that exists is brought up to date by what it lacks. */
const migrations = [
  `create table runs (
     id integer primary key autoincrement, spec text not null, status text not null, created text not null,
     started text, ended text, error text, result text, served text unique
   ) strict;
   create table data (
     id integer primary key autoincrement, name text not null unique, options text not null, bytes integer not null,
     added text not null
   ) strict;
   create table corrections (
     source text not null, member_of text not null, label text not null, instances text not null, decided text not null,
     primary key (source, member_of, label)
   ) strict, without rowid;
   create table reviews (
     id integer primary key autoincrement, model text not null, text text not null, label text not null,
     name text not null, score real not null, decision text, decided text, unique (model, text, label)
   ) strict;
   create table exclusions (
     model text not null, label text not null, excluded integer not null, primary key (model, label)
   ) strict, without rowid;
   create table evaluations (version text primary key, evaluation text not null) strict, without rowid;
   create table maps (version text primary key, map text not null) strict, without rowid`,
  // Maps tell how many labels they leave out: those that do not are made again.
  'delete from maps',
];

export interface State {
  folder: string;
  database: Database;
}

export async function openState(folder: string): Promise<State> {
  await mkdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    throw badUsage('state folder must be in a place that can be written', {
      file: folder,
      value: error.code,
    });
  });
  return { folder, database: await openDatabase(join(folder, 'state.db'), migrations) };
}

/** The state, or a refusal that says how to get one. */
export const kept = (state: State | undefined): State => state ?? refuseUnkept();

export function refuseUnkept(): never {
  throw new Problem(
    'no-state',
    'the server must be started with a place to keep this',
    'umbel serve --state FOLDER',
  );
}

export const now = (): string => new Date().toISOString();
