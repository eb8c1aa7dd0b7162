// A model is a folder: model.json beside its parts. Written next to its final place and renamed, so that a reader sees
// the old model, the new one, or none.
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { partialName } from '../data/file.ts';
import { encodeTensors } from '../data/safetensors.ts';
import { badUsage, UmbelError } from '../errors.ts';
import type { Classifier } from '../learn/classifier.ts';
import type { PartWriter } from '../parts.ts';
import { formatVersion, manifestName, type PartEntry, renderManifest } from './manifest.ts';
import { type ModelSource, openModel } from './open.ts';

/** Loads the classifier saved in a folder. */
export const loadModel = (folder: string): Promise<Classifier> => openModel(folderSource(folder));

export function folderSource(folder: string): ModelSource {
  return {
    name: folder,
    async read(file) {
      try {
        const handle = await open(join(folder, file));
        try {
          const { size } = await handle.stat();
          const bytes = new Uint8Array(size);
          // Reads of more than 2 GiB at once are refused by the system.
          for (let at = 0; at < size; ) {
            const { bytesRead } = await handle.read(bytes, at, Math.min(size - at, 2 ** 30), at);
            if (bytesRead === 0) return bytes.subarray(0, at);
            at += bytesRead;
          }
          return bytes;
        } finally {
          await handle.close();
        }
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (file === manifestName && code === 'ENOENT') {
          const hint = 'a model is the folder given to train --out';
          throw badUsage(`no model in ${folder}`, { hint });
        }
        throw new UmbelError('model', 'file must exist and be readable', {
          file: join(folder, file),
          hint: 'the folder is incomplete',
          value: code,
        });
      }
    },
  };
}

/** Saves a classifier; an earlier model in the same folder is replaced, anything else there is refused. */
export async function saveModel(classifier: Classifier, folder: string): Promise<void> {
  await checkTarget(folder);
  const target = resolve(folder);
  const partial = partialName(target);
  await removeAbandoned(target);
  const parts: PartEntry[] = [];
  const add = async (file: string, pieces: Iterable<Uint8Array>) => {
    parts.push(await writeFile(partial, file, pieces));
  };
  const writer: PartWriter = {
    write: (name, tensors) => add(`${name}.safetensors`, encodeTensors(tensors)),
    writeProgram: (name, onnx) => add(`${name}.onnx`, [onnx]),
  };
  try {
    await mkdir(partial);
    await add('labels.jsonl', labelLines(classifier));
    const content = await classifier.save(writer);
    const text = await renderManifest({ format: 'umbel-model', version: formatVersion, content, parts });
    await writeFile(partial, manifestName, [new TextEncoder().encode(text)]);
    await replaceFolder(partial, target);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

/** Refuses what cannot be written or is not a model. Call it before training, so that nothing is lost after. */
export async function checkTarget(folder: string): Promise<void> {
  const parent = dirname(resolve(folder));
  const trial = partialName(`${resolve(folder)}.trial`);
  try {
    await mkdir(parent, { recursive: true });
    await mkdir(trial);
    await rmdir(trial);
  } catch (error) {
    throw new UmbelError('usage', 'model folder must be in a place that can be written', {
      file: folder,
      value: (error as NodeJS.ErrnoException).code,
    });
  }
  const found = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return [];
    const value = error.code === 'ENOTDIR' ? 'a file' : error.code;
    throw new UmbelError('usage', 'model folder must be a folder', { file: folder, value });
  });
  if (found.length > 0 && !found.includes(manifestName)) {
    throw new UmbelError('usage', 'model folder must be new, empty or an earlier model', { file: folder });
  }
}

/** Removes what a killed process left of its attempt to save the same model. */
async function removeAbandoned(target: string): Promise<void> {
  const prefix = partialName(target).slice(0, -String(process.pid).length);
  const beside = (await readdir(dirname(target))).map((name) => join(dirname(target), name));
  const pids = beside.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
  for (const pid of pids.filter((text) => /^\d+$/.test(text) && !isRunning(Number(text)))) {
    await rm(prefix + pid, { recursive: true, force: true });
  }
}

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** In pieces of about a megabyte: one write per label would be a million writes. */
function* labelLines({ vocabulary }: Classifier): Iterable<Uint8Array> {
  const encoder = new TextEncoder();
  let lines = '';
  for (const label of vocabulary) {
    lines += `${JSON.stringify(label)}\n`;
    if (lines.length < 2 ** 20) continue;
    yield encoder.encode(lines);
    lines = '';
  }
  yield encoder.encode(lines);
}

async function writeFile(folder: string, file: string, pieces: Iterable<Uint8Array>): Promise<PartEntry> {
  const handle = await open(join(folder, file), 'wx');
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    for (const piece of pieces) {
      hash.update(piece);
      for (let at = 0; at < piece.length; at += 2 ** 30) await handle.write(piece.subarray(at, at + 2 ** 30));
      bytes += piece.length;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  return { file, bytes, sha256: hash.digest('hex') };
}

async function replaceFolder(partial: string, target: string): Promise<void> {
  const old = `${partial}-old`;
  const moved = await rename(target, old).then(
    () => true,
    () => false,
  );
  try {
    await rename(partial, target);
  } catch (error) {
    if (moved) await rename(old, target);
    throw error;
  }
  if (moved) await rm(old, { recursive: true, force: true });
}
