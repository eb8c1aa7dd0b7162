// umbel explain: which words pushed a label, step by step, adding up to its score.
import type { Command } from 'commander';
import type { Explanation } from '../learn/learner.ts';
import { loadModel } from '../store/folder.ts';
import { type CommonFlags, type Terminal, verb, withCommonFlags } from './run.ts';
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
    .requiredOption('--model <folder>', 'a trained model')
    .requiredOption('--text <text>', 'the text to explain')
    .option('--label <id>', 'the label to explain (default: the best one)')
    .option('--words <n>', 'words shown per step', Number, 10)
    .addHelpText('after', '\nExample:\n  umbel explain --model model --text "a small yellow bird"');
  withCommonFlags(command).action(verb(explain));
}

async function explain(terminal: Terminal, flags: ExplainFlags) {
  const classifier = await loadModel(flags.model);
  const [best] = await classifier.suggest([flags.text], { top: 1 });
  const label = flags.label ?? best[0]?.label;
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
