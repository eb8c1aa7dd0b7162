// umbel labels: look at the label set of a trained model, and change which labels may be predicted.
import type { Command } from 'commander';
import { badUsage } from '../errors.ts';
import type { Classifier } from '../learn/classifier.ts';
import { loadModel, saveModel } from '../store/folder.ts';
import { type CommonFlags, positiveInteger, type Terminal, verb, withCommonFlags } from './run.ts';
import { color, formatCount, table } from './terminal.ts';

interface LabelsFlags extends CommonFlags {
  model: string;
}

export function registerLabels(program: Command): void {
  const labels = program.command('labels').description('look at or change the label set of a trained model');
  const list = labels
    .command('list')
    .description('labels by frequency in the training data')
    .requiredOption('--model <folder>', 'a trained model')
    .option('--search <text>', 'only labels whose name or id contains this')
    .option('--top <n>', 'how many to show', positiveInteger('top'), 20);
  withCommonFlags(list).action(verb(listLabels));
  for (const [name, description] of [
    ['exclude', 'never predict these labels again'],
    ['allow', 'predict these labels again'],
  ] as const) {
    const change = labels
      .command(name)
      .description(description)
      .argument('<ids...>', 'label ids')
      .requiredOption('--model <folder>', 'a trained model');
    withCommonFlags(change).action(
      verb((terminal, flags: LabelsFlags, ids: string[]) => changeExcluded(terminal, flags, name, ids)),
    );
  }
}

async function listLabels(terminal: Terminal, flags: LabelsFlags & { search?: string; top: number }) {
  const classifier = await loadModel(flags.model);
  const wanted = flags.search?.toLowerCase();
  const found = Array.from(classifier.vocabulary, (label, column) => ({
    ...describe(classifier, column),
    ...label,
  }))
    .filter(({ id, name, altNames }) => {
      return (
        wanted === undefined ||
        [id, name, ...(altNames ?? [])].some((text) => text?.toLowerCase().includes(wanted))
      );
    })
    .sort((a, b) => b.samples - a.samples);
  const rows = found.slice(0, flags.top).map(({ id, name, samples, excluded }) => {
    return [formatCount(samples), id, name ?? '', excluded ? color.red('excluded') : ''];
  });
  terminal.say(table(['samples', 'id', 'name', ''], rows));
  terminal.say(
    color.dim(`${formatCount(found.length)} of ${formatCount(classifier.vocabulary.size)} labels`),
  );
  return { labels: classifier.vocabulary.size, found: found.length, shown: found.slice(0, flags.top) };
}

function describe(classifier: Classifier, column: number) {
  return { samples: classifier.counts[column] ?? 0, excluded: classifier.vocabulary.isExcluded(column) };
}

async function changeExcluded(
  terminal: Terminal,
  { model }: LabelsFlags,
  change: 'exclude' | 'allow',
  ids: string[],
) {
  const classifier = await loadModel(model);
  if (change === 'exclude') classifier.vocabulary.exclude(ids);
  else classifier.vocabulary.allow(ids);
  const excluded = classifier.vocabulary.excludedIds;
  if (excluded.length === classifier.vocabulary.size)
    throw badUsage('at least one label must remain', { value: 0 });
  await saveModel(classifier, model);
  terminal.say(
    `${formatCount(excluded.length)} of ${formatCount(classifier.vocabulary.size)} labels are excluded.`,
  );
  return { labels: classifier.vocabulary.size, excluded };
}
