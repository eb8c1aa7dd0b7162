// A folder as Hugging Face saves models: tokenizer.json, config.json and model.safetensors. What the network is made of
// is learn/encode/pretrained.ts's business.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { badInput, locate } from '../errors.ts';
import type { Json, Tensors } from '../parts.ts';
import { decodeTensors } from './safetensors.ts';

export interface PretrainedFolder {
  tokenizer: Json;
  config: Record<string, unknown>;
  tensors: Tensors;
}

export async function readPretrainedFolder(folder: string): Promise<PretrainedFolder> {
  const json = async (file: string): Promise<Record<string, Json>> => {
    const parsed = parse(await read(folder, file), join(folder, file));
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed;
    throw badInput('file must hold a JSON object', { file: join(folder, file) });
  };
  const [tokenizer, config] = [await json('tokenizer.json'), await json('config.json')];
  const file = 'model.safetensors';
  try {
    return { tokenizer, config, tensors: decodeTensors(await read(folder, file)) };
  } catch (error) {
    throw locate(error, { file: join(folder, file) });
  }
}

async function read(folder: string, file: string): Promise<Uint8Array> {
  try {
    return await readFile(join(folder, file));
  } catch (error) {
    throw badInput(
      'a pretrained encoder must be a folder with tokenizer.json, config.json and model.safetensors',
      {
        file: join(folder, file),
        value: (error as NodeJS.ErrnoException).code,
      },
    );
  }
}

function parse(bytes: Uint8Array, file: string): Json {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw badInput('file must be JSON', { file, value: (error as Error).message });
  }
}
