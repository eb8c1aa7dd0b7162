import { describe, expect, it } from 'vitest';
import { parseColumns, resolveColumns, separatorOf, toColumns } from './columns.ts';

describe('resolveColumns', () => {
  it('finds the default names in any case, all text columns in file order', () => {
    const found = resolveColumns(['ID', 'Body', 'title', 'Tags', 'labels', 'group']);
    expect(found).toEqual({ id: 0, text: [1, 2], labels: [4], indicators: [], group: 5 });
  });

  it('leaves out what is not there', () => {
    expect(resolveColumns(['x', 'y'])).toEqual({ text: [], labels: [], indicators: [] });
  });

  it('takes names or 1-based positions, and keeps the order given', () => {
    const columns = { id: '2', text: ['b', 'A'], labels: ['3'] };
    expect(resolveColumns(['a', 'b', 'c'], columns)).toEqual({
      id: 1,
      text: [1, 0],
      labels: [2],
      indicators: [],
    });
  });

  it('a header name that looks like a position is a name', () => {
    expect(resolveColumns(['2', '1'], { id: '1' }).id).toBe(1);
  });

  it('several label columns are indicator columns, by range or by name', () => {
    const header = ['smiles', 'liver', 'eye', 'skin', 'extra'];
    const found = resolveColumns(header, { labels: ['liver..skin', 'extra'] });
    expect(found).toMatchObject({ indicators: [1, 2, 3, 4], labels: [] });
  });

  it('a name with dots in the header is not a range', () => {
    expect(resolveColumns(['a', 'a..b', 'b'], { labels: ['a..b'] })).toMatchObject({
      labels: [1],
      indicators: [],
    });
  });

  it('names the closest column for an unknown one', () => {
    expect(() => resolveColumns(['title', 'tags'], { text: ['titl'] })).toThrow(/"titl".*did you mean title/);
    expect(() => resolveColumns(['a'], { id: '2' })).toThrow('column position must be from 1 to 1, got "2"');
    expect(() => resolveColumns(['a', 'b'], { labels: ['b..a'] })).toThrow('from left to right');
  });

  it('works by position where there is no header', () => {
    expect(resolveColumns(['', '', ''], { text: ['3'], labels: ['1'] })).toMatchObject({
      text: [2],
      labels: [0],
    });
  });
});

it.each([
  ['text', ','],
  ['text,labels', ','],
  ['text;labels', ';'],
  ['text\tlabels', '\t'],
  ['text (a;b),labels', ','],
  ['"a, ""b"", c";labels', ';'],
  ['id,"a;b;c;d"', ','],
  ['id,"a;b;c;d', ','],
  ['5" disk;size', ';'],
])('%j is parted by %j', (line, separator) => {
  expect(separatorOf(line)).toBe(separator);
});

describe('parseColumns', () => {
  it('reads roles, several text columns and ranges', () => {
    expect(toColumns(parseColumns('text=title,labels=')).labels).toEqual([]);
    expect(resolveColumns(['title', 'tags'], parseColumns('labels=')).labels).toEqual([]);
    expect(() => parseColumns('text=')).toThrow('columns must be given as role=column,..., got "text="');
    expect(parseColumns('id=1, text=title+body,labels=A..B,group=g')).toEqual({
      id: '1',
      text: ['title', 'body'],
      labels: ['A..B'],
      group: 'g',
    });
  });

  it.each([
    ['txt=title', 'did you mean text?'],
    ['title', 'role=column'],
    ['id=1,id=2', 'must appear once'],
    ['id=a+b', 'id must be one column, got "a+b"'],
  ])('refuses %s', (text, message) => {
    expect(() => parseColumns(text)).toThrow(message);
  });
});

describe('toColumns', () => {
  it('takes what the command line takes, or an object of names and positions', () => {
    const columns = { id: '1', text: ['title', 'body'], labels: ['tags'] };
    expect(toColumns('id=1,text=title+body,labels=tags')).toEqual(columns);
    expect(toColumns({ id: 1, text: ['title', 'body'], labels: 'tags', group: undefined })).toEqual(columns);
  });

  it.each([
    [7, 'columns must be a string role=column,... or an object { role: column }, got 7'],
    [['title'], 'columns must be a string'],
    [null, 'columns must be a string'],
    [{ txt: 'title' }, 'unknown column role, got "txt" (did you mean text?)'],
    [{ text: { title: 1 } }, 'columns.text must be a column name or position, or an array of them'],
    [{ text: [] }, 'columns.text must be a column name'],
    [{ id: '' }, 'columns.id must be a column name'],
    [{ id: ['a', 'b'] }, 'id must be one column, got "a+b"'],
  ])('refuses %o', (given, message) => {
    expect(() => toColumns(given as never)).toThrow(message);
  });
});
