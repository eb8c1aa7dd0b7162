// umbel labels add and remove: labels for a model that is already trained, and away with others, without training.
import type { Command } from 'commander';
import { readLines } from '../data/file.ts';
import { badUsage } from '../errors.ts';
import { loadModel, saveModel } from '../store/folder.ts';
import { type CommonFlags, once, type Terminal, verb, withCommonFlags } from './run.ts';
import { color, formatCount } from './terminal.ts';

interface AddFlags extends CommonFlags {
  model: string;
  text: string;
  id?: string;
  examples?: string;
}

export function registerLabelChanges(labels: Command): void {
  const add = labels
    .command('add')
    .description('teach a model a label by its name and samples, without training (prime learners)')
    .requiredOption('--model <folder>', 'a trained model')
    .requiredOption('--text <name>', 'what the label is called', once('text'))
    .option('--id <id>', 'its id (default: its name)', once('id'))
    .option('--examples <file>', 'texts of samples that carry it, one per line', once('examples'))
    .addHelpText(
      'after',
      `
Examples:
  umbel labels add --model model --text "electric bicycles"
  umbel labels add --model model --text "electric bicycles" --id p39812 --examples bicycles.txt`,
    );
  withCommonFlags(add).action(verb(addLabel));
  const remove = labels
    .command('remove')
    .description('make a model forget labels (prime learners; others can exclude them)')
    .argument('<ids...>', 'label ids')
    .requiredOption('--model <folder>', 'a trained model');
  withCommonFlags(remove).action(verb(removeLabels));
}

async function addLabel(terminal: Terminal, { model, text, id = text, examples: file }: AddFlags) {
  if (text.trim() === '') throw badUsage('--text must not be empty', { value: text });
  const examples = file === undefined ? [] : await textsOf(file);
  const before = await loadModel(model);
  const verb = before.vocabulary.column(id) === undefined ? 'Added' : 'Taught anew:';
  const classifier = await before.withLabels([{ id, name: text, examples }]);
  await saveModel(classifier, model);
  const from = examples.length > 0 ? ` and ${formatCount(examples.length)} samples` : '';
  terminal.say(
    `${verb} ${color.bold(id)}, known by its name${from}; ${formatCount(classifier.vocabulary.size)} labels.`,
  );
  return { label: id, name: text, examples: examples.length, labels: classifier.vocabulary.size };
}

async function textsOf(file: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const { lines } of readLines(file)) texts.push(...lines.filter((line) => line.trim() !== ''));
  return texts;
}

async function removeLabels(terminal: Terminal, { model }: CommonFlags & { model: string }, given: string[]) {
  const ids = [...new Set(given)];
  const classifier = await (await loadModel(model)).withoutLabels(ids);
  await saveModel(classifier, model);
  terminal.say(
    `Removed ${formatCount(ids.length)}; ${formatCount(classifier.vocabulary.size)} labels remain.`,
  );
  return { removed: ids, labels: classifier.vocabulary.size };
}
