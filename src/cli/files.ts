// The files a verb reads and writes, looked at before any work: nothing that is read is written over.
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { badUsage } from '../errors.ts';

type Flag = `--${string}` | 'input' | 'output';
export type Files = { [flag in Flag]?: string };

/** Every file written must be a file of its own, and none of those read. Data in several files is `X.npz,Y.npz`. */
export function checkFiles({ read, written }: { read: Files; written: Files }): void {
  const taken = new Map<string, string>();
  for (const [flag, paths] of Object.entries(read))
    for (const path of paths ? [paths, ...paths.split(',')] : []) taken.set(truePath(path), flag);
  for (const [flag, path] of Object.entries(written)) {
    if (path === undefined) continue;
    if (path === '' || isFolder(flag, path)) throw badUsage(`${flag} must be a file`, { value: path });
    const other = taken.get(truePath(path));
    if (other !== undefined)
      throw badUsage(`${flag} must be another file than ${other}`, {
        value: path,
        hint: 'what it holds would be lost',
      });
    taken.set(truePath(path), flag);
  }
}

function isFolder(flag: string, path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') return false;
    throw badUsage(`${flag} must be in a folder, not in a file`, { value: path });
  }
}

/** What is written beside a folder must not lie in it: the folder is replaced as a whole. */
export function checkOutside(flag: Flag, path: string | undefined, folder: string): void {
  if (path !== undefined && `${truePath(path)}${sep}`.startsWith(`${truePath(folder)}${sep}`))
    throw badUsage(`${flag} must be outside of --out, which holds the model alone`, { value: path });
}

/** Without links, also of what does not exist yet. */
function truePath(path: string): string {
  const full = resolve(path);
  try {
    return realpathSync(full);
  } catch {
    return dirname(full) === full ? full : join(truePath(dirname(full)), basename(full));
  }
}
