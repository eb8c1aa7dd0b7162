// Labels by what they are called: the features that their names would have if they were inputs.
import type { Dataset } from '../data/dataset.ts';
import type { Label } from '../data/vocabulary.ts';
import { type Csr, CsrBuilder } from '../math/csr.ts';
import { Tokeniser } from '../text/tokenise.ts';
import type { Vectoriser } from '../text/vectoriser.ts';
import type { Running } from './preparation.ts';

/**
 * A row for each label, empty where there is no name or no known word in it. Texts know words by their vectoriser,
 * sparse features by the names of their columns; undefined where there is neither.
 */
export async function nameFeatures(
  { vocabulary, features, featureNames }: Dataset,
  vectoriser: Vectoriser | undefined,
  running: Running,
): Promise<Csr | undefined> {
  const names = Array.from(vocabulary, (label) => [calledBy(label), ...(label.altNames ?? [])].join(' '));
  if (vectoriser) return vectoriser.transform(names, running);
  return features?.sparse && featureNames ? namedColumns(names, featureNames) : undefined;
}

/** An id is a name where it is made of words: of letters, that is, and no address. Empty where there is none. */
export const calledBy = ({ id, name }: Label): string => {
  if (name?.trim()) return name;
  return /\d|:\/\//.test(id) ? '' : id;
};

/** Of each text, the columns that its words are the names of. */
function namedColumns(texts: string[], featureNames: string[]): Csr {
  const columns = new Map(featureNames.map((name, column) => [name.toLowerCase(), column]));
  const tokeniser = new Tokeniser('unicode', false);
  const rows = new CsrBuilder('values');
  for (const text of texts) {
    const found = Array.from(tokeniser.placedWords(text), ({ word }) => columns.get(word) ?? -1);
    const own = [...new Set(found.filter((column) => column >= 0))].sort((a, b) => a - b);
    rows.add(
      own,
      own.map(() => 1),
    );
  }
  return rows.csr(featureNames.length);
}
