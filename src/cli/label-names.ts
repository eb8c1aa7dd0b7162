// The flags that give labels their names, for verbs that read data.
import type { Command } from 'commander';
import { readLabels } from '../data/labels.ts';
import type { Vocabulary } from '../data/vocabulary.ts';
import type { Terminal } from './run.ts';
import { formatCount } from './terminal.ts';

export interface LabelFlags {
  labels?: string;
  labelColumns?: string;
  language?: string;
}

export const withLabelFlags = (command: Command): Command =>
  command
    .option('--labels <file>', 'label names: TSV, CSV, JSONL, SKOS, or one name per line')
    .option('--label-columns <map>', 'columns of that file: id=1,name=3,altNames=4')
    .option('--language <code>', 'of the names in that file, where it has several (default: en)');

/** Takes over what the file says; returns how many labels of the data were described. */
export async function describeLabels(
  vocabulary: Vocabulary,
  { labels: file, labelColumns: columns, language }: LabelFlags,
  terminal: Terminal,
): Promise<number | undefined> {
  if (!file) return undefined;
  const inData = vocabulary.size;
  const ids = Array.from(vocabulary, ({ id }) => id);
  const labels = await readLabels(file, { columns, language });
  vocabulary.describe(labels);
  const more = vocabulary.size - inData;
  const described = labels.length - more;
  const found = `described ${formatCount(described)} of ${formatCount(inData)} labels`;
  const rest =
    more === 0 ? '' : `; ${formatCount(more)} more ${more === 1 ? 'label is' : 'labels are'} only in ${file}`;
  const known = new Set(labels.map(({ id }) => id));
  const missing = ids.filter((id) => !known.has(id));
  const some = missing.slice(0, 3).join(', ') + (missing.length > 3 ? ', …' : '');
  if (described > 0) terminal.say(`${found}${missing.length > 0 ? ` (not ${some})` : ''}${rest}`);
  else terminal.note(`${found}${rest}: are its ids those of the data (--label-columns)?`);
  return described;
}
