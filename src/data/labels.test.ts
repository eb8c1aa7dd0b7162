import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readIdList, readLabels, readPairs } from './labels.ts';
import { Vocabulary } from './vocabulary.ts';

let folder: string;
let next = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'umbel-labels-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function write(ending: string, content: string): Promise<string> {
  const path = join(folder, `${next++}${ending}`);
  await writeFile(path, ending.endsWith('.gz') ? gzipSync(content) : content);
  return path;
}
const load = async (ending: string, content: string, options = {}) =>
  readLabels(await write(ending, content), options);

describe('readLabels', () => {
  it('a plain list gives names; the line number is the id, blank lines count', async () => {
    expect(await load('.txt.gz', 'cat\n\ndog, big\n')).toEqual([
      { id: '0', name: 'cat' },
      { id: '1' },
      { id: '2', name: 'dog, big' },
    ]);
  });

  it('reads tables with a header, in any order', async () => {
    const expected = [
      { id: 'a', name: 'Apple, red', altNames: ['Malus', 'pomme'], parents: ['f', 'p'] },
      { id: 'f', name: 'Fruit' },
    ];
    expect(
      await load('.csv', 'Name,id,alt,parents\r\n"Apple, red",a,Malus|pomme,f;p\r\nFruit,f,,\r\n'),
    ).toEqual(expected);
    const tsv = 'id\tname\taltNames\tparents\na\tApple, red\tMalus; pomme\tf|p\nf\tFruit\t\t\n';
    expect(await load('.tsv', tsv)).toEqual(expected);
  });

  it("reads Annif's tables: URIs in brackets without a header, names by language with one", async () => {
    const tsv = '<http://x/1>\tcats\n<http://x/2>\t"dogs"\n';
    expect(await load('.tsv', tsv)).toEqual([
      { id: 'http://x/1', name: 'cats' },
      { id: 'http://x/2', name: '"dogs"' },
    ]);
    const csv = 'uri,label_fi,label_en\n<http://x/1>,kissat,cats\n';
    expect(await load('.csv', csv)).toEqual([{ id: 'http://x/1', name: 'cats' }]);
    expect(await load('.csv', csv.replaceAll(',', ';'))).toEqual([{ id: 'http://x/1', name: 'cats' }]);
    expect(await load('.csv', csv, { language: 'fi' })).toEqual([{ id: 'http://x/1', name: 'kissat' }]);
  });

  it('takes columns by position or name; an alternative name equal to the name is left out', async () => {
    const tsv = '0\tp3\tlight reading\tlight reading\n7\tp10\tawareness\tawareness consciousness\n';
    expect(await load('.tsv', tsv, { columns: 'id=1,name=3,altNames=4' })).toEqual([
      { id: '0', name: 'light reading' },
      { id: '7', name: 'awareness', altNames: ['awareness consciousness'] },
    ]);
    expect(await load('.tsv', 'code\ttitle\nx\tX\n', { columns: 'id=code,name=title' })).toEqual([
      { id: 'x', name: 'X' },
    ]);
  });

  it('reads JSON lines', async () => {
    const text = '{"id":"a","name":"A","altNames":["B"],"parents":["p"]}\n\n{"id":7}\n';
    expect(await load('.jsonl', text)).toEqual([
      { id: 'a', name: 'A', altNames: ['B'], parents: ['p'] },
      { id: '7' },
    ]);
  });

  it("reads Mulan's XML", async () => {
    const xml =
      '<?xml version="1.0"?>\n<labels xmlns="x">\n<label name="a"><label name="b"/></label></labels>';
    expect(await load('.xml', xml)).toEqual([{ id: 'a' }, { id: 'b', parents: ['a'] }]);
  });

  const turtle = `@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix x: <http://x/> .
x:animal a skos:Concept ; skos:prefLabel "eläin"@fi, "animal"@en ; skos:altLabel "beast"@en, "otus"@fi .
x:cat a skos:Concept, x:Thing ; skos:prefLabel "kissa"@fi ; skos:altLabel "katti"@fi, "kitty"@en ;
  skos:broader x:animal, x:gone, [] .
x:gone a skos:Concept ; skos:prefLabel "gone"@en ; owl:deprecated true .
x:scheme a skos:ConceptScheme ; skos:prefLabel "scheme"@en .
`;
  const english = [
    { id: 'http://x/animal', name: 'animal', altNames: ['beast'] },
    { id: 'http://x/cat', name: 'kissa', altNames: ['katti'], parents: ['http://x/animal'] },
  ];

  it('reads SKOS in Turtle: names by language, broader concepts, deprecated ones left out', async () => {
    expect(await load('.ttl', turtle)).toEqual(english);
    expect((await load('.ttl.gz', turtle, { language: 'fi' }))[0]).toEqual({
      id: 'http://x/animal',
      name: 'eläin',
      altNames: ['otus'],
    });
  });

  it('reads SKOS in N-Triples', async () => {
    const core = 'http://www.w3.org/2004/02/skos/core#';
    const nt = `<http://x/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <${core}Concept> .
<http://x/a> <${core}prefLabel> "\\u00e9t\\u00e9" .\n`;
    expect(await load('.nt', nt)).toEqual([{ id: 'http://x/a', name: 'été' }]);
  });

  it('reads SKOS in RDF/XML', async () => {
    const xml = `<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
  <skos:Concept rdf:about="http://x/animal"><skos:prefLabel xml:lang="en">animal</skos:prefLabel>
    <skos:altLabel xml:lang="en">beast</skos:altLabel></skos:Concept>
  <skos:Concept rdf:about="http://x/cat"><skos:prefLabel xml:lang="fi">kissa</skos:prefLabel>
    <skos:altLabel xml:lang="fi">katti</skos:altLabel><skos:broader rdf:resource="http://x/animal"/></skos:Concept>
</rdf:RDF>`;
    expect(await load('.rdf', xml)).toEqual(english);
    expect(await load('.xml', xml)).toEqual(english);
  });

  it.each([
    ['.tsv', 'a\tA\nb\n', ':2: a row must have 2 columns like the first, got 1'],
    ['.tsv', 'a\tA\na\tB\n', ':2: label ids must be unique, got "a"'],
    ['.tsv', '1\t2\t3\n', 'must be id and name, or columns must be given, got "3 columns"'],
    ['.csv', 'id,name\n"a,A\n', 'CSV must be well formed'],
    ['.jsonl', '{"id":"a"}\n{"name":"b"}\n', ':2: a label must have an id'],
    ['.jsonl', 'null\n', ':1: a label must have an id'],
    ['.jsonl', '{"id":"a","altNames":"b"}\n', 'altNames must be a list of texts'],
    ['.jsonl', '{"id"\n', ':1: a line must be JSON'],
    ['.ttl', '<a> <b', 'SKOS file must be well formed'],
    ['.ttl', '<http://a> <http://b> <http://c> .', 'must have concepts'],
    ['.rdf', '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><a></rdf:RDF>', 'well formed'],
    ['.xml', '<html/>', 'must list labels'],
  ])('refuses %s: %s', async (ending, content, message) => {
    await expect(load(ending, content)).rejects.toThrow(message);
  });

  it('says so where a file is not UTF-8 or not there', async () => {
    const path = join(folder, 'latin1.ttl');
    await writeFile(path, Buffer.from('# \xe9t\xe9\n', 'latin1'));
    await expect(readLabels(path)).rejects.toThrow('well formed');
    await expect(readLabels(join(folder, 'none.ttl'))).rejects.toThrow('file must exist');
  });
});

describe('readIdList', () => {
  it('gives the ids of a file, without brackets and blank lines', async () => {
    expect(await readIdList(await write('.txt', 'a b\n\n <http://x/1>\r\n3'))).toEqual([
      'a b',
      'http://x/1',
      '3',
    ]);
  });
});

describe('readPairs', () => {
  const vocabulary = new Vocabulary([{ id: '7' }, { id: '9' }]);
  const pairs = async (content: string) => readPairs(await write('.txt', content), 3, vocabulary);

  it('gives rows and columns, without labels that are not known', async () => {
    expect(await pairs('0 9\n2 7\n\n1 100\n')).toEqual([
      [0, 1],
      [2, 0],
    ]);
  });

  it.each([
    ['0 7\n3 7\n', /:2: row must be a whole number below 3, got "3"/],
    ['x 7\n', /:1: row must be a whole number below 3, got "x"/],
    ['0\n', /:1: line must be a row and a label, got "0"/],
    ['0 7 9\n', /:1: line must be a row and a label/],
  ])('refuses %j', async (content, message) => {
    await expect(pairs(content)).rejects.toThrow(message);
  });
});
