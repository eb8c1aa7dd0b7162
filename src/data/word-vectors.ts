// Vectors of words that someone else has learned: a text file as word2vec, GloVe and fastText write it (a word and its
// numbers on each line, gzip understood), or the JSON of the npm packages wink-embeddings-sg-*.
import { readFile } from 'node:fs/promises';
import { badInput } from '../errors.ts';
import { readLines } from './file.ts';

export interface WordVectors {
  width: number;
  byWord: Map<string, Float32Array>;
}

/** Of the wanted words those that the file has. */
export async function readWordVectors(file: string, wanted: ReadonlySet<string>): Promise<WordVectors> {
  const found = file.endsWith('.json') ? await fromJson(file, wanted) : await fromLines(file, wanted);
  if (found.byWord.size === 0)
    throw badInput('file must have vectors of words of the training texts', { file });
  return found;
}

async function fromLines(file: string, wanted: ReadonlySet<string>): Promise<WordVectors> {
  const byWord = new Map<string, Float32Array>();
  let width = 0;
  for await (const { first, lines } of readLines(file))
    lines.forEach((line, i) => {
      const [word, ...numbers] = line.trimEnd().split(' ');
      // word2vec begins with a line of two counts.
      if (numbers.length < 2) return;
      width ||= numbers.length;
      if (wanted.has(word)) byWord.set(word, checked(numbers.map(Number), width, { file, line: first + i }));
    });
  return { width, byWord };
}

async function fromJson(file: string, wanted: ReadonlySet<string>): Promise<WordVectors> {
  let content: { dimensions?: unknown; vectors?: Record<string, number[]> };
  try {
    content = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw badInput('file must be readable and JSON', { file, value: (error as Error).message });
  }
  const { dimensions, vectors } = content ?? {};
  if (typeof dimensions !== 'number' || typeof vectors !== 'object' || vectors === null)
    throw badInput('file must have dimensions and vectors, as wink-embeddings has', { file });
  const known = [...wanted].filter((word) => Object.hasOwn(vectors, word));
  // What follows the numbers of a vector is its length and its place.
  const byWord = known.map((word): [string, Float32Array] => [
    word,
    checked(vectors[word].slice(0, dimensions), dimensions, { file }),
  ]);
  return { width: dimensions, byWord: new Map(byWord) };
}

function checked(numbers: number[], width: number, at: { file: string; line?: number }): Float32Array {
  if (numbers.length !== width || !numbers.every(Number.isFinite))
    throw badInput(`a vector must have ${width} numbers`, { ...at, value: numbers.length });
  return Float32Array.from(numbers);
}
