// umbel explain: which words pushed a label, step by step, adding up to its score.
import type { Command } from 'commander';
import type { Vocabulary } from '../data/vocabulary.ts';
import { badUsage, suggest } from '../errors.ts';
import type { Explanation } from '../learn/learner.ts';
import { loadModel } from '../store/folder.ts';
import { type CommonFlags, once, type Terminal, verb, withCommonFlags } from './run.ts';
import { color, table } from './terminal.ts';

interface ExplainFlags extends CommonFlags {
  model: string;
  text: string;
  label?: string;
  words: number;
}

export function registerExplain(program: Command): void {
  const command = program
    .command('explain')
    .description('show which words pushed a label')
    .requiredOption('--model <folder>', 'a trained model', once('model'))
    .requiredOption('--text <text>', 'the text to explain', once('text'))
    .option('--label <id>', 'the label to explain, by id or name (default: the best one)')
    .option('--words <n>', 'words shown per step', Number, 10)
    .addHelpText('after', '\nExample:\n  umbel explain --model model --text "a small yellow bird"');
  withCommonFlags(command).action(verb(explain));
}

async function explain(terminal: Terminal, flags: ExplainFlags) {
  const classifier = await loadModel(flags.model);
  const [best] = await classifier.suggest([flags.text], { top: 1 });
  const label = flags.label === undefined ? best[0]?.label : findLabel(flags.label, classifier.vocabulary);
  if (label === undefined) {
    terminal.say('The text has no word the model knows, so there is no label to explain.');
    return { label: null, explanation: null };
  }
  const explanation = await classifier.explain([flags.text], label);
  const name = classifier.vocabulary.name(classifier.vocabulary.column(label) ?? 0);
  const named = (feature: number) => classifier.featureName(feature);
  if (!explanation) terminal.say(`${color.bold(name)} was out of reach for this text.`);
  else terminal.say(show(name, label, explanation, named, flags.words));
  const steps = explanation?.steps.map((step) => ({
    ...step,
    contributions: step.contributions.map(({ feature, value }) => ({ feature: named(feature), value })),
  }));
  return { label, name, score: explanation?.score ?? null, steps: steps ?? null };
}

/** The id of a label that is given by its id, or by a name that no other has. */
export function findLabel(given: string, vocabulary: Vocabulary): string {
  if (vocabulary.column(given) !== undefined) return given;
  const labels = Array.from(vocabulary, ({ id, name = id }) => ({ id, name }));
  const found = labels.filter(({ name }) => name.toLowerCase() === given.toLowerCase());
  if (found.length === 1) return found[0].id;
  if (found.length > 1) {
    const ids = found.slice(0, 5).map(({ id }) => id);
    throw badUsage('label name must be unique', { value: given, hint: `its ids: ${ids.join(', ')}` });
  }
  const close = suggest(
    given,
    labels.map(({ name }) => name),
  );
  const hint = close ? `did you mean ${close}?` : 'umbel labels list --search finds labels';
  throw badUsage('label must be an id or a name the model knows', { value: given, hint });
}

function show(
  name: string,
  label: string,
  { score, steps }: Explanation,
  named: (f: number) => string,
  words: number,
) {
  const title = `${color.bold(name)}${name === label ? '' : color.dim(` (${label})`)}  score ${score.toFixed(4)}`;
  const sections = steps.map(({ what, margin, bias, factor, contributions }) => {
    const shown = contributions.slice(0, words).map(({ feature, value }) => [signed(value), named(feature)]);
    const rest = contributions.slice(words).reduce((sum, { value }) => sum + value, 0);
    if (contributions.length > words)
      shown.push([signed(rest), color.dim(`${contributions.length - words} more words`)]);
    const rows = [...shown, [signed(bias), color.dim('bias')]];
    return `\n${what}: margin ${margin.toFixed(3)}, factor ${factor.toFixed(4)}\n${table(['push', 'word'], rows)}`;
  });
  return [title, ...sections].join('\n');
}

const signed = (value: number) => `${value < 0 ? '-' : '+'}${Math.abs(value).toFixed(3)}`;
