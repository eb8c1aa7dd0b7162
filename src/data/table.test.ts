import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseColumns } from './columns.ts';
import { collect } from './dataset.ts';
import type { ReadOptions } from './format.ts';
import { Skipped } from './skipped.ts';
import { csv, labelsText, tsv } from './table.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-table-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function read(format: typeof csv, content: string | Uint8Array, options: ReadOptions = {}) {
  const path = join(folder, 'table');
  await writeFile(path, content);
  const { texts, ids, groups, labels, vocabulary } = await collect(await format.read(path, options));
  const labelIds = Array.from({ length: labels.rows }, (_, row) =>
    Array.from(
      labels.indices.subarray(labels.indptr[row], labels.indptr[row + 1]),
      vocabulary.name,
      vocabulary,
    ),
  );
  return { texts, ids, groups, labels: labelIds };
}

const columns = (mapping: string): ReadOptions => ({ columns: parseColumns(mapping) });

describe('a table with a header', () => {
  it('finds its columns by their usual names, and joins several texts by a blank', async () => {
    const table = '\ufeffID,Title,Content,Tags,Group\r\n7,a,b,"x, y",g\r\n\r\n8,c,,,h\r\n';
    expect(await read(csv, table)).toEqual({
      ids: ['7', '8'],
      texts: ['a b', 'c '],
      groups: ['g', 'h'],
      labels: [['x', 'y'], []],
    });
  });

  it('takes the columns it is told', async () => {
    const table = 'id\tsubject\ta\tb\n1\tx\tA\tB\n';
    const read1 = await read(tsv, table, columns('text=b+3,labels=subject'));
    expect(read1).toMatchObject({ ids: ['1'], texts: ['B A'], labels: [['x']] });
    const byPosition = await read(tsv, table, columns('text=4,labels=2'));
    expect(byPosition).toMatchObject({ ids: ['1'], texts: ['B'] });
  });

  it('takes several label columns for zeros and ones', async () => {
    const table = 'a,b,c,smiles\r\n1,0,1,CO\r\n0,0.0,0,N\r\n';
    for (const labels of ['a..c', 'a+b+c']) {
      const options = columns(`text=smiles,labels=${labels}`);
      expect((await read(csv, table, options)).labels).toEqual([['a', 'c'], []]);
      await expect(read(csv, `${table}1,2,1,C\n`, options)).rejects.toThrow(
        ':4: a cell of several label columns must be 0 or 1, got "2"',
      );
      await expect(read(csv, `${table}1,,1,C\n`, options)).rejects.toThrow('must be 0 or 1, got ""');
    }
  });

  it.each([
    [' ', 'x y'],
    ['|', 'x|y|'],
    [';', ' x ; y'],
  ])('labels may be parted by %j', async (labelDelimiter, cell) => {
    expect((await read(csv, `text,labels\nt,${cell}\n`, { labelDelimiter })).labels).toEqual([['x', 'y']]);
  });

  it('is read as Excel saves it where the comma is in the numbers', async () => {
    const table = '\ufeff\r\nID;Title;Labels\r\n1;"Äpfel; Birnen, roh";x,y\r\n2;b, c;"x"\r\n';
    expect(await read(csv, table)).toMatchObject({
      ids: ['1', '2'],
      texts: ['Äpfel; Birnen, roh', 'b, c'],
      labels: [['x', 'y'], ['x']],
    });
    expect(await read(csv, 'text\tlabels\n"a\tb"\tx;y\n', { labelDelimiter: ';' })).toMatchObject({
      texts: ['a\tb'],
      labels: [['x', 'y']],
    });
  });

  it('need not have labels', async () => {
    expect((await read(csv, 'text\na\nb\n')).labels).toEqual([[], []]);
  });

  it('says how to name the columns where it finds no text', async () => {
    await expect(read(csv, 'a,b\n1,2\n')).rejects.toThrow(
      /table:1: table must have a column that holds the text, got "a \| b" \(.*--columns id=1,labels=2,text=title\+body/,
    );
    await expect(read(csv, 'title,b\n1,2\n', columns('text=titl'))).rejects.toThrow(
      'table:1: unknown column, got "titl" (did you mean title?)',
    );
  });
});

describe('a table without a header', () => {
  it('is read by positions from the first row on', async () => {
    const table = 'c1\tx,y\ttitle one\tbody\nc2\t\ttitle two\tbody\n';
    expect(await read(tsv, table, columns('id=1,labels=2,text=3+4'))).toMatchObject({
      ids: ['c1', 'c2'],
      texts: ['title one body', 'title two body'],
      labels: [['x', 'y'], []],
    });
  });

  it('with two columns and tabs is labels<TAB>text, where quotes and further tabs are text', async () => {
    const table = '205,2123\t"Quoted\n7\tone\ttwo\n\n\tno label\n';
    const expected = { texts: ['"Quoted', 'one\ttwo', 'no label'], labels: [['205', '2123'], ['7'], []] };
    expect(await read(tsv, table)).toMatchObject(expected);
    expect(await read(labelsText, table)).toMatchObject(expected);
  });

  it('may have a first text that could name a column', async () => {
    expect(await read(tsv, '1,2\tAbstract\n3\tb\n')).toMatchObject({ texts: ['Abstract', 'b'] });
    expect(await read(tsv, 'title\tkeywords\na\tb\n')).toMatchObject({ texts: ['a'], labels: [[]] });
  });

  it('names the line without a tab', async () => {
    await expect(read(tsv, '1\ta\nb\n')).rejects.toThrow(
      ':2: a line must be labels, a tab and a text, got "b"',
    );
  });

  it('with more columns must be told what they are', async () => {
    await expect(read(tsv, '1\ta\tb\n')).rejects.toThrow('--columns');
    await expect(read(csv, 'x,a b\n')).rejects.toThrow('--columns');
  });
});

describe('quotes in CSV', () => {
  it('protect commas, quotes and line ends', async () => {
    const table = 'text,labels\n"a ""b"", c\r\n\r\nd","x,y"\n';
    expect(await read(csv, table)).toMatchObject({ texts: ['a "b", c\n\nd'], labels: [['x', 'y']] });
  });

  it('do not confuse line numbers', async () => {
    await expect(read(csv, 'text,labels\n"a\n\nb",x\n\nc,x,y\n')).rejects.toThrow(
      ':6: a row must have 2 columns like the first, got 3',
    );
  });

  it('may span the pieces that the file is read in', async () => {
    const long = `${'word "" \n'.repeat(200_000)}end`;
    const { texts } = await read(csv, `text,labels\n"${long}",x\nb,y\n`);
    expect(texts).toEqual([long.replaceAll('""', '"'), 'b']);
  });

  it('must be closed and end a field', async () => {
    await expect(read(csv, 'text,labels\na,x\n"b,y\nc,z\n')).rejects.toThrow(
      ':3: a quoted field must be closed, got "\\"b,y',
    );
    await expect(read(csv, 'text,labels\n"a"b",x\n')).rejects.toThrow(':2: quotes must be well formed');
  });

  it('broken ones are left out under --skip-bad', async () => {
    const skipped = new Skipped();
    const { texts } = await read(csv, 'text,labels\na,x\n"b"b",y\nc,z\nd\n"e', { skipped });
    expect(texts).toEqual(['a', 'c']);
    expect(skipped.count).toBe(3);
  });

  it('a record with a line that is not UTF-8 is left out whole, and the next one is found', async () => {
    const skipped = new Skipped();
    const table = Buffer.from('text,labels\n"a\n\xff\n",x\n"b\n",y\n\xe4,z\nc,z\n', 'latin1');
    expect((await read(csv, table, { skipped })).texts).toEqual(['b\n', 'c']);
    expect(skipped.count).toBe(2);
    await expect(read(csv, table)).rejects.toThrow(':3: text must be valid UTF-8');
  });
});

it.each([
  [tsv, 'Titel\tThema\na\tx\n', ['read as labels<TAB>text, no header']],
  [tsv, 'text\tlabels\na\tx\n', []],
  [labelsText, 'x\ta\n', []],
  [csv, 'text;labels\na;x\n', ['read as parted by semicolons']],
  [csv, 'text\tlabels\na\tx\n', ['read as parted by tabs']],
  [csv, 'text,labels\na,x\n', []],
])('%o tells once what it assumed about %j', async (format, table, assumed) => {
  const notes: string[] = [];
  await read(format, table, { note: (text) => notes.push(text) });
  expect(notes).toEqual(assumed.map((text) => `${join(folder, 'table')}: ${text}`));
});

it('refuses an empty id', async () => {
  await expect(read(csv, 'id,text\n ,a\n')).rejects.toThrow(':2: id must not be empty');
});
