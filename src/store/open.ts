// Opens a saved classifier from wherever its files are: a folder, an address. Parts are read when first needed and
// checked before use. Runs in a browser.

import { decodeTensors } from '../data/safetensors.ts';
import { type Label, Vocabulary } from '../data/vocabulary.ts';
import { UmbelError } from '../errors.ts';
import { Classifier, type ClassifierContent } from '../learn/classifier.ts';
import type { PartReader } from '../parts.ts';
import { broken, checkPart, type Manifest, manifestName, parseManifest } from './manifest.ts';

/** Where the files of one model are. */
export interface ModelSource {
  /** Names the place in errors. */
  name: string;
  read(file: string): Promise<Uint8Array>;
}

/** Files under an address, for pages: `openModel(webSource('/models/wordnet'))`. */
export function webSource(address: string): ModelSource {
  return {
    name: address,
    async read(file) {
      const url = `${address.replace(/\/$/, '')}/${file}`;
      const refuse = (value: unknown) => new UmbelError('model', 'file must be served', { file: url, value });
      try {
        const response = await fetch(url);
        if (!response.ok) throw refuse(response.status);
        return new Uint8Array(await response.arrayBuffer());
      } catch (error) {
        // Browsers say no more than that they failed to fetch.
        throw error instanceof UmbelError ? error : refuse((error as Error).message);
      }
    },
  };
}

export async function openModel(source: ModelSource): Promise<Classifier> {
  const text = new TextDecoder().decode(await source.read(manifestName));
  const manifest = await parseManifest(text, `${source.name}/${manifestName}`);
  const content = manifest.content as unknown as ClassifierContent;
  const parts: PartReader = {
    read: async (name) => decodeTensors(await readPart(source, manifest, `${name}.safetensors`)),
    readProgram: (name) => readPart(source, manifest, `${name}.onnx`),
  };
  const labels = new TextDecoder().decode(await readPart(source, manifest, 'labels.jsonl'));
  const vocabulary = new Vocabulary(
    labels
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Label),
  );
  try {
    return await Classifier.load(content, vocabulary, parts);
  } catch (error) {
    if (error instanceof UmbelError) throw error;
    const rule = 'content must be what this version of umbel saves';
    throw broken(`${source.name}/${manifestName}`, rule, (error as Error).message, 'train the model again');
  }
}

async function readPart(source: ModelSource, { parts }: Manifest, file: string): Promise<Uint8Array> {
  const entry = parts.find((part) => part.file === file);
  if (!entry) throw broken(`${source.name}/${manifestName}`, 'every part needed must be listed', file);
  const bytes = await source.read(file);
  await checkPart(entry, bytes, `${source.name}/${file}`);
  return bytes;
}
