import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Dataset, type Sample, stream } from './dataset.ts';
import {
  describeFormats,
  formatNames,
  formats,
  type OpenOptions,
  openSamples,
  readDataset,
  type WriteOptions,
  writeSamples,
} from './formats.ts';
import { Skipped } from './skipped.ts';
import { Vocabulary } from './vocabulary.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-formats-'));
});
afterEach(() => rm(folder, { recursive: true }));

const at = (name: string) => join(folder, name);

async function fileOf(name: string, content: string | Uint8Array): Promise<string> {
  await writeFile(at(name), content);
  return at(name);
}

const rowsOf = async (name: string, content: string | Uint8Array, options?: OpenOptions) => {
  const samples = await samplesIn(await fileOf(name, content), options);
  return samples.length;
};

/** What a file says, free of column numbers. */
async function samplesIn(path: string, options?: OpenOptions) {
  const { vocabulary, batches } = await openSamples(path, options);
  const samples = [];
  for await (const batch of batches) samples.push(...batch.map((sample) => plain(sample, vocabulary)));
  return samples;
}

function plain({ id, text, group, sparse, dense, labels }: Sample, vocabulary: Vocabulary) {
  return {
    id,
    text,
    group,
    sparse: sparse && Array.from(sparse.indices, (column, i) => [column, sparse.values[i]]),
    dense: dense && Array.from(dense),
    labels: Array.from(labels, (column) => vocabulary.label(column).id).sort(),
  };
}

const streamOf = (samples: Sample[], vocabulary: Vocabulary) => ({
  vocabulary,
  batches: (async function* () {
    yield samples.slice(0, 2);
    yield samples.slice(2);
  })(),
});

describe('the table of formats', () => {
  it.each(formatNames)('%s is the format that its row says', async (name) => {
    expect((await formats[name].load()).name).toBe(name);
  });

  it('lists every format for people', () => {
    expect(describeFormats().split('\n')).toHaveLength(formatNames.length);
  });
});

describe('telling the format', () => {
  it('a .txt is xmc if it starts with three counts, else a table of tabs', async () => {
    expect(await samplesIn(await fileOf('a.txt', '1 3 2\n1 2:1\n'))).toMatchObject([
      { labels: ['1'], sparse: [[2, 1]] },
    ]);
    expect(await samplesIn(await fileOf('b.TXT.gz', gzipSync('x,y\tA text\n')))).toMatchObject([
      { labels: ['x', 'y'], text: 'A text' },
    ]);
    const prose = await fileOf('c.txt', 'prose\n\nmore prose\n');
    expect((await readDataset(prose, { format: 'text' })).texts).toEqual(['prose', '', 'more prose']);
    await expect(readDataset(prose)).rejects.toThrow(
      /c\.txt:1: a \.txt file must start with .*got "prose" \(.*--format text/,
    );
  });

  it('a format that is named wins over the ending', async () => {
    const path = await fileOf('a.csv', '{"text":"t","labels":[]}\n');
    expect(await samplesIn(path, { format: 'jsonl' })).toMatchObject([{ text: 't' }]);
  });

  it('refuses an unknown ending and an unknown name with the known ones', async () => {
    const path = await fileOf('a.docx', 'x');
    await expect(openSamples(path)).rejects.toThrow(
      /got "\.docx" \(known endings: .*\.jsonl.*--format: xmc, svmlight/,
    );
    await expect(openSamples(path, { format: 'json' })).rejects.toThrow('did you mean jsonl?');
    await expect(openSamples(path, { format: 'constructor' })).rejects.toThrow('unknown format');
    await expect(readDataset(at('nothing.csv'))).rejects.toThrow('file must exist');
  });

  it('a comma in a name that exists is part of the name', async () => {
    expect(await rowsOf('a,b.jsonl', '{"text":"t"}\n')).toBe(1);
  });

  it('a path and its companion are parted at the comma', async () => {
    const arff = '@relation r\n@attribute f numeric\n@attribute l {0,1}\n@data\n2,1\n';
    await fileOf('x.arff', arff);
    await fileOf('other.xml', '<labels><label name="l"></label></labels>');
    await fileOf('more.xml', '<labels><label name="f"></label></labels>');
    expect(await samplesIn(`${at('x.arff')},${at('other.xml')}`)).toMatchObject([
      { labels: ['l'], dense: [2] },
    ]);
  });
});

it.each(formatNames.filter((name) => formats[name].companion === undefined))(
  '%s refuses a second file, there or not',
  async (format) => {
    const path = await fileOf('a', 'x\ty\n');
    const rule = `${path}: ${format} takes no second file`;
    await expect(openSamples(`${path},nofile.csv`, { format })).rejects.toThrow(`${rule}, got "nofile.csv"`);
    await expect(openSamples(path, { format, companion: path })).rejects.toThrow(rule);
  },
);

describe('readDataset', () => {
  it.each(['text=b,labels=a', { text: 'b', labels: 'a' }, { text: [2], labels: ['a'] }])(
    'takes the columns %o',
    async (columns) => {
      const path = await fileOf('a.csv', 'a,b\nx,one\n');
      const dataset = await readDataset(path, { columns });
      expect(dataset.texts).toEqual(['one']);
      expect(dataset.vocabulary.column('x')).toBe(0);
    },
  );

  it('refuses a file without samples', async () => {
    const path = await fileOf('a.jsonl', '\n');
    await expect(readDataset(path)).rejects.toThrow(`${path}: file must hold at least one sample`);
  });

  it('refuses ids that come twice, in any format', async () => {
    const path = await fileOf('a.csv', 'id,text\n1,a\n2,b\n1,c\n');
    await expect(readDataset(path)).rejects.toThrow(`${path}: id must be used once, got "1"`);
    const skipped = new Skipped();
    const dataset = await readDataset(path, { skipped });
    expect(dataset.texts).toEqual(['a', 'b']);
    expect(skipped.count).toBe(1);
  });

  it('names the file where only some samples have an id', async () => {
    const path = await fileOf('a.jsonl', '{"id":1,"text":"a"}\n{"text":"b"}\n');
    await expect(readDataset(path)).rejects.toThrow(
      `${path}: every sample or none must have an id, got "1 of 2"`,
    );
  });
});

describe('writeSamples', () => {
  const label = fc.string({ unit: 'grapheme', minLength: 1 });
  const feature = fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
  const sparse = fc
    .uniqueArray(fc.tuple(fc.nat(1000), feature), { selector: ([column]) => column })
    .map((row) => row.sort((a, b) => a[0] - b[0]))
    .map((row) => ({ indices: row.map(([column]) => column), values: row.map(([, value]) => value) }));
  const text = fc.string({ unit: 'grapheme' });
  const numberedLabel = fc.nat(50).map(String);
  const cellLabel = label.filter((id) => id.trim() === id && !/[,\t\r\n]/.test(id));
  const plainText = text.filter((t) => !/[\t\r\n]/.test(t));
  const dense = fc.array(feature, { minLength: 3, maxLength: 3 }).map((row) => Float32Array.from(row));

  type Fields = { [K in keyof Sample]: fc.Arbitrary<Sample[K]> };
  const cases: [string, fc.Arbitrary<string>, Omit<Fields, 'labels'>, WriteOptions?][] = [
    ['rows.txt', numberedLabel, { sparse }],
    ['rows.xmc.gz', numberedLabel, { sparse }],
    [
      'rows.svm',
      cellLabel.filter((id) => !/[\s:#]/.test(id)),
      { sparse: sparse.filter((r) => r.indices.length > 0) },
    ],
    ['rows.jsonl', label, { sparse }],
    ['rows.jsonl.gz', label, { dense, text, id: fc.uuid() }],
    ['rows.csv', cellLabel, { text, id: fc.uuid(), group: fc.uuid() }],
    [
      'rows.csv.gz',
      label.filter((id) => id.trim() === id && !/[|\r]/.test(id)),
      { text },
      { labelDelimiter: '|' },
    ],
    ['rows.tsv', cellLabel, { text: plainText, id: fc.uuid() }],
    [
      'rows.tsv',
      cellLabel,
      { text: fc.string().filter((t) => !/[\r\n]/.test(t)) },
      { format: 'labels-text' },
    ],
  ];

  it.each(cases)('what is written to %s is read back', async (name, labels, fields, options = {}) => {
    const sample = fc.record({ ...fields, labels: fc.uniqueArray(labels) });
    const samples = fc.uniqueArray(sample, { minLength: 1, selector: (s) => s.id ?? s });
    await fc.assert(
      fc.asyncProperty(samples, async (written) => {
        const vocabulary = new Vocabulary();
        const columns = written.map(({ labels }) =>
          labels.map((id) => vocabulary.add(id)).sort((a, b) => a - b),
        );
        const stored = written.map((s, i) => ({ ...s, labels: columns[i] }) as Sample);
        await writeSamples(streamOf(stored, vocabulary), at(name), options);
        const lf = (s: ReturnType<typeof plain>) => ({ ...s, text: s.text?.replaceAll('\r\n', '\n') });
        const expected = stored.map((s) => lf(plain(s, vocabulary)));
        expect((await samplesIn(at(name), options)).map(lf)).toEqual(expected);
      }),
      { numRuns: 25 },
    );
    expect(await readdir(folder)).toEqual([name]);
  });

  it('compresses by the name', async () => {
    const source = await fileOf('a.jsonl', '{"text":"t","labels":["x"]}\n');
    await writeSamples(await openSamples(source), at('b.csv.gz'));
    expect(gunzipSync(await readFile(at('b.csv.gz'))).toString()).toBe('text,labels\nt,x\n');
  });

  it('keeps the counts of an xmc file, also of labels and features that no sample has', async () => {
    const content = '2 9 7\n1,3 2:0.5\n 4:1\n';
    await writeSamples(await openSamples(await fileOf('a.txt', content)), at('b.txt'));
    expect(await readFile(at('b.txt'), 'utf8')).toBe(content);
  });

  it('numbers named labels by column and lists them beside an xmc file', async () => {
    const source = await fileOf(
      'a.jsonl',
      '{"features":{"1":2},"labels":["b"]}\n{"features":{},"labels":["a","b"]}\n',
    );
    await writeSamples(await openSamples(source), at('b.txt.gz'));
    expect(gunzipSync(await readFile(at('b.txt.gz'))).toString()).toBe('2 2 2\n0 1:2\n0,1\n');
    expect(await readFile(at('b.labels.txt'), 'utf8')).toBe('b\na\n');
  });

  it('keeps label numbers, so that files converted apart agree', async () => {
    await writeSamples(await openSamples(await fileOf('a.svm', '7,2 1:1\n')), at('b.txt'));
    expect(await readFile(at('b.txt'), 'utf8')).toBe('1 2 8\n2,7 1:1\n');
  });

  it('writes a data set that is in memory', async () => {
    const dataset: Dataset = await readDataset(await fileOf('a.txt', '2 2 2\n0 1:1\n1 0:1\n'));
    expect(await writeSamples(stream(dataset), at('b.svm'))).toBe(2);
    expect(await readFile(at('b.svm'), 'utf8')).toBe('0 1:1\n1 0:1\n');
  });

  const text1 = '{"text":"a","labels":["x,y"]}\n';
  it.each([
    ['a text', text1, 'out.txt', {}, /xmc cannot hold a text \(write \.jsonl/],
    ['a text', text1, 'out.svm', {}, 'svmlight cannot hold a text'],
    ['features', '{"features":[1]}\n', 'out.csv', {}, 'csv cannot hold dense features'],
    [
      'features',
      '{"features":{"1":1}}\n',
      'out.tsv',
      { format: 'labels-text' },
      'labels-text cannot hold sparse',
    ],
    [
      'a group',
      '{"text":"a","group":"g"}\n',
      'out.tsv',
      { format: 'labels-text' },
      'labels-text cannot hold a group',
    ],
    ['the delimiter in a label', text1, 'out.csv', {}, 'must not contain the label delimiter ",", got "x,y"'],
    ['a tab', '{"text":"a\\tb"}\n', 'out.tsv', {}, 'must not contain a tab or a line end, got "a\\tb"'],
    ['a comma in a label', '{"features":{"1":1},"labels":["x,y"]}\n', 'out.svm', {}, 'got "x,y"'],
    ['no sample', '\n', 'out.csv', {}, 'at least one sample'],
    [
      'a bad line later',
      '{"text":"a"}\n{"text":1}\n',
      'out.csv',
      {},
      'a.jsonl:2: text must be a string, got 1',
    ],
    [
      'ids for some',
      '{"text":"a"}\n{"text":"b","id":1}\n',
      'out.csv',
      {},
      'every sample or none must have an id',
    ],
    [
      'a late label that is no number',
      `${'{"features":{},"labels":["1"]}\n'.repeat(50_000)}{"features":{},"labels":["x"]}\n`,
      'out.txt',
      {},
      'label ids must all be whole numbers',
    ],
    ['read-only text', text1, 'out.text', { format: 'text' }, 'text can be read but not written'],
    ['text as arff', text1, 'out.arff', {}, 'arff cannot hold a text'],
  ])('refuses %s and leaves nothing behind', async (_, content, out, options, message) => {
    const source = await fileOf('a.jsonl', content);
    await expect(
      openSamples(source).then((samples) => writeSamples(samples, at(out), options)),
    ).rejects.toThrow(message);
    expect(await readdir(folder)).toEqual(['a.jsonl']);
  });

  it.each(['out.txt', 'out.jsonl.gz'])('cancelling leaves no part of %s behind', async (out) => {
    const cancel = new AbortController();
    const source = await openSamples(await fileOf('a.txt', '2 2 2\n0 1:1\n1 0:1\n'));
    const batches = (async function* () {
      for await (const batch of source.batches) yield batch;
      cancel.abort();
      yield [];
    })();
    const writing = writeSamples({ ...source, batches }, at(out), { signal: cancel.signal });
    await expect(writing).rejects.toThrow('cancelled');
    expect(await readdir(folder)).toEqual(['a.txt']);
  });
});
