// Finished pieces of a training run, kept in a folder until the model is saved, so that a killed run can go on. A
// piece's file name carries its checksum: a damaged piece is trained again.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeTensors, encodeTensors } from '../data/safetensors.ts';
import type { Checkpoint } from '../learn/learner.ts';
import { sha256 } from './manifest.ts';

export interface CheckpointFolder extends Checkpoint {
  /** Pieces that an earlier run left. */
  readonly found: number;
  remove(): Promise<void>;
}

/** Opens the folder, which need not exist; it is made when the first piece is saved. */
export async function openCheckpoint(
  folder: string,
  mode: 'go on' | 'start anew',
): Promise<CheckpointFolder> {
  if (mode === 'start anew') await rm(folder, { recursive: true, force: true });
  const files = await readdir(folder).catch((): string[] => []);
  const pieces = files.filter((file) => file.endsWith('.safetensors'));
  const saved = new Map(pieces.map((file) => [file.slice(0, file.indexOf('.')), join(folder, file)]));
  return {
    found: pieces.length,
    async load(name) {
      const file = pieces.find((piece) => piece.startsWith(`${name}.`));
      if (!file) return undefined;
      const bytes = await readFile(join(folder, file));
      return file === fileName(name, await sha256(bytes)) ? decodeTensors(bytes) : undefined;
    },
    async save(name, tensors) {
      const bytes = Buffer.concat(encodeTensors(tensors));
      const path = join(folder, fileName(name, await sha256(bytes)));
      await mkdir(folder, { recursive: true });
      await writeFile(`${path}.partial`, bytes);
      await rename(`${path}.partial`, path);
      const earlier = saved.get(name);
      if (earlier && earlier !== path) await rm(earlier, { force: true });
      saved.set(name, path);
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

const fileName = (name: string, checksum: string) => `${name}.${checksum}.safetensors`;
