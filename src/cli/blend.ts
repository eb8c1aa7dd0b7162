// Flags of verbs that ask a model, alone or blended with another: --with, --by, --weight.
import type { Command } from 'commander';
import { blendOptions } from '../learn/blend.ts';
import type { Classifier } from '../learn/classifier.ts';
import { loadModel } from '../store/folder.ts';
import { once, optionFlags, refuseAlone, withOptionFlags } from './run.ts';

export interface BlendFlags {
  with?: string;
  by?: string;
  weight?: string;
}

export const withBlendFlags = (command: Command): Command =>
  withOptionFlags(
    command.option(
      '--with <folder>',
      'another model of the same labels to blend with this one; labels that it alone has are left out',
      once('with'),
    ),
    blendOptions,
  );

/** The model in this folder, blended with the one that `--with` names. */
export async function loadBlended(folder: string, flags: BlendFlags): Promise<Classifier> {
  if (flags.with === undefined) refuseAlone(flags, '--with', ['by', 'weight']);
  const classifier = await loadModel(folder);
  if (flags.with === undefined) return classifier;
  return classifier.blended(await loadModel(flags.with), optionFlags(blendOptions, flags));
}
