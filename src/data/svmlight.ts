// Multi-label svmlight: lines `l1,l2 f:v f:v # comment`, no header. Labels are kept as written, feature ids too (a file
// that counts from 1 has an empty column 0); `qid:` is ignored, and so are empty lines and lines of comment only.
import { badInput } from '../errors.ts';
import type { Sample } from './dataset.ts';
import type { Format, Header } from './format.ts';
import { labelColumns, lineSamples, textWriter } from './records.ts';
import { FeatureScanner, featureText, labelsEnd, rowOf } from './sparse-rows.ts';
import { Vocabulary } from './vocabulary.ts';

export const svmlight: Format = {
  name: 'svmlight',
  read: async (path, options) => {
    const vocabulary = options.vocabulary ?? new Vocabulary();
    return { vocabulary, batches: lineSamples(path, rowParser(vocabulary), options) };
  },
  write: (path, header) => textWriter(path, rowText(header)),
};

function rowParser(vocabulary: Vocabulary): (line: string) => Sample | undefined {
  const scanner = new FeatureScanner();
  return (line) => {
    const comment = line.indexOf('#');
    let row = comment < 0 ? line : line.slice(0, comment);
    if (row.trim() === '') return undefined;
    if (row.includes('qid:')) row = row.replace(/(?<=^|\s)qid:\d+/, '');
    const end = labelsEnd(row);
    const sparse = scanner.scan(row, end);
    const ids = end === 0 ? [] : row.slice(0, end).split(',');
    if (ids.includes('')) throw badInput('labels must not be empty', { value: row.slice(0, end) });
    return { labels: labelColumns(ids, vocabulary), sparse };
  };
}

function rowText({ vocabulary }: Header): (sample: Sample) => string {
  return (sample) => {
    const row = rowOf('svmlight', sample);
    const ids = Array.from(sample.labels, (column) => vocabulary.label(column).id);
    const bad = ids.find((id) => /[\s,:#]|^$/.test(id));
    if (bad !== undefined)
      throw badInput('a label written as svmlight must have no comma, colon, # or blank', {
        value: bad,
        hint: 'write .jsonl instead',
      });
    // A sample with neither labels nor features would be an empty line, which is no sample: it gets a zero.
    const features = ids.length + row.indices.length > 0 ? featureText(row) : ' 0:0';
    return `${ids}${features}\n`;
  };
}
