// How texts become tokens, and the encoder that takes them: subwords learned here, or what a pretrained folder holds.
import { readPretrainedFolder } from '../../data/pretrained-folder.ts';
import { readWordVectors } from '../../data/word-vectors.ts';
import { badInput, badUsage, locate } from '../../errors.ts';
import { trainSubwords } from '../../text/subword-trainer.ts';
import { Subwords, type TokenRows } from '../../text/subwords.ts';
import { startImportance, startTokens } from '../encode/bag.ts';
import type { EncoderShape } from '../encode/encoder.ts';
import { readPretrained } from '../encode/pretrained.ts';
import type { Settings } from './options.ts';
import type { PrimeSetup } from './train.ts';

export interface Reading {
  subwords: Subwords;
  shape: EncoderShape;
  /** By name, where there are any before training. */
  weights: ReadonlyMap<string, Float32Array>;
  queries: TokenRows;
  labels: TokenRows;
}

/** Tokens, and the encoder that takes them. */
export async function openReading({ texts, labelTexts, settings: o, seed }: PrimeSetup): Promise<Reading> {
  checkTogether(o);
  const known = labelTexts.filter((text) => text !== null);
  const { subwords, shape, weights } =
    o.encoder === 'pretrained' ? await openPretrained(o) : await openNew([...texts, ...known], o, seed);
  const queries = subwords.encode(texts, o.length);
  return {
    subwords,
    shape,
    weights:
      shape.kind === 'bag' ? new Map([...weights, ...startImportance(queries, shape.tokens)]) : weights,
    queries,
    labels: subwords.encode(
      labelTexts.map((text) => text ?? ''),
      o.length,
    ),
  };
}

/** What options ask of each other. */
function checkTogether(o: Settings): void {
  if (o.wordVectors && o.encoder !== 'bag')
    throw badUsage('wordVectors must come with encoder=bag', { value: o.encoder });
  if (o.folder && o.encoder !== 'pretrained')
    throw badUsage('folder must come with encoder=pretrained', { value: o.encoder });
  if (o.encoder === 'pretrained' && !o.folder) throw badUsage('encoder=pretrained must come with folder=...');
  if (o.encoder === 'transformer' && o.width % o.heads !== 0)
    throw badUsage(`heads must divide the width ${o.width}`, { value: o.heads });
  if (o.margin !== 'fixed' && o.marginLow > o.marginHigh)
    throw badUsage(`marginLow must be at most marginHigh, ${o.marginHigh}`, { value: o.marginLow });
}

async function openNew(texts: string[], o: Settings, seed: number) {
  const subwords = await Subwords.from(
    trainSubwords(texts, { size: o.vocabulary, minCount: 2, lowercase: true }),
  );
  const common = { tokens: subwords.size, width: o.width };
  if (o.encoder === 'bag') {
    const weights = o.wordVectors
      ? await openWordVectors(subwords, o, seed)
      : new Map<string, Float32Array>();
    return { subwords, weights, shape: { kind: 'bag', pooling: o.pooling, ...common } as const };
  }
  const shape: EncoderShape = {
    kind: 'transformer',
    ...common,
    layers: o.layers,
    heads: o.heads,
    inner: 4 * o.width,
    places: o.length,
    activation: 'gelu',
    epsilon: 1e-12,
    dropout: 0.1,
  };
  return { subwords, weights: new Map<string, Float32Array>(), shape };
}

async function openWordVectors(
  subwords: Subwords,
  { wordVectors: file, width: room }: Settings,
  seed: number,
) {
  const tokens = Array.from({ length: subwords.size }, (_, id) => subwords.token(id));
  const { width, byWord } = await readWordVectors(file, new Set(tokens));
  if (width > room) throw badUsage(`width must be at least that of ${file}, ${width}`, { value: room });
  return startTokens(tokens, room, byWord, seed);
}

async function openPretrained(o: Settings) {
  const { tokenizer, config, tensors } = await readPretrainedFolder(o.folder);
  try {
    const subwords = await Subwords.from(tokenizer);
    const { shape, weights } = readPretrained(config, tensors);
    if (subwords.size > shape.tokens)
      throw badInput(`tokenizer.json must know at most the ${shape.tokens} tokens of the network`, {
        value: subwords.size,
      });
    if (o.length > shape.places)
      throw badUsage(`length must be at most the ${shape.places} places of the network`, { value: o.length });
    return { subwords, shape, weights };
  } catch (error) {
    throw locate(error, { file: o.folder });
  }
}
