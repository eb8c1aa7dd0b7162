import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CsrBuilder, rowIndices, rowValues } from '../math/csr.ts';
import { arff } from './arff.ts';
import { collect, type Dataset, stream } from './dataset.ts';
import { writeSamples } from './formats.ts';
import { Skipped } from './skipped.ts';
import { Vocabulary } from './vocabulary.ts';

let folder: string;
let next = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-arff-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Writes files into a folder of their own; the path of the first. */
async function write(files: Record<string, string | Uint8Array>): Promise<string> {
  const own = await mkdtemp(join(folder, `${next++}-`));
  for (const [name, content] of Object.entries(files)) await writeFile(join(own, name), content);
  return join(own, Object.keys(files)[0]);
}

const load = async (path: string, options = {}) => collect(await arff.read(path, options));

const meka = (rows: string, attributes = '@attribute y {0,1}\n@attribute a numeric\n@attribute b real') =>
  write({ 'm.arff': `@relation 'm: -C 1'\n${attributes}\n@data\n${rows}\n` });

describe('arff', () => {
  it('reads dense rows, with comments, any case and any spacing', async () => {
    const path = await write({
      'toy-train.arff': [
        '% a comment',
        '@RELATION  toy',
        '@Attribute\ta\tNUMERIC',
        "@attribute 'it''s \\'b\\'' real",
        '  @attribute "c d"   { 0 , 1 }',
        '@attribute y1 {0,1}',
        '@attribute y2 {0,1}',
        '',
        '@DATA',
        '% another',
        '1.5, -2e1 ,1,0,1',
        '0\t0 0,1,1',
      ].join('\r\n'),
      'Toy.xml': '<labels><label name="y2"/><label name="y1"></label></labels>',
    });
    const data = await load(path);
    expect(data.featureNames).toEqual(['a', "it's 'b'", 'c d']);
    expect(Array.from(data.vocabulary, (label) => label.id)).toEqual(['y1', 'y2']);
    expect(Array.from(data.features?.dense?.values ?? [])).toEqual([1.5, -20, 1, 0, 0, 0]);
    expect(Array.from(data.labels.indices)).toEqual([1, 0, 1]);
    expect(data.features?.sparse).toBeUndefined();
  });

  it('reads sparse gzipped rows and finds the XML beside, whatever the endings', async () => {
    const text =
      '@relation s\n@attribute a numeric\n@attribute y {0,1}\n@attribute b numeric\n@data\n{0 2, 1 1}\n{ 2\t3 }\n{}\n';
    const path = await write({
      'Big-train-sparse.arff.gz': gzipSync(text),
      'big.xml.gz': gzipSync('<labels><label name="y"/></labels>'),
      'other.xml': '<labels><label name="z"/></labels>',
    });
    const { features, labels, rows } = await load(path);
    expect(rows).toBe(3);
    expect(features?.sparse).toMatchObject({ rows: 3, cols: 2 });
    expect(Array.from(features?.sparse?.indices ?? [])).toEqual([0, 1]);
    expect(Array.from(features?.sparse?.values ?? [])).toEqual([2, 3]);
    expect(Array.from(labels.indptr)).toEqual([0, 1, 1, 1]);
  });

  it('nested labels have parents', async () => {
    const path = await write({
      'n.arff': '@relation n\n@attribute a&b {0,1}\n@attribute c {0,1}\n@attribute d {0,1}\n@data\n0,1,0\n',
      'n.xml':
        '<?xml version="1.0"?><!-- <label name="no"> --><labels><label name="a&amp;b"><label name=\'c\'/></label><label name="d"/></labels>',
    });
    expect([...(await load(path)).vocabulary]).toEqual([
      { id: 'a&b' },
      { id: 'c', parents: ['a&b'] },
      { id: 'd' },
    ]);
  });

  it("MEKA's -C counts label attributes from the front or, negative, from the end", async () => {
    const body = '\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute c {0,1}\n@data\n1,0,1\n';
    const front = await load(await write({ 'm.arff': `@relation 'x: -C 2 -split 1'${body}` }));
    expect(Array.from(front.vocabulary, (label) => label.id)).toEqual(['a', 'b']);
    const end = await load(await write({ 'm.arff': `@relation 'x: -C -1'${body}` }));
    expect(Array.from(end.vocabulary, (label) => label.id)).toEqual(['c']);
  });

  it('a nominal feature becomes a column for each value but the first, dense or sparse', async () => {
    const header =
      "@relation 'x: -C 1'\n@attribute y {0,1}\n@attribute color {red,'dark blue',green}\n@attribute a numeric\n@data\n";
    const dense = await load(await write({ 'd.arff': `${header}1,'dark blue',2\n0,red,0\n0,green,1\n` }));
    const sparse = await load(
      await write({ 's.arff': `${header}{0 1,1 "dark blue",2 2}\n{}\n{1 green,2 1}\n` }),
    );
    expect(dense.featureNames).toEqual(['color=dark blue', 'color=green', 'a']);
    expect(Array.from(dense.features?.dense?.values ?? [])).toEqual([1, 0, 2, 0, 0, 0, 0, 1, 1]);
    const matrix = sparse.features?.sparse;
    expect(
      matrix && [0, 1, 2].map((row) => [[...rowIndices(matrix, row)], [...rowValues(matrix, row)]]),
    ).toEqual([
      [
        [0, 2],
        [1, 2],
      ],
      [[], []],
      [
        [1, 2],
        [1, 1],
      ],
    ]);
  });

  it('labels take their columns in a vocabulary given', async () => {
    const vocabulary = new Vocabulary([{ id: 'b' }, { id: 'x' }, { id: 'a', name: 'A' }]);
    const path = await write({
      'v.arff':
        "@relation '-C 2'\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute f numeric\n@data\n1,1,0\n",
    });
    const data = await load(path, { vocabulary });
    expect(Array.from(data.labels.indices)).toEqual([0, 2]);
    expect(data.vocabulary.label(2)).toEqual({ id: 'a', name: 'A' });
  });

  it.each([
    ['1,2', 'a row must have 3 values, got 2'],
    ['1,x,3', 'value must be a finite number, got "x"'],
    ['1,,3', 'value must be a finite number, got ""'],
    ['1,1e39,3', 'finite number'],
    ['1,?,3', 'values must not be missing, got "?"'],
    ['2,1,3', 'a label must be 0 or 1, got "2"'],
  ])('refuses the dense row %s', async (row, message) => {
    const path = await meka(`0,1,2\n${row}`);
    await expect(load(path)).rejects.toThrow(message);
    await expect(load(path)).rejects.toThrow('m.arff:7: ');
  });

  it.each([
    ['{0 1', 'must be {index value, ...}'],
    ['{3 1}', 'attribute index must be from 0 to 2, got "3"'],
    ['{1 1,1 2}', 'attribute indices must ascend, got "1 after 1"'],
    ['{1}', 'finite number'],
    ['1,2,3', 'must be {index value, ...}'],
  ])('refuses the sparse row %s', async (row, message) => {
    await expect(load(await meka(`{}\n${row}`))).rejects.toThrow(message);
  });

  it('counts bad rows and goes on where told to skip them', async () => {
    const skipped = new Skipped();
    const data = await load(await meka('0,1,2\n1,?,3\n1,5,6'), { skipped });
    expect([data.rows, skipped.count]).toEqual([2, 1]);
    expect(skipped.first[0]).toContain('m.arff:7');
  });

  it('says which label of the XML is no attribute', async () => {
    const path = await write({
      'a.arff': '@relation a\n@attribute y {0,1}\n@data\n1\n',
      'a.xml': '<labels><label name="z"/></labels>',
    });
    await expect(load(path)).rejects.toThrow('every label of a.xml must be an attribute, got "z"');
  });

  it('says what is needed where nothing tells the labels', async () => {
    const path = await write({ 'a.arff': '@relation a\n@attribute y {0,1}\n@data\n1\n' });
    await expect(load(path)).rejects.toThrow(/which attributes are labels.*XML.*-C n/);
  });

  it.each([
    ['@attribute s string', '1,2', 'attribute type must be numeric'],
    ['@attribute y {0,1}\n@attribute y {0,1}', '1,1', 'attribute names must be unique, got "y"'],
    ['@attribute y {0,1}\n@attribute a {1,2}', '{}', 'the first value of attribute a must be 0'],
    ['@attribute y {0,1}\n@attribute a {1,2}', '1,3', 'value must be one the attribute lists, got "3"'],
    ['@what', '', 'keyword must be'],
    ['oops', '', 'must start with @'],
  ])('refuses the header %s', async (attributes, row, message) => {
    await expect(meka(row, attributes).then(load)).rejects.toThrow(message);
  });

  it('a header without @data is refused', async () => {
    const path = await write({ 'a.arff': "@relation '-C 1'\n@attribute y {0,1}\n" });
    await expect(load(path)).rejects.toThrow('must have an @data line');
  });
});

describe('writing arff', () => {
  const name = fc.stringMatching(/^[a-z'"\\\\{},% <&>é]{1,6}$/);
  const rows = fc.array(
    fc.tuple(
      fc.array(fc.constantFrom(0, 0, 1, -0.25, 3e-7, 1e9), { minLength: 4, maxLength: 4 }),
      fc.subarray([0, 1, 2]),
    ),
    { minLength: 1, maxLength: 8 },
  );

  it.each(['sparse', 'dense'] as const)(
    '%s rows, names and labels are read back as they were',
    async (kind) => {
      await fc.assert(
        fc.asyncProperty(rows, fc.uniqueArray(name, { minLength: 7, maxLength: 7 }), async (given, names) => {
          const [sparse, labels] = [new CsrBuilder('values'), new CsrBuilder('binary')];
          for (const [values, own] of given) {
            const columns = values.flatMap((value, column) => (value === 0 ? [] : [column]));
            sparse.add(
              columns,
              columns.map((column) => values[column]),
            );
            labels.add(own);
          }
          const values = Float32Array.from(given.flatMap(([row]) => row));
          const dataset: Dataset = {
            rows: given.length,
            features:
              kind === 'sparse'
                ? { sparse: sparse.csr(4) }
                : { dense: { rows: given.length, cols: 4, values } },
            featureNames: names.slice(0, 4),
            labels: labels.pattern(3),
            vocabulary: new Vocabulary(names.slice(4).map((id) => ({ id }))),
          };
          const path = join(await mkdtemp(join(folder, 'written-')), 'set.arff.gz');
          await writeSamples(stream(dataset), path);
          const back = await load(path);
          expect(back.features?.[kind]).toEqual(dataset.features?.[kind]);
          expect(back.labels).toEqual(dataset.labels);
          expect(back.featureNames).toEqual(dataset.featureNames);
          expect([...back.vocabulary]).toEqual([...dataset.vocabulary]);
        }),
        { numRuns: 40 },
      );
    },
  );

  it('refuses a label that is called like a feature, and leaves no file', async () => {
    const own = await mkdtemp(join(folder, 'clash-'));
    const clash = { vocabulary: new Vocabulary([{ id: 'a' }]), featureNames: ['a'], width: 1 };
    const batches = (async function* () {
      yield [{ labels: [0], sparse: { indices: [0], values: [1] } }];
    })();
    await expect(writeSamples({ ...clash, batches }, join(own, 'x.arff'))).rejects.toThrow(
      /called like a feature, got "a"/,
    );
    expect(await readdir(own)).toEqual([]);
  });
});
