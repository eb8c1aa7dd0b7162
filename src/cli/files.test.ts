import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkFiles, checkOutside } from './files.ts';

let folder: string;
const at = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-files-'));
  await writeFile(at('a.csv'), '');
  await symlink(at('a.csv'), at('link.csv'));
});
afterAll(() => rm(folder, { recursive: true }));

describe('files that are written', () => {
  it('are none of those that are read, under any name', () => {
    for (const path of ['a.csv', 'link.csv', 'none/../a.csv'])
      for (const read of [at('a.csv'), `${at('x.npz')},${at('a.csv')}`])
        expect(() => checkFiles({ read: { '--train': read }, written: { '--out': at(path) } })).toThrow(
          '--out must be another file than --train',
        );
    checkFiles({ read: { '--train': at('a.csv') }, written: { '--out': at('b.csv') } });
  });

  it('are files, each another one', () => {
    const written = { '--out': at('new/x.csv'), '--evidence': at('new/./x.csv') };
    expect(() => checkFiles({ read: {}, written })).toThrow('--evidence must be another file than --out');
    expect(() => checkFiles({ read: {}, written: { '--out': folder } })).toThrow('--out must be a file');
    expect(() => checkFiles({ read: {}, written: { '--out': '' } })).toThrow('--out must be a file');
    checkFiles({ read: {}, written: { '--out': undefined } });
  });

  it('lie outside of a folder that is replaced', () => {
    for (const path of ['m/e.jsonl', 'm', 'm/deep/e.jsonl'])
      expect(() => checkOutside('--evidence', at(path), at('m'))).toThrow(
        '--evidence must be outside of --out',
      );
    checkOutside('--evidence', at('m2/e.jsonl'), at('m'));
    checkOutside('--evidence', undefined, at('m'));
  });
});
