// umbel senses: what a label means in each of the clusters it lies in, and which labels mean the most different things.
import type { Command } from 'commander';
import { badUsage } from '../errors.ts';
import type { Classifier, LabelSense } from '../learn/classifier.ts';
import { loadModel } from '../store/folder.ts';
import { findLabel } from './explain.ts';
import { type CommonFlags, once, positiveInteger, type Terminal, verb, withCommonFlags } from './run.ts';
import { color, formatCount, formatPercent, table } from './terminal.ts';

interface SensesFlags extends CommonFlags {
  model: string;
  label?: string;
  top?: number;
  words?: number;
}

const sensesExamples = `
Examples:
  umbel train --train titles.csv --set overlap=true --out model
  umbel senses --model model --top 50
  umbel senses --model model --label belt`;

export function registerSenses(program: Command): void {
  const command = program
    .command('senses')
    .description('show the different meanings of labels, in a model trained with overlap=true')
    .requiredOption('--model <folder>', 'a trained model', once('model'))
    .option('--label <id>', 'the label to show, by id or name', once('label'))
    .option('--top <n>', 'rank this many labels by how far apart their senses are', positiveInteger('top'))
    .option(
      '--words <n>',
      'words and neighbours shown per sense (default: 8, with --top 3)',
      positiveInteger('words'),
    )
    .addHelpText('after', sensesExamples);
  withCommonFlags(command).action(verb(senses));
}

async function senses(terminal: Terminal, flags: SensesFlags) {
  if ((flags.label === undefined) === (flags.top === undefined))
    throw badUsage('one of --label and --top must be given, and not both');
  const classifier = await loadModel(flags.model);
  if (flags.top !== undefined) return rankLabels(terminal, classifier, flags.top, flags.words ?? 3);
  const label = findLabel(flags.label ?? '', classifier.vocabulary);
  const name = classifier.vocabulary.name(classifier.vocabulary.column(label) ?? 0);
  const found = classifier.senses(label);
  const plural = found.length === 1 ? 'sense' : 'senses';
  const id = name === label ? '' : color.dim(` (${label})`);
  terminal.say(`${color.bold(name)}${id}  ${found.length} ${plural}`);
  for (const [i, sense] of found.entries()) terminal.say(show(sense, i + 1, flags.words ?? 8));
  return { label, name, senses: found };
}

function rankLabels(terminal: Terminal, classifier: Classifier, top: number, most: number) {
  const ranked = classifier.sensesTop(top).map((entry) => {
    const samples = classifier.counts[classifier.vocabulary.column(entry.label) ?? 0];
    return { ...entry, samples, senses: classifier.senses(entry.label) };
  });
  const rows = ranked.map(({ label, name, apart, samples, senses }) => {
    const words = senses.map((sense) => telling(sense, most).join(', '));
    return [apart.toFixed(3), formatCount(samples), label, name === label ? '' : name, words.join(' | ')];
  });
  terminal.say(table(['apart', 'samples', 'id', 'name', 'words of each sense'], rows));
  return { labels: ranked };
}

const telling = ({ words }: LabelSense, most: number) => words.slice(0, most).map(({ word }) => word);

function show(sense: LabelSense, number: number, most: number): string {
  const { tree, cluster, rows, share, neighbours, examples } = sense;
  const place = color.dim(`tree ${tree + 1}, cluster ${cluster}`);
  const lines = [
    ['words', telling(sense, most).join(', ')],
    [
      'beside',
      neighbours
        .slice(0, most)
        .map(({ name }) => name)
        .join(', '),
    ],
    ...examples.map((text, i) => [i === 0 ? 'texts' : '', text]),
  ];
  const title = `\n${number}. ${formatPercent(share)}% of its samples (${formatCount(rows)})  ${place}`;
  return `${title}\n${table(['', ''], lines).split('\n').slice(1).join('\n')}`;
}
