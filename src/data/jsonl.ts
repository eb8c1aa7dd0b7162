// JSON lines: `{"id": "7", "text": "...", "labels": ["a", "b"], "group": "g"}`. Instead of a text or beside it,
// `features`: `{"12": 0.5}` for sparse columns or `[0.1, 0.2]` for dense ones. A label may
// be an object `{"label": "a"}`, as predictions are written. Other keys are ignored.
import { badInput } from '../errors.ts';
import type { Sample } from './dataset.ts';
import type { Format, Header } from './format.ts';
import { sampleParser } from './plain-samples.ts';
import { checkHolds, lineSamples, textWriter } from './records.ts';
import { shortFloat } from './sparse-rows.ts';
import { Vocabulary } from './vocabulary.ts';

export const jsonl: Format = {
  name: 'jsonl',
  read: async (path, options) => {
    const vocabulary = options.vocabulary ?? new Vocabulary();
    const parse = sampleParser(vocabulary);
    const sampleIn = (line: string) => (line.trim() === '' ? undefined : parse(parseLine(line)));
    return { vocabulary, batches: lineSamples(path, sampleIn, options) };
  },
  write: (path, header) => textWriter(path, (sample) => `${stringify(sample, header)}\n`),
};

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw badInput(`line must be valid JSON: ${(error as Error).message}`);
  }
}

function stringify(sample: Sample, { vocabulary }: Header): string {
  const { id, text, sparse, dense, group } = sample;
  checkHolds('jsonl', sparse ? ['text', 'group', 'sparse'] : ['text', 'group', 'dense'], sample);
  const features = sparse
    ? Object.fromEntries(Array.from(sparse.indices, (column, i) => [column, shortFloat(sparse.values[i])]))
    : dense && Array.from(dense, shortFloat);
  const labels = Array.from(sample.labels, (column) => vocabulary.label(column).id);
  return JSON.stringify({ id, text, features, labels, group });
}
