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
  nn: ['math', 'kernels'],
  text: ['math', 'kernels'],
  data: ['math', 'kernels'],
  search: ['math', 'kernels'],
  learn: ['math', 'kernels', 'nn', 'text', 'data', 'search'],
  judge: ['math', 'kernels', 'nn', 'text', 'data', 'search', 'learn'],
  store: ['math', 'kernels', 'nn', 'text', 'data', 'search', 'learn', 'judge'],
  server: ['math', 'kernels', 'nn', 'text', 'data', 'search', 'learn', 'judge', 'store'],
  cli: ['math', 'kernels', 'nn', 'text', 'data', 'search', 'learn', 'judge', 'store', 'server'],
};

/** Everything a page needs to predict is reachable from here, and is all our own: a browser knows no package names. */
const browserEntry = 'browser.ts';
/** Imported on demand: threads, which a page does without, and packages that it may name in an import map. */
const notForPages = [
  'kernels/garbage.ts',
  'kernels/pool.ts',
  'search/approximate.ts',
  'snowball-stemmers',
  'onnxruntime-node',
  'onnxruntime-web',
  '@huggingface/tokenizers',
];

const matches = (file: string, pattern: RegExp): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(pattern)].map(([, path]) => path);
const importsOf = (file: string): string[] =>
  matches(file, /^(?:import|export)\b(?!\s+type\b)(?:[^'"]*?from)?\s+['"]([^'"]+)['"]/gm);
const importsOnDemand = (file: string): string[] => matches(file, /\bimport\(\s*['"]([^'"]+)['"]/g);
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

  it('what a page loads to predict needs nothing of Node and no package', () => {
    const seen = new Set<string>();
    const outside: string[] = [];
    const visit = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      const follow = (path: string) => {
        if (path.startsWith('.')) visit(resolveImport(file, path));
        else outside.push(`${file} imports ${path}`);
      };
      importsOf(file).forEach(follow);
      importsOnDemand(file)
        .filter((path) => !notForPages.some((name) => name === path || name === resolveImport(file, path)))
        .forEach(follow);
    };
    visit(browserEntry);
    expect(outside).toEqual([]);
    expect([...seen]).toEqual(expect.arrayContaining(['learn/tree/search.ts', 'kernels/wasm.ts']));
  });

  it('the server and its packages are loaded by the command line alone', () => {
    const others = files.filter((file) => !['server', 'cli'].includes(roomOf(file)));
    const reach = (file: string) =>
      importsOf(file)
        .filter((path) => path.startsWith('.'))
        .map((path) => resolveImport(file, path));
    expect(others.flatMap(reach).filter((path) => path.startsWith('server/'))).toEqual([]);
    const packages = files.filter((file) =>
      importsOf(file).some((path) => /fastify|prom-client|typebox/.test(path)),
    );
    expect(packages.filter((file) => roomOf(file) !== 'server')).toEqual([]);
  });

  it('the studio speaks HTTP only: it imports the client, its packages and itself', () => {
    const folder = join(root, '..', 'studio');
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
      /\.tsx?$/.test(file),
    );
    const outside = sources.flatMap((file) =>
      [...readFileSync(join(folder, file), 'utf8').matchAll(/from '([^']+)'/g)]
        .map(([, path]) =>
          path.startsWith('.') ? relative(folder, join(folder, dirname(file), path)) : path,
        )
        .filter((path) => path.startsWith('..') || !path.includes('.')),
    );
    expect(new Set(outside)).toEqual(new Set(['../src/client.ts', 'preact', 'preact/hooks']));
  });

  it('no file is longer than 450 lines', () => {
    const long = files.filter((file) => readFileSync(join(root, file), 'utf8').split('\n').length > 450);
    expect(long.map((file) => relative(root, join(root, file)))).toEqual([]);
  });
});
