// Writes Mulan's ARFF: feature attributes, then one {0,1} attribute per label, and beside it the XML that says which
// attributes are labels. Rows wait in memory, since the attributes come first.
import { badInput } from '../errors.ts';
import type { Sample } from './dataset.ts';
import { writeTogether } from './file.ts';
import type { Header, SampleWriter } from './format.ts';
import { checkHolds } from './records.ts';
import { shortFloat } from './sparse-rows.ts';

export async function arffWriter(path: string, header: Header): Promise<SampleWriter> {
  const samples: Sample[] = [];
  return {
    async write(batch) {
      for (const sample of batch) {
        checkHolds('arff', ['sparse', 'dense'], sample);
        if (!sample.sparse === !sample.dense)
          throw badInput('arff needs sparse or dense features, one of the two', { file: path });
        samples.push(sample);
      }
    },
    close: () => writeTogether(contents(path, samples, header)),
    async abort() {},
  };
}

function contents(path: string, samples: Sample[], header: Header): [string, Iterable<string>][] {
  const labels = Array.from(header.vocabulary, ({ id }) => id);
  const width = samples.reduce((most, sample) => Math.max(most, widthOf(sample)), header.width ?? 0);
  const features = Array.from({ length: width }, (_, j) => header.featureNames?.[j] ?? `feature${j}`);
  const both = new Set(features);
  const clash = labels.find((label) => both.has(label));
  if (clash !== undefined)
    throw badInput('a label written as arff must not be called like a feature', { file: path, value: clash });
  const broken = [...features, ...labels].find((name) => /[\r\n\t]|^$/.test(name));
  if (broken !== undefined)
    throw badInput('a name written as arff must not be empty or have tabs or line ends', {
      file: path,
      value: broken,
    });
  const xml = path.replace(/(\.arff)?(\.gz)?$/i, '.xml');
  return [
    [xml, mulanLines(labels)],
    [path, arffLines(features, labels, samples)],
  ];
}

const widthOf = ({ sparse, dense }: Sample): number =>
  dense?.length ?? (sparse && sparse.indices.length > 0 ? sparse.indices[sparse.indices.length - 1] + 1 : 0);

function* arffLines(features: string[], labels: string[], samples: Sample[]): Iterable<string> {
  yield '@relation umbel\n\n';
  for (const name of features) yield `@attribute ${quote(name)} numeric\n`;
  for (const name of labels) yield `@attribute ${quote(name)} {0,1}\n`;
  yield '\n@data\n';
  for (const sample of samples) yield `${rowText(sample, features.length, labels.length)}\n`;
}

function rowText({ sparse, dense, labels }: Sample, width: number, labelCount: number): string {
  if (sparse) {
    const { indices, values } = sparse;
    const entries = Array.from(indices, (column, p) => `${column} ${shortFloat(values[p])}`);
    return `{${[...entries, ...Array.from(labels, (label) => `${width + label} 1`)].join(',')}}`;
  }
  const flags = new Uint8Array(labelCount);
  for (let p = 0; p < labels.length; p++) flags[labels[p]] = 1;
  return [...Array.from(dense ?? [], shortFloat), ...flags].join(',');
}

function* mulanLines(labels: string[]): Iterable<string> {
  yield '<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n';
  for (const name of labels) yield `<label name="${escapeXml(name)}"></label>\n`;
  yield '</labels>\n';
}

const quote = (name: string) => (/^[\w.-]+$/.test(name) ? name : `'${name.replace(/[\\']/g, '\\$&')}'`);

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escapeXml = (text: string) => text.replace(/[&<>"]/g, (character) => entities[character]);
