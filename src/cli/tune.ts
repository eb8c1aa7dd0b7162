// umbel tune: which options suit this data, by trying them on rows held back.
import type { Command } from 'commander';
import { type Dataset, selectSamples } from '../data/dataset.ts';
import { readDataset } from '../data/formats.ts';
import { splitRows } from '../data/split.ts';
import { badUsage } from '../errors.ts';
import { type Trial, type Tuned, tune } from '../judge/tune.ts';
import { defaultLearner, learnerNames } from '../learn/registry.ts';
import {
  type CommonFlags,
  collectSetting,
  once,
  positiveInteger,
  type ReadFlags,
  readOptions,
  reportSkipped,
  type Terminal,
  verb,
  withCommonFlags,
  withReadFlags,
} from './run.ts';
import { color, formatCount, formatPercent, formatSeconds, table } from './terminal.ts';

interface TuneFlags extends CommonFlags, ReadFlags {
  train: string;
  valid?: string;
  learner: string;
  set?: Record<string, string>;
  try?: Record<string, string[]>;
  metric: string;
  trials: number;
}

export function registerTune(program: Command): void {
  const command = program
    .command('tune')
    .description('find options that suit the data, by trying them on rows held back')
    .requiredOption('--train <file>', 'training data', once('train'))
    .option('--valid <file>', 'data to judge by (default: a tenth of the training data)', once('valid'))
    .option('--learner <name>', `one of ${learnerNames.join(', ')}`, defaultLearner)
    .option(
      '--try <option=a,b,c>',
      'values to try of an option; repeatable (default: the learner has some)',
      collectTry,
    )
    .option('--set <option=value>', 'an option that all trials have; repeatable', collectSetting)
    .option('--metric <name>', 'what to judge by: P, R, nDCG, PSP or PSnDCG at a depth', 'nDCG@5')
    .option(
      '--trials <n>',
      'at most this many; of more combinations some are drawn',
      positiveInteger('trials'),
      20,
    )
    .addHelpText('after', tuneExamples);
  withReadFlags(withCommonFlags(command)).action(verb(run));
}

const tuneExamples = `
Examples:
  umbel tune --train titles.csv --columns text=title,labels=subjects
  umbel tune --train train.jsonl --valid valid.jsonl --try costPositive=0.2,0.4,1 --try text.ngrams=1,2
  umbel tune --train train.jsonl --metric PSP@5 --try overlap.lambda=2,4 --set overlap=true`;

function collectTry(text: string, tries: Record<string, string[]> = {}): Record<string, string[]> {
  const at = text.indexOf('=');
  if (at < 1) throw badUsage('--try must have the form option=value,value', { value: text });
  const name = text.slice(0, at);
  if (Object.hasOwn(tries, name)) throw badUsage(`--try ${name} must be given once`, { value: text });
  return { ...tries, [name]: text.slice(at + 1).split(',') };
}

async function run(terminal: Terminal, flags: TuneFlags) {
  const { train, held } = await readParts(flags, terminal);
  terminal.say(
    `Training on ${formatCount(train.rows)} samples, judging on ${formatCount(held.rows)} others.`,
  );
  const { learner, set: options, try: tries, metric, trials } = flags;
  const onTrial = (trial: Trial) =>
    terminal.note(`${metric} ${formatPercent(trial.score)}  ${settings(trial)}`);
  const found = await tune(train, held, { ...terminal, learner, options, tries, metric, trials, onTrial });
  terminal.say(showTrials(found));
  terminal.say(showBest(found, flags));
  return { learner, train: train.rows, held: held.rows, ...found };
}

async function readParts(flags: TuneFlags, terminal: Terminal): Promise<{ train: Dataset; held: Dataset }> {
  const reading = readOptions(flags, terminal);
  const all = await readDataset(flags.train, reading);
  reportSkipped(reading, terminal);
  if (flags.valid) {
    // Labels that only these have get columns behind the others: they count as true labels that none can find.
    const held = await readDataset(flags.valid, { ...reading, vocabulary: all.vocabulary.clone() });
    return { train: all, held };
  }
  const { train, test } = splitRows(all.labels, { rule: 'random', test: 0.1, seed: flags.seed });
  return { train: selectSamples(all, train), held: selectSamples(all, test) };
}

const settings = ({ tried }: Trial): string =>
  Object.entries(tried)
    .map(([name, value]) => `--set ${name}=${value}`)
    .join(' ') || 'as it is';

/** Rows of the table of trials. */
const mostShown = 20;

function showTrials({ metric, trials, best }: Tuned): string {
  const ordered = trials.toSorted((a, b) => b.score - a.score).slice(0, mostShown);
  const rows = ordered.map((trial) => {
    const score = formatPercent(trial.score);
    return [trial === best ? color.bold(score) : score, formatSeconds(trial.seconds), settings(trial)];
  });
  return table([`${metric} %`, 'trained in', 'options'], rows);
}

function showBest({ metric, best, gain, trials }: Tuned, flags: TuneFlags): string {
  if (best === trials[0]) return `No trial was better than the first, ${settings(best)}.`;
  const signed = (value: number) => (value < 0 ? '' : '+') + formatPercent(value);
  const fixed = Object.entries(flags.set ?? {}).map(([name, value]) => ` --set ${name}=${value}`);
  const learner = flags.learner === defaultLearner ? '' : ` --learner ${flags.learner}`;
  return (
    `Best: ${color.bold(settings(best))}\n` +
    `${metric} ${signed(gain.difference)} points beside the first (95% interval ${signed(gain.low)}..${signed(gain.high)}). ` +
    'It was chosen on these very rows: expect a little less on others.\n' +
    `Try: umbel train --train ${flags.train}${learner}${fixed.join('')} ${settings(best)} --out model`
  );
}
