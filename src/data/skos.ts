// Subject vocabularies in SKOS: Turtle, N-Triples (n3) and RDF/XML (rdfxml-streaming-parser), read as streams.
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Quad } from 'n3';
import { badInput, UmbelError } from '../errors.ts';
import { readBytes } from './file.ts';
import type { Label } from './vocabulary.ts';

const skos = 'http://www.w3.org/2004/02/skos/core#';
const type = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#type';
const deprecated = 'http://www.w3.org/2002/07/owl#deprecated';

interface Text {
  value: string;
  language: string;
}

interface Concept {
  isConcept: boolean;
  isDeprecated: boolean;
  names: Text[];
  altNames: Text[];
  parents: Set<string>;
}

/** The concepts that are not deprecated; names in `language`, or in another where there is none. */
export async function readSkos(
  path: string,
  syntax: 'turtle' | 'rdfxml',
  language: string,
): Promise<Label[]> {
  const concepts = new Map<string, Concept>();
  const parser = await parserFor(syntax);
  try {
    await pipeline(textOf(path), parser, async (quads: AsyncIterable<Quad>) => {
      for await (const quad of quads) if (quad.subject.termType === 'NamedNode') learn(concepts, quad);
    });
  } catch (error) {
    if (error instanceof UmbelError) throw error;
    throw badInput('SKOS file must be well formed', { file: path, value: (error as Error).message });
  }
  const current = new Map(
    [...concepts].filter(([, { isConcept, isDeprecated }]) => isConcept && !isDeprecated),
  );
  if (current.size === 0) throw badInput('SKOS file must have concepts (skos:Concept)', { file: path });
  return Array.from(current, ([id, concept]) => toLabel(id, concept, current, language));
}

async function parserFor(syntax: 'turtle' | 'rdfxml'): Promise<Transform> {
  if (syntax === 'turtle') {
    const { StreamParser } = await import('n3');
    return new StreamParser();
  }
  const { RdfXmlParser } = await import('rdfxml-streaming-parser');
  // readable-stream's Transform, which behaves as Node's but is typed apart.
  return new RdfXmlParser() as unknown as Transform;
}

async function* textOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of readBytes(path)) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}

function learn(concepts: Map<string, Concept>, { subject, predicate, object }: Quad): void {
  const change = changes[predicate.value];
  if (!change) return;
  let concept = concepts.get(subject.value);
  if (!concept) {
    concept = { isConcept: false, isDeprecated: false, names: [], altNames: [], parents: new Set() };
    concepts.set(subject.value, concept);
  }
  change(concept, object);
}

const changes: Record<string, (concept: Concept, object: Quad['object']) => void> = {
  [type]: (concept, object) => {
    concept.isConcept ||= object.value === `${skos}Concept`;
  },
  [deprecated]: (concept, object) => {
    concept.isDeprecated ||= object.value === 'true' || object.value === '1';
  },
  [`${skos}prefLabel`]: (concept, object) => addText(concept.names, object),
  [`${skos}altLabel`]: (concept, object) => addText(concept.altNames, object),
  [`${skos}broader`]: (concept, object) => {
    if (object.termType === 'NamedNode') concept.parents.add(object.value);
  },
};

function addText(texts: Text[], object: Quad['object']): void {
  if (object.termType === 'Literal')
    texts.push({ value: object.value, language: object.language.toLowerCase() });
}

function toLabel(id: string, concept: Concept, known: ReadonlyMap<string, Concept>, language: string): Label {
  const wanted = language.toLowerCase();
  const { names, altNames } = concept;
  const name =
    names.find((text) => text.language === wanted) ??
    names.find((text) => text.language.startsWith(`${wanted}-`)) ??
    names.find((text) => text.language === '') ??
    names[0];
  const label: Label = { id };
  if (name) label.name = name.value;
  const chosen = name?.language ?? wanted;
  const others = altNames.filter((text) => text.language === chosen || text.language === '');
  if (others.length > 0) label.altNames = others.map((text) => text.value);
  const parents = [...concept.parents].filter((parent) => known.has(parent));
  if (parents.length > 0) label.parents = parents;
  return label;
}
