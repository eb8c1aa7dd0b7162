// umbel evaluate: how good a model is on test data, where it is good, and whether it beats another.
import type { Command } from 'commander';
import Papa from 'papaparse';
import { collect } from '../data/dataset.ts';
import { AtomicFile } from '../data/file.ts';
import { openSamples } from '../data/formats.ts';
import { readPairs } from '../data/labels.ts';
import type { Vocabulary } from '../data/vocabulary.ts';
import { badInput, locate } from '../errors.ts';
import { labelReport } from '../judge/bins.ts';
import { type Comparison, compare } from '../judge/bootstrap.ts';
import {
  type EvaluateOptions,
  evaluate,
  evaluateOptions,
  type Report,
  rowMetrics,
} from '../judge/evaluate.ts';
import type { Classifier } from '../learn/classifier.ts';
import { nnz, type Pattern, type Ranking } from '../math/csr.ts';
import { loadModel } from '../store/folder.ts';
import { type BlendFlags, loadBlended, withBlendFlags } from './blend.ts';
import { checkFiles } from './files.ts';
import {
  type CommonFlags,
  once,
  optionFlags,
  positiveInteger,
  type ReadFlags,
  readOptions,
  reportSkipped,
  type Terminal,
  verb,
  withCommonFlags,
  withOptionFlags,
  withReadFlags,
} from './run.ts';
import { color, formatCount, formatPercent, table } from './terminal.ts';

interface EvaluateFlags extends CommonFlags, ReadFlags, BlendFlags {
  model: string;
  test: string;
  valid?: string;
  against?: string;
  perLabel?: string;
  filter?: string;
  top: number;
}

/** A model's answers on a file, beside the truth. */
interface Answers {
  ranking: Ranking;
  truth: Pattern;
  vocabulary: Vocabulary;
  seconds: number;
  /** Share of the true labels that the model has never heard of. */
  unknownLabels: number;
  /** Bad records left out, where that was asked for. */
  skipped?: number;
}

interface Examined extends Answers {
  classifier: Classifier;
  options: EvaluateOptions;
}

export function registerEvaluate(program: Command): void {
  const command = program
    .command('evaluate')
    .description('measure a model on test data')
    .requiredOption('--model <folder>', 'a trained model', once('model'))
    .requiredOption('--test <file>', 'test data with labels', once('test'))
    .option('--valid <file>', 'validation data: thresholds are chosen on it')
    .option('--against <folder>', 'another model: compare the two on the same rows')
    .option('--filter <file>', 'pairs to leave out, `row label` on each line')
    .option('--per-label <file>', 'write a .csv with one line per label')
    .option('--top <k>', 'labels predicted per input', positiveInteger('top'), 100)
    .addHelpText(
      'after',
      `
Examples:
  umbel evaluate --model model --test test.csv
  umbel evaluate --model model --test test.csv --resamples 1000 --per-label labels.csv
  umbel evaluate --model new --test test.csv --against old
  umbel evaluate --model tree --with prime --test test.csv --against tree`,
    );
  withOptionFlags(withBlendFlags(withReadFlags(withCommonFlags(command))), evaluateOptions).action(verb(run));
}

async function run(terminal: Terminal, flags: EvaluateFlags) {
  checkFiles({
    read: { '--test': flags.test, '--valid': flags.valid, '--filter': flags.filter },
    written: { '--per-label': flags.perLabel },
  });
  const own = await examine(await loadBlended(flags.model, flags), flags, terminal);
  const report = evaluate(own.ranking, own.truth, own.options);
  const { seconds, unknownLabels, skipped } = own;
  const microsecondsPerInput = (1e6 * seconds) / report.n;
  terminal.say(showReport(report, microsecondsPerInput, flags.top));
  if (flags.perLabel) await writeLabelReport(flags.perLabel, own, flags.top);
  const result = { ...report, unknownLabels, skipped, seconds, microsecondsPerInput };
  if (!flags.against) return result;
  const other = await examine(await loadModel(flags.against), flags, terminal);
  const rows = ({ ranking, truth, options }: Examined) => rowMetrics(ranking, truth, options);
  const { resamples, confidence } = optionFlags(evaluateOptions, flags);
  // A comparison is nothing without resampling, so that 0 means the usual number here.
  const settings = { seed: flags.seed, resamples: resamples || undefined, confidence };
  const comparison = compare(rows(other), rows(own), settings);
  const shown = Object.entries(comparison).filter(([name]) => Number(name.split('@')[1] ?? 0) <= flags.top);
  terminal.say(showComparison(shown, flags.against, flags.model, confidence));
  return { ...result, against: flags.against, comparison };
}

/** Has a model answer the test data, and the validation data if there is any. */
async function examine(classifier: Classifier, flags: EvaluateFlags, terminal: Terminal): Promise<Examined> {
  const answers = await answer(classifier, flags.test, flags, terminal);
  const { a, b, ...settings } = optionFlags(evaluateOptions, flags);
  const options = {
    ...settings,
    counts: classifier.counts,
    rows: classifier.rows,
    propensity: { a, b },
    exclude: flags.filter ? await readPairs(flags.filter, answers.truth.rows, answers.vocabulary) : undefined,
    validation: flags.valid ? await answer(classifier, flags.valid, flags, terminal) : undefined,
    seed: flags.seed,
  };
  return { ...answers, classifier, options };
}

async function answer(
  classifier: Classifier,
  file: string,
  flags: EvaluateFlags,
  terminal: Terminal,
): Promise<Answers> {
  // Labels the model never saw get columns behind its own: they count as true labels it cannot find.
  const vocabulary = classifier.vocabulary.clone();
  const reading = { ...readOptions(flags, terminal), vocabulary };
  const dataset = await readTest(classifier, file, reading);
  reportSkipped(reading, terminal);
  const unknownLabels = unknownShare(dataset.labels, classifier, vocabulary, file, terminal);
  const started = performance.now();
  const { top } = flags;
  const ranking = await classifier.rank(dataset, { ...terminal, top });
  const seconds = (performance.now() - started) / 1000;
  return {
    ranking,
    truth: dataset.labels,
    vocabulary,
    seconds,
    unknownLabels,
    skipped: reading.skipped?.count,
  };
}

async function readTest(classifier: Classifier, file: string, reading: ReturnType<typeof readOptions>) {
  try {
    const samples = await openSamples(file, reading);
    classifier.checkDeclared(samples.width);
    const dataset = await collect(samples);
    if (dataset.rows === 0) throw badInput('file must hold at least one sample');
    if (nnz(dataset.labels) === 0)
      throw badInput('samples must have labels to be compared with', {
        value: `none in ${dataset.rows}`,
        hint: 'of a table, --columns labels=NAME says which column they are in',
      });
    return dataset;
  } catch (error) {
    throw locate(error, { file });
  }
}

/** Many labels that the model has never heard of are more often a misread file than a hard one: says so. */
function unknownShare(
  { indices }: Pattern,
  classifier: Classifier,
  vocabulary: Vocabulary,
  file: string,
  terminal: Terminal,
): number {
  const unknown = indices.filter((column) => column >= classifier.vocabulary.size);
  const share = indices.length ? unknown.length / indices.length : 0;
  if (share > 0.2) {
    const first = JSON.stringify(vocabulary.label(unknown[0]).id);
    terminal.note(
      `${formatPercent(share)}% of the labels in ${file} are unknown to the model, the first is ${first}: ` +
        'are --label-delimiter and --columns right?',
    );
  }
  return share;
}

function showReport(report: Report, microseconds: number, top: number): string {
  const depths = [1, 3, 5, 10].filter((k) => k <= top);
  const { intervals } = report;
  const cell = (metric: 'P' | 'R' | 'nDCG' | 'PSP' | 'PSnDCG', k: number) => {
    const interval = intervals?.[`${metric}@${k}`];
    const spread = interval ? ` ±${formatPercent((interval.high - interval.low) / 2)}` : '';
    return formatPercent(report[`${metric}@${k}`]) + spread;
  };
  const names = ['P', 'nDCG', 'PSP', 'PSnDCG', 'R'] as const;
  const ranking = table(
    ['%', ...depths.map((k) => `@${k}`)],
    names.map((name) => [color.bold(name), ...depths.map((k) => cell(name, k))]),
  );
  const { protocol, ...cuts } = report.thresholds;
  const others = Object.entries(report.protocols).filter(([name]) => name !== protocol);
  const sets = table(
    ['%', protocol, 'threshold', ...others.map(([name]) => name)],
    (['microF1', 'macroF1', 'exampleF1', 'hammingAccuracy'] as const).map((name) => {
      const values = others.map(([, metrics]) => formatPercent(metrics[name]));
      return [
        color.bold(name),
        formatPercent(report[name]),
        cuts[name]?.toFixed(2) ?? 'per label',
        ...values,
      ];
    }),
  );
  const bins = table(
    [
      'labels seen in training',
      'labels',
      'true in test',
      `recall@${report.bins.k} %`,
      `part of P@${report.bins.k} %`,
    ],
    report.bins.rows.map((bin) => [
      `${color.bold(bin.name)} (${bin.from === 0 ? 'never' : `${bin.from} times or more`})`,
      formatCount(bin.labels),
      formatCount(bin.positives),
      bin.positives === 0 ? '–' : formatPercent(bin.recall),
      formatPercent(bin.precision),
    ]),
  );
  const calibrated = report.calibration
    ? `Calibration error of the scores: ${formatPercent(report.calibration.expectedError)} points.`
    : '';
  return [
    `${formatCount(report.n)} inputs, ${formatCount(report.labels)} labels, ${microseconds.toFixed(0)} µs per input`,
    `${ranking}\n${color.dim(`propensity A=${report.propensity.a} B=${report.propensity.b}`)}`,
    `${sets}\n${color.dim('by where the thresholds come from: oracle_test is their best on the test data itself')}`,
    report.bins.k <= top ? bins : '',
    calibrated,
  ]
    .filter(Boolean)
    .join('\n\n');
}

function showComparison(comparison: [string, Comparison][], other: string, own: string, confidence: number) {
  const signed = (value: number) => (value < 0 ? '' : '+') + formatPercent(value);
  const rows = comparison.map(([name, c]) => [
    color.bold(name),
    formatPercent(c.a),
    formatPercent(c.b),
    signed(c.difference),
    `${signed(c.low)}..${signed(c.high)}`,
    c.p.toFixed(4),
    `${c.wins}/${c.ties}/${c.losses}`,
  ]);
  const header = ['%', other, own, 'diff', `${100 * confidence}% interval`, 'p', 'w/t/l'];
  return `\n${table(header, rows)}\n${color.dim('w/t/l: rows won, tied and lost')}`;
}

async function writeLabelReport(path: string, { classifier, ...answers }: Examined, top: number) {
  const k = Math.min(5, top);
  const report = labelReport(answers.ranking, answers.truth, { counts: classifier.counts, k });
  const counted = ['trained', 'positives'] as const;
  const ofRanking = ['predicted', 'hits', 'precision', 'recall', 'f1'] as const;
  const header = ['id', 'name', ...counted, ...ofRanking.map((field) => `${field}@${k}`)];
  const rows = Array.from(answers.vocabulary, ({ id, name = '' }, label) => {
    return [id, name, ...[...counted, ...ofRanking].map((field) => report[field][label])];
  });
  const file = await AtomicFile.create(path);
  await file.write(`${Papa.unparse([header, ...rows], { newline: '\n' })}\n`);
  await file.close();
}
