// The README tells the truth: its numbers are the benchmarks', its map is the house, its commands exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { measuredPart, pages } from '../bench/report.ts';
import { learnerNames } from '../src/learn/registry.ts';

const root = join(import.meta.dirname, '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');

describe('the README', () => {
  it.each(pages)('and $file quote the figures in bench/results', ({ file, quote }) => {
    const page = readFileSync(join(root, file), 'utf8');
    expect(measuredPart(page)).toBe(quote(join(root, 'bench', 'results')));
  });

  it('maps every room and file at the root of src, and only those', () => {
    const map = readme.slice(readme.indexOf('\nsrc/\n'), readme.indexOf('\nbench/'));
    const mapped = [...map.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name);
    const present = readdirSync(join(root, 'src'), { withFileTypes: true })
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .filter((name) => !name.endsWith('.test.ts'));
    expect(mapped.sort()).toEqual(present.sort());
  });

  it('names every learner', () => {
    for (const name of learnerNames) expect(readme).toContain(`\`${name}\``);
  });

  it('uses only npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const used = [...readme.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(used));
    expect(existsSync(join(root, '.ci', 'run'))).toBe(true);
  });
});
