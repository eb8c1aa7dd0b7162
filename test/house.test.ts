// The house's own rules: who may import whom, where node: modules may appear, how long a file may be.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..', 'src');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.includes('assembly'))
  .map((file) => file.replaceAll('\\', '/'));

/** Each room may import itself, the rooms named, and the files at the root. */
const mayImport: Record<string, string[]> = {
  math: [],
  kernels: ['math'],
  text: ['math', 'kernels'],
  data: ['math', 'kernels'],
  learn: ['math', 'kernels', 'text', 'data'],
  judge: ['math', 'kernels', 'text', 'data', 'learn'],
  store: ['math', 'kernels', 'text', 'data', 'learn', 'judge'],
  cli: ['math', 'kernels', 'text', 'data', 'learn', 'judge', 'store'],
};

/** Everything a page needs to predict: reachable from store/open.ts without a node: import. */
const browserEntry = 'store/open.ts';

const importsOf = (file: string): string[] => {
  const source = readFileSync(join(root, file), 'utf8');
  return [...source.matchAll(/^(?:import|export)\b(?!\s+type\b)[^'"]*?from\s+['"]([^'"]+)['"]/gm)].map(
    ([, path]) => path,
  );
};
const resolveImport = (file: string, path: string) =>
  normalize(join(dirname(file), path)).replaceAll('\\', '/');
const roomOf = (file: string) => (file.includes('/') ? file.split('/')[0] : '');

describe('the house', () => {
  it.each(files)('%s imports only rooms it may', (file) => {
    const room = roomOf(file);
    if (room === '') return;
    const allowed = ['', room, ...(mayImport[room] ?? [])];
    const rooms = importsOf(file)
      .filter((path) => path.startsWith('.'))
      .map((path) => roomOf(resolveImport(file, path)));
    expect(allowed).toEqual(expect.arrayContaining(rooms));
    if (room === 'math') expect(importsOf(file).every((path) => path.startsWith('./'))).toBe(true);
  });

  it('what a page loads to predict needs nothing of Node', () => {
    const seen = new Set<string>();
    const outside: string[] = [];
    const visit = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const path of importsOf(file)) {
        if (path.startsWith('.')) visit(resolveImport(file, path));
        else if (path.startsWith('node:')) outside.push(`${file} imports ${path}`);
      }
    };
    visit(browserEntry);
    expect(outside).toEqual([]);
  });

  it('no file is longer than 450 lines', () => {
    const long = files.filter((file) => readFileSync(join(root, file), 'utf8').split('\n').length > 450);
    expect(long.map((file) => relative(root, join(root, file)))).toEqual([]);
  });
});
