// Plain text, one sample per line, without labels: what people have when they want suggestions. Empty lines count,
// so that answers stay on the line of their text.
import type { Format } from './format.ts';
import { lineSamples } from './records.ts';
import { Vocabulary } from './vocabulary.ts';

export const plainText: Format = {
  name: 'text',
  read: async (path, options) => ({
    vocabulary: options.vocabulary ?? new Vocabulary(),
    batches: lineSamples(path, (text) => ({ text, labels: [] }), options),
  }),
};
